//! What KubeVirt's objects mean, in one word of Kite's (rule S-2, left column).
//!
//! This is where upstream's traps are disarmed: the status of a machine that
//! virt-controller has not seen is only a default, `Stopped` is said before the
//! guest is gone, and error words flash by. What to say about it is decided
//! elsewhere.

use kite_api::condition::{self, DISK_READY, NAME_CONFLICT};
use kite_api::machine::{LastStop, OnGuestShutdown, PowerState};
use kite_api::{Condition, KiteVirtualMachine};
use kite_kubevirt::{VirtualMachine, VirtualMachineInstance};

use crate::observe::mirrored::{Mirrored, mirrored, word};
use crate::observe::refusal::{Refusal, refusal};
use crate::status::vigil::{Ended, NODE_UNRESPONSIVE};

/// Whether a kind is served, and what was found of it.
#[derive(Clone, Debug)]
pub enum Found<T> {
    /// The server does not serve the kind; nothing is known of its objects (rule C-14).
    KindMissing,
    /// There is none that is this machine's.
    Absent,
    /// There is one, in a shape that this version does not know.
    Unreadable(String),
    /// This machine's own.
    Ours(T),
}

/// What a machine is doing, as far as KubeVirt's objects tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// KubeVirt is not installed.
    KindMissing,
    /// There is no VirtualMachine.
    NoVm,
    /// virt-controller has not looked at it yet.
    Unseen,
    /// The guest runs; whether it is ready, with the reason if not.
    Running(Result<(), String>),
    /// It runs and moves to another node.
    Migrating,
    /// KubeVirt has paused it.
    Paused,
    /// It is being started.
    Starting,
    /// It is going down, or is down and not yet cleared away.
    Stopping,
    /// It is off and nothing of it is left.
    Off,
    /// It is off and was never on.
    NeverRan,
    /// It is off because its guest has shut itself down, and is to stay off (rule S-2).
    ShutDown {
        /// Somebody saw how it ended; otherwise it may have, and then it must not be started.
        seen: bool,
    },
    /// Its node does not answer (rule S-9).
    NodeLost {
        /// It is going down, as far as it can.
        going: bool,
    },
    /// Its disk is not ready yet.
    Provisioning,
    /// Its disk will not become ready; the reason and the words of `DiskReady`.
    DiskError(String, String),
    /// KubeVirt's error word.
    Error(String),
    /// KubeVirt does not know, or its word is not known here.
    Unknown(String),
}

/// Whether the disk is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disk {
    /// kite-datavolume says nothing; KubeVirt's own words have to do.
    Untold,
    /// It is filled, or in use.
    Ready,
    /// It is being filled.
    NotReady,
    /// It will not be; the reason and the words.
    Error(String, String),
}

/// All that is read of a machine and its KubeVirt objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// What the user wants.
    pub wanted: PowerState,
    /// What is to become of a guest that shuts itself down.
    pub on_guest_shutdown: OnGuestShutdown,
    /// What is.
    pub state: State,
    /// KubeVirt's own word, for reasons and messages.
    pub word: String,
    /// The disk.
    pub disk: Disk,
    /// UID of the VirtualMachine.
    pub vm_uid: Option<String>,
    /// virt-controller has judged the machine, beyond having put its finalizer there.
    pub judged: bool,
    /// A guest runs.
    pub guest_runs: bool,
    /// The node of the guest.
    pub node: Option<String>,
    /// The addresses of the guest, sorted; no more of them than a status holds.
    pub addresses: Vec<String>,
    /// KubeVirt will not start it by itself, since nothing about its run strategy changes (rule V-16).
    pub rests: bool,
    /// What KubeVirt says that is shown as it is (rule S-6).
    pub mirrored: Vec<Mirrored>,
    /// Why the server does not take what KubeVirt makes for the machine.
    pub refusal: Option<Refusal>,
    /// How the last guest ended, if it has, as far as this process saw.
    pub ended: Option<Ended>,
    /// How the machine last stopped, as it should stand in the status.
    pub last_stop: Option<LastStop>,
}

/// The schema of the status allows so many addresses, and guests that run containers report more.
const MOST_ADDRESSES: usize = 32;
/// No name of a node is longer, nor may one in the status be.
const LONGEST_NAME: usize = 253;
/// No address is longer; the schema of the status allows 64 characters.
const LONGEST_ADDRESS: usize = 64;

/// Reads a machine and its KubeVirt objects.
pub fn read(
    machine: &KiteVirtualMachine,
    vm: &Found<impl AsRef<VirtualMachine>>,
    instance: Option<&VirtualMachineInstance>,
) -> Reading {
    let conditions = machine.status.as_ref().map(|s| s.conditions.as_slice());
    let guest_runs = instance.is_some_and(|i| i.phase() == "Running");
    let disk = disk(conditions.unwrap_or_default(), guest_runs);
    let mut reading = Reading {
        wanted: machine.spec.power_state,
        on_guest_shutdown: machine.spec.on_guest_shutdown,
        state: State::NoVm,
        word: String::new(),
        disk,
        vm_uid: None,
        judged: true,
        guest_runs,
        node: instance.and_then(node),
        addresses: instance.map(addresses).unwrap_or_default(),
        rests: false,
        mirrored: Vec::new(),
        refusal: None,
        ended: None,
        last_stop: None,
    };
    match vm {
        Found::KindMissing => reading.state = State::KindMissing,
        Found::Absent => {}
        Found::Unreadable(why) => reading.state = State::Unknown(why.clone()),
        Found::Ours(vm) => read_vm(&mut reading, vm.as_ref(), instance),
    }
    reading
}

