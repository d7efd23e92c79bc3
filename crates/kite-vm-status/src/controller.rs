//! Wiring: which changes wake which machines, the rights that takes, and the flags.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use kite_api::KiteVirtualMachine;
use kite_api::condition::{
    self, ACCEPTED, DELETING, DISK_READY, RESOURCES_APPLIED, SERVICE_READY, STALLED,
};
use kite_api::labels::{Controller, MANAGED_SELECTOR, VM_UID};
use kite_api::ownership::conditions_of;
use kite_kubevirt::read::Condition;
use kite_kubevirt::{VirtualMachine, VirtualMachineInstance};
use kite_runtime::mirror::{Mirror, namesake};
use kite_runtime::pass::drive;
use kite_runtime::rbac::Rule;
use kite_runtime::settings::duration;
use kite_runtime::{AsJson, Feeds, Process, Program, Watch};
use kube::core::ObjectMeta;

use crate::observe::World;
use crate::observe::guests::Guests;
use crate::observe::mirrored::{OF_INSTANCE, OF_VM};
use crate::observe::refusal::{FAILURE, SYNCHRONIZED, read};
use crate::reconcile::StatusPass;
use crate::status::clocks::Holds;

/// What this controller may do, beyond what every controller may.
pub const RULES: &[Rule] = &[
    Rule::cluster(
        "kite.dev",
        &["kitevirtualmachines"],
        &["list", "watch"],
        "what is asked for, and what the other controllers say of it",
    ),
    Rule::cluster(
        "kite.dev",
        &["kitevirtualmachines/status"],
        &["patch"],
        "its own part of the status",
    ),
    Rule::cluster(
        "kubevirt.io",
        &["virtualmachines", "virtualmachineinstances"],
        &["list", "watch"],
        "what the machine is doing, and where",
    ),
];

/// Flags of kite-vm-status alone.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// How long KubeVirt's error word must have stood before the machine counts as failed.
    #[arg(long, env = "KITE_ERROR_HOLD", default_value = "10s", value_parser = duration, value_name = "TIME", help_heading = "Status")]
    pub error_hold: Duration,
    /// How long a state that is likely to be followed by a better one is held back.
    #[arg(long, env = "KITE_SETTLE", default_value = "2s", value_parser = duration, value_name = "TIME", help_heading = "Status")]
    pub settle: Duration,
    /// How long a change of power may take before it is called out of sync. The
    /// default leaves room for a guest that needs its three minutes to shut down.
    #[arg(long, env = "KITE_TRANSITION_TIMEOUT", default_value = "5m", value_parser = duration, value_name = "TIME", help_heading = "Status")]
    pub transition_timeout: Duration,
}

/// The program.
pub struct KiteVmStatus;

impl Program for KiteVmStatus {
    const CONTROLLER: Controller = Controller::VmStatus;
    const ABOUT: &'static str = "Tells what each virtual machine is really doing.";
    type Flags = Flags;

    async fn run(process: Process, flags: Flags) -> anyhow::Result<()> {
        let mut feeds = Feeds::new(process.health.clone());
        let guests = Guests::default();
        let world = watch(&mut feeds, &process, guests.clone());
        process
            .metrics
            .machines(Controller::VmStatus, &world.machines)?;
        let mirror = Mirror::new(
            &process,
            Controller::VmStatus.name(),
            world.machines.clone(),
        );
        let holds = Holds {
            error: flags.error_hold,
            settle: flags.settle,
            transition: flags.transition_timeout,
        };
        let pass = StatusPass::new(world, guests, mirror, holds);
        drive(&process, feeds, pass).await
    }
}

fn watch(feeds: &mut Feeds, process: &Process, guests: Guests) -> World {
    let client = || process.client.clone();
    World {
        machines: feeds.primary(
            Watch::objects("KiteVirtualMachine", client())
                .packed()
                .reads(reads_of_machine)
                .trim(trim_machine),
        ),
        // Children have the machine's name; whose they are is the pass's question.
        vms: feeds.watch(
            Watch::objects("VirtualMachine", client())
                .packed()
                .labels(MANAGED_SELECTOR)
                .reads(reads_of_vm)
                .trim(trim_vm),
            namesake,
        ),
        // Guests carry the labels of the template, which has no more than the UID.
        instances: feeds.watch(
            Watch::objects("VirtualMachineInstance", client())
                .packed()
                .labels(VM_UID)
                .reads(reads_of_instance)
                .trim(trim_instance),
            move |key, guest| {
                if let Some(guest) = guest {
                    guests.look(key, guest);
                }
                vec![key.clone()]
            },
        ),
    }
}

