//! Taking a machine away (rules V-18 to V-20).
//!
//! The order: Ingress and Service, the VirtualMachine, then, when machine and
//! guest are seen to be gone by a live look, the disk and the Secrets. The disk
//! never goes under a running guest. Own objects only, each by UID.

pub mod blocked;
pub mod left_behind;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Secret};
use kite_api::labels::VM_UID;
use kite_api::machine::DeletionPolicy;
use kite_api::{KiteVirtualMachine, condition};
use kite_kubevirt::read::{DataVolume, VirtualMachineInstance};
use kite_render::machine::{cloud_init_name, ssh_key_name};
use kite_runtime::apply::{Place, WriteError};
use kite_runtime::{Key, Refusal};
use kube::Api;
use kube::api::PropagationPolicy;
use kube::core::ObjectMeta;

use super::{Trouble, domain};
use crate::controller::Meta;
use crate::observe::Observed;
use crate::reconcile::VmPass;

/// How far a deletion has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Something is still going; a watch tells when it is gone.
    Waiting,
    /// Everything is seen to be gone.
    Done,
}

/// Takes away what is left and may go now.
pub async fn children(pass: &VmPass, seen: &Observed) -> Result<Progress, Trouble> {
    if !seen.kubevirt || !seen.cdi {
        // "The kind is unknown" is never read as "the object is gone" (rule C-14).
        return Err(Trouble::waiting(
            condition::DEPENDENCY_MISSING,
            "the cluster does not serve the kinds of KubeVirt or CDI any more, so whether the machine is gone cannot be told; install them again and the deletion goes on",
        ));
    }
    domain::release_all(pass, seen, None).await?;
    service(pass, seen).await?;
    if !guest(pass, seen).await? {
        return Ok(Progress::Waiting);
    }
    let disk_gone = disk(pass, seen).await?;
    secrets(pass, seen).await?;
    let all = disk_gone && !is_ours(seen, seen.ingress.as_ref().map(|i| &i.metadata));
    Ok(if all {
        Progress::Done
    } else {
        Progress::Waiting
    })
}

/// During deletion a child with our UID on it is ours even if its owner reference was
/// stripped by an orphaning delete (rule C-7 (a)).
fn is_ours(seen: &Observed, meta: Option<&ObjectMeta>) -> bool {
    meta.is_some_and(|m| seen.binds(m) || seen.owns(m))
}

fn place<
    'a,
    K: kite_runtime::apply::Object + kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
>(
    pass: &VmPass,
    cache: &'a kite_runtime::Cache<K>,
    key: &Key,
) -> Place<'a, K> {
    Place {
        api: Api::namespaced(pass.writer.client().clone(), &key.namespace),
        cache,
        key: key.clone(),
    }
}

async fn service(pass: &VmPass, seen: &Observed) -> Result<(), Trouble> {
    if let Some(service) = seen
        .service
        .as_ref()
        .filter(|s| is_ours(seen, Some(&s.metadata)))
    {
        let place = place(pass, &pass.world.services, &seen.key);
        pass.writer
            .delete(&place, &service.metadata, PropagationPolicy::Background)
            .await?;
    }
    Ok(())
}

/// Whether machine and guest are gone, as the server itself says.
async fn guest(pass: &VmPass, seen: &Observed) -> Result<bool, Trouble> {
    let vms = place(pass, &pass.world.vms, &seen.key);
    if let Some(vm) = seen
        .vm
        .as_ref()
        .filter(|v| is_ours(seen, Some(&v.metadata)))
    {
        if vm.metadata.deletion_timestamp.is_none() {
            pass.writer
                .delete(&vms, &vm.metadata, PropagationPolicy::Background)
                .await?;
        }
        if pass.world.vms.get(&seen.key).is_some() {
            return Ok(false);
        }
    }
    let is_of = |meta: &ObjectMeta| {
        let label = meta.labels.as_ref().and_then(|l| l.get(VM_UID));
        label.is_some_and(|uid| uid == seen.owner.uid.as_str())
    };
    if seen.vmi.as_ref().is_some_and(|i| is_of(&i.metadata)) {
        return Ok(false);
    }
    if !takes_disk_now(seen) {
        return Ok(true);
    }
    // The caches show neither, which proves nothing; the disk goes only after a live look (rule C-6).
    if let Some(vm) = pass
        .writer
        .live(&vms)
        .await?
        .filter(|vm| is_ours(seen, Some(&vm.metadata)))
    {
        pass.world.vms.remember(vm);
        return Err(Trouble::waiting(
            "WaitingForDeletion",
            "the VirtualMachine is still there",
        ));
    }
    let guests: Place<'_, Meta<VirtualMachineInstance>> = place(pass, &pass.world.vmis, &seen.key);
    if let Some(vmi) = pass
        .writer
        .live(&guests)
        .await?
        .filter(|i| is_of(&i.metadata))
    {
        pass.world.vmis.remember(vmi);
        return Err(Trouble::waiting(
            "WaitingForDeletion",
            "the guest is still running",
        ));
    }
    Ok(true)
}

