//! The life of an instance: what virt-controller and virt-handler do next.
//!
//! Pure: what is there in, one step out. Times are seconds of the script.

use serde_json::{Value, json};

use super::disks::Disk;
use super::power::is_final;
use super::waiting;
use crate::stand_ins::value::{
    condition, drop_condition, list, new_condition, now, put_condition, text,
};

/// From the launcher Pod's creation until it runs.
const LAUNCHER_STARTS: f64 = 3.0;
/// From there until the guest runs: ten seconds after the start in all.
const GUEST_STARTS: f64 = 7.0;
/// From there until the guest reports its address.
const GUEST_READY: f64 = 1.0;
/// From the wish to stop until the guest is off.
const GUEST_STOPS: f64 = 5.0;
/// How long a stopped guest still reads ready.
const GUEST_IS_SEEN_OFF: f64 = 0.05;
/// Until a migration has moved the guest.
const MIGRATION: f64 = 5.0;
/// What a launcher needs beside the guest, as recorded.
pub(in crate::stand_ins) const OVERHEAD: &str = "296Mi";

/// The launcher Pod of an instance.
#[derive(Clone, Debug, Default)]
pub(super) struct Launcher {
    pub(super) running: bool,
    pub(super) going: bool,
    pub(super) node: String,
    pub(super) address: String,
}

/// What is asked of the guest from outside its spec.
#[allow(clippy::struct_excessive_bools)] // Each is asked for by itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Requests {
    pub(super) paused: bool,
    pub(super) agent: bool,
    pub(super) node_lost: bool,
    pub(super) finalizer_stays: bool,
    pub(super) shutdown: bool,
    pub(super) crash: bool,
    pub(super) migrate: bool,
}

/// Everything that the next step depends on.
#[derive(Clone, Debug)]
pub(super) struct Facts<'a> {
    pub(super) namespace: &'a str,
    pub(super) status: &'a Value,
    pub(super) going: bool,
    pub(super) disks: &'a [Disk],
    pub(super) launcher: Option<Launcher>,
    pub(super) requests: Requests,
    /// Why the server refused the launcher Pod when it was last tried.
    pub(super) refused: Option<&'a str>,
    /// A node that a migrating guest may move to.
    pub(super) other_node: &'a str,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Nothing until something changes.
    Rest,
    /// Write this status.
    Write(Value),
    /// Create the launcher Pod.
    Launch,
    /// Let the launcher Pod run.
    RunLauncher,
    /// Delete the launcher Pod at once.
    KillLauncher,
    /// Give the instance free.
    Release,
}

/// A step, and how long the instance must have stood as it is before it.
pub(super) type Next = (f64, Step);

/// The next step.
pub(super) fn next(facts: &Facts<'_>) -> Next {
    let phase = text(facts.status, "/phase");
    if facts.requests.node_lost && !is_final(phase) && !matches!(phase, "" | "Pending") {
        return lost(facts);
    }
    if is_final(phase) {
        return ended(facts);
    }
    if facts.going {
        return stopping(facts, phase);
    }
    match phase {
        "" | "Pending" => waiting::next(facts),
        "Scheduling" => scheduling(facts),
        "Scheduled" => (
            GUEST_STARTS,
            write(facts, |status| enter(status, "Running")),
        ),
        "Running" => running(facts),
        _ => (0.0, write(facts, |status| enter(status, "Running"))),
    }
}

pub(super) fn write(facts: &Facts<'_>, change: impl FnOnce(&mut Value)) -> Step {
    let mut status = facts.status.clone();
    change(&mut status);
    if &status == facts.status {
        Step::Rest
    } else {
        Step::Write(status)
    }
}

/// Sets the phase and notes when it was reached.
pub(super) fn enter(status: &mut Value, phase: &str) {
    status["phase"] = json!(phase);
    let mut times = list(status, "/phaseTransitionTimestamps").to_vec();
    times.retain(|entry| text(entry, "/phase") != phase);
    times.push(json!({"phase": phase, "phaseTransitionTimestamp": now()}));
    status["phaseTransitionTimestamps"] = json!(times);
}

pub(super) fn with_conditions(status: &mut Value, change: impl FnOnce(&mut Vec<Value>)) {
    let mut conditions = list(status, "/conditions").to_vec();
    change(&mut conditions);
    status["conditions"] = json!(conditions);
}

pub(super) fn not_ready(conditions: &mut Vec<Value>, reason: &str) {
    let message = match reason {
        "GuestNotRunning" => "Guest VM is not reported as running",
        "PodTerminating" => "virt-launcher pod is terminating",
        _ => "virt-launcher pod has not yet been scheduled",
    };
    put_condition(conditions, new_condition("Ready", "False", reason, message));
}

/// DataVolumesReady as virt-controller keeps it while a disk stands on one.
pub(super) fn disks_ready(conditions: &mut Vec<Value>, disks: &[Disk]) {
    if disks.iter().all(|disk| disk.data_volume.is_none()) {
        drop_condition(conditions, "DataVolumesReady");
    } else if disks.iter().all(|disk| disk.there && disk.filled()) {
        let message = "All of the VMI's DVs are bound and ready";
        put_condition(
            conditions,
            new_condition("DataVolumesReady", "True", "AllDVsReady", message),
        );
    } else {
        let message = "Not all of the VMI's DVs are ready";
        put_condition(
            conditions,
            new_condition("DataVolumesReady", "Unknown", "NotAllDVsReady", message),
        );
    }
}

