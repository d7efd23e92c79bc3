//! Power: the run strategy that this pass brings about, in its time, and what people are told of it
//! (rule V-16). What to do is decided in [`crate::plan::power`].

use std::time::Duration;

use kite_api::condition::GUEST_SHUT_DOWN;
use kite_api::labels::START;
use kite_api::machine::PowerState;
use kite_kubevirt::read::{self, VirtualMachineInstance};
use kite_kubevirt::write::{RunStrategy, VirtualMachine};
use kite_render::machine::{child_name, run_strategy};
use kite_runtime::apply::Place;
use kube::Api;

use super::{Applied, Trouble, machine};
use crate::controller::Meta;
use crate::observe::{Observed, annotation};
use crate::plan;
use crate::plan::power::{self, Decision, Down, StartNote, Why};
use crate::reconcile::VmPass;

/// From this many starts that failed on, people are told: one alone may pass by itself.
const FAILED_STARTS_TOLD: u32 = 1;

/// What this pass does about power.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// The decision, as far as its time has come.
    pub decision: Decision,
    /// What is noted on the VirtualMachine with it.
    note: Option<String>,
    /// When to look again, if its time has not come.
    again: Option<Duration>,
}

impl Switch {
    /// The run strategy to apply.
    pub const fn strategy(&self) -> RunStrategy {
        self.decision.strategy()
    }

    /// Whether it has KubeVirt start a machine that is there (rule C-20).
    pub fn starts(&self, seen: &Observed) -> bool {
        let halted = seen
            .own_vm()
            .is_some_and(|vm| vm.run_strategy() == Some(RunStrategy::Halted.as_str()));
        halted && self.strategy() != RunStrategy::Halted
    }

    /// Notes what it means on a VirtualMachine that is to be applied.
    pub fn annotate(&self, vm: &mut VirtualMachine) {
        if let Some(note) = &self.note {
            let annotations = vm.metadata.annotations.get_or_insert_default();
            annotations.insert(START.to_owned(), note.clone());
        }
    }

    /// Whether the VirtualMachine is as the switch wants it.
    fn is_done(&self, vm: &read::VirtualMachine) -> bool {
        vm.run_strategy() == Some(self.strategy().as_str())
            && (self.note.is_none() || annotation(&vm.metadata, START) == self.note.as_deref())
    }
}

/// What to do about power now.
pub async fn switch(pass: &VmPass, seen: &Observed) -> Switch {
    let at = seen.situation();
    let wanted = run_strategy(at.power, at.on_guest_shutdown);
    let mut decision = if seen.kubevirt {
        power::decide(&at)
    } else {
        Decision::Run(wanted)
    };
    if at.guest.is_some() || wanted != RunStrategy::RerunOnFailure {
        pass.pace.reset(&seen.key);
    }
    let bare = power::starts_without_disk(&at, decision, &plan::disk(seen));
    if bare && !has_guest(pass, seen).await {
        decision = Decision::Held;
    }
    let hasty = decision.is_hasty();
    let again = hasty.then(|| pass.pace.left(&seen.key)).flatten();
    if again.is_some() {
        decision = Decision::Run(wanted);
    }
    Switch {
        decision,
        note: power::start_note(&at, decision).map(|n| n.text()),
        again,
    }
}

/// Whether a guest may be there that no watch shows. A machine that is halted already is not
/// asked about; for another one the server itself is, since a guest must never be stopped because its
/// label was taken off (rule C-6).
async fn has_guest(pass: &VmPass, seen: &Observed) -> bool {
    let strategy = seen.own_vm().and_then(|vm| vm.run_strategy());
    if strategy == Some(RunStrategy::Halted.as_str()) {
        return false;
    }
    let guests: Place<'_, Meta<VirtualMachineInstance>> = Place {
        api: Api::namespaced(pass.writer.client().clone(), &seen.key.namespace),
        cache: &pass.world.vmis,
        key: seen.key.clone(),
    };
    !matches!(pass.writer.live(&guests).await, Ok(None))
}

