//! Whether a claim is on its way to a larger size (rule D-6).
//!
//! kite-vm raises what the claim asks for; the storage driver's resizer, and where
//! needed the node, follow. Which of them it waits for, the claim's conditions tell.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kite_api::quantity;

/// The resource that a claim asks for.
const STORAGE: &str = "storage";

/// What a claim that grows is waiting for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Growth {
    /// The size that it asks for, as it stands in the claim.
    pub to: String,
    /// Whose turn it is.
    pub waits_for: Waits,
}

/// Whose turn it is while a claim grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Waits {
    /// The storage driver enlarges the volume.
    Driver,
    /// The volume is larger; its file system follows on the node.
    Node,
    /// The driver or the node has said that it cannot.
    Nobody,
}

/// The growth of a claim. It has grown when its capacity is what it asks for.
pub fn growth(claim: &PersistentVolumeClaim) -> Option<Growth> {
    let status = claim.status.as_ref()?;
    let requests = claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?;
    let (asked, has) = (
        requests.get(STORAGE)?,
        status.capacity.as_ref()?.get(STORAGE)?,
    );
    let bytes = |text: &str| quantity::whole(text).ok();
    if status.phase.as_deref() != Some("Bound") || bytes(&asked.0)? <= bytes(&has.0)? {
        return None;
    }
    let mut conditions = status
        .conditions
        .iter()
        .flatten()
        .filter(|c| c.status == "True");
    let says = |types: &'static [&'static str]| move |type_: &str| types.contains(&type_);
    let (pending, failed) = (
        says(&["FileSystemResizePending"]),
        says(&["ControllerResizeError", "NodeResizeError"]),
    );
    // A server of 1.34 tells it per resource, and keeps the word until the request changes.
    let allocated = status.allocated_resource_statuses.as_ref();
    let infeasible = allocated
        .and_then(|a| a.get(STORAGE))
        .is_some_and(|s| s.ends_with("Infeasible"));
    let waits_for = if infeasible || conditions.clone().any(|c| failed(&c.type_)) {
        Waits::Nobody
    } else if conditions.any(|c| pending(&c.type_)) {
        Waits::Node
    } else {
        Waits::Driver
    };
    Some(Growth {
        to: asked.0.clone(),
        waits_for,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn claim(phase: &str, asked: &str, status: &Value) -> PersistentVolumeClaim {
        let mut status = status.clone();
        status["phase"] = json!(phase);
        serde_json::from_value(json!({
            "spec": {"resources": {"requests": {"storage": asked}}}, "status": status,
        }))
        .unwrap()
    }

    fn waits(asked: &str, status: &Value) -> Option<Waits> {
        growth(&claim("Bound", asked, status)).map(|g| g.waits_for)
    }

    // D-6
    #[test]
    fn a_claim_grows_from_the_new_request_until_its_capacity_is_there() {
        let has = |conditions: Value| json!({"capacity": {"storage": "2276332667"}, "conditions": conditions});
        // As the recorded claims are: no smaller than asked for, whatever else is said of them.
        let unused = json!([{"type": "Unused", "status": "True", "reason": "NoPodsUsingPVC"}]);
        assert_eq!(waits("2276332667", &has(unused)), None);
        assert_eq!(waits("2Gi", &has(json!([]))), None, "rounded up");
        assert_eq!(waits("4Gi", &has(json!([]))), Some(Waits::Driver));
        let resizing = json!({"type": "Resizing", "status": "True"});
        assert_eq!(waits("4Gi", &has(json!([resizing]))), Some(Waits::Driver));
        let pending = json!({"type": "FileSystemResizePending", "status": "True"});
        assert_eq!(
            waits("4Gi", &has(json!([resizing, pending]))),
            Some(Waits::Node)
        );
        let over = json!({"type": "FileSystemResizePending", "status": "False"});
        assert_eq!(waits("4Gi", &has(json!([over]))), Some(Waits::Driver));
        for type_ in ["ControllerResizeError", "NodeResizeError"] {
            let failed =
                json!({"type": type_, "status": "True", "message": "no space, request 5f"});
            assert_eq!(
                waits("4Gi", &has(json!([resizing, failed]))),
                Some(Waits::Nobody)
            );
        }
        for word in ["ControllerResizeInfeasible", "NodeResizeInfeasible"] {
            let mut status = has(json!([resizing]));
            status["allocatedResourceStatuses"] = json!({"storage": word});
            assert_eq!(waits("4Gi", &status), Some(Waits::Nobody));
        }
    }

    // D-6
    #[test]
    fn what_is_not_bound_or_tells_no_size_does_not_grow() {
        let small = json!({"capacity": {"storage": "1Gi"}});
        assert_eq!(growth(&claim("Pending", "4Gi", &small)), None);
        assert_eq!(growth(&claim("Lost", "4Gi", &small)), None);
        assert_eq!(waits("4Gi", &json!({})), None);
        assert_eq!(waits("much", &small), None);
        assert_eq!(growth(&PersistentVolumeClaim::default()), None);
    }
}
