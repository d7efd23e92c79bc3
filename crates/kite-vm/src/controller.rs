//! Wiring: which changes wake which machines, and the rights that takes.

mod rights;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim, Service};
use k8s_openapi::api::networking::v1::Ingress;
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::jiff::Timestamp;
use kite_api::acknowledge::removal_held;
use kite_api::condition::{self, DISK_READY, POWER_IN_SYNC, SERVICE_READY};
use kite_api::labels::{Controller, MANAGED_SELECTOR, PUBLISHED, VM_NAME, VM_UID};
use kite_api::ownership::conditions_of;
use kite_api::platform::PLATFORM_NAME;
use kite_api::{KiteHostClaim, KitePlatform, KiteUser, KiteVirtualMachine};
use kite_kubevirt::read::{DataSource, DataVolume, VirtualMachine, VirtualMachineInstance};
use kite_runtime::apply::Writer;
use kite_runtime::pass::drive;
use kite_runtime::settings::duration;
use kite_runtime::{AsJson, By, Cache, Feeds, Key, Process, Program, Watch};
use kube::core::PartialObjectMeta;
use kube::{Client, Resource, ResourceExt};

use crate::apply::login::Logins;
use crate::observe::turns::{self, Turns};
use crate::observe::witness::{Witness, reruns};
use crate::reconcile::VmPass;
use crate::reconcile::standstill::Standstill;

pub use rights::RULES;

/// Name of the definition of the machines' kind.
const MACHINES_CRD: &str = "kitevirtualmachines.kite.dev";

/// Users, by the namespace they name.
pub const BY_NAMESPACE: By<KiteUser> = By {
    name: "namespace",
    of: |user| Some(user.spec.namespace.clone()),
};
/// Host claims, by the UID of the machine they are for.
pub const BY_MACHINE: By<KiteHostClaim> = By {
    name: "machine",
    of: |claim| Some(claim.spec.uid.clone()),
};
/// Machines, by the first label of the host name that they ask for.
const BY_PREFIX: By<KiteVirtualMachine> = By {
    name: "prefix",
    of: |machine| machine.spec.domain_prefix.clone(),
};
/// Disks that are being filled, by their image.
pub const BY_IMAGE: By<DataVolume> = By {
    name: "image",
    of: turns::unfilled_from,
};

/// Metadata of an object whose fields are not compared.
pub type Meta<K> = PartialObjectMeta<K>;

/// Flags of kite-vm alone.
#[derive(Debug, clap::Args)]
pub struct Flags {
    /// Whether guests' memory may grow while they run; false where nodes are neither amd64 nor arm64.
    #[arg(long, env = "KITE_MEMORY_GROWS", default_value_t = true, action = clap::ArgAction::Set, value_name = "BOOL")]
    pub memory_grows: bool,
    /// How long a clone that makes no progress counts among those of its image that are under way.
    #[arg(long, env = "KITE_CLONE_PATIENCE", default_value = "5m", value_parser = duration, value_name = "TIME")]
    pub clone_patience: Duration,
    /// How long an object may stand in the way of a deletion before that is told. The default leaves
    /// room for a guest that takes its half minute to shut down.
    #[arg(long, env = "KITE_DELETION_PATIENCE", default_value = "60s", value_parser = duration, value_name = "TIME")]
    pub deletion_patience: Duration,
}

/// The program.
pub struct KiteVm;

impl Program for KiteVm {
    const CONTROLLER: Controller = Controller::Vm;
    const ABOUT: &'static str =
        "Makes virtual machines exist, or cease to: disk, login, VirtualMachine, Service, Ingress.";
    type Flags = Flags;

    async fn run(process: Process, flags: Flags) -> anyhow::Result<()> {
        let mut feeds = Feeds::new(process.health.clone());
        let world = World::watch(&mut feeds, &process, &flags);
        let writer = Writer::new(
            process.client.clone(),
            Controller::Vm.name(),
            Arc::clone(&process.metrics),
        );
        process.metrics.machines(Controller::Vm, &world.machines)?;
        let standstill = Standstill::new(flags.deletion_patience, process.metrics.registry())?;
        let pass = VmPass::new(world, writer, process.events.clone(), flags, standstill);
        drive(&process, feeds, pass).await
    }
}

