//! Whether a machine is to be started, and by which run strategy (rule V-16).
//!
//! Pure; what is remembered of guests and of tries stands in `observe::witness`
//! and `reconcile::pace`. Under `Always` and `Halted` KubeVirt does everything.
//! Under `RerunOnFailure` it starts a machine only when that is new to it, so one
//! that has no guest is started by `Halted` first; and whether it may be started
//! at all depends on how its last guest ended, which is kite-vm-status's to say
//! and is seen here only in its absence.

use kite_api::KiteVirtualMachineStatus;
use kite_api::labels::START;
use kite_api::machine::{LastStop, OnGuestShutdown, PowerState};
use kite_kubevirt::read::VirtualMachine;
use kite_kubevirt::write::RunStrategy;
use kite_render::machine::run_strategy;

use super::Disk;
use crate::observe::annotation;
use crate::observe::witness::End;

/// What is known when power is decided on.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// What is wanted.
    pub power: PowerState,
    /// What a shutdown from inside the guest is to mean.
    pub on_guest_shutdown: OnGuestShutdown,
    /// KubeVirt's machine, if it is there.
    pub vm: Option<&'a VirtualMachine>,
    /// The guest, if there is one.
    pub guest: Option<Guest>,
    /// What the others say of the machine.
    pub status: &'a KiteVirtualMachineStatus,
    /// How the last guest ended, as seen by this process.
    pub seen: Option<End>,
}

/// A guest that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guest {
    /// It runs, or is about to, or has just ended.
    There,
    /// It was told to go.
    Going,
}

/// What to do about power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// This run strategy, and KubeVirt does the rest.
    Run(RunStrategy),
    /// The guest is still on its way down; the machine is started when it is gone.
    AwaitShutdown,
    /// `Halted` was applied so that the machine can be started, and KubeVirt has not noted it yet.
    AwaitHalted,
    /// It has no guest and should have one: `Halted` first.
    Start(Why),
    /// It is to run and is not started, since its disk is not there (rule V-15).
    Held,
    /// It has no guest and stays as it is until a person switches it off and on.
    StaysDown(Down),
}

/// Why a machine has no guest although it is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// KubeVirt was asked to start it and no guest came, for instance because of a quota.
    StartFailed,
    /// The guest was taken away or has crashed, as kite-vm-status says.
    Ended,
    /// The same, as only this process has seen.
    EndedUntold,
}

/// Why a machine stays down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Down {
    /// The guest has shut itself down, as kite-vm-status says.
    ShutDown,
    /// The same, as only this process has seen.
    ShutDownUntold,
    /// Nobody saw how the guest ended. It may have shut itself down, and then it must not be started.
    Unknown,
}

impl Decision {
    /// The run strategy to apply.
    pub const fn strategy(self) -> RunStrategy {
        match self {
            Self::Run(strategy) => strategy,
            Self::AwaitShutdown | Self::AwaitHalted | Self::Held | Self::Start(_) => {
                RunStrategy::Halted
            }
            Self::StaysDown(_) => RunStrategy::RerunOnFailure,
        }
    }

    /// Whether something may be on its way that changes it, so that a moment must pass before
    /// it counts: the watches tell of a machine and its guest one after the other, and
    /// kite-vm-status says how a guest ended a moment after it did.
    pub const fn is_hasty(self) -> bool {
        match self {
            Self::Start(_) | Self::StaysDown(Down::ShutDownUntold | Down::Unknown) => true,
            Self::Run(_)
            | Self::AwaitShutdown
            | Self::AwaitHalted
            | Self::Held
            | Self::StaysDown(Down::ShutDown) => false,
        }
    }
}

/// Decides about power.
pub fn decide(at: &Situation<'_>) -> Decision {
    let wanted = run_strategy(at.power, at.on_guest_shutdown);
    let Some(vm) = at.vm.filter(|_| wanted == RunStrategy::RerunOnFailure) else {
        return Decision::Run(wanted);
    };
    let (asked, noted) = (strategy_of(vm), noted(vm));
    match at.guest {
        Some(Guest::Going) if asked == Some(RunStrategy::Halted) => Decision::AwaitShutdown,
        Some(Guest::There | Guest::Going) => Decision::Run(wanted),
        None if asked == Some(RunStrategy::Halted) && noted == Some(wanted) => {
            Decision::AwaitHalted
        }
        // It is new to the strategy, or KubeVirt is about to act.
        None if asked != Some(wanted) || noted != Some(wanted) => Decision::Run(wanted),
        None if vm.is_created() || start_requested(vm) => Decision::Run(wanted),
        None => without_guest(at, vm),
    }
}

