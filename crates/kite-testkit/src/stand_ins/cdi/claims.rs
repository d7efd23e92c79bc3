//! The storage driver: binds claims, grows them, and takes volumes away.
//!
//! Binding itself is done by the server's own claim controller; this only makes
//! the volumes it asks for, as an external provisioner does. Where that controller does
//! not run, since it binds one claim after the other, this binds too.

use std::time::Duration;

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::claim::{temporary_name, volume};
use crate::stand_ins::cache::Key;
use crate::stand_ins::fault::Fault;
use crate::stand_ins::names::{
    CDI_MANAGER, CLAIM_PROVISIONER, FILLS, OWNED_BY_UID, POPULATOR_FINALIZER, PROVISIONER, Res,
    SOURCE_FINALIZER,
};
use crate::stand_ins::value::{bytes, list, text};
use crate::stand_ins::world::{Pass, World, going, uid};

/// Until a volume is made.
const PROVISIONED: f64 = 0.3;
/// Until a claim has grown.
const GROWN: f64 = 3.0;

/// One pass over a claim.
pub(in crate::stand_ins) async fn pass(world: &World, key: &Key) -> Pass {
    let Some(claim) = world.get(Res::Claim, key) else {
        return Ok(None);
    };
    let spent = is_spent(world, key, &claim);
    if spent && !going(&claim) {
        // The server calls a claim lost whose volume went to another one, and CDI is slower than that.
        if text(&claim.data, "/status/phase") == "Bound" && target_stays(world, key, &claim) {
            return Ok(None);
        }
        world.delete(Res::Claim, &claim, false).await?;
        return Ok(Some(Duration::ZERO));
    }
    if going(&claim) {
        return release(world, &claim).await;
    }
    match text(&claim.data, "/status/phase") {
        "Bound" => grow(world, key, &claim).await,
        "Lost" => Ok(None),
        _ => provision(world, key, &claim).await,
    }
}

/// Whether this is a temporary claim whose work is over or pointless.
fn is_spent(world: &World, key: &Key, claim: &DynamicObject) -> bool {
    let Some(target) = claim.annotations().get(FILLS) else {
        return false;
    };
    let filled = world.get(Res::Claim, &Key::new(key.namespace.clone(), target));
    !filled.is_some_and(|filled| {
        claim.labels().get(OWNED_BY_UID).map(String::as_str) == filled.metadata.uid.as_deref()
            && !going(&filled)
            && filled
                .finalizers()
                .iter()
                .any(|known| known == POPULATOR_FINALIZER)
    })
}

/// Whether the claim that this one filled is there to stay.
fn target_stays(world: &World, key: &Key, claim: &DynamicObject) -> bool {
    let target = claim.annotations().get(FILLS);
    let filled =
        target.and_then(|target| world.get(Res::Claim, &Key::new(key.namespace.clone(), target)));
    filled.is_some_and(|filled| {
        !going(&filled)
            && claim.labels().get(OWNED_BY_UID).map(String::as_str)
                == filled.metadata.uid.as_deref()
    })
}

/// CDI's finalizers go from a claim that is being deleted.
async fn release(world: &World, claim: &DynamicObject) -> Pass {
    let kept: Vec<String> = claim
        .finalizers()
        .iter()
        .filter(|known| ![POPULATOR_FINALIZER, SOURCE_FINALIZER].contains(&known.as_str()))
        .cloned()
        .collect();
    if kept.len() < claim.finalizers().len() {
        world
            .set_finalizers(Res::Claim, CDI_MANAGER, claim, &kept)
            .await?;
    }
    Ok(None)
}

