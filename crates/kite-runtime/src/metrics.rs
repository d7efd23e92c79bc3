//! Metrics under the names that controller-runtime's users already have on their
//! dashboards, and a few of Kite's own.
//!
//! No label ever holds the name of a user's object: the number of series depends
//! on the number of kinds, not of machines. What can be counted when somebody
//! asks is counted then; nothing here talks to the API server.
//!
//! There is no `controller_runtime_reconcile_panics_total`: a pass that panics
//! takes the process down with it, which shows as a restart.

mod objects;
mod own_process;
mod reasons;
pub(crate) mod requests;
mod table;

use std::sync::OnceLock;
use std::time::Duration;

use kite_api::labels::Controller;
use kite_api::ownership::conditions_of;
use kite_api::{Condition, KiteVirtualMachine};
use kube::Resource;
use prometheus::core::Collector;
use prometheus::{Encoder, Histogram, IntCounterVec, IntGauge, IntGaugeVec, Registry, TextEncoder};

use crate::cache::{Availability, Cache};
use crate::errors::Class;
use crate::leadership::Leadership;
pub(crate) use table::WATCH_FAILING;
pub use table::{Kind, Metric, TABLE};

use objects::Objects;
use own_process::OwnProcess;
use requests::CountRequests;

/// The buckets of controller-runtime, so that its panels fit.
const BUCKETS: [f64; 16] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0,
];

/// What a pass may end with, beside what a process that stops leaves behind.
const RESULTS: [&str; 3] = ["success", "requeue_after", "error"];

/// The metrics of one process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    reconciles: IntCounterVec,
    errors: IntCounterVec,
    duration: Histogram,
    workers: IntGauge,
    most_workers: IntGauge,
    leader: IntGauge,
    /// Set once, when it is known who is to lead.
    leadership: OnceLock<Leadership>,
    watch_up: IntGaugeVec,
    watch_errors: IntCounterVec,
    writes: IntCounterVec,
    requests: IntCounterVec,
    /// Set once, by the controller that counts when it is asked.
    at_scrape: OnceLock<AtScrape>,
}

/// What is done before each scrape.
struct AtScrape(Box<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for AtScrape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AtScrape")
    }
}

impl Metrics {
    /// Registers everything for one controller.
    pub fn new(controller: &'static str) -> prometheus::Result<Self> {
        let registry = Registry::new_custom(
            None,
            Some([("controller".to_owned(), controller.to_owned())].into()),
        )?;
        let reconciles = table::RECONCILES.counters(&registry)?;
        let errors = table::ERRORS.counters(&registry)?;
        // A counter that begins with its first error hides that error from `rate`.
        for result in RESULTS {
            reconciles.with_label_values(&[result]);
        }
        for class in Class::ALL {
            errors.with_label_values(&[class.label()]);
        }
        let build = table::BUILD.gauges(&registry)?;
        build.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        registry.register(Box::new(OwnProcess::new()?))?;
        Ok(Self {
            reconciles,
            errors,
            duration: table::DURATION.observed(&registry, &BUCKETS)?,
            workers: table::WORKERS.lone_gauge(&registry)?,
            most_workers: table::MOST_WORKERS.lone_gauge(&registry)?,
            leader: table::LEADER
                .gauges(&registry)?
                .with_label_values(&[controller]),
            leadership: OnceLock::new(),
            watch_up: table::WATCH_UP.gauges(&registry)?,
            watch_errors: table::WATCH_ERRORS.counters(&registry)?,
            writes: table::WRITES.counters(&registry)?,
            requests: table::REQUESTS.counters(&registry)?,
            at_scrape: OnceLock::new(),
            registry,
        })
    }