/// Conditions of the other controllers that a pass reads.
const OTHERS: [&str; 6] = [
    ACCEPTED,
    RESOURCES_APPLIED,
    STALLED,
    DELETING,
    DISK_READY,
    SERVICE_READY,
];

fn reads_of_machine(machine: &KiteVirtualMachine) -> u64 {
    let mut hasher = DefaultHasher::new();
    let meta = &machine.metadata;
    (meta.generation, meta.deletion_timestamp.is_some()).hash(&mut hasher);
    if let Some(status) = &machine.status {
        // Our own part is read as well: an edit of it by somebody else is put right.
        let own = crate::status::standing(machine);
        AsJson(&own).hash(&mut hasher);
        for condition in condition::part(&status.conditions, &OTHERS) {
            (condition.type_, condition.status, condition.reason).hash(&mut hasher);
            (condition.message, condition.observed_generation).hash(&mut hasher);
        }
    }
    hasher.finish()
}

fn trim_machine(machine: &mut KiteVirtualMachine) {
    machine.spec.ssh_authorized_keys = Vec::new();
    machine.metadata.annotations = None;
    if let Some(status) = &mut machine.status {
        let kept = [conditions_of(Controller::VmStatus), &OTHERS].concat();
        status.conditions = condition::part(&status.conditions, &kept);
    }
}

fn reads_of_vm(vm: &VirtualMachine) -> u64 {
    let mut hasher = DefaultHasher::new();
    owners(&vm.metadata).hash(&mut hasher);
    vm.is_seen().hash(&mut hasher);
    vm.printable_status().hash(&mut hasher);
    vm.is_created().hash(&mut hasher);
    let strategy = vm.status.as_ref().map(|s| &s.run_strategy);
    strategy.hash(&mut hasher);
    let requests = vm
        .status
        .iter()
        .flat_map(|s| s.state_change_requests.iter());
    requests.flatten().for_each(|r| r.action.hash(&mut hasher));
    hash_conditions(
        |type_| vm.condition(type_),
        &conditions_of_vm(),
        &mut hasher,
    );
    hasher.finish()
}

/// Conditions of a VirtualMachine that a pass reads.
fn conditions_of_vm() -> Vec<&'static str> {
    [&OF_VM[..], &["Ready", FAILURE]].concat()
}

/// Conditions of a VirtualMachineInstance that a pass reads.
fn conditions_of_instance() -> Vec<&'static str> {
    [
        &OF_INSTANCE[..],
        &["Ready", "EvictionRequested", SYNCHRONIZED],
    ]
    .concat()
}

/// Only the words of a refusal are read, and of them only what stays the same.
fn hash_conditions<'a>(
    find: impl Fn(&str) -> Option<&'a Condition>,
    types: &[&str],
    hasher: &mut DefaultHasher,
) {
    for condition in types.iter().filter_map(|t| find(t)) {
        (&condition.type_, &condition.status, condition.reason()).hash(hasher);
        if condition.reason() == "FailedCreate" {
            read(condition.message()).hash(hasher);
        }
    }
}

fn trim_vm(vm: &mut VirtualMachine) {
    vm.spec = None;
    vm.metadata.annotations = None;
    if let Some(status) = &mut vm.status {
        keep(&mut status.conditions, &conditions_of_vm());
    }
}

fn reads_of_instance(instance: &VirtualMachineInstance) -> u64 {
    let mut hasher = DefaultHasher::new();
    owners(&instance.metadata).hash(&mut hasher);
    let going = instance.metadata.deletion_timestamp.is_some();
    going.hash(&mut hasher);
    instance.phase().hash(&mut hasher);
    let status = instance.status.as_ref();
    let nodes = status.map(|s| (&s.node_name, &s.evacuation_node_name, &s.reason));
    nodes.hash(&mut hasher);
    let types = conditions_of_instance();
    hash_conditions(|type_| instance.condition(type_), &types, &mut hasher);
    instance.ip_addresses().hash(&mut hasher);
    hasher.finish()
}

fn trim_instance(instance: &mut VirtualMachineInstance) {
    instance.spec = None;
    instance.metadata.annotations = None;
    if let Some(status) = &mut instance.status {
        keep(&mut status.conditions, &conditions_of_instance());
    }
}

fn keep(conditions: &mut Option<Vec<Condition>>, types: &[&str]) {
    if let Some(conditions) = conditions {
        conditions.retain(|c| types.contains(&c.type_.as_str()));
    }
}

fn owners(meta: &ObjectMeta) -> Vec<&str> {
    let owners = meta.owner_references.iter().flatten();
    owners
        .filter(|o| o.controller == Some(true))
        .map(|o| o.uid.as_str())
        .collect()
}
