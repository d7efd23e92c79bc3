//! Step 1: a machine's disk as the watches show it.

pub mod growth;
pub mod reading;

use std::sync::Arc;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kite_api::condition::{self, NAME_CONFLICT, RESOURCES_APPLIED};
use kite_api::labels::{RETAINED, VM_UID};
use kite_api::{Condition, KiteVirtualMachine};
use kite_kubevirt::DataVolume;
use kite_runtime::{Cache, Key};
use kube::core::ObjectMeta;

use crate::observe::growth::growth;
use crate::observe::reading::{State, read};
use crate::status::{Disk, standing};

/// Everything that is watched.
#[derive(Clone)]
pub struct World {
    /// The machines.
    pub machines: Cache<KiteVirtualMachine>,
    /// Their disks.
    pub disks: Cache<DataVolume>,
    /// Claims that carry Kite's labels, those that CDI uses in between included.
    pub claims: Cache<PersistentVolumeClaim>,
}

impl World {
    /// What the watches show under a machine's name. Disk and claim have it too.
    pub fn found(&self, key: &Key) -> Found {
        Found {
            served: self.disks.is_served(),
            disk: self.disks.get(key),
            unreadable: self.disks.malformed(key).map(|d| d.metadata.clone()),
            claim: self.claims.get(key),
            looked: false,
        }
    }
}

/// What there is under a machine's name, its own or not.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Whether the cluster serves DataVolumes.
    pub served: bool,
    /// The DataVolume.
    pub disk: Option<Arc<DataVolume>>,
    /// Metadata of a DataVolume whose shape this version does not know.
    pub unreadable: Option<ObjectMeta>,
    /// The claim.
    pub claim: Option<Arc<PersistentVolumeClaim>>,
    /// Whether the server itself was asked for the claim. A watch shows claims with Kite's labels
    /// only, which proves no absence (rule C-7).
    pub looked: bool,
}

/// Why the server itself is to be asked for a claim that no watch shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The recorded claim of this UID is not to be seen; it may be gone, or have lost its labels (rule D-5).
    Recorded(String),
    /// CDI makes a claim within a moment and is silent about one that it may not use; or kite-vm
    /// has met one before CDI could (rule D-7).
    Planted,
}

impl Found {
    /// With the server's own answer about the claim.
    #[must_use]
    pub fn asked(mut self, claim: Option<Arc<PersistentVolumeClaim>>) -> Self {
        self.claim = claim;
        self.looked = true;
        self
    }

    /// Why the server itself is to be asked for the claim, if it is.
    pub fn doubt(&self, machine: &KiteVirtualMachine) -> Option<Doubt> {
        let status = machine.status.as_ref();
        if !self.served || self.claim.is_some() {
            return None;
        }
        if let Some(recorded) = status.and_then(|s| s.claim_uid.clone()) {
            return Some(Doubt::Recorded(recorded));
        }
        let conditions: &[Condition] = status.map_or(&[], |s| &s.conditions);
        let met = condition::find(conditions, RESOURCES_APPLIED);
        let doubted = match self.own_disk(uid_of(machine)) {
            Some(disk) => read(disk).state == State::Filling,
            None => met.is_some_and(|c| c.status == "False" && c.reason == NAME_CONFLICT),
        };
        doubted.then_some(Doubt::Planted)
    }

    /// What there is of the machine's disk.
    pub fn disk(&self, machine: &KiteVirtualMachine) -> Disk {
        let uid = uid_of(machine);
        let status = machine.status.as_ref();
        let recorded = status.and_then(|s| s.claim_uid.as_deref());
        let claim = self.claim.as_deref();
        if !self.served {
            return match recorded.map(|r| self.recorded(r)) {
                Some(claim @ Disk::ClaimOnly(_)) => claim,
                _ => Disk::KindMissing,
            };
        }
        if let Some(disk) = self.own_disk(uid) {
            return match (recorded, claim) {
                (Some(recorded), _) if !has_uid(claim, recorded) => self.recorded(recorded),
                (None, Some(claim)) if !is_filled_by(claim, disk) => Disk::Planted,
                _ => Disk::DataVolume(read(disk), claim.and_then(growth)),
            };
        }
        let unreadable = self.unreadable.as_ref();
        if unreadable.is_some_and(|d| is_bound_to(d, uid)) {
            return Disk::Unreadable;
        }
        let named = status.is_some_and(|s| s.data_volume_name.is_some());
        let told = !standing(machine).conditions.is_empty();
        match recorded {
            Some(recorded) => self.recorded(recorded),
            None if claim.is_some_and(|c| is_of_others(c, uid)) => Disk::Planted,
            None if named || told => Disk::Missing,
            None => Disk::None,
        }
    }

    /// The recorded claim, without a DataVolume that says more.
    fn recorded(&self, recorded: &str) -> Disk {
        match self.claim.as_deref() {
            Some(claim) if !has_uid(Some(claim), recorded) || is_without_volume(claim) => {
                Disk::Lost
            }
            Some(claim) => Disk::ClaimOnly(growth(claim)),
            None if self.looked => Disk::Lost,
            None => Disk::Unsure,
        }
    }

    /// The DataVolume, if it is the machine's.
    fn own_disk(&self, uid: &str) -> Option<&DataVolume> {
        let disk = self.disk.as_deref();
        disk.filter(|d| is_bound_to(&d.metadata, uid))
    }
}

fn uid_of(machine: &KiteVirtualMachine) -> &str {
    machine.metadata.uid.as_deref().unwrap_or_default()
}

fn has_uid(claim: Option<&PersistentVolumeClaim>, uid: &str) -> bool {
    claim.and_then(|c| c.metadata.uid.as_deref()) == Some(uid)
}

/// CDI owns the claim that it fills (rule D-4). The annotation alone proves nothing: CDI copies
/// it, and so can anybody.
fn is_filled_by(claim: &PersistentVolumeClaim, disk: &DataVolume) -> bool {
    owner(claim).is_some_and(|o| Some(&o.uid) == disk.metadata.uid.as_ref())
}

fn owner(claim: &PersistentVolumeClaim) -> Option<&OwnerReference> {
    let mut owners = claim.metadata.owner_references.iter().flatten();
    owners.find(|o| o.controller == Some(true))
}

/// A claim where there is no DataVolume: neither one that goes after this machine's, or comes
/// before it in another watch, nor one that was kept of an earlier machine.
fn is_of_others(claim: &PersistentVolumeClaim, uid: &str) -> bool {
    let meta = &claim.metadata;
    let filled = owner(claim).is_some_and(|o| o.kind == "DataVolume");
    let labels = meta.labels.as_ref();
    let retained = labels.is_some_and(|l| l.contains_key(RETAINED));
    !(retained || filled && is_bound_to(meta, uid))
}

/// Kubernetes' word for a claim whose volume is gone.
fn is_without_volume(claim: &PersistentVolumeClaim) -> bool {
    let phase = claim.status.as_ref().and_then(|s| s.phase.as_deref());
    phase == Some("Lost")
}

/// The annotation binds a disk to its machine, never an owner reference (rule C-7).
fn is_bound_to(meta: &ObjectMeta, uid: &str) -> bool {
    let annotations = meta.annotations.as_ref();
    annotations
        .and_then(|a| a.get(VM_UID))
        .is_some_and(|bound| bound == uid)
}
