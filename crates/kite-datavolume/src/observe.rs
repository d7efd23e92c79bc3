//! Step 1: a machine's disk as the watches show it.

pub mod reading;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kite_api::KiteVirtualMachine;
use kite_api::labels::VM_UID;
use kite_kubevirt::DataVolume;
use kite_runtime::{Cache, Key};
use kube::core::{ObjectMeta, PartialObjectMeta};

use crate::observe::reading::read;
use crate::status::{Disk, standing};

/// A claim's metadata; whose it is is all that is read.
pub type Claim = PartialObjectMeta<PersistentVolumeClaim>;

/// Everything that is watched.
#[derive(Clone)]
pub struct World {
    /// The machines.
    pub machines: Cache<KiteVirtualMachine>,
    /// Their disks.
    pub disks: Cache<DataVolume>,
    /// Claims that carry Kite's labels, those that CDI uses in between included.
    pub claims: Cache<Claim>,
}

impl World {
    /// What there is of a machine's disk. Disk and claim have the machine's name.
    pub fn disk(&self, key: &Key, machine: &KiteVirtualMachine) -> Disk {
        let uid = machine.metadata.uid.as_deref().unwrap_or_default();
        let status = machine.status.as_ref();
        let recorded = status.and_then(|s| s.claim_uid.as_deref());
        let named = status.is_some_and(|s| s.data_volume_name.is_some());
        let claim = self.claims.get(key);
        let has_recorded = recorded.is_some()
            && claim.as_ref().and_then(|c| c.metadata.uid.as_deref()) == recorded;
        if !self.disks.is_served() {
            return if has_recorded {
                Disk::ClaimOnly
            } else {
                Disk::KindMissing
            };
        }
        if let Some(disk) = self
            .disks
            .get(key)
            .filter(|d| is_bound_to(&d.metadata, uid))
        {
            let reading = read(&disk);
            let lost = recorded.is_some() && !has_recorded;
            return Disk::DataVolume(reading, !lost);
        }
        let unreadable = self.disks.malformed(key);
        if unreadable.is_some_and(|d| is_bound_to(&d.metadata, uid)) {
            return Disk::Unreadable;
        }
        let told = !standing(machine).conditions.is_empty();
        match recorded {
            Some(_) if has_recorded => Disk::ClaimOnly,
            Some(_) => Disk::Lost,
            None if named || told => Disk::Missing,
            None => Disk::None,
        }
    }
}

/// The annotation binds a disk to its machine, never an owner reference (rule C-7).
fn is_bound_to(meta: &ObjectMeta, uid: &str) -> bool {
    let annotations = meta.annotations.as_ref();
    annotations
        .and_then(|a| a.get(VM_UID))
        .is_some_and(|bound| bound == uid)
}
