//! Step 1: what is, as far as this process knows, in one value.
//!
//! Everything comes from the watches. The live looks that a destructive step
//! needs are in `apply::delete`, right before that step, and the one for a claim that no watch
//! shows is in `apply::claim`.

pub mod looks;
pub mod turns;
pub mod witness;

use std::sync::{Arc, LazyLock};

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Service};
use k8s_openapi::api::networking::v1::Ingress;
use k8s_openapi::api::storage::v1::StorageClass;
use kite_api::condition::{self, ISOLATION_READY, QUOTA_READY, RESOURCES_APPLIED};
use kite_api::labels::{ORPHANED_SINCE, PAUSED, USER_UID, VM_UID};
use kite_api::machine::KiteVirtualMachineStatus;
use kite_api::{KiteHostClaim, KiteUser, KiteVirtualMachine};
use kite_kubevirt::read::{DataSource, DataVolume, VirtualMachine, VirtualMachineInstance};
use kite_render::validate::{MachineOwner, ValidPlatform};
use kite_runtime::Key;
use kube::core::ObjectMeta;

use crate::controller::{BY_MACHINE, BY_NAMESPACE, Meta, World};
use crate::observe::looks::Unseen;
use crate::observe::witness::End;
use crate::plan::power::{Guest, Situation};

/// The status of a machine that has none yet.
static NO_STATUS: LazyLock<KiteVirtualMachineStatus> = LazyLock::new(Default::default);

/// Everything a pass decides from.
pub struct Observed {
    /// The machine's key.
    pub key: Key,
    /// The machine.
    pub machine: Arc<KiteVirtualMachine>,
    /// Its namespace, name and UID.
    pub owner: MachineOwner,
    /// The settings in force.
    pub platform: Arc<ValidPlatform>,
    /// What is known of its namespace.
    pub namespace: NamespaceView,
    /// The published image of the name it asks for.
    pub image: Option<Arc<DataSource>>,
    /// Its children, ours or not.
    pub vm: Option<Arc<VirtualMachine>>,
    /// A guest of its name.
    pub vmi: Option<Arc<Meta<VirtualMachineInstance>>>,
    /// A disk of its name.
    pub disk: Option<Arc<DataVolume>>,
    /// A claim of its name.
    pub claim: Option<Arc<PersistentVolumeClaim>>,
    /// What the server said of the recorded claim, where the watch does not show it.
    pub unseen: Option<Unseen>,
    /// A Service of its name.
    pub service: Option<Arc<Service>>,
    /// An Ingress of its name.
    pub ingress: Option<Arc<Ingress>>,
    /// Host claims that carry its UID.
    pub hosts: Vec<Arc<KiteHostClaim>>,
    /// All storage classes.
    pub classes: Vec<Arc<StorageClass>>,
    /// How its last guest ended, if this process saw it (rule V-16).
    pub end: Option<End>,
    /// Whether the cluster serves KubeVirt's kinds.
    pub kubevirt: bool,
    /// Whether the cluster serves CDI's kinds.
    pub cdi: bool,
}

/// What is known of a machine's namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceView {
    /// It is being deleted.
    pub terminating: bool,
    /// kite-namespace has found that nobody needs it.
    pub orphaned: bool,
    /// It carries the UID of a KiteUser.
    pub bound_to: Option<String>,
    /// The users that reference it.
    pub users: UsersView,
}

/// How the users of a namespace stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UsersView {
    /// No KiteUser references the namespace.
    None,
    /// One does, and isolation or quota is not in force yet.
    NotReady(String),
    /// All is in force.
    Ready,
}

impl Observed {
    /// Looks at everything that concerns a machine.
    pub fn of(
        world: &World,
        machine: Arc<KiteVirtualMachine>,
        owner: MachineOwner,
        platform: Arc<ValidPlatform>,
    ) -> Self {
        let key = Key::of(machine.as_ref());
        let image_key = Key::new(
            platform.image_namespace.as_str(),
            machine.spec.image.as_str(),
        );
        let uid = owner.uid.as_str();
        Self {
            namespace: namespace_view(world, &key.namespace),
            image: world.images.get(&image_key).filter(|i| i.is_published()),
            vm: world.vms.get(&key),
            vmi: world.vmis.get(&key),
            disk: world.disks.get(&key),
            claim: world.claims.get(&key),
            unseen: None,
            service: world.services.get(&key),
            ingress: world.ingresses.get(&key),
            hosts: world.hosts.find(BY_MACHINE, uid),
            classes: world.classes.all(),
            end: world.witness.end(&key),
            kubevirt: world.vms.is_served() && world.vmis.is_served(),
            cdi: world.disks.is_served() && world.images.is_served(),
            key,
            machine,
            owner,
            platform,
        }
    }

