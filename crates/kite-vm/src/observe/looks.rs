//! What is known of a recorded claim that no watch shows (rule V-15), and when to ask again.
//!
//! Nothing is asked here; that is [`crate::apply::claim`]'s. It is forgotten when
//! the process ends, which costs one more look.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kite_runtime::Key;
use tokio::time::Instant;

use crate::apply::Trouble;
use crate::observe::Observed;

/// Before a second look at a claim that was there: the watch shows it again within this, once its
/// labels are back.
const MOMENT: Duration = Duration::from_secs(3);
/// Where somebody takes the labels off again and again, they are put back once a minute.
const LONGEST: Duration = Duration::from_secs(60);

/// A recorded claim that the watch does not show as this machine's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unseen {
    /// Whether the server said that it is gone.
    pub gone: bool,
    /// Why the server could not be asked, or the labels not be put back.
    pub trouble: Option<Trouble>,
    /// When to ask again.
    pub again: Option<Duration>,
}

/// The looks at each machine's claim. Locked for single map operations.
#[derive(Debug, Default)]
pub struct Looks(Mutex<HashMap<Key, Look>>);

#[derive(Debug)]
struct Look {
    claim: String,
    gone: bool,
    made: u32,
    at: Instant,
}

impl Look {
    fn pause(&self) -> Duration {
        MOMENT.saturating_mul(1 << self.made.min(8)).min(LONGEST)
    }
}

impl Looks {
    /// What is known of a claim without another look; nothing when it is time for one.
    pub fn known(&self, key: &Key, claim: &str) -> Option<Unseen> {
        let looks = self.looks();
        let last = looks.get(key).filter(|l| l.claim == claim)?;
        // A UID never comes back.
        let left = last.pause().saturating_sub(last.at.elapsed());
        (last.gone || !left.is_zero()).then(|| Unseen {
            gone: last.gone,
            again: (!last.gone).then_some(left),
            trouble: None,
        })
    }

    /// Notes what a look has met.
    pub fn met(&self, key: &Key, claim: &str, gone: bool) {
        let mut looks = self.looks();
        let last = looks.get(key).filter(|l| l.claim == claim);
        let lately = last.filter(|l| l.at.elapsed() < l.pause() + LONGEST);
        let look = Look {
            claim: claim.to_owned(),
            gone,
            made: lately.map_or(0, |l| l.made.saturating_add(1)),
            at: Instant::now(),
        };
        looks.insert(key.clone(), look);
    }

    /// The machine is gone.
    pub fn forget(&self, key: &Key) {
        self.looks().remove(key);
    }

    fn looks(&self) -> MutexGuard<'_, HashMap<Key, Look>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The recorded claim, if the watch does not show it as this machine's and shows no other one under
/// its name either.
pub fn doubted(seen: &Observed) -> Option<String> {
    let recorded = seen.status().claim_uid.as_ref().filter(|_| seen.cdi)?;
    let shown = seen.claim.as_ref().map(|c| &c.metadata);
    let settled = shown.is_some_and(|c| c.uid.as_ref() != Some(recorded) || seen.binds(c));
    (!settled).then(|| recorded.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    // V-15
    #[tokio::test(start_paused = true)]
    async fn a_claim_that_is_gone_is_asked_for_once_and_one_that_is_there_ever_more_rarely() {
        let (looks, key) = (Looks::default(), Key::new("alice", "web"));
        let mut pauses = Vec::new();
        for _ in 0..6 {
            assert_eq!(looks.known(&key, "c-1"), None);
            looks.met(&key, "c-1", false);
            let known = looks.known(&key, "c-1").unwrap();
            assert!(!known.gone);
            let again = known.again.unwrap();
            pauses.push(again.as_secs());
            tokio::time::advance(again).await;
        }
        assert_eq!(pauses, [3, 6, 12, 24, 48, 60]);
        assert_eq!(looks.known(&key, "c-2"), None, "another claim was recorded");
        tokio::time::advance(LONGEST).await;
        looks.met(&key, "c-1", false);
        let known = looks.known(&key, "c-1").unwrap();
        assert_eq!(known.again, Some(MOMENT), "it was quiet for long enough");

        looks.met(&key, "c-1", true);
        tokio::time::advance(LONGEST * 9).await;
        let gone = Unseen {
            gone: true,
            ..Unseen::default()
        };
        assert_eq!(looks.known(&key, "c-1"), Some(gone));
        looks.forget(&key);
        assert_eq!(looks.known(&key, "c-1"), None);
    }
}
