//! kite-vm-status's whole part of the status, from what was read and how long it has stood.
//!
//! Pure: the clock is the caller's. It says what should stand and how urgent
//! that is; whether to write it now is decided in [`crate::status::clocks`].

pub mod blocked;
pub mod clocks;
pub mod news;
pub mod power;
pub mod provisional;
pub mod stop;
pub mod table;
pub mod verdict;
pub mod vigil;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kite_api::condition::{
    self, DELETING, LIVE_MIGRATABLE, PAUSED, READY, RESTART_REQUIRED, Status, Wanted,
};
use kite_api::labels::Controller;
use kite_api::machine::PowerState;
use kite_api::ownership::part_of;
use kite_api::{Condition, KiteVirtualMachine, KiteVirtualMachineStatus, Phase};

use crate::observe::mirrored::{Mirrored, OF_INSTANCE, OF_VM};
use crate::observe::reading::{Reading, State};
use crate::status::power::power_in_sync;
use crate::status::provisional::is_provisional;
use crate::status::table::{Row, row};
use crate::status::verdict::Verdict;

/// What has stood long enough.
#[allow(clippy::struct_excessive_bools)] // Each has a clock of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Elapsed {
    /// KubeVirt's error word.
    pub error: bool,
    /// Power that is not what is wanted.
    pub transition: bool,
    /// A generation that kite-vm has not told of.
    pub behind: bool,
    /// A Service that is not as it should be.
    pub service: bool,
}

/// What should stand in the status.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// The whole part, with `phase` when it is ours (rule C-10).
    pub status: KiteVirtualMachineStatus,
    /// It may be only half of what is about to happen; better wait a moment than write twice.
    pub provisional: bool,
}

/// What stands in the status now of what is ours.
pub fn standing(machine: &KiteVirtualMachine) -> KiteVirtualMachineStatus {
    let Some(status) = &machine.status else {
        return KiteVirtualMachineStatus::default();
    };
    let mut part = part_of(Controller::VmStatus, status);
    if part.virtual_machine_uid.is_some() && status.phase != Some(Phase::Deleting) {
        part.phase = status.phase;
    }
    part
}

/// Whether a write takes `phase` over from kite-vm, and so has to force (rule C-10).
///
/// The first with the VirtualMachine's UID does. When it leaves the phase as it was, both own
/// it from then on, since an apply of an equal value never takes a field from anybody; so the
/// first change of a phase that kite-vm may have written takes it over as well.
pub fn takes_over(stands: &KiteVirtualMachineStatus, next: &KiteVirtualMachineStatus) -> bool {
    let first = stands.virtual_machine_uid.is_none() && next.virtual_machine_uid.is_some();
    let may_be_shared = matches!(stands.phase, Some(Phase::Provisioning | Phase::Failed));
    first || (may_be_shared && next.phase.is_some() && next.phase != stands.phase)
}

/// What should stand while the machine is leaving: nothing (rule C-10). It can wait for
/// kite-vm to take over `phase`, so that it is never without one.
pub fn farewell(machine: &KiteVirtualMachine) -> Told {
    let conditions = machine.status.as_ref().map(|s| s.conditions.as_slice());
    Told {
        status: KiteVirtualMachineStatus::default(),
        provisional: condition::find(conditions.unwrap_or_default(), DELETING).is_none(),
    }
}

/// What should stand otherwise.
pub fn tell(machine: &KiteVirtualMachine, reading: &Reading, elapsed: Elapsed, now: &Time) -> Told {
    let before = standing(machine);
    let spec = Verdict::of(machine);
    let row = row(reading);
    let mut status = KiteVirtualMachineStatus {
        observed_generation: spec.observed(&before),
        virtual_machine_uid: uid(reading, &before),
        current_power_state: power(reading, &row, &before),
        ..KiteVirtualMachineStatus::default()
    };
    if status.virtual_machine_uid.is_some() {
        status.phase = Some(phase(reading, &row, &before, elapsed));
    }
    (status.node_name, status.ip_addresses) = whereabouts(reading, &before);
    status.last_stop.clone_from(&reading.last_stop);
    status.blocked_by = blocked::blocked_by(machine, reading, &row, &before, elapsed);
    let ready = ready(&spec, &row, &before);
    status.conditions = condition::settle(
        &before.conditions,
        ready.into_iter().collect(),
        status.observed_generation,
        now,
    );
    let power = power_in_sync(reading, &row, &before, elapsed);
    let generation = machine.metadata.generation;
    let rest = power.into_iter().chain(shown(reading, &before)).collect();
    status
        .conditions
        .extend(condition::settle(&before.conditions, rest, generation, now));
    status.conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
    let provisional = is_provisional(reading, &spec, elapsed, &before, &status);
    Told {
        status,
        provisional,
    }
}

