//! Whether the process is alive, ready, and what it is waiting for.
//!
//! `/livez` fails when no watch makes progress; `/readyz?verbose` names what is
//! missing. A standby is ready, and so is a process whose cluster lacks KubeVirt
//! or CDI (rule C-14). Nothing here talks to the API server.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus::IntGaugeVec;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::cache::Availability;
use crate::metrics::{Metrics, WATCH_FAILING};

/// A process none of whose watches has worked for this long is restarted. Longer
/// than an API server takes to come back, shorter than a person takes to look.
const SILENCE: Duration = Duration::from_secs(120);

#[derive(Debug)]
struct State {
    availability: Availability,
    failing: Option<(Instant, String)>,
    task: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    watches: BTreeMap<&'static str, State>,
    role: Role,
}

/// What the replica is at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Neither asked for the Lease nor works yet.
    #[default]
    Starting,
    /// Another replica works.
    Standby,
    /// This replica works.
    Leader,
}

/// The health of the process. Clones share one state, locked for single updates.
#[derive(Clone, Debug)]
pub struct Health {
    shared: Arc<Mutex<Shared>>,
    metrics: Arc<Metrics>,
}

impl Health {
    /// Nothing is known yet. An error if the metrics have a health already.
    pub fn new(metrics: Arc<Metrics>) -> prometheus::Result<Self> {
        let shared = Arc::<Mutex<Shared>>::default();
        metrics.collect(Failing {
            shared: Arc::clone(&shared),
            described: WATCH_FAILING.unregistered_gauges()?,
        })?;
        Ok(Self { shared, metrics })
    }

    /// Registers a watch.
    pub fn watch(&self, kind: &'static str) -> WatchHealth {
        let state = State {
            availability: Availability::Syncing,
            failing: None,
            task: None,
        };
        self.lock().watches.insert(kind, state);
        self.metrics.watch_begins(kind);
        WatchHealth {
            kind,
            health: self.clone(),
        }
    }

    pub(crate) fn guard_task(&self, kind: &'static str, task: JoinHandle<()>) {
        if let Some(state) = self.lock().watches.get_mut(kind) {
            state.task = Some(task);
        }
    }

    /// Says what the replica is now.
    pub fn set_role(&self, role: Role) {
        self.lock().role = role;
    }

    /// Whether the process should go on, and why not.
    pub fn live(&self) -> Result<(), String> {
        let shared = self.lock();
        let dead = |s: &State| s.task.as_ref().is_some_and(JoinHandle::is_finished);
        if let Some((kind, _)) = shared.watches.iter().find(|(_, s)| dead(s)) {
            return Err(format!("the watch of {kind} has ended"));
        }
        let silent = |s: &State| {
            s.failing
                .as_ref()
                .is_some_and(|(since, _)| since.elapsed() > SILENCE)
        };
        if !shared.watches.is_empty() && shared.watches.values().all(silent) {
            return Err(format!("no watch has worked for {} s", SILENCE.as_secs()));
        }
        Ok(())
    }

