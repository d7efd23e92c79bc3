//! When settled objects are looked at without a reason (rule C-13), without keeping
//! anything of any of them: each has a moment of its own in a round of twelve
//! hours, and what has come since the last look is asked for every few minutes.

use std::ops::Range;
use std::time::Duration;

use tokio::time::Instant;

use crate::cache::Key;
use crate::errors::jittered;

/// The safety pass compares in memory what a lost watch event may have hidden (rule C-13).
const SAFETY: Duration = Duration::from_secs(12 * 3600);
/// Asking goes through all keys; some ten thousand take a few milliseconds.
const STEP: Duration = Duration::from_secs(300);

/// When in a round a settled object is looked at again without a reason: not all of them at once.
pub(super) fn moment(key: &Key) -> Duration {
    jittered(SAFETY, key, 0)
}

/// How far the present round is.
#[derive(Debug)]
pub(super) struct Rounds {
    began: Instant,
    /// Moments before this one have been asked for.
    told: Duration,
}

impl Rounds {
    /// The first round begins.
    pub(super) const fn new(now: Instant) -> Self {
        let told = Duration::ZERO;
        Self { began: now, told }
    }

    /// When to ask again.
    pub(super) fn next(&self) -> Instant {
        self.began + (self.told + STEP).min(SAFETY)
    }

    /// The moments that have come since the last time, if it is time to ask.
    pub(super) fn part(&mut self, now: Instant) -> Option<Range<Duration>> {
        if now < self.next() {
            return None;
        }
        let (from, to) = (self.told, now - self.began);
        if to < SAFETY {
            self.told = to;
            return Some(from..to);
        }
        // The last moment of a round belongs to it.
        *self = Self::new(now);
        Some(from..SAFETY + STEP)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    // C-13: a thousand settled machines are looked at over hours, each within twelve.
    #[test]
    fn safety_passes_come_once_within_twelve_hours_and_not_together() {
        let keys: Vec<_> = (0..1000)
            .map(|n| Key::new("alice", format!("web-{n}")))
            .collect();
        let began = Instant::now();
        let mut rounds = Rounds::new(began);
        let mut looks = BTreeMap::<&Key, Vec<Duration>>::new();
        let mut together = BTreeSet::new();
        let mut now = began;
        while now < began + 2 * SAFETY {
            now = rounds.next();
            assert_eq!(rounds.part(now - STEP / 2), None);
            let part = rounds.part(now).unwrap();
            let due: Vec<_> = keys.iter().filter(|k| part.contains(&moment(k))).collect();
            together.insert(due.len());
            for key in due {
                looks.entry(key).or_default().push(now - began);
            }
        }
        assert_eq!(looks.len(), 1000);
        let hours = |n: u64| Duration::from_secs(n * 3600);
        for moments in looks.values() {
            let [first, second] = moments[..] else {
                panic!("{moments:?}");
            };
            assert!((hours(9)..=hours(12)).contains(&first));
            assert!(second <= first + hours(12));
        }
        assert!(together.last() < Some(&100), "{together:?}");
    }
}
