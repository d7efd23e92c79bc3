//! What is said about each metric, in one place: registration and the reference
//! page are both made from it, so neither can say what the other does not.
//!
//! A metric that only one controller has stands beside that controller's code, in
//! the same form. Nothing is counted here.

use prometheus::core::Collector;
use prometheus::{
    Counter, Histogram, HistogramOpts, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};

/// What a metric's value does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows, until the process ends.
    Counter,
    /// It goes up and down.
    Gauge,
    /// It counts observations by size.
    Histogram,
}

impl Kind {
    /// The word that Prometheus has for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// One metric, as people see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name, with the unit.
    pub name: &'static str,
    /// What its value does.
    pub kind: Kind,
    /// One sentence about it.
    pub help: &'static str,
    /// Its labels beside `controller`, which every series has.
    pub labels: &'static [&'static str],
}

impl Metric {
    /// What only grows.
    pub const fn counter(
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
    ) -> Self {
        Self {
            name,
            kind: Kind::Counter,
            help,
            labels,
        }
    }

    /// What goes up and down.
    pub const fn gauge(
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
    ) -> Self {
        Self {
            name,
            kind: Kind::Gauge,
            help,
            labels,
        }
    }

    /// What counts by size.
    pub const fn histogram(name: &'static str, help: &'static str) -> Self {
        Self {
            name,
            kind: Kind::Histogram,
            help,
            labels: &[],
        }
    }

    /// Registers a counter for each set of labels. An error if a metric of that name is there.
    pub fn counters(&self, registry: &Registry) -> prometheus::Result<IntCounterVec> {
        self.register(
            registry,
            Kind::Counter,
            IntCounterVec::new(self.opts(), self.labels)?,
        )
    }

    /// Registers a gauge for each set of labels. An error if a metric of that name is there.
    pub fn gauges(&self, registry: &Registry) -> prometheus::Result<IntGaugeVec> {
        self.register(registry, Kind::Gauge, self.unregistered_gauges()?)
    }

    /// Registers a gauge without labels. An error if a metric of that name is there.
    pub fn lone_gauge(&self, registry: &Registry) -> prometheus::Result<IntGauge> {
        self.register(registry, Kind::Gauge, IntGauge::with_opts(self.opts())?)
    }

    /// Registers a histogram. An error if a metric of that name is there.
    pub(super) fn observed(
        &self,
        registry: &Registry,
        buckets: &[f64],
    ) -> prometheus::Result<Histogram> {
        let options = HistogramOpts::new(self.name, self.help).buckets(buckets.to_vec());
        self.register(registry, Kind::Histogram, Histogram::with_opts(options)?)
    }

    /// Gauges for a collector of its own, which fills them when it is asked.
    pub(crate) fn unregistered_gauges(&self) -> prometheus::Result<IntGaugeVec> {
        IntGaugeVec::new(self.opts(), self.labels)
    }

    /// A counter of something measured elsewhere, for a collector of its own.
    pub(super) fn unregistered_counter(&self) -> prometheus::Result<Counter> {
        Counter::with_opts(self.opts())
    }

    fn opts(&self) -> Opts {
        Opts::new(self.name, self.help)
    }

    fn register<C: Collector + Clone + 'static>(
        &self,
        registry: &Registry,
        kind: Kind,
        collector: C,
    ) -> prometheus::Result<C> {
        if self.kind != kind {
            let (name, says, is) = (self.name, self.kind.word(), kind.word());
            return Err(prometheus::Error::Msg(format!(
                "the table calls {name} a {says} and the code makes it a {is}"
            )));
        }
        registry.register(Box::new(collector.clone()))?;
        Ok(collector)
    }
}

