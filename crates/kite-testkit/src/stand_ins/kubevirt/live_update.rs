//! What KubeVirt can change in a guest that runs: sockets and memory, up to the
//! maxima that the machine was made with.
//!
//! Pure. Everything else waits for a restart and is told as RestartRequired.

use serde_json::{Value, json};

use crate::stand_ins::value::{bytes, text};

const SOCKETS: &str = "/domain/cpu/sockets";
const GUEST: &str = "/domain/memory/guest";

/// The patch of an instance's spec that follows the template, if that is all
/// that differs and stays within the maxima.
pub(super) fn patch(template: &Value, instance: &Value) -> Option<Value> {
    if template == instance || without_size(template) != without_size(instance) {
        return None;
    }
    let sockets = template.pointer(SOCKETS).and_then(Value::as_u64)?;
    let most = template
        .pointer("/domain/cpu/maxSockets")
        .and_then(Value::as_u64);
    let sockets_fit = template.pointer(SOCKETS) == instance.pointer(SOCKETS)
        || most.is_some_and(|most| sockets <= most);
    let guest = text(template, GUEST);
    let most = bytes(text(template, "/domain/memory/maxGuest"));
    let guest_fits = bytes(guest) == bytes(text(instance, GUEST))
        || most.is_some_and(|most| bytes(guest).is_some_and(|guest| guest <= most));
    (sockets_fit && guest_fits)
        .then(|| json!({"domain": {"cpu": {"sockets": sockets}, "memory": {"guest": guest}}}))
}

fn without_size(spec: &Value) -> Value {
    let mut spec = spec.clone();
    for pointer in [SOCKETS, GUEST] {
        if let Some(size) = spec.pointer_mut(pointer) {
            *size = Value::Null;
        }
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(sockets: u64, guest: &str) -> Value {
        json!({"domain": {
            "cpu": {"sockets": sockets, "maxSockets": 4},
            "memory": {"guest": guest, "maxGuest": "4Gi"},
        }})
    }

    #[test]
    fn sockets_and_memory_follow_up_to_the_maxima_and_nothing_else_does() {
        let small = spec(1, "1Gi");
        let patch_of = |template: &Value| patch(template, &small);
        assert!(patch_of(&spec(4, "4Gi")).is_some());
        assert_eq!(patch_of(&small), None);
        assert_eq!(patch_of(&spec(5, "1Gi")), None);
        assert_eq!(patch_of(&spec(1, "5Gi")), None);
        let mut other = spec(2, "1Gi");
        other["hostname"] = json!("other");
        assert_eq!(patch_of(&other), None);
    }
}