/// Notes in the outcome of a pass what its switch came to, and tells people what they should know.
pub async fn conclude(pass: &VmPass, seen: &Observed, switch: &Switch, applied: &mut Applied) {
    applied.again = applied.again.into_iter().chain(switch.again).min();
    let Some(before) = seen.own_vm().filter(|_| applied.machine) else {
        return;
    };
    match switch.decision {
        Decision::Start(why) => started(pass, seen, why).await,
        Decision::AwaitShutdown => {
            if seen.is_settled() {
                tell_of_drift(pass, seen, before, RunStrategy::RerunOnFailure).await;
            }
            applied.waits_for_shutdown = true;
        }
        Decision::StaysDown(down) => applied.stays_down = Some(down),
        Decision::Run(strategy) if seen.is_settled() => {
            tell_of_drift(pass, seen, before, strategy).await;
        }
        Decision::Run(_) | Decision::AwaitHalted | Decision::Held => {}
    }
}

/// A machine without a guest is on its way to a start.
async fn started(pass: &VmPass, seen: &Observed, why: Why) {
    let tries = pass.pace.tried(&seen.key);
    let vm = child_name(&seen.owner);
    let (reason, note) = match why {
        Why::StartFailed if tries == FAILED_STARTS_TOLD => (
            "StartFailed",
            format!(
                "KubeVirt was asked to start the machine and no guest came; it is asked again, ever more rarely, at least once a minute. What is in the way is told by kubectl describe virtualmachine {vm} -n {}, a full quota for instance",
                seen.key.namespace
            ),
        ),
        Why::EndedUntold => (
            "PowerRestored",
            "the guest was stopped from outside of Kite or has crashed; spec.powerState is On, so the machine is started again; to switch it off, set spec.powerState: Off".to_owned(),
        ),
        // kite-vm-status tells of a guest that it saw end.
        Why::StartFailed | Why::Ended => return,
    };
    pass.events
        .warning(seen.machine.as_ref(), reason, "Start", note)
        .await;
}

/// A run strategy that others changed is set back, and they are told how to really switch.
async fn tell_of_drift(
    pass: &VmPass,
    seen: &Observed,
    before: &read::VirtualMachine,
    wanted: RunStrategy,
) {
    let found = before.run_strategy().unwrap_or("nothing");
    // Halted may be our own, on the way to a start.
    let own = wanted == RunStrategy::RerunOnFailure
        && found == RunStrategy::Halted.as_str()
        && StartNote::of(before).is_some_and(|n| n.halted);
    if found == wanted.as_str() || own {
        return;
    }
    let power = match seen.machine.spec.power_state {
        PowerState::On => "Off",
        PowerState::Off => "On",
    };
    let note = format!(
        "VirtualMachine {} was set to run strategy {found} by somebody else and is set back to {}; to switch the machine {power}, set spec.powerState: {power} of the KiteVirtualMachine",
        child_name(&seen.owner),
        wanted.as_str()
    );
    pass.events
        .warning(seen.machine.as_ref(), "PowerRestored", "Switch", note)
        .await;
}

/// Changes power and nothing else of a VirtualMachine that is there (rule V-5).
pub async fn alone(pass: &VmPass, seen: &Observed, switch: &Switch) -> Result<bool, Trouble> {
    let Some(vm) = seen.own_vm() else {
        return Ok(false);
    };
    if switch.is_done(vm) {
        return Ok(true);
    }
    // The rest of our fields stay as they are, since an apply that left them out would remove them.
    let mut operations = vec![
        serde_json::json!({"op": "test", "path": "/metadata/uid", "value": vm.metadata.uid}),
        serde_json::json!({"op": "replace", "path": "/spec/runStrategy", "value": switch.strategy().as_str()}),
    ];
    if let Some(note) = &switch.note {
        let path = ["/metadata/annotations/", &START.replace('/', "~1")].concat();
        operations.push(serde_json::json!({"op": "add", "path": path, "value": note}));
    }
    pass.writer
        .patch(&machine::place(pass, seen), "switch", operations.into())
        .await?;
    Ok(true)
}

/// Why a machine stays down, as a condition says it.
pub const fn words(down: Down) -> (&'static str, &'static str) {
    match down {
        Down::ShutDown | Down::ShutDownUntold => (
            GUEST_SHUT_DOWN,
            "the guest has shut itself down, and spec.onGuestShutdown: StayOff keeps the machine down; to start it, set spec.powerState to Off, wait until the machine is Ready, and set it to On",
        ),
        Down::Unknown => (
            "LastStopUnknown",
            "the machine has no guest, and nobody saw how the last one ended; it may have shut itself down, and spec.onGuestShutdown: StayOff then keeps the machine down; to start it, set spec.powerState to Off, wait until the machine is Ready, and set it to On",
        ),
    }
}
