//! What an earlier machine of the same name has left (rule V-22).
//!
//! The new machine begins when the old VirtualMachine, guest, disk and claim are
//! gone, and takes nothing from them. Here it is only about whether they are; what
//! takes them away is the old machine's own deletion, the garbage collector, or,
//! for a disk whose machine was forced away, [`left_behind`].

use kite_api::labels::VM_UID;
use kite_api::machine::KiteVirtualMachine;
use kube::Resource;
use kube::core::ObjectMeta;

use super::delete::left_behind::{self, is_retained};
use super::domain::Domain;
use super::{Applied, Trouble};
use crate::observe::{Observed, annotation};
use crate::reconcile::VmPass;

/// The reason of a machine that begins later.
pub const WAITING: &str = "WaitingForPreviousVM";

/// Collects the disk of a machine that was forced away, and looks again.
pub async fn make_way(pass: &VmPass, seen: Observed) -> Result<Observed, Trouble> {
    let disk = seen.disk.as_ref().map(|d| &d.metadata);
    let claim = seen.claim.as_ref().map(|c| &c.metadata);
    if !disk
        .or(claim)
        .is_some_and(|meta| is_of_previous(&seen, meta))
    {
        return Ok(seen);
    }
    left_behind::collect(pass, &seen.key).await?;
    Ok(pass.again(&seen))
}

/// What is still there of an earlier machine of this name, if anything is.
pub fn in_the_way(seen: &Observed) -> Option<&'static str> {
    let guest = seen.vmi.as_ref().map(|o| &o.metadata).filter(|meta| {
        let label = meta.labels.as_ref().and_then(|l| l.get(VM_UID));
        label.is_some_and(|uid| uid != seen.owner.uid.as_str())
    });
    let children = [
        ("VirtualMachine", seen.vm.as_ref().map(|o| &o.metadata)),
        ("DataVolume", seen.disk.as_ref().map(|o| &o.metadata)),
        (
            "PersistentVolumeClaim",
            seen.claim.as_ref().map(|o| &o.metadata),
        ),
        ("Service", seen.service.as_ref().map(|o| &o.metadata)),
        ("Ingress", seen.ingress.as_ref().map(|o| &o.metadata)),
    ];
    guest.map(|_| "VirtualMachineInstance").or_else(|| {
        children
            .into_iter()
            .find(|(_, meta)| meta.is_some_and(|m| is_of_previous(seen, m)))
            .map(|(kind, _)| kind)
    })
}

/// Whether an object was made for an earlier machine of this name and does not outlive it.
pub fn is_of_previous(seen: &Observed, meta: &ObjectMeta) -> bool {
    if is_retained(meta) || seen.owns(meta) || seen.binds(meta) {
        return false;
    }
    let mut owners = meta.owner_references.iter().flatten();
    owners.any(|o| {
        o.controller == Some(true)
            && o.kind == KiteVirtualMachine::kind(&())
            && o.name == seen.owner.name.as_str()
    }) || annotation(meta, VM_UID).is_some()
}

/// That one of its children is still there.
pub fn waits(seen: &Observed, kind: &str) -> Trouble {
    let name = seen.owner.name.as_str();
    Trouble {
        // All of these kinds are watched.
        class: kite_runtime::Class::Invalid,
        ..Trouble::waiting(
            WAITING,
            format!(
                "the {kind} of an earlier machine called {name} is still there; this machine begins when it is gone, and takes nothing from it"
            ),
        )
    }
}

/// The outcome of a pass in which nothing could be begun.
pub fn nothing_yet(seen: &Observed, kind: &str) -> Applied {
    let trouble = waits(seen, kind);
    let asked = seen.machine.spec.domain_prefix.is_some();
    Applied {
        domain: Domain {
            why_not: asked.then(|| (trouble.reason, trouble.message.clone())),
            ..Domain::default()
        },
        troubles: vec![trouble],
        ..Applied::default()
    }
}
