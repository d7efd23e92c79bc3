//! The metrics of this controller alone.

use prometheus::{IntCounter, IntCounterVec, IntGauge, Opts, Registry};

/// What an administrator may want to be woken for.
#[derive(Debug)]
pub struct Measures {
    /// Deletions that were due and not carried out, by reason.
    pub suppressed: IntCounterVec,
    /// Namespaces that were deleted.
    pub deleted: IntCounter,
    /// Namespaces held back by the brake now.
    pub held: IntGauge,
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
        let unbound = IntGauge::new(
            "kite_namespaces_unbound",
            "Namespaces with Kite's label that are bound to no KiteUser; they are left alone.",
        )?;
        registry.register(Box::new(suppressed.clone()))?;
        registry.register(Box::new(deleted.clone()))?;
        registry.register(Box::new(held.clone()))?;
        registry.register(Box::new(unbound.clone()))?;
        Ok(Self {
            suppressed,
            deleted,
            held,
            unbound,
        })
    }
}
