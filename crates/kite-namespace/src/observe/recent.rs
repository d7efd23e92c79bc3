//! The memory of recent deletions, which the brake counts with those that are due.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// What was deleted within the window. A process that starts anew does not know of its
/// predecessor's deletions. Locked for single map operations.
#[derive(Debug)]
pub struct Recent {
    window: Duration,
    names: Mutex<HashMap<String, Instant>>,
}

impl Recent {
    /// Nothing yet.
    pub fn new(window: Duration) -> Self {
        Self {
            window,
            names: Mutex::default(),
        }
    }

    /// A namespace was deleted.
    pub fn add(&self, name: &str) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.insert(name.to_owned(), Instant::now());
    }

    /// The names of those deleted within the window.
    pub fn names(&self) -> BTreeSet<String> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.retain(|_, at| at.elapsed() < self.window);
        names.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_deletion_is_remembered_for_one_window() {
        let recent = Recent::new(Duration::from_secs(60));
        recent.add("a");
        tokio::time::advance(Duration::from_secs(59)).await;
        assert!(recent.names().contains("a"));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(recent.names().is_empty());
    }
}
