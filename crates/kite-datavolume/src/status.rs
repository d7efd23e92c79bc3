//! kite-datavolume's whole part of the status, from what was seen and how long it has stood.
//!
//! Pure: the clock is the caller's.

pub mod clocks;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kite_api::condition::{self, DEPENDENCY_MISSING, DISK_READY, NAME_CONFLICT, Status, Wanted};
use kite_api::labels::Controller;
use kite_api::{KiteVirtualMachine, KiteVirtualMachineStatus, ownership};

use crate::observe::growth::{Growth, Waits};
use crate::observe::reading::{Reading, State, Trouble};

/// The disk grows.
pub const EXPANDING: &str = "Expanding";

/// What there is of a machine's disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disk {
    /// The DataVolume is there, and so is its claim if one was recorded; how that grows, if it does.
    DataVolume(Reading, Option<Growth>),
    /// The DataVolume is gone and the recorded claim is there; how it grows, if it does.
    ClaimOnly(Option<Growth>),
    /// The recorded claim, or the volume behind it, is gone.
    Lost,
    /// The recorded claim is not to be seen, and the server has not been asked yet.
    Unsure,
    /// Somebody else's claim has the machine's name.
    Planted,
    /// The DataVolume is gone before its claim was ever recorded.
    Missing,
    /// CDI is not installed, and no claim tells more.
    KindMissing,
    /// The DataVolume has a shape that this version does not know.
    Unreadable,
    /// There has never been one.
    None,
}

/// What has stood long enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Elapsed {
    /// The trouble that is read.
    pub trouble: bool,
    /// Nothing has moved.
    pub stuck: bool,
    /// The worker is started anew again and again.
    pub restarting: bool,
}

/// What stands in the status now of what is ours.
pub fn standing(machine: &KiteVirtualMachine) -> KiteVirtualMachineStatus {
    ownership::standing(Controller::DataVolume, machine)
}

/// What should stand.
pub fn tell(
    machine: &KiteVirtualMachine,
    disk: &Disk,
    elapsed: Elapsed,
    now: &Time,
) -> KiteVirtualMachineStatus {
    let before = standing(machine);
    let Some(ready) = disk_ready(machine, disk, elapsed) else {
        return before;
    };
    let conditions = condition::settle(
        &before.conditions,
        vec![ready],
        machine.metadata.generation,
        now,
    );
    let own = KiteVirtualMachineStatus {
        conditions,
        ..KiteVirtualMachineStatus::default()
    };
    match disk {
        Disk::DataVolume(reading, _) => KiteVirtualMachineStatus {
            data_volume_phase: Some(reading.phase.clone()),
            data_volume_progress: reading.progress.map(|p| format!("{p}%")),
            data_volume_message: reading.message.clone(),
            ..own
        },
        // What was last told of a DataVolume that cannot be seen, or has done its work, goes on standing.
        Disk::ClaimOnly(_) | Disk::KindMissing | Disk::Unreadable => KiteVirtualMachineStatus {
            data_volume_phase: before.data_volume_phase,
            data_volume_progress: before.data_volume_progress,
            data_volume_message: before.data_volume_message,
            ..own
        },
        Disk::Lost | Disk::Planted | Disk::Missing | Disk::Unsure | Disk::None => own,
    }
}