fn read_vm(reading: &mut Reading, vm: &VirtualMachine, instance: Option<&VirtualMachineInstance>) {
    vm.printable_status().clone_into(&mut reading.word);
    reading.vm_uid.clone_from(&vm.metadata.uid);
    reading.judged = vm.condition("Ready").is_some();
    reading.rests = rests(vm);
    reading.mirrored = mirrored(vm, instance);
    reading.refusal = refusal(vm, instance);
    reading.state = match instance {
        Some(lost) if is_lost(lost) => State::NodeLost {
            going: lost.metadata.deletion_timestamp.is_some(),
        },
        _ => gated(state(vm, instance), &reading.disk),
    };
}

fn node(instance: &VirtualMachineInstance) -> Option<String> {
    let node = instance.status.as_ref()?.node_name.clone();
    node.filter(|n| !n.is_empty() && n.chars().count() <= LONGEST_NAME)
}

fn addresses(instance: &VirtualMachineInstance) -> Vec<String> {
    let mut addresses = instance.ip_addresses();
    addresses.retain(|a| a.len() <= LONGEST_ADDRESS);
    addresses.truncate(MOST_ADDRESSES);
    addresses
}

/// One that is only about to be made is there a moment before its machine says so.
fn is_or_was_on(instance: &VirtualMachineInstance) -> bool {
    matches!(instance.phase(), "Running" | "Succeeded" | "Failed")
}

/// KubeVirt does not know how the guest is, or has given it up, when nothing answers on its node.
fn is_lost(instance: &VirtualMachineInstance) -> bool {
    let reason = instance.status.as_ref().and_then(|s| s.reason.as_deref());
    instance.phase() == "Unknown" || reason == Some(NODE_UNRESPONSIVE)
}

/// Under this strategy a machine is started when it is new to it, or when a start is queued.
fn rests(vm: &VirtualMachine) -> bool {
    let status = vm.status.as_ref();
    let strategy = status.and_then(|s| s.run_strategy.as_deref());
    let mut queued = status
        .iter()
        .flat_map(|s| s.state_change_requests.iter().flatten());
    strategy == Some("RerunOnFailure") && !queued.any(|r| r.action == "Start")
}

/// The disk by `DiskReady`; a guest that runs has one, whatever is still to be told about it.
fn disk(conditions: &[Condition], guest_runs: bool) -> Disk {
    match condition::find(conditions, DISK_READY) {
        _ if guest_runs => Disk::Ready,
        None => Disk::Untold,
        Some(c) if c.status == "True" => Disk::Ready,
        Some(c) if is_disk_error(&c.reason) => Disk::Error(c.reason.clone(), c.message.clone()),
        Some(_) => Disk::NotReady,
    }
}

/// The reasons by which kite-datavolume says that waiting does not help.
fn is_disk_error(reason: &str) -> bool {
    [
        "CloneFailed",
        "QuotaExceeded",
        "Stuck",
        "DiskLost",
        NAME_CONFLICT,
    ]
    .contains(&reason)
}

/// While the disk is not ready that is what the machine waits for, whatever KubeVirt calls it.
fn gated(state: State, disk: &Disk) -> State {
    match disk {
        Disk::Untold | Disk::Ready => state,
        Disk::NotReady => State::Provisioning,
        Disk::Error(reason, words) => State::DiskError(reason.clone(), words.clone()),
    }
}

/// KubeVirt's word with what stands beside it.
fn state(vm: &VirtualMachine, instance: Option<&VirtualMachineInstance>) -> State {
    if !vm.is_seen() {
        return State::Unseen;
    }
    match vm.printable_status() {
        "Running" => State::Running(readiness(vm)),
        // Said from the moment the guest ends; off is what it is when the instance is gone.
        // The two watches may be out of step for a moment.
        "Stopped" if vm.is_created() || instance.is_some_and(is_or_was_on) => State::Stopping,
        "Stopped" if never_ran(vm) => State::NeverRan,
        "Stopped" => State::Off,
        "Starting" => State::Starting,
        "Stopping" | "Terminating" => State::Stopping,
        "Paused" => State::Paused,
        "Migrating" => State::Migrating,
        "Provisioning" | "WaitingForVolumeBinding" | "WaitingForReceiver" => State::Provisioning,
        error @ ("CrashLoopBackOff" | "ErrorUnschedulable" | "ErrImagePull"
        | "ImagePullBackOff" | "ErrorPvcNotFound" | "DataVolumeError") => {
            State::Error(error.to_owned())
        }
        "" => State::Unknown("KubeVirt has not said how the machine is".to_owned()),
        other => State::Unknown(format!("KubeVirt says {other}")),
    }
}

fn readiness(vm: &VirtualMachine) -> Result<(), String> {
    match vm.condition("Ready") {
        Some(ready) if ready.is_true() => Ok(()),
        Some(ready) => Err(word(ready.reason()).unwrap_or("GuestNotReady").to_owned()),
        None => Err("GuestNotReady".to_owned()),
    }
}

/// virt-controller notes the run strategy when it makes the first instance, and never before.
fn never_ran(vm: &VirtualMachine) -> bool {
    vm.status.as_ref().is_none_or(|s| s.run_strategy.is_none())
}
