//! Waiting a moment, per object, before something is said or done: what passes
//! by itself within that moment is then never reported.
//!
//! It is forgotten when the process ends, which costs one more moment.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::cache::Key;

/// How long each object has been waited for. Locked for single map operations.
#[derive(Debug)]
pub struct Patience {
    limit: Duration,
    since: Mutex<HashMap<Key, Instant>>,
}

impl Patience {
    /// Nothing is waited for yet.
    pub fn new(limit: Duration) -> Self {
        Self {
            limit,
            since: Mutex::default(),
        }
    }

    /// How much longer to wait for an object; nothing when it has been long enough.
    /// The time runs from the first question since the last [`Self::reset`].
    pub fn left(&self, key: &Key) -> Option<Duration> {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        let began = *since.entry(key.clone()).or_insert_with(Instant::now);
        let left = self.limit.saturating_sub(began.elapsed());
        (!left.is_zero()).then_some(left)
    }

    /// What was waited for has come, or the object is gone.
    pub fn reset(&self, key: &Key) {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        since.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn patience_runs_out_once_and_begins_anew_after_a_reset() {
        let patience = Patience::new(Duration::from_secs(2));
        let key = Key::cluster("a");
        assert_eq!(patience.left(&key), Some(Duration::from_secs(2)));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(patience.left(&key), None);
        assert_eq!(patience.left(&key), None);
        patience.reset(&key);
        assert!(patience.left(&key).is_some());
    }
}
