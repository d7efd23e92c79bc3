//! The disk: made once, grown, adopted, and never silently made again.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kite_api::KiteVirtualMachine;
use kite_api::condition::RESOURCES_APPLIED;
use kite_api::labels::{ADOPT_RETAINED_DISK, CONFIRM_NEW_DISK, DELETION_POLICY, DISK_SIZE};
use kite_kubevirt::read::DataVolume;
use kite_render::machine::{child_name, data_volume, policy_text};
use kite_render::validate::{DnsName, ValidMachine};
use kite_runtime::apply::{Place, WriteError};
use kite_runtime::{Class, Key};
use kube::Api;
use kube::api::PropagationPolicy;
use kube::core::ObjectMeta;
use serde_json::json;

use super::delete::left_behind::is_retained;
use super::{Applied, Trouble};
use crate::controller::BY_IMAGE;
use crate::observe::turns::Turn;
use crate::observe::{Observed, annotation};
use crate::plan::{self, Disk, Growth};
use crate::reconcile::VmPass;

/// The reason of a machine whose image is being cloned often enough already (rule V-14).
const WAITING_FOR_TURN: &str = "WaitingForClones";

/// Brings the disk forward and tells how it stands.
pub async fn ensure(
    pass: &VmPass,
    seen: &Observed,
    machine: &ValidMachine,
    class: Option<&DnsName>,
    applied: &mut Applied,
) -> Disk {
    let disk = plan::disk(seen);
    let result = bring(pass, seen, machine, class, &disk, applied).await;
    match (applied.note(result), disk) {
        // An adopted disk is there from now on; no watch will tell us of our own write.
        (Some(()), Disk::Retained { claim, adopt: true }) => Disk::Present { claim },
        (_, disk) => disk,
    }
}

async fn bring(
    pass: &VmPass,
    seen: &Observed,
    machine: &ValidMachine,
    class: Option<&DnsName>,
    disk: &Disk,
    applied: &mut Applied,
) -> Result<(), Trouble> {
    let name = child_name(&seen.owner);
    match disk {
        Disk::Present { claim } => {
            applied.disk = true;
            applied.claim_uid = Some(claim.clone());
            record_policy(pass, seen).await?;
            grow(pass, seen, machine).await
        }
        Disk::Filling => {
            applied.disk = true;
            applied.waits_for_claim = true;
            Ok(())
        }
        Disk::Create => {
            if let Turn::Later(again) = turn(pass, seen, machine) {
                applied.again = again;
                return Err(waits_for_turn(machine));
            }
            let wanted = data_volume(machine, &seen.platform, class);
            let made = pass
                .writer
                .ensure(&place(pass, seen), &wanted, |m| seen.binds(m), |_| true)
                .await;
            pass.world.turns.taken(&seen.key);
            made.map_err(|error| clone_refused(error, name))?;
            applied.disk = true;
            applied.waits_for_claim = true;
            Ok(())
        }
        Disk::Replace => {
            if let Some(old) = seen.own_disk() {
                pass.writer
                    .delete(
                        &place(pass, seen),
                        &old.metadata,
                        PropagationPolicy::Background,
                    )
                    .await?;
            }
            applied.waits_for_claim = true;
            Ok(())
        }
        Disk::Retained { claim, adopt: true } => {
            adopt(pass, seen).await?;
            applied.disk = true;
            applied.claim_uid = Some(claim.clone());
            let seen = pass.again(seen);
            record_policy(pass, &seen).await?;
            grow(pass, &seen, machine).await
        }
        Disk::Unsure
        | Disk::Lost(_)
        | Disk::Retained { adopt: false, .. }
        | Disk::Foreign(_)
        | Disk::Unknown => known(seen, disk, applied),
    }
}