/// `DiskReady`, or nothing while there is no disk to speak of.
fn disk_ready(machine: &KiteVirtualMachine, disk: &Disk, elapsed: Elapsed) -> Option<Wanted> {
    let (status, reason, message) = match disk {
        Disk::None | Disk::Unsure => return None,
        Disk::DataVolume(reading, Some(growth)) if reading.state == State::Filled => {
            return Some(expanding(growth));
        }
        Disk::DataVolume(reading, _) => return Some(ready(reading, elapsed)),
        Disk::ClaimOnly(Some(growth)) => return Some(expanding(growth)),
        Disk::Planted => return Some(planted(machine)),
        Disk::ClaimOnly(None) => (
            Status::True,
            "ClaimOnly",
            "the disk is there; its DataVolume has been collected",
        ),
        Disk::Lost => (
            Status::False,
            "DiskLost",
            "the disk's claim, or the volume behind it, is gone, and with it its data; Kite makes no new one by itself",
        ),
        Disk::Missing => (
            Status::False,
            "Missing",
            "there is no DataVolume, and no claim of it was ever seen",
        ),
        Disk::KindMissing => (
            Status::Unknown,
            DEPENDENCY_MISSING,
            "the cluster does not serve DataVolumes: CDI is not installed, or no longer",
        ),
        Disk::Unreadable => (
            Status::Unknown,
            "Unknown",
            "the DataVolume has a shape that this version does not know",
        ),
    };
    Some(Wanted::new(DISK_READY, status, reason, message))
}

/// `DiskReady` of a disk that grows: it can be used all the while (rule D-6).
fn expanding(growth: &Growth) -> Wanted {
    let to = &growth.to;
    let message = match growth.waits_for {
        Waits::Driver => {
            format!("the disk grows to {to}; the machine can be used meanwhile")
        }
        Waits::Node => format!(
            "the volume has grown to {to} and its file system follows on the node: while the machine runs where the storage can do that, else when it is switched off and on; {GUEST_HINT}"
        ),
        Waits::Nobody => format!(
            "the storage driver says that it cannot grow the disk to {to}; look at the conditions and events of its PersistentVolumeClaim"
        ),
    };
    Wanted::new(DISK_READY, Status::True, EXPANDING, message)
}

/// What is left to do inside the guest once its disk is larger.
pub const GUEST_HINT: &str = "the guest's own partition and file system follow by cloud-init when it next starts, or by hand (growpart, then resize2fs or xfs_growfs)";

/// `DiskReady` while somebody else's claim has the disk's name (rule D-7).
fn planted(machine: &KiteVirtualMachine) -> Wanted {
    let name = machine.metadata.name.as_deref().unwrap_or_default();
    let message = format!(
        "PersistentVolumeClaim {name} exists and was not made by Kite for this machine, which does not use it; remove it, or give the machine another name"
    );
    Wanted::new(DISK_READY, Status::False, NAME_CONFLICT, message)
}

/// `DiskReady` of a DataVolume that is there (rule D-4).
fn ready(reading: &Reading, elapsed: Elapsed) -> Wanted {
    let say = |status: Status, reason: &str, message: &str| {
        Wanted::new(DISK_READY, status, reason, message)
    };
    let words = |otherwise: &str| {
        reading
            .message
            .clone()
            .unwrap_or_else(|| otherwise.to_owned())
    };
    let trouble = match reading.state {
        State::Filled => return say(Status::True, "Succeeded", "the disk is filled"),
        State::WaitingForFirstBoot => {
            return say(
                Status::False,
                "WaitingForFirstBoot",
                "the disk is made when the machine starts for the first time",
            );
        }
        // A retry on which nothing moves is no longer one; the other troubles say more than that.
        State::Trouble(Trouble::Retrying) | State::Filling if elapsed.stuck => Some(Trouble::Stuck),
        State::Trouble(trouble) if elapsed.trouble => Some(trouble),
        State::Trouble(Trouble::Retrying) | State::Filling if elapsed.restarting => {
            Some(Trouble::Retrying)
        }
        State::Trouble(_) | State::Filling => None,
    };
    let message = match trouble {
        None => return say(Status::False, "InProgress", "the disk is being filled"),
        Some(Trouble::CloneFailed) => {
            words("CDI could not fill the disk and says no more; look at the DataVolume")
        }
        Some(Trouble::QuotaExceeded) => words("a quota leaves no room for the disk"),
        Some(Trouble::Retrying) => {
            words("CDI's worker fails and is started anew; look at the DataVolume")
        }
        Some(Trouble::Stuck) => {
            words("nothing has moved for a long time; look at the DataVolume and at CDI's pods")
        }
    };
    say(
        Status::False,
        trouble.map_or("InProgress", Trouble::reason),
        &message,
    )
}
