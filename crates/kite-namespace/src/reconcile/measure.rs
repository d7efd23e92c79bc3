//! The metrics of this controller alone.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use kite_api::labels::DELETION_HELD;
use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry};

use crate::plan::blocked::Blocked;
use crate::plan::{HELD_BY_BRAKE, HELD_BY_PROTECTION, annotation, bound_uid};

/// What an administrator may want to be woken for.
#[derive(Debug)]
pub struct Measures {
    /// Deletions that were due and not carried out, by reason.
    pub suppressed: IntCounterVec,
    /// Namespaces that were deleted.
    pub deleted: IntCounter,
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
        let suppressed = IntCounterVec::new(
            Opts::new(
                "kite_namespace_deletions_suppressed_total",
                "Deletions that were due and not carried out.",
            ),
            &["reason"],
        )?;
        let deleted = IntCounter::new(
            "kite_namespace_deletions_total",
            "Namespaces that were deleted because nobody needed them.",
        )?;
        let held = IntGauge::new(
            "kite_namespaces_held",
            "Namespaces whose deletion waits for an administrator.",
        )?;
        let retained = IntGauge::new(
            "kite_namespaces_retained",
            "Namespaces that nobody needs, kept for a retained disk or by an administrator.",
        )?;
        let blocked = IntGaugeVec::new(
            Opts::new(
                "kite_namespaces_deletion_blocked",
                "Namespaces whose deletion takes long, by what is in the way: a kind, a finalizer.",
            ),
            &["by", "name"],
        )?;
        let unbound = IntGauge::new(
            "kite_namespaces_unbound",
            "Namespaces with Kite's label that are bound to no KiteUser; they are left alone.",
        )?;
        registry.register(Box::new(suppressed.clone()))?;
        registry.register(Box::new(deleted.clone()))?;
        registry.register(Box::new(held.clone()))?;
        registry.register(Box::new(retained.clone()))?;
        registry.register(Box::new(blocked.clone()))?;
        registry.register(Box::new(unbound.clone()))?;
        Ok(Self {
            suppressed,
            deleted,
            held,
            retained,
            blocked,
            unbound,
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
        self.held.set(number(&held_by(HELD_BY_BRAKE)));
        self.retained.set(number(&held_by(HELD_BY_PROTECTION)));
        self.unbound
            .set(number(&|ns| bound_uid(&ns.metadata).is_none()));
        // What is no longer in the way is not shown as zero for ever.
        self.blocked.reset();
        for namespace in namespaces.iter().filter(|namespace| long(namespace)) {
            for (by, name) in Blocked::of(namespace).entries() {
                self.blocked.with_label_values(&[by, name]).inc();
            }
        }
    }
}