/// A VirtualMachine that cannot be seen because its kind is not served is not gone.
fn uid(reading: &Reading, before: &KiteVirtualMachineStatus) -> Option<String> {
    match reading.state {
        State::KindMissing | State::Unknown(_) if reading.vm_uid.is_none() => {
            before.virtual_machine_uid.clone()
        }
        _ => reading.vm_uid.clone(),
    }
}

fn power(reading: &Reading, row: &Row, before: &KiteVirtualMachineStatus) -> Option<PowerState> {
    match reading.state {
        // Off is what becomes of a machine that was there; one that never was has no power to speak of.
        State::NoVm => before.current_power_state.and(row.power),
        _ => row.power.or(before.current_power_state),
    }
}

/// An error word counts when it has stood for a while; until then the phase before it stands.
fn phase(
    reading: &Reading,
    row: &Row,
    before: &KiteVirtualMachineStatus,
    elapsed: Elapsed,
) -> Phase {
    let before = before.phase.unwrap_or(Phase::Provisioning);
    match reading.state {
        State::Error(_) if !elapsed.error => before,
        _ => row.phase.unwrap_or(before),
    }
}

/// Node and addresses: those of a guest that runs; kept while it moves, goes, or cannot be seen.
fn whereabouts(
    reading: &Reading,
    before: &KiteVirtualMachineStatus,
) -> (Option<String>, Vec<String>) {
    let kept = || (before.node_name.clone(), before.ip_addresses.clone());
    match reading.state {
        State::Stopping | State::Unknown(_) | State::KindMissing | State::NodeLost { .. } => kept(),
        State::Migrating if reading.addresses.is_empty() => kept(),
        // A node and an address in the making are no more than half of the news.
        State::Starting => (None, Vec::new()),
        _ if reading.guest_runs => (reading.node.clone(), reading.addresses.clone()),
        _ => (None, Vec::new()),
    }
}

/// `Ready`, or nothing while nothing can be said about any generation.
fn ready(spec: &Verdict, row: &Row, before: &KiteVirtualMachineStatus) -> Option<Wanted> {
    match spec {
        Verdict::Applied(_) => Some(row.ready.clone()),
        Verdict::Refused(_, reason, message, _) => Some(Wanted::new(READY, false, reason, message)),
        // An old generation may lose its readiness, and never gains it from what a new one wants.
        Verdict::Behind => {
            condition::find(&before.conditions, READY).map(|stands| match row.ready.status {
                Status::True => {
                    Wanted::new(READY, status_of(stands), &stands.reason, &stands.message)
                }
                Status::False | Status::Unknown => row.ready.clone(),
            })
        }
    }
}

fn status_of(condition: &Condition) -> Status {
    match condition.status.as_str() {
        "True" => Status::True,
        "False" => Status::False,
        _ => Status::Unknown,
    }
}

/// What KubeVirt says that is shown as it is (rule S-6). It is told of a guest that runs; a guest
/// on its way down loses one after the other, which is no news, and what cannot be seen is kept.
fn shown(reading: &Reading, before: &KiteVirtualMachineStatus) -> Vec<Wanted> {
    match reading.state {
        State::Stopping | State::Unknown(_) | State::KindMissing | State::NodeLost { .. } => {
            let types = [OF_VM, OF_INSTANCE].concat();
            let kept = types.iter().filter_map(|type_| {
                let stands = condition::find(&before.conditions, type_)?;
                let status = status_of(stands);
                Some(Wanted::new(type_, status, &stands.reason, &stands.message))
            });
            kept.collect()
        }
        _ if reading.guest_runs => reading.mirrored.iter().map(in_words).collect(),
        _ => Vec::new(),
    }
}

fn in_words(mirrored: &Mirrored) -> Wanted {
    let words = match (mirrored.type_, mirrored.status) {
        (_, Status::Unknown) => "KubeVirt does not know",
        (PAUSED, Status::True) => "KubeVirt has paused the machine; unpause it with virtctl",
        (PAUSED, Status::False) => "the machine is not paused",
        (RESTART_REQUIRED, Status::True) => {
            "a change of the specification takes effect at the next start; switch the machine off and on when it suits you"
        }
        (RESTART_REQUIRED, Status::False) => "no change waits for a restart",
        (LIVE_MIGRATABLE, Status::True) => "the machine can move to another node while it runs",
        (LIVE_MIGRATABLE, Status::False) => {
            "the machine cannot move to another node while it runs; its VirtualMachineInstance says why"
        }
        (_, Status::True) => "the guest agent answers",
        (_, Status::False) => "the guest agent does not answer",
    };
    Wanted::new(mirrored.type_, mirrored.status, &mirrored.reason, words)
}
