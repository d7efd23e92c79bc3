//! What Kite says about each state (rule S-2, the other columns).
//!
//! Pure and without time: what is held back, and for how long, is decided by
//! its callers.

use kite_api::condition::{DEPENDENCY_MISSING, GUEST_SHUT_DOWN, READY, Status, Wanted};
use kite_api::machine::{Phase, PowerState};

use crate::observe::reading::{Disk, Reading, State};

/// The reason for a machine that stays down since nobody saw how its guest ended.
pub const LAST_STOP_UNKNOWN: &str = "LastStopUnknown";
/// The reason for a machine whose node does not answer (rule S-9).
pub const NODE_UNREACHABLE: &str = "NodeUnreachable";

/// What is said before any hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The phase; nothing stands for "the one before".
    pub phase: Option<Phase>,
    /// The power; nothing stands for "as before".
    pub power: Option<PowerState>,
    /// The condition `Ready`, were there nothing else to say about the specification.
    pub ready: Wanted,
    /// Power against what is wanted; nothing when there is no machine to have any.
    pub power_sync: Option<PowerSync>,
}

/// Power against what is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerSync {
    /// It is so.
    InSync,
    /// It is on its way, which may take a bounded time (rule S-5).
    Moving,
    /// Something else has to come first, or it cannot be told.
    Waiting,
}

/// The row of a reading.
pub fn row(reading: &Reading) -> Row {
    use PowerState::{Off, On};
    let guest = if reading.guest_runs { On } else { Off };
    let by_guest = Some(guest);
    let settled = |power| {
        Some(if reading.wanted == power {
            PowerSync::InSync
        } else {
            PowerSync::Moving
        })
    };
    let (moving, waiting) = (Some(PowerSync::Moving), Some(PowerSync::Waiting));
    let (phase, power, power_sync) = match &reading.state {
        State::KindMissing | State::Unknown(_) | State::NodeLost { going: false } => {
            (Some(Phase::Unknown), None, waiting)
        }
        State::NoVm => (None, Some(Off), None),
        State::Unseen => (None, by_guest, waiting),
        State::Running(_) => (Some(Phase::Running), Some(On), settled(On)),
        State::Migrating => (Some(Phase::Migrating), Some(On), settled(On)),
        State::Paused => (Some(Phase::Paused), Some(On), settled(On)),
        State::Starting => (Some(Phase::Starting), Some(On), moving),
        State::Stopping => (Some(Phase::Stopping), Some(On), moving),
        State::NeverRan if reading.wanted == On => (Some(Phase::Provisioning), Some(Off), moving),
        State::Off | State::NeverRan => (Some(Phase::Stopped), Some(Off), settled(Off)),
        State::ShutDown { .. } => (Some(Phase::Stopped), Some(Off), Some(PowerSync::InSync)),
        State::NodeLost { going: true } => (Some(Phase::Stopping), None, waiting),
        State::Provisioning if reading.wanted == On => {
            (Some(Phase::Provisioning), by_guest, waiting)
        }
        State::Provisioning => (Some(Phase::Provisioning), by_guest, settled(guest)),
        State::DiskError(..) if reading.wanted == On => (Some(Phase::Failed), by_guest, waiting),
        State::DiskError(..) | State::Error(_) => (Some(Phase::Failed), by_guest, settled(guest)),
    };
    Row {
        phase,
        power,
        ready: ready(reading),
        power_sync,
    }
}

fn ready(reading: &Reading) -> Wanted {
    use PowerState::{Off, On};
    let say =
        |status: Status, reason: &str, message: &str| Wanted::new(READY, status, reason, message);
    let stop_pending = || {
        say(
            Status::False,
            "StopPending",
            "the machine is to be switched off and still runs",
        )
    };
    let is_off = || say(Status::True, "Stopped", "the machine is off, as asked for");
    match (&reading.state, reading.wanted) {
        (State::KindMissing, _) => say(
            Status::Unknown,
            DEPENDENCY_MISSING,
            "the cluster does not serve VirtualMachines: KubeVirt is not installed, or no longer",
        ),
        (State::NoVm, _) => say(
            Status::False,
            "VirtualMachineMissing",
            "there is no VirtualMachine yet",
        ),
        (State::Unseen, _) => say(
            Status::False,
            "WaitingForKubeVirt",
            "KubeVirt has not looked at the machine yet",
        ),
        (State::Running(Ok(())), On) => {
            say(Status::True, "Running", "the machine runs, as asked for")
        }
        (State::Running(Err(reason)), On) => say(
            Status::False,
            reason,
            "the machine runs and is not ready yet",
        ),
        (State::Migrating, On) => say(
            Status::True,
            "Migrating",
            "the machine runs and moves to another node",
        ),
        (State::Running(_) | State::Migrating | State::Paused, Off) => stop_pending(),
        (State::Paused, On) => say(
            Status::False,
            "Paused",
            "KubeVirt has paused the machine; unpause it with virtctl",
        ),
        (State::Starting, _) => say(Status::False, "Starting", "the machine is being started"),
        (State::Stopping, _) => say(Status::False, "Stopping", "the machine is going down"),
        (State::Off | State::NeverRan, On) => say(
            Status::False,
            "StartPending",
            "the machine is to be switched on and is off",
        ),
        (State::Off | State::NeverRan, Off) => is_off(),
        (State::ShutDown { seen: false }, _) => say(
            Status::False,
            LAST_STOP_UNKNOWN,
            "nobody saw how the guest ended; it may have shut itself down, and spec.onGuestShutdown: StayOff then keeps it down; to start it, set spec.powerState: Off, wait until that is reached, and set it to On",
        ),
        (State::ShutDown { seen: true }, _) => say(
            Status::False,
            GUEST_SHUT_DOWN,
            "the guest has shut itself down and stays down, since spec.onGuestShutdown is StayOff; to start it, set spec.powerState: Off, wait until that is reached, and set it to On",
        ),
        (State::NodeLost { .. }, _) => say(
            Status::False,
            NODE_UNREACHABLE,
            "the machine's node does not answer, so nobody knows whether it runs; an administrator has to look at the node, and to fence it before the machine is started elsewhere",
        ),
        (State::Provisioning, Off) if reading.disk == Disk::Ready => is_off(),
        (State::Provisioning, _) => say(
            Status::False,
            "Provisioning",
            "the machine's disk is not ready yet",
        ),
        (State::DiskError(reason, words), _) => say(Status::False, reason, words),
        (State::Error(word), _) => say(Status::False, word, &error_message(word)),
        (State::Unknown(why), _) => say(Status::Unknown, "Unknown", why),
    }
}

/// What KubeVirt's error words mean, and where to look.
fn error_message(word: &str) -> String {
    let meaning = match word {
        "CrashLoopBackOff" => {
            "the machine failed to start several times and is tried again, ever more slowly; look at its VirtualMachineInstance"
        }
        "ErrorUnschedulable" => {
            "no node has room for the machine, or a quota is in the way; look at its launcher pod"
        }
        "ErrImagePull" | "ImagePullBackOff" => {
            "the launcher's own image cannot be fetched; an administrator has to look at KubeVirt"
        }
        "ErrorPvcNotFound" => "the machine's disk is not there; look at its DataVolume and claim",
        "DataVolumeError" => "the machine's disk could not be filled; look at its DataVolume",
        _ => "look at the VirtualMachine",
    };
    format!("KubeVirt says {word}: {meaning}")
}
