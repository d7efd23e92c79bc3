//! Step 3: what should be done about the disk, its class and its size. Pure.
//!
//! The rest of a machine's children are simply wanted; the disk alone has a
//! history, and the wrong decision about it loses data (rules V-11, V-13, V-15, V-19).

pub mod power;

use std::sync::Arc;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::api::storage::v1::StorageClass;
use kite_api::labels::{ADOPT_RETAINED_DISK, CONFIRM_NEW_DISK, DISK_SIZE};
use kite_api::quantity;
use kite_render::validate::{DnsName, ValidMachine};
use kube::core::ObjectMeta;

use crate::apply::delete::left_behind::is_retained;
use crate::observe::turns;
use crate::observe::{Observed, annotation};

/// What to do about the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disk {
    /// It is there, in this claim.
    Present {
        /// UID of the claim.
        claim: String,
    },
    /// The DataVolume is there; its claim is not yet.
    Filling,
    /// It was never made, or was never begun to be filled.
    Create,
    /// A person accepted an empty disk in place of a lost one: the old DataVolume goes first.
    Replace,
    /// It was there, no watch shows it, and the server has not said that it is gone.
    Unsure,
    /// It was there and is gone. The UID of the claim that held it.
    Lost(String),
    /// A disk that outlived an earlier machine of this name is in the way.
    Retained {
        /// UID of its claim, by which it can be adopted.
        claim: String,
        /// Whether the machine's owner asked to take it.
        adopt: bool,
    },
    /// An object of the disk's name belongs to somebody else.
    Foreign(&'static str),
    /// The kind is not served, so nothing can be known.
    Unknown,
}

/// Decides about the disk.
pub fn disk(seen: &Observed) -> Disk {
    if !seen.cdi {
        return Disk::Unknown;
    }
    if let Some(retained) = retained(seen) {
        return retained;
    }
    if seen.unseen.as_ref().is_some_and(|u| !u.gone) {
        return Disk::Unsure;
    }
    let recorded = seen.status().claim_uid.as_deref();
    let confirmed =
        recorded.is_some() && annotation(&seen.machine.metadata, CONFIRM_NEW_DISK) == recorded;
    let claim = filled(seen, recorded).and_then(|c| c.metadata.uid.clone());
    match (claim, recorded) {
        (Some(claim), None) => Disk::Present { claim },
        (Some(claim), Some(recorded)) if claim == recorded || confirmed => Disk::Present { claim },
        (Some(_), Some(recorded)) => Disk::Lost(recorded.to_owned()),
        (None, Some(recorded)) if !confirmed => Disk::Lost(recorded.to_owned()),
        (None, Some(_)) if seen.own_disk().is_some() => {
            if seen.own_disk().is_some_and(|d| d.phase() == "Succeeded") {
                Disk::Replace
            } else {
                Disk::Filling
            }
        }
        (None, None) if seen.own_disk().is_some() && seen.claim.is_some() => {
            Disk::Foreign("PersistentVolumeClaim")
        }
        (None, None) if seen.own_disk().is_some() => Disk::Filling,
        (None, _) => foreign(seen).unwrap_or(Disk::Create),
    }
}

/// The claim, if it is the disk: the recorded one is, whatever stands on it. Its annotation alone proves nothing, since anybody can copy it
/// (rule D-7): it was recorded, or its DataVolume owns it, or its adoption was asked for.
fn filled<'a>(
    seen: &'a Observed,
    recorded: Option<&str>,
) -> Option<&'a Arc<PersistentVolumeClaim>> {
    let adopt = annotation(&seen.machine.metadata, ADOPT_RETAINED_DISK);
    let disk = seen.own_disk().and_then(|d| d.metadata.uid.as_deref());
    seen.claim.as_ref().filter(|claim| {
        let meta = &claim.metadata;
        let uid = meta.uid.as_deref();
        let mut owners = meta.owner_references.iter().flatten();
        let owned = owners.any(|o| o.controller == Some(true) && Some(o.uid.as_str()) == disk);
        let bound = seen.binds(meta) && (owned || uid == adopt);
        uid.is_some() && (bound || uid == recorded)
    })
}

/// A foreign object that the watch shows; one without our labels is met when the disk is made.
fn foreign(seen: &Observed) -> Option<Disk> {
    if seen.disk.is_some() {
        return Some(Disk::Foreign("DataVolume"));
    }
    seen.claim
        .is_some()
        .then_some(Disk::Foreign("PersistentVolumeClaim"))
}

