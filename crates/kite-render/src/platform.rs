//! The platform's settings in force: the last ones that were good (rule P-3).
//!
//! A KitePlatform that is wrong stops nobody. Until it is mended the settings
//! before it hold, or the defaults in a process that never saw good ones.

use std::sync::{Arc, Mutex, PoisonError};

use kite_api::KitePlatform;
use kite_api::platform::KitePlatformSpec;

use crate::validate::{Problems, ValidPlatform};

/// The settings in force. Locked while a changed object is parsed, by any pass.
#[derive(Debug)]
pub struct InForce {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// UID and generation of the object that was last parsed.
    seen: Option<(Option<String>, Option<i64>)>,
    good: Arc<ValidPlatform>,
    problems: Option<Problems>,
}

impl Default for InForce {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                seen: None,
                good: Arc::new(ValidPlatform::default()),
                problems: None,
            }),
        }
    }
}

impl InForce {
    /// The settings in force, given the object as it is now; absent means the defaults.
    pub fn current(&self, platform: Option<&KitePlatform>) -> Arc<ValidPlatform> {
        self.look(platform).good.clone()
    }

    /// The settings that were last in force, for when the object cannot even be read.
    pub fn last(&self) -> Arc<ValidPlatform> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.good.clone()
    }

    /// What is wrong with the object as it is now.
    pub fn problems(&self, platform: Option<&KitePlatform>) -> Option<Problems> {
        self.look(platform).problems.clone()
    }

    fn look(&self, platform: Option<&KitePlatform>) -> std::sync::MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = platform.map(|p| (p.metadata.uid.clone(), p.metadata.generation));
        if now != state.seen {
            let defaults = KitePlatformSpec::default();
            match ValidPlatform::parse(platform.map_or(&defaults, |p| &p.spec)) {
                Ok(good) => {
                    state.good = Arc::new(good);
                    state.problems = None;
                }
                Err(problems) => state.problems = Some(problems),
            }
            state.seen = now;
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use kite_api::platform::PLATFORM_NAME;

    use super::*;

    fn platform(generation: i64, base_domain: &str) -> KitePlatform {
        let spec = KitePlatformSpec {
            base_domain: Some(base_domain.into()),
            ..KitePlatformSpec::default()
        };
        let mut platform = KitePlatform::new(PLATFORM_NAME, spec);
        platform.metadata.generation = Some(generation);
        platform
    }

    // P-3
    #[test]
    fn wrong_settings_leave_the_last_good_ones_in_force() {
        let in_force = InForce::default();
        let host = |p: Option<&KitePlatform>| {
            in_force
                .current(p)
                .base_domain
                .as_ref()
                .map(ToString::to_string)
        };
        assert_eq!(host(None), None);
        assert_eq!(
            host(Some(&platform(1, "example.org"))).as_deref(),
            Some("example.org")
        );
        let wrong = platform(2, "not a domain");
        assert_eq!(host(Some(&wrong)).as_deref(), Some("example.org"));
        assert!(in_force.problems(Some(&wrong)).is_some());
        assert_eq!(
            host(Some(&platform(3, "example.net"))).as_deref(),
            Some("example.net")
        );
        assert!(
            in_force
                .problems(Some(&platform(3, "example.net")))
                .is_none()
        );
        assert_eq!(host(None), None);
    }
}
