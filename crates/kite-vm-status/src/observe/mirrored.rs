//! Conditions of KubeVirt's that are shown as they are (rule S-6).
//!
//! Status and reason are taken over, words are Kite's own: KubeVirt's may hold
//! what changes by itself. A condition that is absent there is absent here.
//! Nothing is decided by them.

use kite_api::condition::{AGENT_CONNECTED, LIVE_MIGRATABLE, PAUSED, RESTART_REQUIRED, Status};
use kite_kubevirt::read::Condition;
use kite_kubevirt::{VirtualMachine, VirtualMachineInstance};

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirrored {
    /// Which.
    pub type_: &'static str,
    /// Its status.
    pub status: Status,
    /// KubeVirt's reason, or one of Kite's where it gives none that could stand in a condition.
    pub reason: String,
}

/// Those that virt-controller keeps on the machine.
pub const OF_VM: [&str; 2] = [PAUSED, RESTART_REQUIRED];
/// Those that are the guest's own.
pub const OF_INSTANCE: [&str; 2] = [LIVE_MIGRATABLE, AGENT_CONNECTED];

/// What stands on the machine and its guest.
pub fn mirrored(vm: &VirtualMachine, instance: Option<&VirtualMachineInstance>) -> Vec<Mirrored> {
    let of_vm = OF_VM.iter().filter_map(|t| Some((*t, vm.condition(t)?)));
    let of_instance = OF_INSTANCE
        .iter()
        .filter_map(|t| Some((*t, instance?.condition(t)?)));
    of_vm
        .chain(of_instance)
        .map(|(type_, condition)| Mirrored {
            type_,
            status: status(condition),
            reason: reason(type_, condition),
        })
        .collect()
}

fn status(condition: &Condition) -> Status {
    match condition.status.as_str() {
        "True" => Status::True,
        "False" => Status::False,
        _ => Status::Unknown,
    }
}

fn reason(type_: &str, condition: &Condition) -> String {
    let own = match type_ {
        PAUSED => "PausedByUser",
        RESTART_REQUIRED => "ChangesWaitForRestart",
        LIVE_MIGRATABLE => "ToldByKubeVirt",
        _ => "AgentAnswers",
    };
    word(condition.reason()).unwrap_or(own).to_owned()
}

/// Longest reason of somebody else's that is taken over; KubeVirt's have less than half of it.
const LONGEST_WORD: usize = 64;

/// A reason of somebody else's, if it is a word as the API wants reasons to be.
pub fn word(reason: &str) -> Option<&str> {
    let mut bytes = reason.bytes();
    let starts = bytes.next().is_some_and(|b| b.is_ascii_alphabetic());
    let goes_on = bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_');
    (starts && goes_on && reason.len() <= LONGEST_WORD && !reason.ends_with('_')).then_some(reason)
}
