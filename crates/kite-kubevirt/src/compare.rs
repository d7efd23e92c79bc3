//! Whether a live object holds everything that a rendered one asks for.
//!
//! Both sides are taken as JSON and the wanted side has to be contained in the
//! found one: what others added beside Kite's fields is tolerated (rule C-8),
//! amounts are compared by value, and lists the way the API keys them. Of the
//! metadata only labels, annotations and owner references count; names are how
//! the object was found.

use std::fmt;

use kite_api::quantity;
use serde::Serialize;
use serde_json::{Map, Value};

/// One field that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// The path of the field.
    pub field: String,
    /// What it should say.
    pub wanted: String,
    /// What it says; nothing when it is absent.
    pub found: Option<String>,
}

impl fmt::Display for Difference {
    /// The same difference always gives the same text, so it can serve as a fingerprint (rule C-8).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.found {
            Some(found) => write!(f, "{} is {found}, should be {}", self.field, self.wanted),
            None => write!(f, "{} is missing, should be {}", self.field, self.wanted),
        }
    }
}

/// How the fields of a kind are compared. Paths leave list indices out.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Paths at and below which text is an amount.
    pub amounts: &'static [&'static str],
    /// Lists whose items are found by keys, in any order, among others; every
    /// other list is atomic and compared whole.
    pub keyed: &'static [(&'static str, &'static [&'static str])],
}

/// What `wanted` asks for and `found` does not have, in the order of the fields.
pub fn differences<W: Serialize, F: Serialize>(
    wanted: &W,
    found: &F,
    rules: &Rules,
) -> Vec<Difference> {
    let mut walk = Walk {
        rules,
        differences: Vec::new(),
    };
    match (serde_json::to_value(wanted), serde_json::to_value(found)) {
        (Ok(Value::Object(wanted)), Ok(Value::Object(found))) => walk.top(&wanted, &found),
        // Typed objects always serialise to JSON objects; were one not to, it must not pass as equal.
        _ => walk.report("object", &Value::Null, None),
    }
    walk.differences
}

/// The parts of the metadata that are compared.
const METADATA: [&str; 3] = ["labels", "annotations", "ownerReferences"];

/// One comparison under way.
struct Walk<'a> {
    rules: &'a Rules,
    differences: Vec<Difference>,
}

/// Where the walk is: once for people, once for the rules.
#[derive(Clone)]
struct Place {
    shown: String,
    rule: String,
}

impl Place {
    fn root(key: &str) -> Self {
        Self {
            shown: key.to_owned(),
            rule: key.to_owned(),
        }
    }

    fn field(&self, key: &str) -> Self {
        Self {
            shown: format!("{}.{key}", self.shown),
            rule: format!("{}.{key}", self.rule),
        }
    }

    fn item(&self, index: &str) -> Self {
        Self {
            shown: format!("{}[{index}]", self.shown),
            rule: self.rule.clone(),
        }
    }
}

impl Walk<'_> {
    fn top(&mut self, wanted: &Map<String, Value>, found: &Map<String, Value>) {
        for (key, wanted) in wanted {
            let place = Place::root(key);
            let found = found.get(key);
            match (key.as_str(), wanted) {
                // Items of a list carry neither, and the watch knows them anyway.
                ("apiVersion" | "kind", _) => {}
                ("metadata", Value::Object(wanted)) => {
                    for key in METADATA {
                        if let Some(wanted) = wanted.get(key) {
                            self.value(&place.field(key), wanted, found.and_then(|f| f.get(key)));
                        }
                    }
                }
                _ => self.value(&place, wanted, found),
            }
        }
    }

    fn value(&mut self, place: &Place, wanted: &Value, found: Option<&Value>) {
        match (wanted, found) {
            // Nothing is asked for: an absent map or list is as good as an empty one.
            (Value::Null, _) => {}
            (Value::Array(w), None | Some(Value::Null)) if w.is_empty() => {}
            (Value::Object(wanted), Some(Value::Object(found))) => {
                for (key, wanted) in wanted {
                    self.value(&place.field(key), wanted, found.get(key));
                }
            }
            (Value::Array(wanted), Some(Value::Array(found))) => self.list(place, wanted, found),
            (wanted, Some(found)) if self.same(place, wanted, found) => {}
            (wanted, found) => self.report(&place.shown, wanted, found),
        }
    }

    fn list(&mut self, place: &Place, wanted: &[Value], found: &[Value]) {
        let keyed = self
            .rules
            .keyed
            .iter()
            .find(|(path, _)| *path == place.rule);
        let keys: &[&str] = match keyed {
            Some((_, keys)) => keys,
            None if place.rule == "metadata.ownerReferences" => &["uid"],
            None if wanted.len() == found.len() => {
                for (index, (wanted, found)) in wanted.iter().zip(found).enumerate() {
                    self.value(&place.item(&index.to_string()), wanted, Some(found));
                }
                return;
            }
            None => {
                let all = |items: &[Value]| Value::Array(items.to_vec());
                return self.report(&place.shown, &all(wanted), Some(&all(found)));
            }
        };
        for wanted in wanted {
            let same_keys = |found: &&Value| keys.iter().all(|k| found.get(k) == wanted.get(k));
            let name: Vec<String> = keys
                .iter()
                .filter_map(|k| wanted.get(k))
                .map(text)
                .collect();
            self.value(
                &place.item(&name.join("/")),
                wanted,
                found.iter().find(same_keys),
            );
        }
    }

    fn same(&self, place: &Place, wanted: &Value, found: &Value) -> bool {
        let covers = |path: &str| {
            let rest = place.rule.strip_prefix(path);
            rest.is_some_and(|r| r.is_empty() || r.starts_with('.'))
        };
        wanted == found
            || (self.rules.amounts.iter().any(|p| covers(p))
                && quantity::same(&text(wanted), &text(found)))
    }

    fn report(&mut self, field: &str, wanted: &Value, found: Option<&Value>) {
        self.differences.push(Difference {
            field: field.to_owned(),
            wanted: text(wanted),
            found: found.filter(|f| !f.is_null()).map(text),
        });
    }
}