/// Whether this pass would delete the disk: what goes already needs no second look.
fn takes_disk_now(seen: &Observed) -> bool {
    let mine = |meta: &ObjectMeta| is_ours(seen, Some(meta));
    let disk = seen.disk.as_deref().filter(|d| mine(&d.metadata));
    let claim = seen.claim.as_deref().filter(|c| mine(&c.metadata));
    !keeps_disk(seen) && (removable(disk) || removable_alone(disk, claim))
}

fn keeps_disk(seen: &Observed) -> bool {
    seen.machine.spec.deletion_policy == DeletionPolicy::Retain && !seen.namespace.terminating
}

/// A DataVolume that is not going yet; its claim goes with it.
fn removable(disk: Option<&DataVolume>) -> bool {
    disk.is_some_and(|d| d.metadata.deletion_timestamp.is_none())
}

/// A claim whose DataVolume is gone and that the garbage collector does not take.
fn removable_alone(disk: Option<&DataVolume>, claim: Option<&PersistentVolumeClaim>) -> bool {
    disk.is_none()
        && claim.is_some_and(|c| c.metadata.deletion_timestamp.is_none() && !is_owned_by_a_disk(c))
}

/// Takes the disk away or keeps it, by policy. True when nothing is left to wait for.
async fn disk(pass: &VmPass, seen: &Observed) -> Result<bool, Trouble> {
    let disk = seen
        .disk
        .as_deref()
        .filter(|d| is_ours(seen, Some(&d.metadata)));
    let claim = seen
        .claim
        .as_deref()
        .filter(|c| is_ours(seen, Some(&c.metadata)));
    if keeps_disk(seen) {
        left_behind::retain(pass, &seen.key, disk, claim).await?;
        return Ok(true);
    }
    remove(pass, &seen.key, disk, claim).await?;
    let left = pass
        .world
        .disks
        .get(&seen.key)
        .is_some_and(|d| is_ours(seen, Some(&d.metadata)))
        || pass
            .world
            .claims
            .get(&seen.key)
            .is_some_and(|c| is_ours(seen, Some(&c.metadata)));
    Ok(!left)
}

/// Deletes the DataVolume, with which its claim goes; or a claim whose DataVolume is gone.
async fn remove(
    pass: &VmPass,
    key: &Key,
    disk: Option<&DataVolume>,
    claim: Option<&PersistentVolumeClaim>,
) -> Result<(), Trouble> {
    if let Some(disk) = disk.filter(|d| removable(Some(d))) {
        let place = place(pass, &pass.world.disks, key);
        pass.writer
            .delete(&place, &disk.metadata, PropagationPolicy::Background)
            .await?;
    } else if let Some(claim) = claim.filter(|c| removable_alone(disk, Some(c))) {
        let place = place(pass, &pass.world.claims, key);
        pass.writer
            .delete(&place, &claim.metadata, PropagationPolicy::Background)
            .await?;
    }
    Ok(())
}

/// The garbage collector takes a claim that a DataVolume owned.
fn is_owned_by_a_disk(claim: &PersistentVolumeClaim) -> bool {
    claim
        .metadata
        .owner_references
        .iter()
        .flatten()
        .any(|o| o.kind == "DataVolume")
}

/// Takes the Secrets away. In a namespace that goes Kubernetes takes them itself, and the
/// rights on them may be gone before they are (rule V-20).
async fn secrets(pass: &VmPass, seen: &Observed) -> Result<(), Trouble> {
    if seen.namespace.terminating {
        return Ok(());
    }
    let status = seen.status();
    let names = [
        status
            .cloud_init_secret_name
            .as_ref()
            .map(|_| cloud_init_name(&seen.owner)),
        status
            .ssh_key_secret_name
            .as_ref()
            .map(|_| ssh_key_name(&seen.owner)),
    ];
    for name in names.into_iter().flatten() {
        match secret(pass, seen, name).await {
            Err(error) if error.refusal() == Some(Refusal::Forbidden) => return Ok(()),
            result => result?,
        }
    }
    Ok(())
}

async fn secret(pass: &VmPass, seen: &Observed, name: String) -> Result<(), WriteError> {
    let place: Place<'_, Meta<Secret>> = place(
        pass,
        &pass.world.logins.secrets,
        &Key::new(&seen.key.namespace, name),
    );
    if place.cache.was_deleted(&place.key) {
        return Ok(());
    }
    // What was remembered may be older than the Secret; then the precondition fails and it is looked at.
    let remembered = place.cache.get(&place.key);
    if let Some(known) = &remembered {
        match pass
            .writer
            .delete(&place, &known.metadata, PropagationPolicy::Background)
            .await
        {
            Err(error) if error.refusal() == Some(Refusal::Conflict) => {}
            result => return result.map(|_| ()),
        }
    }
    let Some(live) = pass.writer.live(&place).await? else {
        return Ok(());
    };
    if seen.binds(&live.metadata) || seen.owns(&live.metadata) {
        pass.writer
            .delete(&place, &live.metadata, PropagationPolicy::Background)
            .await?;
    }
    Ok(())
}

/// Deletes the KiteVirtualMachine itself, the last step of `spec.delete`.
pub async fn object(
    pass: &VmPass,
    machine: &KiteVirtualMachine,
    key: &Key,
) -> Result<(), WriteError> {
    let place = place(pass, &pass.world.machines, key);
    pass.writer
        .delete(&place, &machine.metadata, PropagationPolicy::Background)
        .await?;
    Ok(())
}
