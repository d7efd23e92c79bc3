//! Time as the script of a life has it: seconds at speed 1, divided by the
//! speed.
//!
//! How long an object has stood in a stage is remembered in memory only. After
//! a restart a stage begins anew: it takes longer, and nothing else differs.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The stage of each track of one object, and when it began.
type Tracks = HashMap<&'static str, (String, Instant)>;

/// Speed, and since when each object stands where it stands.
pub(super) struct Clock {
    speed: f64,
    since: Mutex<HashMap<String, Tracks>>,
}

impl Clock {
    pub(super) fn new(speed: f64) -> Self {
        let speed = if speed.is_finite() && speed > 0.0 {
            speed
        } else {
            1.0
        };
        Self {
            speed,
            since: Mutex::default(),
        }
    }

    /// A time of the script in real time.
    pub(super) fn scaled(&self, seconds: f64) -> Duration {
        Duration::from_secs_f64((seconds / self.speed).max(0.0))
    }

    /// How much longer an object has to wait until it has stood `seconds` in
    /// this stage of a track; `None` when it has.
    pub(super) fn wait(
        &self,
        uid: &str,
        track: &'static str,
        stage: &str,
        seconds: f64,
    ) -> Option<Duration> {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        let tracks = since.entry(uid.to_owned()).or_default();
        let now = Instant::now();
        let entry = tracks
            .entry(track)
            .or_insert_with(|| (stage.to_owned(), now));
        if entry.0 != stage {
            *entry = (stage.to_owned(), now);
        }
        let left = self.scaled(seconds).saturating_sub(entry.1.elapsed());
        (!left.is_zero()).then_some(left)
    }

    /// Forgets an object that is gone.
    pub(super) fn forget(&self, uid: &str) {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        since.remove(uid);
    }
}

/// A number that is always the same for the same text, between `low` and
/// `high`: lives differ, and each repeats exactly.
pub(super) fn spread(text: &str, low: f64, high: f64) -> f64 {
    let fraction = f64::from(u16::try_from(hash(text) & 0xffff).unwrap_or_default()) / 65535.0;
    low + (high - low) * fraction
}

/// A stable number for a text.
pub(super) fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_begins_anew_when_it_changes() {
        let clock = Clock::new(1000.0);
        assert!(clock.wait("u", "phase", "a", 5.0).is_some());
        std::thread::sleep(Duration::from_millis(10));
        assert!(clock.wait("u", "phase", "a", 5.0).is_none());
        assert!(clock.wait("u", "phase", "b", 5.0).is_some());
    }

    #[test]
    fn speed_divides_every_time() {
        assert_eq!(Clock::new(20.0).scaled(3.0), Duration::from_millis(150));
        assert_eq!(Clock::new(0.0).scaled(3.0), Duration::from_secs(3));
    }
}
