//! How the objects stand, counted from the cache when somebody asks.
//!
//! Nothing is kept and nothing runs between two scrapes. Only conditions that
//! this process writes are counted, so that two controllers never count the same
//! one; a status or reason that Kite's code does not have is `other`, so that no
//! word of anybody else's becomes a label.

use std::collections::BTreeMap;

use kite_api::condition::Status;
use kite_api::{Condition, condition};
use kube::Resource;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{IntGaugeVec, Result};

use super::reasons::REASONS;
use super::table::{CONDITIONS, OBJECTS};
use crate::cache::Cache;

/// What stands for any word that is not Kite's own.
const OTHER: &str = "other";

/// How many there are, and what their conditions say.
pub(super) struct Objects<K> {
    kind: &'static str,
    cache: Cache<K>,
    types: &'static [&'static str],
    conditions: fn(&K) -> &[Condition],
    /// Never filled: what this collector says of its metrics.
    described: [IntGaugeVec; 2],
}

impl<K> Objects<K> {
    pub(super) fn new(
        kind: &'static str,
        cache: Cache<K>,
        types: &'static [&'static str],
        conditions: fn(&K) -> &[Condition],
    ) -> Result<Self> {
        Ok(Self {
            kind,
            cache,
            types,
            conditions,
            described: [
                OBJECTS.unregistered_gauges()?,
                CONDITIONS.unregistered_gauges()?,
            ],
        })
    }
}

impl<K> Collector for Objects<K>
where
    K: Resource<DynamicType = ()> + Send + Sync,
{
    fn desc(&self) -> Vec<&Desc> {
        self.described.iter().flat_map(Collector::desc).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let mut counts = BTreeMap::<_, i64>::new();
        if !self.types.is_empty() {
            self.cache.for_each(|object| {
                for row in rows(self.types, (self.conditions)(&object)) {
                    *counts.entry(row).or_default() += 1;
                }
            });
        }
        // Gauges of this scrape alone: what is no longer so is not shown as zero for ever.
        let gauges = [
            OBJECTS.unregistered_gauges(),
            CONDITIONS.unregistered_gauges(),
        ];
        let [Ok(objects), Ok(conditions)] = gauges else {
            return Vec::new();
        };
        let number = i64::try_from(self.cache.len()).unwrap_or(i64::MAX);
        objects.with_label_values(&[self.kind]).set(number);
        for ([type_, status, reason], count) in counts {
            conditions
                .with_label_values(&[self.kind, type_, status, reason])
                .set(count);
        }
        [objects.collect(), conditions.collect()].concat()
    }
}

/// Type, status and reason of each condition of these types, in words of Kite's own.
fn rows<'a>(
    types: &'a [&'static str],
    conditions: &'a [Condition],
) -> impl Iterator<Item = [&'static str; 3]> + 'a {
    types.iter().filter_map(|type_| {
        let condition = condition::find(conditions, type_)?;
        let status = [Status::True, Status::False, Status::Unknown]
            .map(Status::as_str)
            .into_iter()
            .find(|known| *known == condition.status);
        let reason = REASONS.binary_search(&condition.reason.as_str());
        let reason = reason.ok().and_then(|at| REASONS.get(at).copied());
        Some([*type_, status.unwrap_or(OTHER), reason.unwrap_or(OTHER)])
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kite_api::KiteVirtualMachine;
    use kite_api::condition::{DISK_READY, READY, STALLED};
    use kite_api::labels::Controller;
    use serde_json::json;

    use super::*;
    use crate::metrics::Metrics;

    fn machine(name: &str, said: &[(&str, &str, &str)]) -> KiteVirtualMachine {
        let conditions: Vec<_> = said
            .iter()
            .map(|(type_, status, reason)| {
                json!({
                    "type": type_, "status": status, "reason": reason, "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                })
            })
            .collect();
        serde_json::from_value(json!({
            "apiVersion": "kite.dev/v1alpha1", "kind": "KiteVirtualMachine",
            "metadata": {"name": name, "namespace": "alice", "resourceVersion": "1"},
            "spec": {"image": "ubuntu", "cpu": 1, "memory": "1Gi", "disk": "10Gi"},
            "status": {"conditions": conditions},
        }))
        .unwrap()
    }

    fn lines(metrics: &Metrics) -> Vec<String> {
        let text = String::from_utf8(metrics.render().unwrap()).unwrap();
        let lines = text.lines().filter(|line| line.starts_with("kite_object"));
        lines.map(str::to_owned).collect()
    }

    #[test]
    fn own_conditions_are_counted_when_asked_and_the_words_of_others_are_one() {
        let metrics = Metrics::new("kite-vm-status").unwrap();
        let cache = Cache::new(|_| 0);
        metrics.machines(Controller::VmStatus, &cache).unwrap();
        assert_eq!(
            lines(&metrics),
            ["kite_objects{kind=\"KiteVirtualMachine\",controller=\"kite-vm-status\"} 0"]
        );
        let others = [(DISK_READY, "True", "Ready"), (STALLED, "True", "Rejected")];
        for number in 0..3 {
            let ready = (READY, "True", "Running");
            let said = [&[ready], &others[..]].concat();
            cache.shown(Ok(Arc::new(machine(&format!("good-{number}"), &said))));
        }
        for word in ["ErrorUnschedulable", "a tenant's own word"] {
            cache.shown(Ok(Arc::new(machine(word, &[(READY, "Perhaps", word)]))));
        }
        let row = |status: &str, reason: &str, count: u8| {
            format!(
                "kite_object_conditions{{condition=\"Ready\",kind=\"KiteVirtualMachine\",reason=\"{reason}\",status=\"{status}\",controller=\"kite-vm-status\"}} {count}"
            )
        };
        assert_eq!(
            lines(&metrics),
            [
                row("True", "Running", 3),
                row("other", "other", 2),
                "kite_objects{kind=\"KiteVirtualMachine\",controller=\"kite-vm-status\"} 5"
                    .to_owned(),
            ]
        );
    }

    #[test]
    fn the_reasons_can_be_searched() {
        assert!(REASONS.is_sorted());
    }
}
