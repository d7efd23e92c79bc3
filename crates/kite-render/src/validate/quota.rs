//! A user's quota, checked; from spec or platform alike.
//!
//! What the numbers become in a ResourceQuota is `crate::user::quota`'s matter.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kite_api::quantity::whole;
use kite_api::user::UserQuota;

use super::{Bytes, Problems, Wrong};

/// How much a user's machines may use together, as their owner counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValidQuota {
    /// Virtual CPUs.
    pub cpu: Option<i64>,
    /// Guest memory.
    pub memory: Option<Bytes>,
    /// Disks.
    pub storage: Option<Bytes>,
    /// Machines.
    pub machines: Option<i64>,
    /// Further keys of a ResourceQuota, as they are.
    pub hard: BTreeMap<String, Quantity>,
}

/// Keys that Kite computes; given by hand they would contradict it.
const COMPUTED: [&str; 5] = [
    "count/kitevirtualmachines.kite.dev",
    "persistentvolumeclaims",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
];

impl ValidQuota {
    /// Checks a quota that stands at `field`.
    pub fn parse(field: &str, quota: &UserQuota) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let p = &mut problems;
        let at = |name: &str| format!("{field}.{name}");
        let cpu = p.note_some(&at("cpu"), quota.cpu.map(|n| at_least(n, 1)));
        let machines = p.note_some(
            &at("virtualMachines"),
            quota.virtual_machines.map(|n| at_least(n, 0)),
        );
        // The bounds are those of the schema; beyond them the sums of the formula mean nothing.
        let memory = quota
            .memory
            .as_ref()
            .map(|m| Bytes::parse(m, Bytes::mebi(32), Bytes::mebi(1 << 30)));
        let memory = p.note_some(&at("memory"), memory);
        let storage = quota
            .storage
            .as_ref()
            .map(|s| Bytes::parse(s, Bytes::mebi(64), Bytes::mebi(64 << 30)));
        let storage = p.note_some(&at("storage"), storage);
        let mut hard = BTreeMap::new();
        for (key, value) in &quota.hard {
            match hard_key(key, &value.0) {
                Ok(()) => {
                    hard.insert(key.clone(), Quantity(value.0.clone()));
                }
                Err(wrong) => p.add(&at("hard"), wrong),
            }
        }
        problems.finish(Some(Self {
            cpu,
            memory,
            storage,
            machines,
            hard,
        }))
    }
}

fn at_least(number: i32, least: i32) -> Result<i64, Wrong> {
    if number < least {
        return Err(Wrong::TooSmall {
            least: least.to_string(),
        });
    }
    Ok(i64::from(number))
}

fn hard_key(key: &str, value: &str) -> Result<(), Wrong> {
    let named = || key.to_owned();
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let inner = key
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"-_./".contains(&b));
    if key.len() > 253 || !inner || !edge(key.chars().next()) || !edge(key.chars().last()) {
        return Err(Wrong::QuotaKey);
    }
    if COMPUTED.contains(&key) {
        return Err(Wrong::ComputedKey { key: named() });
    }
    if key == "limits.ephemeral-storage" {
        // KubeVirt's and CDI's pods carry no such limit, and a default for it would be enforced on launchers.
        return Err(Wrong::ImpossibleKey { key: named() });
    }
    match whole(value) {
        Ok(number) if number >= 0 => Ok(()),
        Ok(_) => Err(Wrong::NegativeAmount { key: named() }),
        Err(error) => Err(Wrong::NoAmount {
            key: named(),
            error: error.to_string(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(hard: &[(&str, &str)]) -> String {
        let quota = UserQuota {
            hard: hard
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).into()))
                .collect(),
            ..UserQuota::default()
        };
        ValidQuota::parse("spec.quota", &quota).map_or_else(|p| p.to_string(), |_| String::new())
    }

    // U-6
    #[test]
    fn further_keys_may_not_contradict_or_make_machines_impossible() {
        assert_eq!(
            problems(&[
                ("services.loadbalancers", "1"),
                ("requests.nvidia.com/gpu", "2")
            ]),
            ""
        );
        for (key, value, words) in [
            ("requests.cpu", "1", "which Kite computes"),
            ("limits.ephemeral-storage", "1Gi", "no machine could start"),
            ("a: b", "1", "no ResourceQuota knows"),
            ("pods", "-1", "negative"),
            ("pods", "many", "cannot be read"),
        ] {
            let found = problems(&[(key, value)]);
            assert!(
                found.contains(words) && found.starts_with("spec.quota.hard"),
                "{found}"
            );
        }
    }
}
