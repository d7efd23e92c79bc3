//! The condition `PowerInSync`: False is what wakes kite-vm (rules S-5, C-8).
//!
//! Pure. Its messages name just the pair that differs, so the same drift gives
//! the same words and no second write.

use kite_api::KiteVirtualMachineStatus;
use kite_api::condition::{self, DEPENDENCY_MISSING, POWER_IN_SYNC, Status, Wanted};
use kite_api::machine::PowerState;

use crate::observe::reading::{Reading, State};
use crate::status::Elapsed;
use crate::status::table::{PowerSync, Row};

/// The reason when KubeVirt was told to start a machine and will not by itself.
pub const START_NEEDED: &str = "StartNeeded";

/// The condition; nothing when there is no machine to have any power.
pub fn power_in_sync(
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
    let stands = |reason: &str| stands.is_some_and(|c| c.status == "False" && c.reason == reason);
    let needs_start = reading.wanted == PowerState::On
        && reading.state == State::Off
        && (reading.rests || stands(START_NEEDED));
    match row.power_sync? {
        // What was asked for includes that it stays down; kite-vm is not woken.
        PowerSync::InSync if matches!(reading.state, State::ShutDown { .. }) => say(
            Status::True,
            &row.ready.reason,
            "the guest is down and stays down, as asked for".to_owned(),
        ),
        PowerSync::InSync => say(
            Status::True,
            "InSync",
            format!("the machine is {wanted}, as asked for"),
        ),
        PowerSync::Moving if elapsed.transition || stands(out_of_sync) => say(
            Status::False,
            out_of_sync,
            format!("wanted {wanted}, KubeVirt says {}", reading.word),
        ),
        PowerSync::Moving if needs_start => say(
            Status::False,
            START_NEEDED,
            "wanted on; KubeVirt starts the machine only when its run strategy changes".to_owned(),
        ),
        PowerSync::Moving => say(
            Status::Unknown,
            "InTransition",
            format!("the machine is on its way to {wanted}"),
        ),
        PowerSync::Waiting => match &reading.state {
            State::KindMissing => say(
                Status::Unknown,
                DEPENDENCY_MISSING,
                row.ready.message.clone(),
            ),
            State::NodeLost { .. } => say(
                Status::Unknown,
                &row.ready.reason,
                row.ready.message.clone(),
            ),
            _ => say(
                Status::Unknown,
                "Waiting",
                format!("the machine cannot be {wanted} yet"),
            ),
        },
    }
}
