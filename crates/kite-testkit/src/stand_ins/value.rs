//! Reading and comparing loosely typed objects.
//!
//! Everything here is pure. A field that is absent or of another type reads as
//! empty, as it does for the real controllers after defaulting.

use k8s_openapi::jiff::Timestamp;
use kube::api::DynamicObject;
use serde_json::{Map, Value, json};

/// The text at a JSON pointer, or nothing.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

/// The list at a JSON pointer, or an empty one.
pub(super) fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The object's status, or an empty one.
pub(super) fn status(object: &DynamicObject) -> Value {
    object
        .data
        .get("status")
        .cloned()
        .unwrap_or_else(|| json!({}))
}

/// The condition of a type in a status.
pub(super) fn condition<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    list(status, "/conditions")
        .iter()
        .find(|condition| text(condition, "/type") == kind)
}

/// Whether a condition of a status stands at `wanted` (True, False, Unknown).
pub(super) fn condition_is(status: &Value, kind: &str, wanted: &str) -> bool {
    condition(status, kind).is_some_and(|condition| text(condition, "/status") == wanted)
}

/// A new condition without times.
pub(super) fn new_condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    let mut fields = Map::new();
    fields.insert("type".into(), kind.into());
    fields.insert("status".into(), status.into());
    if !reason.is_empty() {
        fields.insert("reason".into(), reason.into());
    }
    if !message.is_empty() {
        fields.insert("message".into(), message.into());
    }
    Value::Object(fields)
}

/// Puts a condition into a list. One that says the same keeps its time; one
/// whose status stays keeps its time of transition.
pub(super) fn put_condition(conditions: &mut Vec<Value>, mut wanted: Value) {
    let known = conditions
        .iter_mut()
        .find(|known| known["type"] == wanted["type"]);
    let Some(known) = known else {
        wanted["lastTransitionTime"] = now().into();
        conditions.push(wanted);
        return;
    };
    let same = ["status", "reason", "message"]
        .iter()
        .all(|field| text(known, &format!("/{field}")) == text(&wanted, &format!("/{field}")));
    if same {
        return;
    }
    wanted["lastTransitionTime"] = if known["status"] == wanted["status"] {
        known["lastTransitionTime"].clone()
    } else {
        now().into()
    };
    *known = wanted;
}

/// Takes a condition out of a list.
pub(super) fn drop_condition(conditions: &mut Vec<Value>, kind: &str) {
    conditions.retain(|condition| text(condition, "/type") != kind);
}

/// A merge patch that turns one object into another; `None` when they agree.
pub(super) fn merge_patch(from: &Value, to: &Value) -> Option<Value> {
    let (Value::Object(from), Value::Object(to)) = (from, to) else {
        return (from != to).then(|| to.clone());
    };
    let mut patch = Map::new();
    for (name, wanted) in to {
        match from.get(name) {
            Some(known) => {
                if let Some(change) = merge_patch(known, wanted) {
                    patch.insert(name.clone(), change);
                }
            }
            None => {
                patch.insert(name.clone(), wanted.clone());
            }
        }
    }
    for name in from.keys().filter(|name| !to.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// The time as Kubernetes writes it: whole seconds.
pub(super) fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Bytes of a quantity ("2Gi", "500M", "1048576"); `None` when it is none.
pub(super) fn bytes(quantity: &str) -> Option<u64> {
    const UNITS: [(&str, f64); 11] = [
        ("Ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("Ti", 1_099_511_627_776.0),
        ("Pi", 1_125_899_906_842_624.0),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("P", 1e15),
        ("m", 1e-3),
    ];
    let quantity = quantity.trim();
    let (number, factor) = UNITS
        .iter()
        .find_map(|(unit, factor)| quantity.strip_suffix(unit).map(|number| (number, *factor)))
        .unwrap_or((quantity, 1.0));
    let number: f64 = number.parse().ok()?;
    whole(number * factor)
}

/// A number of bytes rounded up to whole ones.
pub(super) fn whole(bytes: f64) -> Option<u64> {
    // Above this a float is no longer exact, and no disk is that large.
    const LARGEST: f64 = 9_007_199_254_740_992.0;
    if !(0.0..=LARGEST).contains(&bytes) {
        return None;
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Some(bytes.ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_patch_names_only_what_differs() {
        let from = json!({"a": 1, "b": {"c": 2, "d": 3}, "e": [1]});
        let to = json!({"a": 1, "b": {"c": 4}, "e": [1, 2]});
        let patch = json!({"b": {"c": 4, "d": null}, "e": [1, 2]});
        assert_eq!(merge_patch(&from, &to), Some(patch));
        assert_eq!(merge_patch(&to, &to), None);
    }

    #[test]
    fn quantities_read_as_bytes() {
        assert_eq!(bytes("2Gi"), Some(2_147_483_648));
        assert_eq!(bytes("500M"), Some(500_000_000));
        assert_eq!(bytes("17"), Some(17));
        assert_eq!(bytes("1.5Ki"), Some(1536));
        assert_eq!(bytes("-1"), None);
        assert_eq!(bytes("many"), None);
    }

    #[test]
    fn a_condition_that_says_the_same_keeps_its_time() {
        let mut conditions =
            vec![json!({"type": "Ready", "status": "True", "lastTransitionTime": "then"})];
        put_condition(&mut conditions, new_condition("Ready", "True", "", ""));
        assert_eq!(conditions[0]["lastTransitionTime"], "then");
        put_condition(&mut conditions, new_condition("Ready", "True", "Why", ""));
        assert_eq!(conditions[0]["lastTransitionTime"], "then");
        put_condition(&mut conditions, new_condition("Ready", "False", "Why", ""));
        assert_ne!(conditions[0]["lastTransitionTime"], "then");
    }
}