fn retained(seen: &Observed) -> Option<Disk> {
    let kept = |meta: &ObjectMeta| is_retained(meta) && !seen.binds(meta);
    let claim = seen.claim.as_ref().filter(|c| kept(&c.metadata))?;
    let uid = claim.metadata.uid.clone().unwrap_or_default();
    let adopt = annotation(&seen.machine.metadata, ADOPT_RETAINED_DISK) == Some(uid.as_str());
    Some(Disk::Retained { claim: uid, adopt })
}

/// The class of a new disk: the user's, else the platform's, else the cluster's default
/// for virtualization, else its default (rule V-11).
pub fn storage_class(seen: &Observed, machine: &ValidMachine) -> Option<DnsName> {
    if let Some(recorded) = recorded_class(seen) {
        return DnsName::parse(&recorded).ok();
    }
    let chosen = machine
        .storage_class
        .clone()
        .or_else(|| seen.platform.storage_class.clone());
    chosen.or_else(|| {
        // The names by which KubeVirt and Kubernetes mark default classes.
        [
            "storageclass.kubevirt.io/is-default-virt-class",
            "storageclass.kubernetes.io/is-default-class",
        ]
        .iter()
        .find_map(|mark| default_class(&seen.classes, mark))
    })
}

/// The class that was recorded, or that the claim shows.
pub fn recorded_class(seen: &Observed) -> Option<String> {
    let recorded = seen.status().storage_class_name.as_ref();
    let shown = || seen.own_claim()?.spec.as_ref()?.storage_class_name.as_ref();
    recorded.or_else(shown).cloned()
}

fn default_class(classes: &[Arc<StorageClass>], mark: &str) -> Option<DnsName> {
    let marked = classes
        .iter()
        .filter(|c| annotation(&c.metadata, mark) == Some("true"));
    // Two defaults: the newest counts, as in Kubernetes itself; then the name decides.
    let chosen = marked.max_by_key(|c| {
        (
            c.metadata.creation_timestamp.clone(),
            std::cmp::Reverse(c.metadata.name.clone()),
        )
    })?;
    DnsName::parse(chosen.metadata.name.as_deref()?).ok()
}

/// What to do about the size of the claim (rule V-13).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Growth {
    /// It is large enough.
    None,
    /// Ask for this many bytes, for a disk of this size.
    To {
        /// Bytes to ask for, file-system overhead included.
        request: i64,
        /// The size in the specification.
        size: i64,
    },
    /// The class cannot grow.
    Refused(String),
}

/// CDI has inflated the claim by the file system's overhead, so the larger request is the old
/// one in the proportion of the new size to the old; asking for less than it has is refused.
pub fn growth(seen: &Observed, machine: &ValidMachine, claim: &PersistentVolumeClaim) -> Growth {
    let bound = claim.status.as_ref().and_then(|s| s.phase.as_deref()) == Some("Bound");
    let filling = seen.own_disk().is_some_and(|d| !turns::is_over(d));
    if !bound || filling {
        // The server grows bound claims only, and one that is being filled would be outgrown; both
        // wake us when they change.
        return Growth::None;
    }
    let wanted = machine.disk.get();
    let requested = claim
        .spec
        .as_ref()
        .and_then(|s| s.resources.as_ref()?.requests.as_ref()?.get("storage"))
        .and_then(|q| quantity::whole(&q.0).ok());
    let (Some(requested), Some(size)) = (requested, present_size(seen, claim)) else {
        return Growth::None;
    };
    if wanted <= size {
        return Growth::None;
    }
    let class = claim
        .spec
        .as_ref()
        .and_then(|s| s.storage_class_name.clone())
        .unwrap_or_default();
    let grows = seen.classes.iter().any(|c| {
        c.metadata.name.as_deref() == Some(class.as_str()) && c.allow_volume_expansion == Some(true)
    });
    if !grows {
        return Growth::Refused(format!(
            "the disk cannot grow from {size} to {wanted} bytes: storage class {class:?} does not allow expansion; an administrator can allow it in the class, and the disk then grows"
        ));
    }
    let size = i128::from(size.max(1));
    let scaled = (i128::from(requested) * i128::from(wanted) + size - 1) / size;
    let request = i64::try_from(scaled)
        .unwrap_or(i64::MAX)
        .max(requested)
        .max(wanted);
    Growth::To {
        request,
        size: wanted,
    }
}

/// The size that the claim was last asked to have: that of the last growth, else the DataVolume's.
fn present_size(seen: &Observed, claim: &PersistentVolumeClaim) -> Option<i64> {
    let grown = annotation(&claim.metadata, DISK_SIZE).and_then(|t| quantity::whole(t).ok());
    grown.or_else(|| {
        let storage = seen.own_disk()?.spec.as_ref()?.storage.as_ref()?;
        let request = storage
            .resources
            .as_ref()?
            .requests
            .as_ref()?
            .get("storage")?;
        quantity::whole(&request.0).ok()
    })
}
