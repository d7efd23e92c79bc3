//! An instance whose launcher Pod is not there yet: what it waits for.
//!
//! Pure, a part of [`super::phases`].

use serde_json::{Value, json};

use super::disks::Disk;
use super::phases::{
    Facts, Next, OVERHEAD, Step, disks_ready, enter, not_ready, with_conditions, write,
};
use crate::stand_ins::value::{drop_condition, new_condition, put_condition, text};

/// Until a Pod that was refused is tried again.
const RETRY: f64 = 5.0;

/// No launcher yet.
pub(super) fn next(facts: &Facts<'_>) -> Next {
    if facts.launcher.is_some() {
        return (0.0, write(facts, |status| launched(status, facts.disks)));
    }
    if facts.disks.iter().any(Disk::failed) {
        return (0.0, write(facts, |status| enter(status, "Failed")));
    }
    if let Some(missing) = facts.disks.iter().find(|disk| !disk.there) {
        let claim = format!("{}/{}", facts.namespace, missing.claim);
        let message = format!("PVC {claim} does not exist, waiting for it to appear");
        return (
            0.0,
            write(facts, |status| claim_missing(status, facts.disks, &message)),
        );
    }
    if facts.disks.iter().any(Disk::wants_consumer) {
        return (0.0, write(facts, |status| consumer(status, facts.disks)));
    }
    if facts.disks.iter().any(|disk| !disk.ready()) {
        return (0.0, write(facts, |status| pending(status, facts.disks)));
    }
    match facts.refused {
        None => (0.0, Step::Launch),
        Some(message) => {
            let step = write(facts, |status| refused(status, facts.disks, message));
            if step == Step::Rest {
                (RETRY, Step::Launch)
            } else {
                (0.0, step)
            }
        }
    }
}

fn claim_missing(status: &mut Value, disks: &[Disk], message: &str) {
    enter_once(status, "Pending");
    with_conditions(status, |conditions| {
        not_ready(conditions, "PodNotExists");
        disks_ready(conditions, disks);
        put_condition(
            conditions,
            new_condition("PodScheduled", "False", "Unschedulable", message),
        );
        put_condition(
            conditions,
            new_condition("Synchronized", "False", "FailedPvcNotFound", message),
        );
    });
}

/// A `PodScheduled` from a time without claim stays: recorded, and the reason
/// why a machine made too early reads ErrorUnschedulable for a whole clone.
fn pending(status: &mut Value, disks: &[Disk]) {
    enter_once(status, "Pending");
    with_conditions(status, |conditions| {
        not_ready(conditions, "PodNotExists");
        disks_ready(conditions, disks);
        drop_condition(conditions, "Synchronized");
    });
}

fn consumer(status: &mut Value, disks: &[Disk]) {
    pending(status, disks);
    with_conditions(status, |conditions| {
        drop_condition(conditions, "PodScheduled");
        put_condition(conditions, new_condition("Provisioning", "True", "", ""));
    });
}

fn refused(status: &mut Value, disks: &[Disk], message: &str) {
    pending(status, disks);
    let message = format!("failed to create virtual machine pod: {message}");
    with_conditions(status, |conditions| {
        drop_condition(conditions, "PodScheduled");
        put_condition(
            conditions,
            new_condition("Synchronized", "False", "FailedCreate", &message),
        );
    });
}

pub(super) fn enter_once(status: &mut Value, phase: &str) {
    if text(status, "/phase") != phase {
        enter(status, phase);
    }
}

fn launched(status: &mut Value, disks: &[Disk]) {
    enter(status, "Scheduling");
    status["memory"] = json!({"memoryOverhead": OVERHEAD});
    with_conditions(status, |conditions| {
        not_ready(conditions, "GuestNotRunning");
        disks_ready(conditions, disks);
        drop_condition(conditions, "Synchronized");
        drop_condition(conditions, "Provisioning");
    });
}
