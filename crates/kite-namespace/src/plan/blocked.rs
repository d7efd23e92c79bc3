//! What keeps a namespace from coming to its end (rule N-8), as the server says
//! it in the namespace's own conditions. Pure.
//!
//! The server's sentences are made for people. What of them does not have the
//! known form is passed on as it is, so that nothing it says is lost.

use std::collections::BTreeSet;
use std::fmt;

use k8s_openapi::api::core::v1::{Namespace, NamespaceCondition};

/// What is in the way of a deletion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocked {
    /// The kinds of which objects are left, as `resource` or `resource.group`.
    pub kinds: BTreeSet<String>,
    /// The finalizers that objects in it still carry.
    pub finalizers: BTreeSet<String>,
    /// The finalizers of the namespace itself, but the server's own.
    pub own_finalizers: BTreeSet<String>,
    /// Whatever else the server says.
    pub words: Vec<String>,
}

/// The server's own finalizer on every namespace: it goes last.
const SERVER: &str = "kubernetes";

impl Blocked {
    /// What the server says of a namespace that is being deleted.
    pub fn of(namespace: &Namespace) -> Self {
        let mut blocked = Self::default();
        let spec = namespace.spec.as_ref().and_then(|s| s.finalizers.as_ref());
        let meta = namespace.metadata.finalizers.as_ref();
        let own = spec.into_iter().chain(meta).flatten();
        blocked.own_finalizers = own.filter(|f| *f != SERVER).cloned().collect();
        let status = namespace.status.as_ref();
        let conditions = status.and_then(|s| s.conditions.as_ref());
        for condition in conditions.into_iter().flatten() {
            if condition.status == "True" {
                blocked.take(condition);
            }
        }
        blocked
    }

    fn take(&mut self, condition: &NamespaceCondition) {
        let message = condition.message.as_deref().unwrap_or_default();
        let (into, between) = match condition.type_.as_str() {
            "NamespaceContentRemaining" => (&mut self.kinds, " has "),
            "NamespaceFinalizersRemaining" => (&mut self.finalizers, " in "),
            _ => {
                self.words.push(format!("{}: {message}", condition.type_));
                return;
            }
        };
        // A sentence, a colon, and entries such as "pods. has 1 resource instances".
        let entries = message.split_once(": ").map(|(_, entries)| entries);
        let names: Option<Vec<_>> = entries.map(|entries| {
            let names = entries.split(", ").filter_map(|e| e.split_once(between));
            names
                .map(|(name, _)| name.trim_end_matches('.').to_owned())
                .collect()
        });
        match names {
            Some(names) if !names.is_empty() => into.extend(names),
            _ => self.words.push(format!("{}: {message}", condition.type_)),
        }
    }

    /// What is in the way, each with the sort of thing it is, for a metric.
    pub fn entries(&self) -> Vec<(&'static str, &str)> {
        let mut entries: Vec<(&'static str, &str)> = Vec::new();
        entries.extend(self.kinds.iter().map(|name| ("kind", name.as_str())));
        entries.extend(self.finalizers.iter().map(|f| ("finalizer", f.as_str())));
        let own = self.own_finalizers.iter();
        entries.extend(own.map(|f| ("namespace_finalizer", f.as_str())));
        if entries.is_empty() {
            entries.push(("unknown", ""));
        }
        entries
    }
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = |what: &str, names: &BTreeSet<String>| {
            let names = names.iter().cloned().collect::<Vec<_>>().join(", ");
            (!names.is_empty()).then(|| format!("{what} {names}"))
        };
        let mut parts: Vec<String> = [
            listed("objects of", &self.kinds),
            listed("their finalizers", &self.finalizers),
            listed("its own finalizers", &self.own_finalizers),
        ]
        .into_iter()
        .flatten()
        .collect();
        parts.extend(self.words.iter().cloned());
        if parts.is_empty() {
            return f
                .write_str("the server does not say what; is kube-controller-manager running?");
        }
        f.write_str(&parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn going(finalizers: &Value, conditions: &[(&str, &str, &str)]) -> Blocked {
        let conditions: Vec<_> = conditions
            .iter()
            .map(|(type_, status, message)| {
                json!({"type": type_, "status": status, "message": message})
            })
            .collect();
        let object = json!({
            "metadata": {"name": "a", "finalizers": finalizers},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"conditions": conditions},
        });
        Blocked::of(&serde_json::from_value(object).unwrap())
    }

    // N-8
    #[test]
    fn the_kinds_and_finalizers_are_those_that_the_server_names() {
        let blocked = going(
            &json!(["example.org/space"]),
            &[
                (
                    "NamespaceDeletionContentFailure",
                    "False",
                    "All content successfully deleted",
                ),
                (
                    "NamespaceContentRemaining",
                    "True",
                    "Some resources are remaining: configmaps. has 1 resource instances, \
                     virtualmachines.kubevirt.io has 2 resource instances",
                ),
                (
                    "NamespaceFinalizersRemaining",
                    "True",
                    "Some content in the namespace has finalizers remaining: example.org/a in 1 \
                     resource instances, example.org/b in 2 resource instances",
                ),
            ],
        );
        assert_eq!(
            blocked.entries(),
            [
                ("kind", "configmaps"),
                ("kind", "virtualmachines.kubevirt.io"),
                ("finalizer", "example.org/a"),
                ("finalizer", "example.org/b"),
                ("namespace_finalizer", "example.org/space"),
            ]
        );
        assert_eq!(
            blocked.to_string(),
            "objects of configmaps, virtualmachines.kubevirt.io; their finalizers example.org/a, \
             example.org/b; its own finalizers example.org/space"
        );
    }

    // N-8: nothing that the server says is lost.
    #[test]
    fn what_has_another_form_is_passed_on_in_the_servers_words() {
        let failed = going(
            &json!([]),
            &[
                (
                    "NamespaceDeletionDiscoveryFailure",
                    "True",
                    "Discovery failed for some groups, 1 failing: metrics.k8s.io/v1beta1",
                ),
                ("NamespaceContentRemaining", "True", "some are left"),
                (
                    "NamespaceFinalizersRemaining",
                    "True",
                    "Some content has finalizers: of many kinds",
                ),
            ],
        );
        assert!(failed.to_string().contains("metrics.k8s.io/v1beta1"));
        assert!(failed.to_string().contains("some are left"));
        assert!(failed.to_string().contains("of many kinds"));
        assert_eq!(failed.entries(), [("unknown", "")]);
        let silent = going(&json!(null), &[]);
        assert!(silent.to_string().contains("kube-controller-manager"));
    }
}