/// Everything that is watched.
pub struct World {
    /// The machines.
    pub machines: Cache<KiteVirtualMachine>,
    /// KubeVirt's view of them.
    pub vms: Cache<VirtualMachine>,
    /// Running guests.
    pub vmis: Cache<Meta<VirtualMachineInstance>>,
    /// Disks.
    pub disks: Cache<DataVolume>,
    /// Their claims.
    pub claims: Cache<PersistentVolumeClaim>,
    /// Addresses.
    pub services: Cache<Service>,
    /// Ways in for HTTP.
    pub ingresses: Cache<Ingress>,
    /// Namespaces that Kite manages.
    pub namespaces: Cache<Meta<Namespace>>,
    /// Users.
    pub users: Cache<KiteUser>,
    /// The one platform.
    pub platform: Cache<KitePlatform>,
    /// Published images.
    pub images: Cache<DataSource>,
    /// Storage classes.
    pub classes: Cache<StorageClass>,
    /// Who holds which host.
    pub hosts: Cache<KiteHostClaim>,
    /// The definition of the machines' kind.
    pub crd: Cache<Meta<CustomResourceDefinition>>,
    /// Answers to writes about machines whose shape is unknown.
    pub malformed: Cache<Meta<KiteVirtualMachine>>,
    /// Own writes of Secrets; they are never watched (rule C-20).
    pub logins: Logins,
    /// How guests were seen to end.
    pub witness: Arc<Witness>,
    /// Who may begin to clone an image.
    pub turns: Turns,
}

impl World {
    fn watch(feeds: &mut Feeds, process: &Process, flags: &Flags) -> Self {
        let turns = Turns::new(flags.clone_patience, feeds.waker());
        let rows = turns.clone();
        let client = || process.client.clone();
        let machines = Watch::objects("KiteVirtualMachine", client())
            .packed()
            .reads(reads_of_machine)
            .index(BY_PREFIX);
        let machines = feeds.primary(machines);
        let vms = Watch::objects("VirtualMachine", client())
            .packed()
            .labels(MANAGED_SELECTOR);
        let guests = Watch::metadata("VirtualMachineInstance", client())
            .packed()
            .labels(VM_UID);
        let disks = Watch::objects("DataVolume", client())
            .packed()
            .labels(MANAGED_SELECTOR)
            .index(BY_IMAGE);
        let claims = Watch::objects("PersistentVolumeClaim", client())
            .packed()
            .labels(MANAGED_SELECTOR);
        let services = Watch::objects("Service", client())
            .packed()
            .labels(MANAGED_SELECTOR);
        let ingresses = Watch::objects("Ingress", client())
            .packed()
            .labels(MANAGED_SELECTOR);
        let around = Around::watch(feeds, &process.client, &machines);
        let witness = Arc::<Witness>::default();
        let ends = Arc::clone(&witness);
        Self {
            vms: feeds.watch(
                vms.reads(reads_of_vm),
                move |key, vm: Option<&VirtualMachine>| {
                    ends.note(key, vm);
                    to_machine(key, vm)
                },
            ),
            vmis: feeds.watch(guests, to_machine),
            disks: feeds.watch(
                disks.reads(reads_of_disk),
                move |key, disk: Option<&DataVolume>| {
                    if let Some(image) = disk.and_then(turns::image_of) {
                        rows.changed(&image);
                    }
                    to_machine(key, disk)
                },
            ),
            claims: feeds.watch(claims, to_machine),
            services: feeds.watch(services, to_machine),
            ingresses: feeds.watch(ingresses, to_machine),
            namespaces: around.namespaces,
            users: around.users,
            platform: around.platform,
            images: around.images,
            classes: around.classes,
            hosts: around.hosts,
            crd: around.crd,
            malformed: Cache::new(|_| 0),
            logins: Logins::default(),
            turns,
            witness,
            machines,
        }
    }
}

/// What is watched around the machines and their children.
struct Around {
    namespaces: Cache<Meta<Namespace>>,
    users: Cache<KiteUser>,
    platform: Cache<KitePlatform>,
    images: Cache<DataSource>,
    classes: Cache<StorageClass>,
    hosts: Cache<KiteHostClaim>,
    crd: Cache<Meta<CustomResourceDefinition>>,
}