/// What is to be told of a disk that is not there and about which nothing can be done.
pub fn known(seen: &Observed, disk: &Disk, applied: &mut Applied) -> Result<(), Trouble> {
    let name = child_name(&seen.owner);
    match disk {
        Disk::Unsure => {
            let unseen = seen.unseen.clone().unwrap_or_default();
            applied.again = unseen.again;
            unseen.trouble.map_or(Ok(()), Err)
        }
        Disk::Lost(claim) => Err(Trouble::stalled(
            "DiskLost",
            format!(
                "claim {name} with UID {claim} held the disk and is gone; restore it, or accept an empty disk with the annotation {CONFIRM_NEW_DISK}={claim}"
            ),
        )),
        Disk::Retained {
            claim,
            adopt: false,
        } => Err(Trouble::stalled(
            "RetainedDiskExists",
            format!(
                "claim {name} holds the retained disk of an earlier machine; take it with the annotation {ADOPT_RETAINED_DISK}={claim}, or remove it"
            ),
        )),
        Disk::Foreign(kind) => Err(WriteError::NameConflict {
            kind: (*kind).to_owned(),
            name,
        }
        .into()),
        Disk::Unknown => Err(Trouble::waiting(
            kite_api::condition::DEPENDENCY_MISSING,
            "this cluster does not serve CDI's kinds; nothing is decided about the disk until it does",
        )),
        Disk::Present { .. }
        | Disk::Filling
        | Disk::Create
        | Disk::Replace
        | Disk::Retained { adopt: true, .. } => Ok(()),
    }
}

/// Asks whether this machine may begin to clone its image (rule V-14).
fn turn(pass: &VmPass, seen: &Observed, machine: &ValidMachine) -> Turn {
    let image = Key::new(
        seen.platform.image_namespace.as_str(),
        machine.image.as_str(),
    );
    let limit = usize::try_from(seen.platform.limits.clones_per_image).unwrap_or(1);
    let waits = |m: &KiteVirtualMachine| {
        m.spec.image == image.name && waits_by_status(m) && Key::of(m) != seen.key
    };
    let place = |m: &KiteVirtualMachine| (m.metadata.creation_timestamp.clone(), Key::of(m));
    pass.world.turns.ask(
        &image,
        place(&seen.machine),
        limit,
        || pass.world.disks.find(BY_IMAGE, &image.to_string()),
        || {
            let standing = pass.world.machines.select(waits);
            standing.iter().map(|m| place(m)).collect()
        },
    )
}

/// Whether a machine's status says that it waits for its turn.
pub fn waits_by_status(machine: &KiteVirtualMachine) -> bool {
    let conditions = machine.status.iter().flat_map(|s| &s.conditions);
    conditions
        .into_iter()
        .any(|c| c.type_ == RESOURCES_APPLIED && c.reason == WAITING_FOR_TURN)
}

/// It is woken when its turn comes, so nothing is tried again meanwhile.
fn waits_for_turn(machine: &ValidMachine) -> Trouble {
    Trouble {
        class: Class::Invalid,
        ..Trouble::waiting(
            WAITING_FOR_TURN,
            format!(
                "as many disks as the platform allows at once are being cloned from image {}; this machine's turn comes when one of them is finished, the oldest machine first",
                machine.image
            ),
        )
    }
}

/// CDI asks whether kite-vm may clone out of the image namespace, and makes no disk where a claim
/// of its name stands already; the watch does not show one of somebody else's.
fn clone_refused(error: WriteError, name: String) -> Trouble {
    let trouble = Trouble::from(error);
    if trouble.message.contains("Destination PVC") && trouble.message.contains("already exists") {
        return WriteError::NameConflict {
            kind: "PersistentVolumeClaim".into(),
            name,
        }
        .into();
    }
    if !trouble.message.contains("permissions in clone source") {
        return trouble;
    }
    Trouble {
        reason: "CloneForbidden",
        message: format!(
            "{}; an administrator gives kite-vm the right to create datavolumes/source there",
            trouble.message
        ),
        ..trouble
    }
}