/// The launcher is there; it runs once the claims are bound.
fn scheduling(facts: &Facts<'_>) -> Next {
    let Some(launcher) = facts.launcher.as_ref().filter(|launcher| !launcher.going) else {
        return (0.0, write(facts, launcher_lost));
    };
    let placed = write(facts, |status| {
        status["qosClass"] = json!("Burstable");
        with_conditions(status, |conditions| {
            drop_condition(conditions, "PodScheduled");
            disks_ready(conditions, facts.disks);
        });
    });
    if placed != Step::Rest {
        return (0.0, placed);
    }
    if facts.disks.iter().any(|disk| !disk.bound) {
        return (0.0, Step::Rest);
    }
    if !launcher.running {
        return (LAUNCHER_STARTS, Step::RunLauncher);
    }
    let node = launcher.node.clone();
    let scheduled = move |status: &mut Value| {
        enter(status, "Scheduled");
        status["nodeName"] = json!(node);
    };
    (0.0, write(facts, scheduled))
}

fn launcher_lost(status: &mut Value) {
    enter(status, "Failed");
    with_conditions(status, |conditions| not_ready(conditions, "PodTerminating"));
}

fn running(facts: &Facts<'_>) -> Next {
    let Some(launcher) = facts.launcher.as_ref().filter(|launcher| !launcher.going) else {
        return (0.0, write(facts, launcher_lost));
    };
    if facts.requests.shutdown {
        return (0.0, write(facts, |status| enter(status, "Succeeded")));
    }
    if facts.requests.crash {
        return (0.0, write(facts, |status| enter(status, "Failed")));
    }
    let is_ready =
        condition(facts.status, "Ready").is_some_and(|ready| text(ready, "/status") == "True");
    if !is_ready {
        return (
            GUEST_READY,
            write(facts, |status| guest_ready(status, launcher, facts.disks)),
        );
    }
    if let Some(next) = migration(facts) {
        return next;
    }
    let mirrored = write(facts, |status| {
        with_conditions(status, |conditions| {
            wish(conditions, facts.requests.paused, "Paused", "PausedByUser");
            wish(conditions, facts.requests.agent, "AgentConnected", "");
        });
    });
    (0.0, mirrored)
}

fn wish(conditions: &mut Vec<Value>, wanted: bool, kind: &str, reason: &str) {
    if wanted {
        put_condition(conditions, new_condition(kind, "True", reason, ""));
    } else {
        drop_condition(conditions, kind);
    }
}

fn guest_ready(status: &mut Value, launcher: &Launcher, disks: &[Disk]) {
    status["interfaces"] = json!([{
        "name": "default",
        "ipAddress": launcher.address,
        "ipAddresses": [launcher.address],
    }]);
    with_conditions(status, |conditions| {
        put_condition(conditions, new_condition("Ready", "True", "", ""));
        disks_ready(conditions, disks);
        put_condition(
            conditions,
            new_condition("LiveMigratable", "False", "DisksNotLiveMigratable", ""),
        );
    });
}

fn migration(facts: &Facts<'_>) -> Option<Next> {
    let state = facts.status.get("migrationState");
    let under_way = state.is_some_and(|state| state["completed"].as_bool() != Some(true));
    if under_way {
        return Some((
            MIGRATION,
            write(facts, |status| moved(status, facts.other_node)),
        ));
    }
    facts.requests.migrate.then(|| {
        let begin = |status: &mut Value| {
            let from = status["nodeName"].clone();
            status["migrationState"] = json!({
                "startTimestamp": now(),
                "sourceNode": from,
                "targetNode": facts.other_node,
            });
        };
        (0.0, write(facts, begin))
    })
}

fn moved(status: &mut Value, node: &str) {
    status["nodeName"] = json!(node);
    status["migrationState"]["completed"] = json!(true);
    status["migrationState"]["endTimestamp"] = json!(now());
}

fn lost(facts: &Facts<'_>) -> Next {
    let gone = |status: &mut Value| {
        waiting::enter_once(status, "Unknown");
        with_conditions(status, |conditions| {
            not_ready(conditions, "GuestNotRunning");
        });
    };
    (0.0, write(facts, gone))
}

/// Deleted before its end: a guest that runs is shut down, another just goes.
fn stopping(facts: &Facts<'_>, phase: &str) -> Next {
    if matches!(phase, "Running" | "Scheduled" | "Unknown") {
        return (
            GUEST_STOPS,
            write(facts, |status| enter(status, "Succeeded")),
        );
    }
    let fail = |status: &mut Value| {
        enter(status, "Failed");
        let reason = if facts.launcher.is_some() {
            "PodTerminating"
        } else {
            "PodNotExists"
        };
        with_conditions(status, |conditions| not_ready(conditions, reason));
    };
    (0.0, write(facts, fail))
}

/// Succeeded or Failed: the launcher goes, and then the instance.
fn ended(facts: &Facts<'_>) -> Next {
    let told =
        condition(facts.status, "Ready").is_some_and(|ready| text(ready, "/status") == "False");
    if !told {
        let reason = if facts.going {
            "PodTerminating"
        } else {
            "GuestNotRunning"
        };
        let tell = |status: &mut Value| {
            with_conditions(status, |conditions| not_ready(conditions, reason));
        };
        return (GUEST_IS_SEEN_OFF, write(facts, tell));
    }
    if facts.launcher.is_some() {
        return (0.0, Step::KillLauncher);
    }
    if facts.going && !facts.requests.finalizer_stays {
        return (0.0, Step::Release);
    }
    (0.0, Step::Rest)
}
