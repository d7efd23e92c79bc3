//! Deletions that stand still: for how long, and how many there are (rule V-21).
//!
//! What holds a deletion up is said only when it has done so for a while, since
//! a guest takes its time to shut down. The time is this process's own; after a
//! restart what the status says goes on counting.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kite_runtime::Key;
use kite_runtime::metrics::Metric;
use kite_runtime::since::{Since, Waits};
use prometheus::{IntGaugeVec, Registry};
use tokio::time::Instant;

const BLOCKED: Metric = Metric::gauge(
    "kite_deletions_blocked",
    "Machines whose deletion cannot go on, by the kind of object that is in the way.",
    &["kind"],
);

/// The metrics that only this controller has.
pub const METRICS: &[Metric] = &[BLOCKED];

/// What stands in a deletion's way: the kind for the metric, and the words about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// A kind, or `Request` when the server does not carry out what is asked.
    pub kind: &'static str,
    /// Words that change only when the obstacle does.
    pub words: String,
}

/// Whether an obstacle has stood for long enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Not yet; it will have in this time.
    For(Duration),
    /// It has.
    Long,
}

#[derive(Default)]
struct Seen {
    since: HashMap<Key, Since<String>>,
    told: HashMap<Key, &'static str>,
}

/// The deletions under way. Locked for map operations only, by passes.
pub struct Standstill {
    limit: Duration,
    seen: Mutex<Seen>,
    blocked: IntGaugeVec,
}

impl Standstill {
    /// None yet; an obstacle is told after this time.
    pub fn new(limit: Duration, registry: &Registry) -> prometheus::Result<Self> {
        let blocked = BLOCKED.gauges(registry)?;
        Ok(Self {
            limit,
            seen: Mutex::default(),
            blocked,
        })
    }

    /// Notes what is in the way of a deletion now. `told` is whether the status says just that.
    pub fn note(&self, key: &Key, obstacle: &Obstacle, told: bool) -> Standing {
        let now = Instant::now();
        let mut seen = self.lock();
        let since = seen.since.entry(key.clone()).or_default();
        let since = since.note(Some(obstacle.words.clone()), now);
        let mut waits = Waits::at(now);
        if told || waits.over(since, self.limit) {
            self.count(&mut seen, key, Some(obstacle.kind));
            return Standing::Long;
        }
        self.count(&mut seen, key, None);
        Standing::For(waits.next().unwrap_or(self.limit))
    }

    /// The deletion goes on, or is over.
    pub fn forget(&self, key: &Key) {
        let mut seen = self.lock();
        seen.since.remove(key);
        self.count(&mut seen, key, None);
    }

    fn count(&self, seen: &mut Seen, key: &Key, kind: Option<&'static str>) {
        let before = match kind {
            Some(kind) => seen.told.insert(key.clone(), kind),
            None => seen.told.remove(key),
        };
        if before != kind {
            before.inspect(|kind| self.blocked.with_label_values(&[kind]).dec());
            kind.inspect(|kind| self.blocked.with_label_values(&[kind]).inc());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn obstacle(words: &str) -> Obstacle {
        Obstacle {
            kind: "VirtualMachine",
            words: words.to_owned(),
        }
    }

    // V-21
    #[tokio::test(start_paused = true)]
    async fn an_obstacle_counts_when_it_has_stood_and_another_begins_anew() {
        let limit = Duration::from_secs(60);
        let standstill = Standstill::new(limit, &Registry::new()).unwrap();
        let blocked = || standstill.blocked.with_label_values(&["VirtualMachine"]);
        let key = Key::new("alice", "web");
        let note = |words: &str, told| standstill.note(&key, &obstacle(words), told);
        assert_eq!(note("a", false), Standing::For(limit));
        tokio::time::advance(limit).await;
        assert_eq!(note("a", false), Standing::Long);
        assert_eq!(blocked().get(), 1);
        assert_eq!(note("b", false), Standing::For(limit), "it went on");
        assert_eq!(blocked().get(), 0);
        // A process that has just started takes the status at its word.
        assert_eq!(note("b", true), Standing::Long);
        assert_eq!(note("b", true), Standing::Long);
        assert_eq!(blocked().get(), 1);
        standstill.forget(&key);
        assert_eq!(blocked().get(), 0);
    }
}
