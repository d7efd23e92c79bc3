//! The metrics of this controller alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use kite_api::labels::DELETION_HELD;
use kite_runtime::metrics::Metric;
use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry};

use crate::plan::blocked::Blocked;
use crate::plan::{HELD_BY_BRAKE, HELD_BY_PROTECTION, annotation, bound_uid, orphaned_since};

/// So many different obstacles are named in a metric at the same time. A finalizer is whatever its
/// owner calls it, and a tenant may own one; those beyond are `other`.
const MOST_OBSTACLES: usize = 20;

const SUPPRESSED: Metric = Metric::counter(
    "kite_namespace_deletions_suppressed_total",
    "Deletions that were due and not carried out.",
    &["reason"],
);
const DELETED: Metric = Metric::counter(
    "kite_namespace_deletions_total",
    "Namespaces that were deleted because nobody needed them.",
    &[],
);
const ORPHANED: Metric = Metric::gauge(
    "kite_orphaned_namespaces",
    "Namespaces that are marked because no KiteUser needs them, those included that are kept all the same.",
    &[],
);
const BRAKE: Metric = Metric::gauge(
    "kite_brake_engaged",
    "1 while the brake holds any deletion back until an administrator says that it is meant, else 0.",
    &[],
);
const HELD: Metric = Metric::gauge(
    "kite_namespaces_held",
    "Namespaces whose deletion waits for an administrator.",
    &[],
);
const RETAINED: Metric = Metric::gauge(
    "kite_namespaces_retained",
    "Namespaces that nobody needs, kept for a retained disk or by an administrator.",
    &[],
);
const BLOCKED: Metric = Metric::gauge(
    "kite_namespaces_deletion_blocked",
    "Namespaces whose deletion takes long, by what is in the way: a kind, a finalizer.",
    &["by", "name"],
);
const UNBOUND: Metric = Metric::gauge(
    "kite_namespaces_unbound",
    "Namespaces with Kite's label that are bound to no KiteUser; they are left alone.",
    &[],
);

/// The metrics that only this controller has.
pub const METRICS: &[Metric] = &[
    ORPHANED, BRAKE, HELD, RETAINED, BLOCKED, UNBOUND, SUPPRESSED, DELETED,
];

/// What an administrator may want to be woken for.
#[derive(Clone, Debug)]
pub struct Measures {
    /// Deletions that were due and not carried out, by reason.
    pub suppressed: IntCounterVec,
    /// Namespaces that were deleted.
    pub deleted: IntCounter,
    /// Namespaces that are marked because nobody needs them.
    pub orphaned: IntGauge,
    /// Whether the brake holds any namespace now.
    pub brake: IntGauge,
    /// Namespaces held back by the brake now.
    pub held: IntGauge,
    /// Namespaces that nobody needs and that are kept all the same (rule N-5).
    pub retained: IntGauge,
    /// Namespaces whose deletion does not come to its end, by what is in the way (rule N-8).
    pub blocked: IntGaugeVec,
    /// Namespaces with Kite's label that no KiteUser is bound to.
    pub unbound: IntGauge,
}

impl Measures {
    /// Registers them.
    pub fn new(registry: &Registry) -> prometheus::Result<Self> {
        Ok(Self {
            suppressed: SUPPRESSED.counters(registry)?,
            deleted: DELETED.counters(registry)?.with_label_values::<&str>(&[]),
            orphaned: ORPHANED.lone_gauge(registry)?,
            brake: BRAKE.lone_gauge(registry)?,
            held: HELD.lone_gauge(registry)?,
            retained: RETAINED.lone_gauge(registry)?,
            blocked: BLOCKED.gauges(registry)?,
            unbound: UNBOUND.lone_gauge(registry)?,
        })
    }

    /// Counts what stands in the annotations and conditions of the namespaces. `long` tells
    /// whether a deletion takes long.
    pub fn count(&self, namespaces: &[Arc<Namespace>], long: impl Fn(&Namespace) -> bool) {
        let number = |pick: &dyn Fn(&Namespace) -> bool| {
            let picked = namespaces
                .iter()
                .filter(|namespace| pick(namespace))
                .count();
            i64::try_from(picked).unwrap_or(i64::MAX)
        };
        let held_by = |why: &'static str| {
            move |ns: &Namespace| annotation(&ns.metadata, DELETION_HELD) == Some(why)
        };
        let held = number(&held_by(HELD_BY_BRAKE));
        self.held.set(held);
        self.brake.set(i64::from(held > 0));
        self.orphaned.set(number(&|ns| {
            let meta = &ns.metadata;
            meta.deletion_timestamp.is_none() && orphaned_since(meta).is_some()
        }));
        self.retained.set(number(&held_by(HELD_BY_PROTECTION)));
        self.unbound
            .set(number(&|ns| bound_uid(&ns.metadata).is_none()));
        // What is no longer in the way is not shown as zero for ever.
        self.blocked.reset();
        let stuck = namespaces.iter().filter(|namespace| long(namespace));
        for ((by, name), number) in obstacles(stuck.map(|ns| Blocked::of(ns))) {
            let gauge = self.blocked.with_label_values(&[by, name.as_str()]);
            gauge.set(number);
        }
    }
}

/// What is in the way, and of how many namespaces: the most frequent by name, the rest together.
fn obstacles(all: impl Iterator<Item = Blocked>) -> BTreeMap<(&'static str, String), i64> {
    let mut counts = BTreeMap::<(&'static str, String), i64>::new();
    for blocked in all {
        for (by, name) in blocked.entries() {
            *counts.entry((by, name.to_owned())).or_default() += 1;
        }
    }
    let mut order: Vec<_> = counts.iter().map(|(key, n)| (-n, key.clone())).collect();
    order.sort();
    for (number, key) in order.into_iter().skip(MOST_OBSTACLES) {
        counts.remove(&key);
        *counts.entry((key.0, "other".to_owned())).or_default() -= number;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    // N-8
    #[test]
    fn however_many_finalizers_tenants_think_of_the_metric_names_the_most_frequent() {
        let namespace = |finalizer: String| Blocked {
            finalizers: [finalizer].into(),
            ..Blocked::default()
        };
        let invented = (0..500).map(|n| namespace(format!("example.org/{n}")));
        let common = (0..3).map(|_| namespace("example.org/common".to_owned()));
        let counts = obstacles(invented.chain(common));
        assert_eq!(counts.len(), MOST_OBSTACLES + 1);
        let count = |name: &str| counts.get(&("finalizer", name.to_owned())).copied();
        assert_eq!(count("example.org/common"), Some(3));
        assert_eq!(count("other"), Some(500 - 19));
    }
}