/// A value as people write it: text without quotation marks, the rest as JSON.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const RULES: Rules = Rules {
        amounts: &["spec.hard"],
        keyed: &[("spec.ports", &["port", "protocol"])],
    };

    fn shown(wanted: &Value, found: &Value) -> Vec<String> {
        let differences = differences(wanted, found, &RULES);
        differences.iter().map(ToString::to_string).collect()
    }

    // C-8
    #[test]
    fn what_others_added_is_no_difference() {
        let wanted = json!({"metadata": {"name": "a", "labels": {"x": "1"}}, "spec": {"type": "A", "list": []}});
        let found = json!({
            "metadata": {"name": "b", "labels": {"x": "1", "y": "2"}, "uid": "u"},
            "spec": {"type": "A", "extra": true}, "status": {}
        });
        assert_eq!(shown(&wanted, &found), Vec::<String>::new());
    }

    #[test]
    fn a_changed_and_a_missing_field_are_named_with_both_values() {
        let wanted = json!({"metadata": {"labels": {"x": "1"}}, "spec": {"type": "A", "size": 3}});
        let found = json!({"metadata": {}, "spec": {"type": "B"}});
        assert_eq!(
            shown(&wanted, &found),
            [
                "metadata.labels is missing, should be {\"x\":\"1\"}",
                "spec.size is missing, should be 3",
                "spec.type is B, should be A"
            ]
        );
    }

    // IN1: equal quantities cause no drift; text that only looks like one is text.
    #[test]
    fn amounts_are_compared_by_value_and_only_where_they_are_amounts() {
        let wanted = json!({"spec": {"hard": {"memory": "1Gi", "cpu": "1"}}});
        assert!(
            shown(
                &wanted,
                &json!({"spec": {"hard": {"memory": "1024Mi", "cpu": "1000m"}}})
            )
            .is_empty()
        );
        assert!(
            shown(
                &wanted,
                &json!({"spec": {"hard": {"memory": 1_073_741_824, "cpu": 1}}})
            )
            .is_empty()
        );
        assert_eq!(
            shown(
                &wanted,
                &json!({"spec": {"hard": {"memory": "1G", "cpu": "1"}}})
            )
            .len(),
            1
        );
        assert_eq!(
            shown(
                &json!({"spec": {"hardly": "1"}}),
                &json!({"spec": {"hardly": "1000m"}})
            )
            .len(),
            1
        );
    }

    #[test]
    fn keyed_lists_are_compared_by_key_and_other_lists_whole_and_in_order() {
        let wanted = json!({"spec": {"ports": [{"port": 22, "protocol": "TCP", "name": "ssh"}]}});
        let found = json!({"spec": {"ports": [
            {"port": 80, "protocol": "TCP"}, {"port": 22, "protocol": "TCP", "name": "ssh", "nodePort": 1}
        ]}});
        assert!(shown(&wanted, &found).is_empty());
        let gone = json!({"spec": {"ports": [{"port": 22, "protocol": "UDP", "name": "ssh"}]}});
        assert_eq!(shown(&wanted, &gone).len(), 1);
        let list = |items: &[i32]| json!({"spec": {"list": items}});
        assert!(shown(&list(&[1, 2]), &list(&[1, 2])).is_empty());
        assert_eq!(shown(&list(&[1, 2]), &list(&[2, 1])).len(), 2);
        assert_eq!(shown(&list(&[1, 2]), &list(&[1, 2, 3])).len(), 1);
    }

    // C-7
    #[test]
    fn an_owner_reference_is_found_by_uid_among_others() {
        let wanted = json!({"metadata": {"ownerReferences": [{"uid": "u1", "controller": true}]}});
        let other = json!({"uid": "u0", "controller": false});
        let found = |owner: Value| json!({"metadata": {"ownerReferences": [other.clone(), owner]}});
        assert!(shown(&wanted, &found(json!({"uid": "u1", "controller": true}))).is_empty());
        assert_eq!(
            shown(&wanted, &found(json!({"uid": "u2", "controller": true}))).len(),
            1
        );
    }
}
