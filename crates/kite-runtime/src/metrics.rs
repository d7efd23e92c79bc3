//! Metrics under the names that controller-runtime's users already have on their
//! dashboards, and a few of Kite's own.
//!
//! No label ever holds the name of a user's object: the number of series depends
//! on the number of kinds, not of machines.

use std::time::Duration;

use prometheus::{
    Encoder, Histogram, HistogramOpts, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
    TextEncoder,
};

use crate::cache::Availability;

/// The buckets of controller-runtime, so that its panels fit.
const BUCKETS: [f64; 16] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0,
];

/// The metrics of one process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    reconciles: IntCounterVec,
    errors: IntCounterVec,
    duration: Histogram,
    workers: IntGauge,
    leader: IntGauge,
    watch_up: IntGaugeVec,
    watch_errors: IntCounterVec,
    writes: IntCounterVec,
}

impl Metrics {
    /// Registers everything for one controller.
    pub fn new(controller: &'static str) -> prometheus::Result<Self> {
        let registry = Registry::new_custom(
            None,
            Some([("controller".to_owned(), controller.to_owned())].into()),
        )?;
        let counter = |name: &str, help: &str, labels: &[&str]| {
            let metric = IntCounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(metric.clone()))?;
            Ok::<_, prometheus::Error>(metric)
        };
        let gauge = |name: &str, help: &str, labels: &[&str]| {
            let metric = IntGaugeVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(metric.clone()))?;
            Ok::<_, prometheus::Error>(metric)
        };
        let reconciles = counter(
            "controller_runtime_reconcile_total",
            "Passes by result.",
            &["result"],
        )?;
        let errors = counter(
            "controller_runtime_reconcile_errors_total",
            "Failed passes by class of error.",
            &["class"],
        )?;
        let leader = IntGauge::with_opts(
            Opts::new(
                "leader_election_master_status",
                "1 while this replica leads.",
            )
            .const_label("name", controller),
        )?;
        registry.register(Box::new(leader.clone()))?;
        let watch_up = gauge(
            "kite_watch_up",
            "1 synced, 0 not yet, -1 when the cluster does not serve the kind.",
            &["kind"],
        )?;
        let watch_errors = counter("kite_watch_errors_total", "Errors of watches.", &["kind"])?;
        let writes = counter(
            "kite_writes_total",
            "Writes by kind and result; suppressed ones were not sent.",
            &["kind", "result"],
        )?;
        let duration = Histogram::with_opts(
            HistogramOpts::new(
                "controller_runtime_reconcile_time_seconds",
                "Time of a pass.",
            )
            .buckets(BUCKETS.to_vec()),
        )?;
        registry.register(Box::new(duration.clone()))?;
        let workers = IntGauge::new("controller_runtime_active_workers", "Passes that run now.")?;
        registry.register(Box::new(workers.clone()))?;
        Ok(Self {
            registry,
            reconciles,
            errors,
            duration,
            workers,
            leader,
            watch_up,
            watch_errors,
            writes,
        })
    }

    /// The registry, for a controller's own metrics.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Everything in Prometheus' text form.
    pub fn render(&self) -> prometheus::Result<Vec<u8>> {
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

    pub(crate) fn failed(&self, class: &'static str) {
        self.errors.with_label_values(&[class]).inc();
    }

    /// A write was sent, or was not because it would change nothing.
    pub fn wrote(&self, kind: &str, result: &'static str) {
        self.writes.with_label_values(&[kind, result]).inc();
    }

    pub(crate) fn leading(&self, leads: bool) {
        self.leader.set(i64::from(leads));
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
