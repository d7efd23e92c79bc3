//! Whether a live object holds what was rendered, for kinds that Kubernetes defines.
//!
//! What Kite wants must be there; what others added is tolerated, except where it
//! changes what the object does. A forced apply brings back what is missing; it
//! does not take away what was added, so that is reported apart (rule C-7). For
//! KubeVirt's VirtualMachine the comparison stands with its view.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{LimitRange, Namespace, ResourceQuota, Service, ServicePort};
use k8s_openapi::api::networking::v1::{Ingress, NetworkPolicy};
use k8s_openapi::api::rbac::v1::RoleBinding;
use serde::Serialize;

pub use kite_kubevirt::compare::{Difference, Rules, differences};

/// Something that others added to an object and that changes what it does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Addition {
    /// JSON pointer to it, for the `remove` of a JSON patch. Additions are given so that
    /// removing one after the other hits what is meant.
    pub pointer: String,
    /// What stands there.
    pub found: String,
}

impl std::fmt::Display for Addition {
    /// The same addition always gives the same text, so it can serve as a fingerprint (rule C-8).
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} has {}, should be absent", self.pointer, self.found)
    }
}

/// The comparison of a rendered object with the live one.
pub trait Compare {
    /// What is wanted and is not there. A forced apply repairs it.
    fn differences(&self, live: &Self) -> Vec<Difference>;

    /// What was added and matters. Only removing it repairs it.
    fn additions(&self, live: &Self) -> Vec<Addition>;

    /// Whether the live object does what the rendered one would.
    fn matches(&self, live: &Self) -> bool {
        self.differences(live).is_empty() && self.additions(live).is_empty()
    }
}

/// No amounts, and every list whole.
const PLAIN: Rules = Rules {
    amounts: &[],
    keyed: &[],
};

impl Compare for Service {
    fn differences(&self, live: &Self) -> Vec<Difference> {
        // The keys by which server-side apply merges ports.
        const RULES: Rules = Rules {
            amounts: &[],
            keyed: &[("spec.ports", &["port", "protocol"])],
        };
        differences(self, live, &RULES)
    }

    fn additions(&self, live: &Self) -> Vec<Addition> {
        let (Some(wanted), Some(live)) = (&self.spec, &live.spec) else {
            return Vec::new();
        };
        let key = |p: &ServicePort| (p.port, p.protocol.clone());
        let wanted_ports: Vec<_> = wanted.ports.iter().flatten().map(key).collect();
        let extra = live.ports.iter().flatten().enumerate();
        let mut out: Vec<Addition> = extra
            .filter(|(_, port)| !wanted_ports.contains(&key(port)))
            .map(|(i, port)| addition(format!("/spec/ports/{i}"), port))
            .collect();
        // The last one first, so that removing it does not move the others.
        out.reverse();
        out.extend(extra_keys(
            "/spec/selector",
            wanted.selector.as_ref(),
            live.selector.as_ref(),
        ));
        out.extend(extra_field(
            "/spec/externalIPs",
            live.external_ips.as_ref().filter(|l| !l.is_empty()),
        ));
        out.extend(extra_field(
            "/spec/loadBalancerIP",
            live.load_balancer_ip.as_ref(),
        ));
        out
    }
}

impl Compare for Ingress {
    fn differences(&self, live: &Self) -> Vec<Difference> {
        differences(self, live, &PLAIN)
    }

    fn additions(&self, live: &Self) -> Vec<Addition> {
        let (Some(wanted), Some(live)) = (&self.spec, &live.spec) else {
            return Vec::new();
        };
        // A class that Kite leaves open is filled in by the server's default.
        let tls = live
            .tls
            .as_ref()
            .filter(|l| wanted.tls.is_none() && !l.is_empty());
        let mut out = Vec::new();
        out.extend(extra_field(
            "/spec/defaultBackend",
            live.default_backend.as_ref(),
        ));
        out.extend(extra_field("/spec/tls", tls));
        out
    }
}