    /// Counts the objects of a kind, and how their conditions of these types stand, at each scrape.
    pub fn objects<K>(
        &self,
        kind: &'static str,
        cache: &Cache<K>,
        types: &'static [&'static str],
        conditions: fn(&K) -> &[Condition],
    ) -> prometheus::Result<()>
    where
        K: Resource<DynamicType = ()> + Send + Sync + 'static,
    {
        self.collect(Objects::new(kind, cache.clone(), types, conditions)?)
    }

    /// Counts the machines, and how those of their conditions stand that the controller writes.
    pub fn machines(
        &self,
        controller: Controller,
        cache: &Cache<KiteVirtualMachine>,
    ) -> prometheus::Result<()> {
        self.objects(
            "KiteVirtualMachine",
            cache,
            conditions_of(controller),
            |machine| {
                let status = machine.status.as_ref();
                status.map(|s| s.conditions.as_slice()).unwrap_or_default()
            },
        )
    }

    /// Asks somebody else for a part of the metrics at each scrape.
    pub(crate) fn collect(&self, collector: impl Collector + 'static) -> prometheus::Result<()> {
        self.registry.register(Box::new(collector))
    }

    /// The registry, for a controller's own metrics.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Has a controller count its own when it is asked, and not whenever something changes.
    pub fn at_scrape(&self, count: impl Fn() + Send + Sync + 'static) {
        // A process has one controller, so there is never a second.
        let _ = self.at_scrape.set(AtScrape(Box::new(count)));
    }

    /// Everything in Prometheus' text form.
    pub fn render(&self) -> prometheus::Result<Vec<u8>> {
        if let Some(AtScrape(count)) = self.at_scrape.get() {
            count();
        }
        let leads = self.leadership.get().is_some_and(Leadership::is_current);
        self.leader.set(i64::from(leads));
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut text)?;
        Ok(text)
    }

    /// A pass begins. The returned guard reports its end, also when it is dropped unfinished.
    pub(crate) fn pass(&self) -> PassGuard<'_> {
        self.workers.inc();
        PassGuard {
            metrics: self,
            timer: std::time::Instant::now(),
            result: "abandoned",
        }
    }

    pub(crate) fn failed(&self, class: Class) {
        self.errors.with_label_values(&[class.label()]).inc();
    }

    /// So many passes may run at the same time.
    pub(crate) fn allow_workers(&self, number: u16) {
        self.most_workers.set(i64::from(number));
    }

    /// What makes a client count its requests.
    pub(crate) fn count_requests(&self) -> CountRequests {
        CountRequests(self.requests.clone())
    }

    /// A write was sent, or was not because it would change nothing.
    pub fn wrote(&self, kind: &str, result: &'static str) {
        self.writes.with_label_values(&[kind, result]).inc();
    }

    /// Whether the replica leads is asked at each scrape: one that was frozen beyond its lease
    /// must not say so when it wakes.
    pub(crate) fn follow(&self, leadership: Leadership) {
        // A process has one elector, so there is never a second.
        let _ = self.leadership.set(leadership);
    }

    pub(crate) fn watch_up(&self, kind: &str, availability: Availability) {
        self.watch_up
            .with_label_values(&[kind])
            .set(match availability {
                Availability::Syncing => 0,
                Availability::Ready => 1,
                Availability::Missing => -1,
            });
    }

    /// A watch begins.
    pub(crate) fn watch_begins(&self, kind: &str) {
        self.watch_errors.with_label_values(&[kind]);
        self.watch_up(kind, Availability::Syncing);
    }

    pub(crate) fn watch_failed(&self, kind: &str) {
        self.watch_errors.with_label_values(&[kind]).inc();
    }
}

/// Reports exactly one outcome of a pass.
pub(crate) struct PassGuard<'a> {
    metrics: &'a Metrics,
    timer: std::time::Instant,
    result: &'static str,
}

impl PassGuard<'_> {
    /// The pass ended with this result: `success`, `requeue_after` or `error`.
    pub(crate) fn ended(mut self, result: &'static str) -> Duration {
        self.result = result;
        self.timer.elapsed()
    }
}

impl Drop for PassGuard<'_> {
    fn drop(&mut self) {
        self.metrics.workers.dec();
        self.metrics
            .duration
            .observe(self.timer.elapsed().as_secs_f64());
        self.metrics
            .reconciles
            .with_label_values(&[self.result])
            .inc();
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::watch;
    use tokio::time::{Instant, advance};

    use super::*;

    // LE2
    #[tokio::test(start_paused = true)]
    async fn a_replica_whose_time_is_over_does_not_say_that_it_leads() {
        let metrics = Metrics::new("kite-test").unwrap();
        let told = || String::from_utf8(metrics.render().unwrap()).unwrap();
        let leads = |told: &str| {
            let line = told.lines().find(|l| l.starts_with("leader_election"));
            line.unwrap().ends_with(" 1")
        };
        assert!(!leads(&told()), "before it knows");
        let (elector, until) = watch::channel(None);
        metrics.follow(Leadership { until });
        assert!(!leads(&told()), "a standby");
        elector.send_replace(Some(Instant::now() + Duration::from_secs(10)));
        assert!(leads(&told()));
        advance(Duration::from_secs(11)).await;
        assert!(!leads(&told()), "frozen beyond its lease");
    }
}
