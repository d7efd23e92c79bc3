//! Versions that the server has refused a write for as old.
//!
//! A cache shows such a version for as long as its watch is behind, which on a busy server is
//! seconds, and a pass that is woken in between decides on it again. The same write would be
//! refused again, so it is not sent for a moment; what is decided on a newer version is. The
//! refusal is no proof that the cache will move, so after that moment it is sent all the same.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::cache::Key;

/// How far a watch may be behind: measured on a server of two processors with a hundred machines
/// in the making, few were further.
const BEHIND: Duration = Duration::from_secs(3);

/// The last version that was refused, by kind and object. An entry goes with the next write that
/// is carried out, or when the object is gone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outdated {
    /// Locked for single operations.
    refused: Arc<Mutex<Refused>>,
}

/// Version and time, by kind and key.
type Refused = HashMap<(String, Key), (String, Instant)>;

impl Outdated {
    /// Whether a write that was decided on this version has just been refused as old.
    pub(crate) fn is(&self, kind: &str, key: &Key, version: Option<&str>) -> bool {
        let Some(version) = version else {
            return false;
        };
        let refused = self.lock();
        let last = refused.get(&(kind.to_owned(), key.clone()));
        last.is_some_and(|(last, at)| last == version && at.elapsed() < BEHIND)
    }

    /// Notes the answer to a write that was decided on this version.
    pub(crate) fn note<K>(
        &self,
        kind: &str,
        key: &Key,
        version: Option<&str>,
        answer: &kube::Result<K>,
    ) {
        let Some(version) = version else {
            return;
        };
        let entry = (kind.to_owned(), key.clone());
        match answer {
            Err(kube::Error::Api(status)) if status.code == 409 => {
                let causes = status.details.as_ref().map(|d| d.causes.as_slice());
                // Another manager's field is no matter of versions; without it the write may pass.
                if causes.unwrap_or_default().is_empty() {
                    self.lock()
                        .insert(entry, (version.to_owned(), Instant::now()));
                }
            }
            Err(kube::Error::Api(status)) if status.code != 404 => {}
            // What became of a request without an answer is unknown; the next one will tell.
            _ => {
                self.lock().remove(&entry);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Refused> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(code: u16, cause: Option<&str>) -> kube::Result<()> {
        let causes: Vec<_> = cause
            .iter()
            .map(|reason| json!({"reason": reason}))
            .collect();
        let status = json!({"code": code, "details": {"causes": causes}});
        Err(kube::Error::Api(serde_json::from_value(status).unwrap()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_version_that_was_refused_as_old_is_not_tried_again_at_once() {
        let (outdated, key) = (Outdated::default(), Key::new("a", "web"));
        let is = |version| outdated.is("Machine", &key, version);
        assert!(!is(Some("1")));
        outdated.note("Machine", &key, Some("1"), &refused(409, None));
        assert!(is(Some("1")), "it would be refused again");
        assert!(!is(Some("2")), "the cache has come along");
        assert!(!is(None), "nothing binds this write to a version");
        assert!(!outdated.is("Disk", &key, Some("1")), "another kind");
        tokio::time::advance(BEHIND).await;
        assert!(!is(Some("1")), "whoever refused it may not change anything");
        outdated.note("Machine", &key, Some("1"), &refused(409, None));
        outdated.note("Machine", &key, Some("2"), &Ok(()));
        assert!(!is(Some("1")));
    }

    #[tokio::test]
    async fn other_refusals_say_nothing_about_the_version() {
        let (outdated, key) = (Outdated::default(), Key::new("a", "web"));
        let field = Some("FieldManagerConflict");
        for answer in [refused(409, field), refused(500, None)] {
            outdated.note("Machine", &key, Some("1"), &answer);
            assert!(!outdated.is("Machine", &key, Some("1")));
        }
        outdated.note("Machine", &key, Some("1"), &refused(409, None));
        outdated.note("Machine", &key, Some("1"), &refused(500, None));
        assert!(outdated.is("Machine", &key, Some("1")), "it is still old");
        outdated.note("Machine", &key, Some("1"), &refused(404, None));
        assert!(
            !outdated.is("Machine", &key, Some("1")),
            "the object is gone"
        );
    }
}
