//! The live look for a recorded claim that no watch shows (rule V-15).
//!
//! The watch shows claims with Kite's labels, so one that lost them looks as if
//! it were gone, and a false word of a lost disk may cost the true one. The
//! server itself is asked before that is said, and the labels are put back. What
//! follows from a claim that is gone is decided in [`crate::plan`].

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kite_render::machine::child_name;
use kite_render::meta::{Component, bound_to_machine};
use serde_json::{Value, json};

use super::{Trouble, disk};
use crate::observe::Observed;
use crate::observe::looks::{Unseen, doubted};
use crate::reconcile::VmPass;

/// Looks for a recorded claim that no watch shows, and puts back what makes it be shown.
pub async fn find(pass: &VmPass, seen: Observed) -> Observed {
    let Some(recorded) = doubted(&seen) else {
        return seen;
    };
    let unseen = match pass.looks.known(&seen.key, &recorded) {
        Some(known) => known,
        None => match look(pass, &seen, &recorded).await {
            Ok(gone) => Unseen {
                gone,
                ..Unseen::default()
            },
            Err(trouble) => Unseen {
                trouble: Some(trouble),
                ..Unseen::default()
            },
        },
    };
    let mut seen = pass.again(&seen);
    seen.unseen = doubted(&seen).map(|_| unseen);
    seen
}

/// True when the claim is gone.
async fn look(pass: &VmPass, seen: &Observed, recorded: &str) -> Result<bool, Trouble> {
    let place = disk::claim_place(pass, seen);
    let live = pass.writer.live(&place).await?;
    let found = live.filter(|c| c.metadata.uid.as_deref() == Some(recorded));
    pass.looks.met(&seen.key, recorded, found.is_none());
    let Some(claim) = found else {
        return Ok(true);
    };
    pass.writer
        .patch(&place, "label", marks(seen, &claim))
        .await?;
    Ok(false)
}

/// Labels or annotations, as an object may have them.
type Pairs = Option<BTreeMap<String, String>>;

/// What CDI once copied to the claim and somebody has taken off.
fn marks(seen: &Observed, claim: &PersistentVolumeClaim) -> Value {
    let wanted = bound_to_machine(&seen.owner, child_name(&seen.owner), Component::Disk);
    let there = &claim.metadata;
    let mut operations = vec![json!({"op": "test", "path": "/metadata/uid", "value": there.uid})];
    operations.extend(missing("labels", &there.labels, &wanted.labels));
    operations.extend(missing(
        "annotations",
        &there.annotations,
        &wanted.annotations,
    ));
    Value::Array(operations)
}

/// Adds what is not there, each for itself, since others may write beside it.
fn missing(field: &str, there: &Pairs, wanted: &Pairs) -> Vec<Value> {
    let path = ["/metadata/", field].concat();
    let Some(there) = there else {
        return vec![json!({"op": "add", "path": path, "value": wanted})];
    };
    let other = wanted
        .iter()
        .flatten()
        .filter(|(k, v)| there.get(*k) != Some(v));
    other
        .map(|(key, value)| {
            let path = [path.as_str(), "/", &key.replace('/', "~1")].concat();
            json!({"op": "add", "path": path, "value": value})
        })
        .collect()
}