/// Whether a decision would start a machine whose disk is not there: what lies under its disk's
/// name may be anybody's (rules V-15, D-7). Never so while there is a guest.
pub fn starts_without_disk(at: &Situation<'_>, decision: Decision, disk: &Disk) -> bool {
    let Some(vm) = at.vm else {
        return false;
    };
    let halted = strategy_of(vm) == Some(RunStrategy::Halted);
    let starts = match decision {
        Decision::Run(strategy) => strategy != RunStrategy::Halted,
        Decision::Start(_) => true,
        _ => false,
    };
    let guest = match at.guest {
        Some(Guest::There) => true,
        Some(Guest::Going) => !halted,
        None => !halted && vm.is_created(),
    };
    let there = match disk {
        Disk::Present { .. } | Disk::Retained { adopt: true, .. } | Disk::Unknown => true,
        // Nothing is begun and nothing is ended on a doubt.
        Disk::Unsure => !halted,
        Disk::Filling
        | Disk::Create
        | Disk::Replace
        | Disk::Lost(_)
        | Disk::Retained { .. }
        | Disk::Foreign(_) => false,
    };
    starts && !guest && !there
}

/// KubeVirt does nothing by itself any more: is the machine down on purpose?
fn without_guest(at: &Situation<'_>, vm: &VirtualMachine) -> Decision {
    let start = StartNote::of(vm);
    let last = at.status.last_stop.as_ref();
    let answered = start.as_ref().map_or("", |s| s.after.as_str());
    // A stop without the UID of a guest was not seen by anybody.
    let told = |l: &&LastStop| l.instance_uid.as_deref().is_some_and(|uid| uid != answered);
    if let Some(last) = last.filter(told) {
        return if last.is_guest_shut_down() {
            Decision::StaysDown(Down::ShutDown)
        } else {
            Decision::Start(Why::Ended)
        };
    }
    let observed = vm.status.as_ref().and_then(|s| s.observed_generation);
    let came = start.is_none_or(|s| observed.is_some_and(|o| o > s.generation));
    match at.seen {
        _ if !came => Decision::Start(Why::StartFailed),
        Some(End::ShutDown) => Decision::StaysDown(Down::ShutDownUntold),
        Some(End::Otherwise) => Decision::Start(Why::EndedUntold),
        None => Decision::StaysDown(Down::Unknown),
    }
}

/// What is written on the VirtualMachine when it is started under `RerunOnFailure`: it tells a
/// start that failed from a guest that has ended, also after a restart of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartNote {
    /// Whether `Halted` was applied just for the start, by nobody else.
    pub halted: bool,
    /// The generation that the VirtualMachine had before; KubeVirt tells of a later one when a guest came.
    pub generation: i64,
    /// UID of the guest whose end was known, and is answered by the start.
    pub after: String,
}

impl StartNote {
    /// The note on a VirtualMachine.
    pub fn of(vm: &VirtualMachine) -> Option<Self> {
        let mut words = annotation(&vm.metadata, START)?.split(' ');
        let halted = words.next()? == "halted";
        let generation = words.next()?.parse().ok()?;
        let after = words.next().unwrap_or_default().to_owned();
        Some(Self {
            halted,
            generation,
            after,
        })
    }

    /// As it is written.
    pub fn text(&self) -> String {
        let word = if self.halted { "halted" } else { "started" };
        format!("{word} {} {}", self.generation, self.after)
            .trim_end()
            .to_owned()
    }
}

/// The note that should stand on a VirtualMachine together with a decision's run strategy.
pub fn start_note(at: &Situation<'_>, decision: Decision) -> Option<StartNote> {
    let vm = at.vm?;
    let stands = StartNote::of(vm);
    let halted = matches!(decision, Decision::Start(_));
    let starts = decision == Decision::Run(RunStrategy::RerunOnFailure)
        && at.guest.is_none()
        && strategy_of(vm) != Some(RunStrategy::RerunOnFailure);
    match decision.strategy() {
        RunStrategy::Always => None,
        RunStrategy::Halted if at.power == PowerState::Off => None,
        _ if halted || starts => Some(StartNote {
            halted,
            generation: generation(vm),
            after: last_stopped(at),
        }),
        RunStrategy::Halted | RunStrategy::RerunOnFailure => stands,
    }
}

fn last_stopped(at: &Situation<'_>) -> String {
    let last = at.status.last_stop.as_ref();
    last.and_then(|l| l.instance_uid.clone())
        .unwrap_or_default()
}

/// Our view of the object may be older than KubeVirt's of the guest.
fn generation(vm: &VirtualMachine) -> i64 {
    let observed = vm.status.as_ref().and_then(|s| s.observed_generation);
    vm.metadata.generation.max(observed).unwrap_or_default()
}

fn strategy_of(vm: &VirtualMachine) -> Option<RunStrategy> {
    RunStrategy::parse(vm.run_strategy()?)
}

/// The run strategy that KubeVirt last acted on.
fn noted(vm: &VirtualMachine) -> Option<RunStrategy> {
    RunStrategy::parse(vm.status.as_ref()?.run_strategy.as_deref()?)
}

fn start_requested(vm: &VirtualMachine) -> bool {
    let status = vm.status.as_ref();
    let mut requests = status
        .into_iter()
        .flat_map(|s| s.state_change_requests.iter().flatten());
    requests.any(|r| r.action == "Start")
}
