//! Until when this replica leads: an instant that every write is held against,
//! not a flag that was once set. Who sets it is the elector's business.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// Until when this replica leads.
#[derive(Clone, Debug)]
pub struct Leadership {
    pub(crate) until: watch::Receiver<Option<Instant>>,
}

impl Leadership {
    /// Leadership without an election: for ever.
    pub fn unelected() -> Self {
        // Far enough that no process lives to see it, near enough not to overflow.
        let century = Duration::from_secs(100 * 365 * 24 * 3600);
        Self {
            until: watch::channel(Some(Instant::now() + century)).1,
        }
    }

    /// Whether this replica leads at this instant.
    pub fn is_current(&self) -> bool {
        self.until
            .borrow()
            .is_some_and(|until| Instant::now() < until)
    }

    /// Waits until this replica leads.
    pub async fn gained(&mut self) {
        // An error means that the elector ended, which ends the process by itself.
        if self.until.wait_for(Option::is_some).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
