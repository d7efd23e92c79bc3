//! Whether what should stand is likely to be followed at once by something better, so that it
//! is better to wait a moment than to write twice (rule C-5).
//!
//! Pure; how long a moment is, the clocks say.

use kite_api::KiteVirtualMachineStatus;
use kite_api::condition::{self, POWER_IN_SYNC, READY};
use kite_api::machine::LastStop;

use crate::observe::reading::{Reading, State};
use crate::status::Elapsed;
use crate::status::verdict::Verdict;

/// Whether it can wait.
pub fn is_provisional(
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
        Verdict::Refused(_, _, _, true) if !is_aside(before, status) => return false,
        Verdict::Behind | Verdict::Applied(_) | Verdict::Refused(..) => {}
    }
    let was_ready = before.observed_generation == status.observed_generation
        && condition::is_true(&before.conditions, READY);
    if was_ready && !is_ready {
        return false;
    }
    if is_aside(before, status) {
        return true;
    }
    match reading.state {
        State::Running(_) | State::Migrating => {
            !is_ready || status.node_name.is_none() || status.ip_addresses.is_empty()
        }
        // `Stopped` flashes by before virt-controller has judged a new machine.
        State::Off | State::NeverRan if is_ready => !reading.judged,
        State::Off | State::NeverRan => !(first && reading.judged),
        State::Unseen | State::NoVm | State::Unknown(_) | State::ShutDown { seen: false } => true,
        State::Error(_) => !elapsed.error,
        State::Provisioning
        | State::Starting
        | State::Stopping
        | State::ShutDown { seen: true }
        | State::NodeLost { .. }
        | State::Paused
        | State::DiskError(..)
        | State::KindMissing => false,
    }
}

/// Whether nothing is news but what is told aside: it goes with the next write, or follows alone.
fn is_aside(before: &KiteVirtualMachineStatus, status: &KiteVirtualMachineStatus) -> bool {
    main_part(before) == main_part(status)
}

/// Without what hangs on something else, or is for people alone.
fn main_part(status: &KiteVirtualMachineStatus) -> KiteVirtualMachineStatus {
    KiteVirtualMachineStatus {
        last_stop: None::<LastStop>,
        blocked_by: None,
        conditions: condition::part(&status.conditions, &[READY, POWER_IN_SYNC]),
        ..status.clone()
    }
}