impl Compare for NetworkPolicy {
    /// Isolation holds only when the policy is there unchanged (rule U-9): an extra label in its pod
    /// selector would take pods out of it. All its lists and selectors are atomic, so a forced
    /// apply takes additions away as well.
    fn differences(&self, live: &Self) -> Vec<Difference> {
        exactly(self, live, &PLAIN)
    }

    fn additions(&self, _: &Self) -> Vec<Addition> {
        Vec::new()
    }
}

impl Compare for LimitRange {
    /// A `max` or a `default` that was added would refuse or limit launcher pods; the list is atomic.
    fn differences(&self, live: &Self) -> Vec<Difference> {
        const RULES: Rules = Rules {
            amounts: &["spec.limits"],
            keyed: &[],
        };
        exactly(self, live, &RULES)
    }

    fn additions(&self, _: &Self) -> Vec<Addition> {
        Vec::new()
    }
}

impl Compare for ResourceQuota {
    fn differences(&self, live: &Self) -> Vec<Difference> {
        const RULES: Rules = Rules {
            amounts: &["spec.hard"],
            keyed: &[],
        };
        differences(self, live, &RULES)
    }

    /// A further key or a scope changes what the quota counts.
    fn additions(&self, live: &Self) -> Vec<Addition> {
        let (Some(wanted), Some(live)) = (&self.spec, &live.spec) else {
            return Vec::new();
        };
        let mut out = extra_keys("/spec/hard", wanted.hard.as_ref(), live.hard.as_ref());
        out.extend(extra_field(
            "/spec/scopes",
            live.scopes.as_ref().filter(|l| !l.is_empty()),
        ));
        out.extend(extra_field(
            "/spec/scopeSelector",
            live.scope_selector.as_ref(),
        ));
        out
    }
}

impl Compare for RoleBinding {
    /// The subjects are an atomic list: one more of them is a difference.
    fn differences(&self, live: &Self) -> Vec<Difference> {
        differences(self, live, &PLAIN)
    }

    fn additions(&self, _: &Self) -> Vec<Addition> {
        Vec::new()
    }
}

impl Compare for Namespace {
    fn differences(&self, live: &Self) -> Vec<Difference> {
        differences(self, live, &PLAIN)
    }

    fn additions(&self, _: &Self) -> Vec<Addition> {
        Vec::new()
    }
}

/// What differs in either direction below `spec`; labels and annotations of others are tolerated still.
fn exactly<T: Serialize>(wanted: &T, live: &T, rules: &Rules) -> Vec<Difference> {
    let mut out = differences(wanted, live, rules);
    let added = differences(live, wanted, rules)
        .into_iter()
        .filter(|d| d.field.starts_with("spec"));
    for Difference {
        field,
        wanted,
        found,
    } in added
    {
        if !out.iter().any(|d| d.field == field) {
            out.push(Difference {
                field,
                wanted: found.unwrap_or_else(|| "absent".to_owned()),
                found: Some(wanted),
            });
        }
    }
    out
}

fn extra_keys<V: Serialize>(
    pointer: &str,
    wanted: Option<&BTreeMap<String, V>>,
    live: Option<&BTreeMap<String, V>>,
) -> Vec<Addition> {
    let known = |key: &String| wanted.is_some_and(|w| w.contains_key(key));
    let extra = live.into_iter().flatten().filter(|(key, _)| !known(key));
    extra
        .map(|(key, value)| {
            // The two characters that a JSON pointer escapes.
            let key = key.replace('~', "~0").replace('/', "~1");
            addition(format!("{pointer}/{key}"), value)
        })
        .collect()
}

fn extra_field<V: Serialize>(pointer: &str, live: Option<&V>) -> Option<Addition> {
    live.map(|value| addition(pointer.to_owned(), value))
}

fn addition<V: Serialize>(pointer: String, value: &V) -> Addition {
    let found = serde_json::to_string(value).unwrap_or_else(|_| "something".to_owned());
    Addition { pointer, found }
}