    /// The status as it was last seen.
    pub fn status(&self) -> &KiteVirtualMachineStatus {
        self.machine.status.as_ref().unwrap_or(&NO_STATUS)
    }

    /// The generation of the specification.
    pub fn generation(&self) -> Option<i64> {
        self.machine.metadata.generation
    }

    /// Whether the machine is to go, by whichever way it was asked for (rules V-18, V-20).
    pub fn is_going(&self) -> bool {
        self.machine.spec.delete
            || self.machine.metadata.deletion_timestamp.is_some()
            || self.namespace.terminating
    }

    /// Whether a person has stopped reconciliation (rule V-4).
    pub fn is_paused(&self) -> bool {
        annotation(&self.machine.metadata, PAUSED) == Some("true")
    }

    /// Whether this generation of the specification has been carried out before.
    pub fn is_settled(&self) -> bool {
        let applied = condition::find(&self.status().conditions, RESOURCES_APPLIED);
        applied.is_some_and(|c| c.status == "True" && c.observed_generation == self.generation())
    }

    /// Whether a child with an owner reference is this machine's (rule C-7 (a)).
    pub fn owns(&self, meta: &ObjectMeta) -> bool {
        let mut owners = meta.owner_references.iter().flatten();
        owners.any(|o| o.controller == Some(true) && o.uid == self.owner.uid.as_str())
    }

    /// Whether an annotation binds an object to this machine (rule C-7 (b)); during
    /// deletion this holds for every child, since an orphaning delete strips references.
    pub fn binds(&self, meta: &ObjectMeta) -> bool {
        annotation(meta, VM_UID) == Some(self.owner.uid.as_str())
    }

    /// The VirtualMachine, if it is ours.
    pub fn own_vm(&self) -> Option<&Arc<VirtualMachine>> {
        self.vm.as_ref().filter(|vm| self.owns(&vm.metadata))
    }

    /// The guest, if it is this machine's.
    pub fn guest(&self) -> Option<Guest> {
        let meta = &self.vmi.as_ref()?.metadata;
        let label = meta.labels.as_ref()?.get(VM_UID)?;
        (label == self.owner.uid.as_str()).then_some(match meta.deletion_timestamp {
            Some(_) => Guest::Going,
            None => Guest::There,
        })
    }

    /// What is known when power is decided on (rule V-16).
    pub fn situation(&self) -> Situation<'_> {
        let spec = &self.machine.spec;
        Situation {
            power: spec.power_state,
            on_guest_shutdown: spec.on_guest_shutdown,
            vm: self.own_vm().map(AsRef::as_ref),
            guest: self.guest(),
            status: self.status(),
            seen: self.end,
        }
    }

    /// The DataVolume, if it is ours.
    pub fn own_disk(&self) -> Option<&Arc<DataVolume>> {
        self.disk.as_ref().filter(|d| self.binds(&d.metadata))
    }

    /// The claim, if it is ours: CDI copies the DataVolume's annotations to it.
    pub fn own_claim(&self) -> Option<&Arc<PersistentVolumeClaim>> {
        self.claim.as_ref().filter(|c| self.binds(&c.metadata))
    }
}

/// The value of an annotation.
pub fn annotation<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    meta.annotations.as_ref()?.get(key).map(String::as_str)
}

fn namespace_view(world: &World, name: &str) -> NamespaceView {
    let namespace = world.namespaces.get(&Key::cluster(name));
    let meta = namespace.as_ref().map(|n| &n.metadata);
    NamespaceView {
        terminating: meta.is_some_and(|m| m.deletion_timestamp.is_some()),
        orphaned: meta.is_some_and(|m| annotation(m, ORPHANED_SINCE).is_some()),
        bound_to: meta
            .and_then(|m| annotation(m, USER_UID))
            .map(str::to_owned),
        users: users_view(&world.users.find(BY_NAMESPACE, name)),
    }
}

/// One user whose isolation and quota are in force is enough: in a shared namespace the bound one's rule.
fn users_view(users: &[Arc<KiteUser>]) -> UsersView {
    let in_force = |u: &KiteUser| {
        let conditions = u
            .status
            .as_ref()
            .map(|s| s.conditions.as_slice())
            .unwrap_or_default();
        condition::is_true(conditions, ISOLATION_READY)
            && condition::is_true(conditions, QUOTA_READY)
    };
    let Some(first) = users
        .iter()
        .map(|u| u.metadata.name.clone().unwrap_or_default())
        .min()
    else {
        return UsersView::None;
    };
    if users.iter().any(|u| in_force(u)) {
        UsersView::Ready
    } else {
        UsersView::NotReady(first)
    }
}
