//! Whether a live object holds everything that a rendered one asks for.
//!
//! Both sides are taken as JSON would hold them and the wanted side has to be contained in the
//! found one: what others added beside Kite's fields is tolerated (rule C-8),
//! amounts are compared by value, and lists the way the API keys them. Of the
//! metadata only labels, annotations and owner references count; names are how
//! the object was found.

mod tape;

use std::fmt;

use kite_api::quantity;
use serde::Serialize;

use self::tape::{Node, Tape};

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
    let (Ok(wanted), Ok(found)) = (Tape::of(wanted), Tape::of(found)) else {
        // Typed objects can always be written down; were one not to, it must not pass as equal.
        return vec![Difference {
            field: "object".to_owned(),
            wanted: "one that can be compared".to_owned(),
            found: None,
        }];
    };
    let mut walk = Walk {
        rules,
        differences: Vec::new(),
    };
    walk.top(wanted.root(), found.root());
    walk.differences
}

/// The parts of the metadata that are compared.
const METADATA: [&str; 3] = ["labels", "annotations", "ownerReferences"];

/// One comparison under way.
struct Walk<'a> {
    rules: &'a Rules,
    differences: Vec<Difference>,
}

/// Where the walk is: a step below another place. It is spelled out only for what differs.
#[derive(Clone, Copy)]
struct Place<'a> {
    above: Option<&'a Self>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    /// Into a field.
    Field(&'a str),
    /// To an item of a list, by its number.
    Item(usize),
    /// To an item of a list that is found by keys.
    Keyed(&'static [&'static str], Node<'a>),
}

impl<'a> Place<'a> {
    const fn below(&'a self, step: Step<'a>) -> Self {
        Self {
            above: Some(self),
            step,
        }
    }

    /// This place and those above it.
    fn upwards(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |place| place.above)
    }

    /// Whether a path without list indices leads here.
    fn is(&self, path: &str) -> bool {
        let fields = self.upwards().filter_map(|place| match place.step {
            Step::Field(key) => Some(key),
            Step::Item(_) | Step::Keyed(..) => None,
        });
        fields.eq(path.rsplit('.'))
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(above) = self.above {
            above.fmt(f)?;
        }
        match self.step {
            Step::Field(key) if self.above.is_none() => f.write_str(key),
            Step::Field(key) => write!(f, ".{key}"),
            Step::Item(index) => write!(f, "[{index}]"),
            Step::Keyed(keys, item) => {
                let name = keys.iter().filter_map(|k| item.get(k));
                let name: Vec<String> = name.map(|value| value.to_string()).collect();
                write!(f, "[{}]", name.join("/"))
            }
        }
    }
}

/// The fields of a map in the order in which differences are told.
fn ordered(map: Node<'_>) -> Vec<(&str, Node<'_>)> {
    let mut fields: Vec<_> = map.fields().collect();
    fields.sort_unstable_by_key(|(key, _)| *key);
    fields
}

impl Walk<'_> {
    fn top(&mut self, wanted: Node<'_>, found: Node<'_>) {
        for (key, wanted) in ordered(wanted) {
            let place = Place {
                above: None,
                step: Step::Field(key),
            };
            let found = found.get(key);
            match key {
                // Items of a list carry neither, and the watch knows them anyway.
                "apiVersion" | "kind" => {}
                "metadata" if wanted.is_map() => {
                    for key in METADATA {
                        if let Some(wanted) = wanted.get(key) {
                            let place = place.below(Step::Field(key));
                            self.value(&place, wanted, found.and_then(|f| f.get(key)));
                        }
                    }
                }
                _ => self.value(&place, wanted, found),
            }
        }
    }

    fn value(&mut self, place: &Place<'_>, wanted: Node<'_>, found: Option<Node<'_>>) {
        let found = found.filter(|f| !f.is_null());
        match found {
            // Nothing is asked for: an absent map or list is as good as an empty one.
            _ if wanted.is_null() => {}
            None if wanted.is_list() && wanted.items().next().is_none() => {}
            Some(found) if wanted.is_map() && found.is_map() => {
                for (key, wanted) in ordered(wanted) {
                    self.value(&place.below(Step::Field(key)), wanted, found.get(key));
                }
            }
            Some(found) if wanted.is_list() && found.is_list() => self.list(place, wanted, found),
            Some(found) if self.same(place, wanted, found) => {}
            found => self.report(place, wanted, found),
        }
    }

    fn list(&mut self, place: &Place<'_>, wanted: Node<'_>, found: Node<'_>) {
        let keyed = self.rules.keyed.iter().find(|(path, _)| place.is(path));
        let keys: &'static [&'static str] = match keyed {
            Some((_, keys)) => keys,
            None if place.is("metadata.ownerReferences") => &["uid"],
            None if wanted.items().count() == found.items().count() => {
                for (index, (wanted, found)) in wanted.items().zip(found.items()).enumerate() {
                    self.value(&place.below(Step::Item(index)), wanted, Some(found));
                }
                return;
            }
            None => return self.report(place, wanted, Some(found)),
        };
        for wanted in wanted.items() {
            let same_keys = |found: &Node<'_>| keys.iter().all(|k| found.get(k) == wanted.get(k));
            let item = place.below(Step::Keyed(keys, wanted));
            self.value(&item, wanted, found.items().find(same_keys));
        }
    }

    fn same(&self, place: &Place<'_>, wanted: Node<'_>, found: Node<'_>) -> bool {
        let covers = |path: &&str| place.upwards().any(|place| place.is(path));
        wanted == found
            || (self.rules.amounts.iter().any(covers)
                && quantity::same(&wanted.to_string(), &found.to_string()))
    }

    fn report(&mut self, place: &Place<'_>, wanted: Node<'_>, found: Option<Node<'_>>) {
        self.differences.push(Difference {
            field: place.to_string(),
            wanted: wanted.to_string(),
            found: found.map(|found| found.to_string()),
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

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