async fn provision(world: &World, key: &Key, claim: &DynamicObject) -> Pass {
    let asked = claim.annotations().get(CLAIM_PROVISIONER);
    let populated = text(&claim.data, "/spec/dataSourceRef/kind") == "VolumeCloneSource";
    if populated {
        // What was asked of this one concerns the one that fills it.
        let filling = Key::new(key.namespace.clone(), temporary_name(claim));
        world.agenda.wake(Res::Claim, filling);
    }
    let machine = claim.annotations().get(FILLS).unwrap_or(&key.name);
    let machine = Key::new(key.namespace.clone(), machine);
    // The controller that binds is also the one that asks.
    let asked = world.binds_claims || asked.map(String::as_str) == Some(PROVISIONER);
    if !asked || populated || world.behaviour.has(&machine, &Fault::NeverBound) {
        return Ok(None);
    }
    let wait = world.clock.wait(uid(claim), "volume", "", PROVISIONED);
    let known = world.get(Res::Volume, &Key::new("", format!("pvc-{}", uid(claim))));
    if wait.is_some() {
        return Ok(wait);
    }
    let Some(known) = known else {
        world
            .create(Res::Volume, CDI_MANAGER, uid(claim), volume(claim))
            .await?;
        return Ok(world.binds_claims.then_some(Duration::ZERO));
    };
    if world.binds_claims {
        bind(world, claim, &known).await?;
    }
    Ok(None)
}

/// What the server's claim controller writes to bind a claim to a volume that names it.
async fn bind(
    world: &World,
    claim: &DynamicObject,
    volume: &DynamicObject,
) -> Result<(), kube::Error> {
    let bound = json!({
        "metadata": {"annotations": {
            "pv.kubernetes.io/bind-completed": "yes",
            "pv.kubernetes.io/bound-by-controller": "yes",
        }},
        "spec": {"volumeName": volume.name_any()},
    });
    world.merge(Res::Claim, CDI_MANAGER, claim, bound).await?;
    let phase = json!({"phase": "Bound"});
    world
        .merge_status(Res::Volume, CDI_MANAGER, volume, phase)
        .await?;
    let status = json!({
        "phase": "Bound",
        "accessModes": volume.data.pointer("/spec/accessModes"),
        "capacity": volume.data.pointer("/spec/capacity"),
    });
    world
        .merge_status(Res::Claim, CDI_MANAGER, claim, status)
        .await
}

async fn grow(world: &World, key: &Key, claim: &DynamicObject) -> Pass {
    let asked = text(&claim.data, "/spec/resources/requests/storage");
    let has = text(&claim.data, "/status/capacity/storage");
    let volume = text(&claim.data, "/spec/volumeName");
    let Some(volume) = world.get(Res::Volume, &Key::new("", volume)) else {
        return Ok(None);
    };
    if bytes(asked) <= bytes(has) || world.behaviour.has(key, &Fault::NeverBound) {
        return Ok(None);
    }
    let wait = world.clock.wait(uid(claim), "grow", asked, GROWN);
    if wait.is_some() {
        return Ok(wait);
    }
    let capacity = json!({"storage": asked});
    if volume.data.pointer("/spec/capacity") != Some(&capacity) {
        let capacity = json!({"spec": {"capacity": capacity}});
        world
            .merge(Res::Volume, CDI_MANAGER, &volume, capacity)
            .await?;
    }
    let waits = world.behaviour.has(key, &Fault::ResizeWaits);
    if waits && pending(claim) {
        return Ok(None);
    }
    let status = if waits {
        json!({"conditions": [resize_pending()]})
    } else {
        json!({"conditions": null, "capacity": capacity})
    };
    world
        .merge_status(Res::Claim, CDI_MANAGER, claim, status)
        .await?;
    Ok(None)
}

/// What a resizer says when the node's turn has come, in its own words.
fn resize_pending() -> Value {
    json!({
        "type": "FileSystemResizePending", "status": "True", "lastProbeTime": null,
        "message": "Waiting for user to (re-)start a pod to finish file system resize of volume on node.",
    })
}

fn pending(claim: &DynamicObject) -> bool {
    let conditions = list(&claim.data, "/status/conditions");
    conditions
        .iter()
        .any(|c| text(c, "/type") == "FileSystemResizePending")
}

/// One pass over a volume: one that nobody claims any more is removed.
pub(in crate::stand_ins) async fn volume_pass(world: &World, key: &Key) -> Pass {
    let Some(volume) = world.get(Res::Volume, key) else {
        return Ok(None);
    };
    let phase = text(&volume.data, "/status/phase");
    if matches!(phase, "Released" | "Failed") && !going(&volume) {
        world.delete(Res::Volume, &volume, false).await?;
    }
    Ok(None)
}
