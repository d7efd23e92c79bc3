//! How soon something is done about a machine without a guest: after a moment
//! the first time, and ever more rarely while that does not help.
//!
//! It is forgotten when the process ends, which costs one more try.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kite_runtime::Key;
use tokio::time::Instant;

/// What the watches and kite-vm-status have still to tell of an ended guest comes within this.
const MOMENT: Duration = Duration::from_secs(3);
/// A start that fails for want of quota is tried again once a minute, as everything else is.
const LONGEST: Duration = Duration::from_secs(60);

/// The tries for each machine. Locked for single map operations.
#[derive(Debug, Default)]
pub struct Pace(Mutex<HashMap<Key, Tries>>);

#[derive(Clone, Copy, Debug)]
struct Tries {
    made: u32,
    since: Instant,
}

impl Tries {
    fn pause(self) -> Duration {
        MOMENT.saturating_mul(1 << self.made.min(8)).min(LONGEST)
    }
}

impl Pace {
    /// How much longer to wait; nothing when it has been long enough.
    pub fn left(&self, key: &Key) -> Option<Duration> {
        let mut tries = self.tries();
        let fresh = || Tries {
            made: 0,
            since: Instant::now(),
        };
        let tries = *tries.entry(key.clone()).or_insert_with(fresh);
        let left = tries.pause().saturating_sub(tries.since.elapsed());
        (!left.is_zero()).then_some(left)
    }

    /// Notes a try, and tells how many there were before.
    pub fn tried(&self, key: &Key) -> u32 {
        let mut tries = self.tries();
        let made = tries.get(key).map_or(0, |t| t.made);
        let next = Tries {
            made: made.saturating_add(1),
            since: Instant::now(),
        };
        tries.insert(key.clone(), next);
        made
    }

    /// There is a guest, or none is wanted, or the machine is gone.
    pub fn reset(&self, key: &Key) {
        self.tries().remove(key);
    }

    fn tries(&self) -> MutexGuard<'_, HashMap<Key, Tries>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // V-16: a start that fails again and again is tried ever more rarely
    #[tokio::test(start_paused = true)]
    async fn the_first_try_comes_after_a_moment_and_later_ones_at_most_once_a_minute() {
        let (pace, key) = (Pace::default(), Key::new("alice", "web"));
        let mut pauses = Vec::new();
        for made in 0..7 {
            let left = pace.left(&key).unwrap();
            pauses.push(left.as_secs());
            tokio::time::advance(left).await;
            assert_eq!(pace.left(&key), None);
            assert_eq!(pace.tried(&key), made);
        }
        assert_eq!(pauses, [3, 6, 12, 24, 48, 60, 60]);
        pace.reset(&key);
        assert_eq!(pace.left(&key), Some(MOMENT));
    }
}