    /// Whether the process does its work, or would if it led; and a line for each watch.
    pub fn ready(&self) -> (bool, String) {
        let shared = self.lock();
        let mut ready = match shared.role {
            Role::Starting => false,
            Role::Standby => true,
            // Who has just begun to lead has no watches yet.
            Role::Leader => !shared.watches.is_empty(),
        };
        let mut text = format!("{} role: {:?}\n", mark(ready), shared.role);
        for (kind, state) in &shared.watches {
            let good = state.availability != Availability::Syncing;
            ready &= good;
            let word = match state.availability {
                Availability::Syncing => "not synced",
                Availability::Ready => "ok",
                Availability::Missing => {
                    "missing: this cluster does not serve the kind; it is picked up when installed"
                }
            };
            let _ = write!(text, "{} watch {kind}: {word}", mark(good));
            match &state.failing {
                Some((_, error)) => writeln!(text, " ({error})"),
                None => writeln!(text),
            }
            .unwrap_or_default();
        }
        (ready, text)
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        lock(&self.shared)
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// For how long each watch has got nothing but errors, told at each scrape.
struct Failing {
    shared: Arc<Mutex<Shared>>,
    /// Never filled: what this collector says of its metric.
    described: IntGaugeVec,
}

impl Collector for Failing {
    fn desc(&self) -> Vec<&Desc> {
        self.described.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let Ok(gauges) = WATCH_FAILING.unregistered_gauges() else {
            return Vec::new();
        };
        for (kind, state) in &lock(&self.shared).watches {
            let since = state.failing.as_ref();
            let seconds = since.map_or(0, |(since, _)| since.elapsed().as_secs());
            let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
            gauges.with_label_values(&[kind]).set(seconds);
        }
        gauges.collect()
    }
}

const fn mark(good: bool) -> &'static str {
    if good { "[+]" } else { "[-]" }
}

/// One watch's way to report.
#[derive(Debug)]
pub struct WatchHealth {
    kind: &'static str,
    health: Health,
}

impl WatchHealth {
    /// The watch got something.
    pub fn progressed(&self) {
        if let Some(state) = self.health.lock().watches.get_mut(self.kind) {
            state.failing = None;
        }
    }

    /// The watch got an error. True when it is another one than before.
    pub fn failing(&self, error: &str) -> bool {
        self.health.metrics.watch_failed(self.kind);
        let mut shared = self.health.lock();
        let Some(state) = shared.watches.get_mut(self.kind) else {
            return false;
        };
        let previous = state.failing.take();
        let is_new = previous.as_ref().is_none_or(|(_, text)| text != error);
        let since = previous.map_or_else(Instant::now, |(since, _)| since);
        state.failing = Some((since, error.to_owned()));
        is_new
    }

    /// The watch has come this far.
    pub fn available(&self, availability: Availability) {
        self.health.metrics.watch_up(self.kind, availability);
        if let Some(state) = self.health.lock().watches.get_mut(self.kind) {
            state.availability = availability;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_leads_is_not_ready_before_its_watches_have_begun() {
        let health = Health::new(Arc::new(Metrics::new("kite-test").unwrap())).unwrap();
        health.set_role(Role::Standby);
        assert!(health.ready().0);
        health.set_role(Role::Leader);
        assert!(!health.ready().0);
        let watch = health.watch("A");
        assert!(!health.ready().0);
        watch.available(Availability::Ready);
        assert!(health.ready().0);
    }

    // C-14
    #[test]
    fn a_missing_kind_is_named_and_does_not_take_readiness_away() {
        let health = Health::new(Arc::new(Metrics::new("kite-test").unwrap())).unwrap();
        let watch = health.watch("DataVolume");
        health.set_role(Role::Leader);
        assert!(!health.ready().0, "not ready before the first list");
        watch.available(Availability::Missing);
        let (ready, text) = health.ready();
        assert!(
            ready && text.contains("watch DataVolume: missing"),
            "{text}"
        );
    }

    // O10
    #[tokio::test(start_paused = true)]
    async fn a_process_whose_watches_all_fail_for_long_is_not_alive() {
        let health = Health::new(Arc::new(Metrics::new("kite-test").unwrap())).unwrap();
        let (one, two) = (health.watch("A"), health.watch("B"));
        one.failing("503");
        two.failing("503");
        assert!(health.live().is_ok());
        tokio::time::advance(SILENCE + Duration::from_secs(1)).await;
        assert!(health.live().is_err());
        two.progressed();
        assert!(health.live().is_ok());
        let text = String::from_utf8(health.metrics.render().unwrap()).unwrap();
        for (kind, seconds) in [("A", SILENCE.as_secs() + 1), ("B", 0)] {
            let line = format!(
                "kite_watch_failing_seconds{{kind=\"{kind}\",controller=\"kite-test\"}} {seconds}\n"
            );
            assert!(text.contains(&line), "{line}{text}");
        }
    }
}
