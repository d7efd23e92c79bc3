//! Disks that outlive their machine: kept on purpose, or left behind because the
//! machine's finalizer was taken off by hand (rule V-19).
//!
//! A disk that was left behind is judged by the policy recorded on it, after a
//! live look that its machine, VirtualMachine and guest are gone. In doubt it is
//! kept: without the word Delete on it, or without a DataVolume, as a claim that
//! came back from a backup is.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kite_api::labels::{DELETION_POLICY, RETAINED, VM_UID};
use kite_kubevirt::read::{DataVolume, VirtualMachine, VirtualMachineInstance};
use kite_runtime::Key;
use kite_runtime::apply::Place;
use kube::core::ObjectMeta;
use serde_json::json;

use super::{Trouble, is_owned_by_a_disk, place, remove};
use crate::controller::Meta;
use crate::observe::annotation;
use crate::reconcile::VmPass;

/// Whether a disk or claim carries the mark of one that outlived its machine.
pub fn is_retained(meta: &ObjectMeta) -> bool {
    let labels = meta.labels.as_ref();
    labels.is_some_and(|l| l.contains_key(RETAINED))
}

/// Deals with a disk of this name whose machine is gone. Does nothing while that machine, its
/// VirtualMachine or its guest may still be there; a watch tells when they are gone.
pub async fn collect(pass: &VmPass, key: &Key) -> Result<(), Trouble> {
    let (disk, claim) = (pass.world.disks.get(key), pass.world.claims.get(key));
    let Some((uid, removes)) = judge(disk.as_deref(), claim.as_deref()) else {
        return Ok(());
    };
    let of_guest = pass.world.vms.get(key).is_some() || pass.world.vmis.get(key).is_some();
    if of_guest || !is_alone(pass, key, uid).await? {
        return Ok(());
    }
    let claim = claim.as_deref();
    let claim = claim.filter(|c| annotation(&c.metadata, VM_UID) == Some(uid));
    if removes {
        remove(pass, key, disk.as_deref(), claim).await
    } else {
        retain(pass, key, disk.as_deref(), claim).await
    }
}

/// Whose disk is left, and whether it goes; nothing when all that has to be done is done, or under
/// way: a claim goes with the DataVolume that owns it.
pub fn judge<'a>(
    disk: Option<&'a DataVolume>,
    claim: Option<&'a PersistentVolumeClaim>,
) -> Option<(&'a str, bool)> {
    let left = |meta: &ObjectMeta| !is_retained(meta) && meta.deletion_timestamp.is_none();
    let claim = claim.filter(|c| left(&c.metadata));
    match disk {
        Some(disk) if left(&disk.metadata) => {
            let policy = annotation(&disk.metadata, DELETION_POLICY);
            Some((
                annotation(&disk.metadata, VM_UID)?,
                policy == Some("Delete"),
            ))
        }
        Some(disk) if disk.metadata.deletion_timestamp.is_some() => None,
        None if claim.is_some_and(is_owned_by_a_disk) => None,
        // The mark was set on the DataVolume and not yet on the claim, or there is only a claim.
        _ => Some((annotation(&claim?.metadata, VM_UID)?, false)),
    }
}

/// Whether machine, VirtualMachine and guest are gone, as the server itself says (rule C-6).
async fn is_alone(pass: &VmPass, key: &Key, uid: &str) -> Result<bool, Trouble> {
    let machines = place(pass, &pass.world.machines, key);
    let vms: Place<'_, VirtualMachine> = place(pass, &pass.world.vms, key);
    let guests: Place<'_, Meta<VirtualMachineInstance>> = place(pass, &pass.world.vmis, key);
    let machine = pass.writer.live(&machines).await?;
    Ok(
        machine.is_none_or(|m| m.metadata.uid.as_deref() != Some(uid))
            && pass.writer.live(&vms).await?.is_none()
            && pass.writer.live(&guests).await?.is_none(),
    )
}

/// Marks a disk as retained, unless it is already.
pub async fn retain(
    pass: &VmPass,
    key: &Key,
    disk: Option<&DataVolume>,
    claim: Option<&PersistentVolumeClaim>,
) -> Result<(), Trouble> {
    let mark = |meta: &ObjectMeta| {
        json!([
            {"op": "test", "path": "/metadata/uid", "value": meta.uid},
            {"op": "add", "path": "/metadata/labels/kite.dev~1retained", "value": "true"},
        ])
    };
    if let Some(disk) = disk.filter(|d| !is_retained(&d.metadata)) {
        let place = place(pass, &pass.world.disks, key);
        pass.writer
            .patch(&place, "mark as retained", mark(&disk.metadata))
            .await?;
    }
    if let Some(claim) = claim.filter(|c| !is_retained(&c.metadata)) {
        let place = place(pass, &pass.world.claims, key);
        pass.writer
            .patch(&place, "mark as retained", mark(&claim.metadata))
            .await?;
    }
    Ok(())
}