impl Around {
    fn watch(feeds: &mut Feeds, client: &Client, machines: &Cache<KiteVirtualMachine>) -> Self {
        let client = || client.clone();
        let all = || {
            let machines = machines.clone();
            move || machines.keys()
        };
        let (for_platform, for_class, for_kind) = (all(), all(), all());
        let [in_namespace, of_user, of_image, of_host] = [(); 4].map(|()| machines.clone());
        let namespaces = Watch::metadata("Namespace", client())
            .packed()
            .labels(MANAGED_SELECTOR);
        let platform = Watch::objects("KitePlatform", client())
            .fields(&format!("metadata.name={PLATFORM_NAME}"));
        let images = Watch::objects("DataSource", client()).labels(&format!("{PUBLISHED}=true"));
        let crd =
            Watch::<Meta<CustomResourceDefinition>>::metadata("CustomResourceDefinition", client())
                .fields(&format!("metadata.name={MACHINES_CRD}"));
        Self {
            namespaces: feeds.watch(namespaces, move |key, _| {
                in_namespace.keys_within(&key.name)
            }),
            users: feeds.watch(
                Watch::objects("KiteUser", client())
                    .packed()
                    .index(BY_NAMESPACE),
                move |_, user: Option<&KiteUser>| {
                    let namespace = user.map(|u| u.spec.namespace.as_str());
                    namespace.map_or_else(Vec::new, |n| of_user.keys_within(n))
                },
            ),
            platform: feeds.watch(platform, move |key, _| {
                let mut keys = for_platform();
                keys.push(key.clone());
                keys
            }),
            images: feeds.watch(images, move |key, _| {
                keys_of(&of_image.select(|m| m.spec.image == key.name))
            }),
            classes: feeds.watch(Watch::objects("StorageClass", client()), move |_, _| {
                for_class()
            }),
            hosts: feeds.watch(
                Watch::objects("KiteHostClaim", client())
                    .packed()
                    .index(BY_MACHINE),
                move |key, claim: Option<&KiteHostClaim>| {
                    let prefix = key.name.split('.').next().unwrap_or_default();
                    let mut keys = keys_of(&of_host.find(BY_PREFIX, prefix));
                    keys.extend(claim.map(|c| Key::new(&c.spec.namespace, &c.spec.name)));
                    keys
                },
            ),
            crd: feeds.watch(crd, move |_, _| for_kind()),
        }
    }
}

impl World {
    /// Whether the kind itself is being removed and no administrator has acknowledged that
    /// every machine goes with it (rule N-6).
    pub fn removal_held(&self, now: Timestamp) -> bool {
        let crd = self.crd.get(&Key::cluster(MACHINES_CRD));
        crd.is_some_and(|crd| removal_held(&crd.metadata, now))
    }

    /// The one KitePlatform, if there is one.
    pub fn platform_object(&self) -> Option<Arc<KitePlatform>> {
        self.platform.get(&Key::cluster(PLATFORM_NAME))
    }
}

/// The machine that a child is labelled for; labels find, and prove nothing (rule C-7).
fn to_machine<K: Resource<DynamicType = ()>>(key: &Key, child: Option<&K>) -> Vec<Key> {
    let name = child.and_then(|c| c.meta().labels.as_ref()?.get(VM_NAME));
    vec![Key::new(&key.namespace, name.unwrap_or(&key.name))]
}

fn keys_of<K: ResourceExt>(objects: &[Arc<K>]) -> Vec<Key> {
    objects.iter().map(|o| Key::of(o.as_ref())).collect()
}

/// What a pass reads of a machine: its specification, and what others report that means work (rule C-8).
fn reads_of_machine(machine: &KiteVirtualMachine) -> u64 {
    let mut hasher = DefaultHasher::new();
    let meta = &machine.metadata;
    meta.generation.hash(&mut hasher);
    meta.deletion_timestamp.is_some().hash(&mut hasher);
    meta.finalizers.hash(&mut hasher);
    meta.annotations.hash(&mut hasher);
    if let Some(status) = &machine.status {
        status.virtual_machine_uid.hash(&mut hasher);
        status.phase.hash(&mut hasher);
        let last = status.last_stop.as_ref();
        last.map(|l| (&l.instance_uid, &l.reason)).hash(&mut hasher);
        let types = [
            conditions_of(Controller::Vm),
            &[POWER_IN_SYNC, SERVICE_READY, DISK_READY],
        ]
        .concat();
        for condition in condition::part(&status.conditions, &types) {
            (
                condition.type_,
                condition.status,
                condition.reason,
                condition.message,
            )
                .hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// What a pass reads of a VirtualMachine: everything Kite writes, whether it goes, and KubeVirt's
/// word for it where it may have to be started (rule V-16).
fn reads_of_vm(vm: &VirtualMachine) -> u64 {
    let status = vm.status.as_ref().filter(|_| reruns(vm)).map(|s| {
        (
            &s.run_strategy,
            &s.printable_status,
            s.created,
            s.observed_generation,
            &s.state_change_requests,
        )
    });
    reads_of(&vm.metadata, (vm.spec.as_ref(), status))
}

/// What a pass reads of a DataVolume, and whether its clone has ended; its progress is
/// kite-datavolume's.
fn reads_of_disk(disk: &DataVolume) -> u64 {
    reads_of(&disk.metadata, (disk.spec.as_ref(), turns::is_over(disk)))
}

fn reads_of(meta: &kube::core::ObjectMeta, spec: impl serde::Serialize) -> u64 {
    let mut hasher = DefaultHasher::new();
    // What holds an object matters once it is to go (rule V-21).
    let going = meta.deletion_timestamp.as_ref();
    going.map(|_| &meta.finalizers).hash(&mut hasher);
    meta.labels.hash(&mut hasher);
    meta.annotations.hash(&mut hasher);
    meta.owner_references
        .iter()
        .flatten()
        .for_each(|o| o.uid.hash(&mut hasher));
    AsJson(&spec).hash(&mut hasher);
    hasher.finish()
}