pub(super) const RECONCILES: Metric = Metric::counter(
    "controller_runtime_reconcile_total",
    "Passes by result: success, requeue_after, error, or abandoned when the process stopped meanwhile.",
    &["result"],
);
pub(super) const ERRORS: Metric = Metric::counter(
    "controller_runtime_reconcile_errors_total",
    "Failed passes by class of error; each is tried again.",
    &["class"],
);
pub(super) const DURATION: Metric = Metric::histogram(
    "controller_runtime_reconcile_time_seconds",
    "Time that a pass over one object took.",
);
pub(super) const WORKERS: Metric = Metric::gauge(
    "controller_runtime_active_workers",
    "Passes that run now.",
    &[],
);
pub(super) const MOST_WORKERS: Metric = Metric::gauge(
    "controller_runtime_max_concurrent_reconciles",
    "Passes that may run at the same time, as --concurrency has it.",
    &[],
);
pub(super) const LEADER: Metric = Metric::gauge(
    "leader_election_master_status",
    "1 while this replica holds the Lease of that name and works, 0 while it stands by.",
    &["name"],
);
pub(super) const REQUESTS: Metric = Metric::counter(
    "rest_client_requests_total",
    "Requests to the API server by status code and method; <error> is one that got no answer.",
    &["code", "method"],
);
pub(super) const BUILD: Metric = Metric::gauge(
    "kite_build_info",
    "Always 1; the label says which version this is.",
    &["version"],
);
pub(super) const WATCH_UP: Metric = Metric::gauge(
    "kite_watch_up",
    "1 while the watch of a kind is complete, 0 before that, -1 while the cluster does not serve the kind.",
    &["kind"],
);
pub(super) const WATCH_ERRORS: Metric = Metric::counter(
    "kite_watch_errors_total",
    "Errors of the watch of a kind; each is tried again.",
    &["kind"],
);
pub(crate) const WATCH_FAILING: Metric = Metric::gauge(
    "kite_watch_failing_seconds",
    "For how long the watch of a kind has got nothing but errors; 0 while it works.",
    &["kind"],
);
pub(super) const WRITES: Metric = Metric::counter(
    "kite_writes_total",
    "Writes by kind and result; suppressed ones would have changed nothing and were not sent.",
    &["kind", "result"],
);
pub(super) const OBJECTS: Metric = Metric::gauge(
    "kite_objects",
    "Objects that the leader looks after, by kind.",
    &["kind"],
);
pub(super) const CONDITIONS: Metric = Metric::gauge(
    "kite_object_conditions",
    "Objects by status and reason of each condition that this controller writes; a reason that is not one of Kite's own is counted as other.",
    &["kind", "condition", "status", "reason"],
);
pub(super) const CPU: Metric = Metric::counter(
    "process_cpu_seconds_total",
    "Processor time that the process has used.",
    &[],
);
pub(super) const MEMORY: Metric = Metric::gauge(
    "process_resident_memory_bytes",
    "Memory of the process that is in RAM.",
    &[],
);
pub(super) const VIRTUAL_MEMORY: Metric = Metric::gauge(
    "process_virtual_memory_bytes",
    "Memory that the process has asked for.",
    &[],
);
pub(super) const OPEN_FILES: Metric = Metric::gauge(
    "process_open_fds",
    "Files and connections that the process has open.",
    &[],
);
pub(super) const MOST_FILES: Metric = Metric::gauge(
    "process_max_fds",
    "Files and connections that the process may have open.",
    &[],
);
pub(super) const STARTED: Metric = Metric::gauge(
    "process_start_time_seconds",
    "When the process started, in seconds since the beginning of 1970.",
    &[],
);

/// The metrics that every controller has, in the order of the reference page.
pub const TABLE: &[Metric] = &[
    RECONCILES,
    ERRORS,
    DURATION,
    WORKERS,
    MOST_WORKERS,
    LEADER,
    REQUESTS,
    WRITES,
    OBJECTS,
    CONDITIONS,
    WATCH_UP,
    WATCH_FAILING,
    WATCH_ERRORS,
    BUILD,
    CPU,
    MEMORY,
    VIRTUAL_MEMORY,
    OPEN_FILES,
    MOST_FILES,
    STARTED,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_and_the_code_must_agree_on_what_a_metric_is() {
        let registry = Registry::new();
        assert!(BUILD.counters(&registry).is_err());
        assert!(BUILD.gauges(&registry).is_ok());
        assert!(BUILD.gauges(&registry).is_err(), "it is there already");
    }
}
