//! kite-vm-status's whole part of the status, from what was read and how long it has stood.
//!
//! Pure: the clock is the caller's. It says what should stand and how urgent
//! that is; whether to write it now is decided in [`crate::status::clocks`].

pub mod clocks;
pub mod table;
pub mod vigil;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kite_api::condition::{
    self, ACCEPTED, DELETING, DEPENDENCY_MISSING, POWER_IN_SYNC, READY, RESOURCES_APPLIED, STALLED,
    Status, Wanted,
};
use kite_api::labels::Controller;
use kite_api::machine::PowerState;
use kite_api::ownership::part_of;
use kite_api::{Condition, KiteVirtualMachine, KiteVirtualMachineStatus, Phase};

use crate::observe::reading::{Reading, State};
use crate::status::table::{PowerSync, Row, row};

/// What has stood long enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Elapsed {
    /// KubeVirt's error word.
    pub error: bool,
    /// Power that is not what is wanted.
    pub transition: bool,
    /// A generation that kite-vm has not told of.
    pub behind: bool,
}

/// What should stand in the status.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// The whole part, with `phase` when it is ours (rule C-10).
    pub status: KiteVirtualMachineStatus,
    /// It may be only half of what is about to happen; better wait a moment than write twice.
    pub provisional: bool,
}

/// Whether somebody has asked for the machine to go.
pub fn is_leaving(machine: &KiteVirtualMachine) -> bool {
    machine.spec.delete || machine.metadata.deletion_timestamp.is_some()
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
    let ready = ready(&spec, &row, &before);
    status.conditions = condition::settle(
        &before.conditions,
        ready.into_iter().collect(),
        status.observed_generation,
        now,
    );
    status.conditions.extend(condition::settle(
        &before.conditions,
        power_in_sync(reading, &row, &before, elapsed)
            .into_iter()
            .collect(),
        machine.metadata.generation,
        now,
    ));
    status.conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
    let provisional = is_provisional(reading, &spec, elapsed, &before, &status);
    Told {
        status,
        provisional,
    }
}

/// What kite-vm says of the specification.
#[derive(Clone, Debug, PartialEq)]
enum Verdict {
    /// Nothing about this generation yet.
    Behind,
    /// All of it is applied.
    Applied(i64),
    /// Not all of it is, with the reason and the words; whether a person must change something.
    Refused(i64, String, String, bool),
}

impl Verdict {
    fn of(machine: &KiteVirtualMachine) -> Self {
        let conditions = machine
            .status
            .as_ref()
            .map(|s| s.conditions.as_slice())
            .unwrap_or_default();
        let generation = machine.metadata.generation;
        let applied = condition::find(conditions, RESOURCES_APPLIED);
        let (Some(applied), Some(generation)) = (
            applied.filter(|a| a.observed_generation == generation),
            generation,
        ) else {
            return Self::Behind;
        };
        // Both are written in one write; what is wrong with the specification explains more.
        let accepted = condition::find(conditions, ACCEPTED).filter(|a| a.status == "False");
        match accepted.or(Some(applied).filter(|a| a.status != "True")) {
            None => Self::Applied(generation),
            Some(Condition {
                reason, message, ..
            }) => Self::Refused(
                generation,
                reason.clone(),
                message.clone(),
                condition::is_true(conditions, STALLED),
            ),
        }
    }

    /// The generation that `Ready` speaks of (rule C-9).
    fn observed(&self, before: &KiteVirtualMachineStatus) -> Option<i64> {
        match self {
            Self::Behind => before.observed_generation,
            Self::Applied(generation) | Self::Refused(generation, ..) => Some(*generation),
        }
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
        State::Stopping | State::Unknown(_) | State::KindMissing => kept(),
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

/// `PowerInSync`; False wakes kite-vm, so its message names just the pair that differs (rules S-5, C-8).
fn power_in_sync(
    reading: &Reading,
    row: &Row,
    before: &KiteVirtualMachineStatus,
    elapsed: Elapsed,
) -> Option<Wanted> {
    let (wanted, out_of_sync) = match reading.wanted {
        PowerState::On => ("on", "NotStarted"),
        PowerState::Off => ("off", "NotStopped"),
    };
    let say = |status: Status, reason: &str, message: String| {
        Some(Wanted::new(POWER_IN_SYNC, status, reason, message))
    };
    // After a restart of this process the bound is not granted anew.
    let stands = condition::find(&before.conditions, POWER_IN_SYNC);
    let known = stands.is_some_and(|c| c.reason == out_of_sync);
    match row.power_sync? {
        PowerSync::InSync => say(
            Status::True,
            "InSync",
            format!("the machine is {wanted}, as asked for"),
        ),
        PowerSync::Moving if elapsed.transition || known => say(
            Status::False,
            out_of_sync,
            format!("wanted {wanted}, KubeVirt says {}", reading.word),
        ),
        PowerSync::Moving => say(
            Status::Unknown,
            "InTransition",
            format!("the machine is on its way to {wanted}"),
        ),
        PowerSync::Waiting if reading.state == State::KindMissing => say(
            Status::Unknown,
            DEPENDENCY_MISSING,
            row.ready.message.clone(),
        ),
        PowerSync::Waiting => say(
            Status::Unknown,
            "Waiting",
            format!("the machine cannot be {wanted} yet"),
        ),
    }
}

/// Whether what should stand is likely to be followed at once by something better.
fn is_provisional(
    reading: &Reading,
    spec: &Verdict,
    elapsed: Elapsed,
    before: &KiteVirtualMachineStatus,
    status: &KiteVirtualMachineStatus,
) -> bool {
    let first = before.virtual_machine_uid.is_none();
    let is_ready = condition::is_true(&status.conditions, READY);
    match spec {
        // kite-vm's one write comes first, so that the two do not meet.
        Verdict::Behind if !elapsed.behind => return true,
        Verdict::Refused(_, _, _, true) => return false,
        Verdict::Behind | Verdict::Applied(_) | Verdict::Refused(..) => {}
    }
    let was_ready = before.observed_generation == status.observed_generation
        && condition::is_true(&before.conditions, READY);
    if was_ready && !is_ready {
        return false;
    }
    match reading.state {
        State::Running(_) | State::Migrating => {
            !is_ready || status.node_name.is_none() || status.ip_addresses.is_empty()
        }
        // `Stopped` flashes by before virt-controller has judged a new machine.
        State::Off | State::NeverRan if is_ready => !reading.judged,
        State::Off | State::NeverRan => !(first && reading.judged),
        State::Unseen | State::NoVm | State::Unknown(_) => true,
        State::Error(_) => !elapsed.error,
        State::Provisioning
        | State::Starting
        | State::Stopping
        | State::Paused
        | State::DiskError(..)
        | State::KindMissing => false,
    }
}