fn place<'a>(pass: &'a VmPass, seen: &Observed) -> Place<'a, DataVolume> {
    Place {
        api: Api::namespaced(pass.writer.client().clone(), &seen.key.namespace),
        cache: &pass.world.disks,
        key: seen.key.clone(),
    }
}

pub(super) fn claim_place<'a>(
    pass: &'a VmPass,
    seen: &Observed,
) -> Place<'a, PersistentVolumeClaim> {
    Place {
        api: Api::namespaced(pass.writer.client().clone(), &seen.key.namespace),
        cache: &pass.world.claims,
        key: seen.key.clone(),
    }
}

/// Grows the claim where the specification's disk has grown (rule V-13).
async fn grow(pass: &VmPass, seen: &Observed, machine: &ValidMachine) -> Result<(), Trouble> {
    let Some(claim) = seen.own_claim() else {
        return Ok(());
    };
    match plan::growth(seen, machine, claim) {
        Growth::None => Ok(()),
        Growth::Refused(message) => Err(Trouble::stalled("DiskCannotGrow", message)),
        Growth::To { request, size } => {
            let body = json!({
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": claim.metadata.name, "annotations": {DISK_SIZE: size.to_string()}},
                "spec": {"resources": {"requests": {"storage": request.to_string()}}},
            });
            let uid = claim.metadata.uid.clone().unwrap_or_default();
            pass.writer
                .update(&claim_place(pass, seen), &uid, &body)
                .await?;
            Ok(())
        }
    }
}

/// Binds a retained disk to this machine; its owner has named its UID (rule V-19).
async fn adopt(pass: &VmPass, seen: &Observed) -> Result<(), Trouble> {
    let uid = seen.owner.uid.as_str();
    let bind = |meta: &ObjectMeta| {
        json!([
            {"op": "test", "path": "/metadata/uid", "value": meta.uid},
            {"op": "add", "path": "/metadata/annotations/kite.dev~1vm-uid", "value": uid},
            {"op": "add", "path": "/metadata/labels/kite.dev~1vm-uid", "value": uid},
            {"op": "remove", "path": "/metadata/labels/kite.dev~1retained"},
        ])
    };
    // The claim last: once it is bound, the disk counts as ours.
    if let Some(disk) = seen.disk.as_ref().filter(|d| is_retained(&d.metadata)) {
        pass.writer
            .patch(&place(pass, seen), "adopt", bind(&disk.metadata))
            .await?;
    }
    if let Some(claim) = seen.claim.as_ref().filter(|c| is_retained(&c.metadata)) {
        pass.writer
            .patch(&claim_place(pass, seen), "adopt", bind(&claim.metadata))
            .await?;
    }
    Ok(())
}

/// Notes on disk and claim what becomes of them should their machine be forced away, where that
/// has changed since they were made (rule V-19).
async fn record_policy(pass: &VmPass, seen: &Observed) -> Result<(), Trouble> {
    let policy = policy_text(seen.machine.spec.deletion_policy);
    let other = |meta: &ObjectMeta| annotation(meta, DELETION_POLICY) != Some(policy);
    let note = |meta: &ObjectMeta| {
        json!([
            {"op": "test", "path": "/metadata/uid", "value": meta.uid},
            {"op": "add", "path": "/metadata/annotations/kite.dev~1deletion-policy", "value": policy},
        ])
    };
    if let Some(disk) = seen.own_disk().filter(|d| other(&d.metadata)) {
        pass.writer
            .patch(
                &place(pass, seen),
                "note the policy on",
                note(&disk.metadata),
            )
            .await?;
    }
    if let Some(claim) = seen.own_claim().filter(|c| other(&c.metadata)) {
        pass.writer
            .patch(
                &claim_place(pass, seen),
                "note the policy on",
                note(&claim.metadata),
            )
            .await?;
    }
    Ok(())
}
