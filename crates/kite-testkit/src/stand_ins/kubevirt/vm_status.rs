//! What virt-controller writes into a machine's status.
//!
//! Pure: old status and facts in, new status out. The order of the printed
//! words is KubeVirt's own; the recordings show each of them.

use serde_json::{Value, json};

use super::disks::Disk;
use super::power::{Situation, is_final, should_run};
use crate::stand_ins::value::{
    condition, condition_is, drop_condition, list, new_condition, now, put_condition, text,
};

/// An instance as seen when the pass began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instance<'a> {
    pub(super) uid: &'a str,
    pub(super) status: &'a Value,
    pub(super) going: bool,
    /// Generation of the machine that it was last brought in line with.
    pub(super) generation: i64,
    /// Whether it was made from another template than the machine now has.
    pub(super) outdated: bool,
}

impl Instance<'_> {
    pub(super) fn phase(&self) -> &str {
        text(self.status, "/phase")
    }
}

/// Everything that the status depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts<'a> {
    pub(super) deleting: bool,
    pub(super) generation: i64,
    pub(super) situation: Situation<'a>,
    pub(super) instance: Option<Instance<'a>>,
    pub(super) disks: &'a [Disk],
    /// Names of the machine's volumes.
    pub(super) volumes: &'a [String],
    /// An instance was made in this very pass.
    pub(super) started: bool,
    /// Why no instance could be made.
    pub(super) refused: Option<&'a str>,
    /// A request to start is queued in this very pass.
    pub(super) queue_start: bool,
}

/// The status after a pass.
pub(super) fn next_status(old: &Value, facts: &Facts<'_>) -> Value {
    let mut status = old.clone();
    set(&mut status, "created", facts.instance.map(|_| json!(true)));
    let ready = facts
        .instance
        .filter(|instance| condition_is(instance.status, "Ready", "True"));
    set(&mut status, "ready", ready.map(|_| json!(true)));
    if let Some(instance) = facts.instance {
        status["observedGeneration"] = json!(instance.generation);
        status["desiredGeneration"] = json!(facts.generation);
    }
    if facts.instance.is_some() || !text(old, "/runStrategy").is_empty() {
        status["runStrategy"] = json!(facts.situation.strategy);
    }
    set(&mut status, "startFailure", start_failure(old, facts));
    requests(&mut status, facts);
    status["conditions"] = json!(conditions(old, facts));
    let snapshots = facts.volumes.iter().map(|name| snapshot(name));
    status["volumeSnapshotStatuses"] = snapshots.collect();
    status["printableStatus"] = json!(printable(&status, facts));
    status
}

fn set(status: &mut Value, field: &str, wanted: Option<Value>) {
    if let (Some(fields), None) = (status.as_object_mut(), &wanted) {
        fields.remove(field);
    }
    if let Some(wanted) = wanted {
        status[field] = wanted;
    }
}

fn snapshot(volume: &str) -> Value {
    let reason = format!(
        "No VolumeSnapshotClass: Volume snapshots are not configured for this StorageClass [{volume}]"
    );
    json!({"name": volume, "enabled": false, "reason": reason})
}

/// A queued start is spent once there is an instance that is not on its way out.
fn requests(status: &mut Value, facts: &Facts<'_>) {
    if facts.queue_start {
        status["stateChangeRequests"] = json!([{"action": "Start"}]);
    } else if facts
        .instance
        .is_some_and(|instance| !instance.going && !is_final(instance.phase()))
    {
        set(status, "stateChangeRequests", None);
    }
}

/// An instance that ended without ever having run counts as a failed start.
fn start_failure(old: &Value, facts: &Facts<'_>) -> Option<Value> {
    let known = old.get("startFailure").filter(|known| !known.is_null());
    if facts.situation.strategy == "Halted" && !facts.deleting {
        return None;
    }
    let Some(instance) = facts.instance else {
        return known.cloned();
    };
    if ran(instance.status) {
        return None;
    }
    let counted = known.is_some_and(|known| text(known, "/lastFailedVMIUID") == instance.uid);
    if !is_final(instance.phase()) || counted {
        return known.cloned();
    }
    let before = known.and_then(|known| known["consecutiveFailCount"].as_i64());
    Some(json!({
        "consecutiveFailCount": before.unwrap_or_default() + 1,
        "lastFailedVMIUID": instance.uid,
        "retryAfterTimestamp": now(),
    }))
}

/// How many starts in a row have failed.
pub(super) fn failed_starts(status: &Value) -> i64 {
    status
        .pointer("/startFailure/consecutiveFailCount")
        .and_then(Value::as_i64)
        .unwrap_or_default()
}

fn ran(instance: &Value) -> bool {
    list(instance, "/phaseTransitionTimestamps")
        .iter()
        .any(|entry| text(entry, "/phase") == "Running")
}

/// Conditions that are the machine's own and not copied from the instance.
const OWN: [&str; 2] = ["Failure", "RestartRequired"];

fn conditions(old: &Value, facts: &Facts<'_>) -> Vec<Value> {
    let mut conditions = list(old, "/conditions").to_vec();
    match facts.refused {
        Some(message) => {
            put_condition(
                &mut conditions,
                new_condition("Failure", "True", "FailedCreate", message),
            );
        }
        None => drop_condition(&mut conditions, "Failure"),
    }
    let Some(instance) = facts.instance else {
        drop_condition(&mut conditions, "RestartRequired");
        drop_condition(&mut conditions, "Paused");
        put_condition(
            &mut conditions,
            new_condition("Ready", "False", "VMINotExists", "VMI does not exist"),
        );
        return conditions;
    };
    conditions.retain(|known| {
        let kind = text(known, "/type");
        OWN.contains(&kind) || condition(instance.status, kind).is_some()
    });
    for copied in list(instance.status, "/conditions") {
        drop_condition(&mut conditions, text(copied, "/type"));
        conditions.push(copied.clone());
    }
    if condition(instance.status, "Ready").is_none() {
        let message = "VMI is missing the Ready condition";
        put_condition(
            &mut conditions,
            new_condition("Ready", "False", "VMIConditionMissing", message),
        );
    }
    if instance.outdated {
        let message = "a non-live-updatable field was changed in the template spec";
        put_condition(
            &mut conditions,
            new_condition("RestartRequired", "True", "", message),
        );
    } else {
        drop_condition(&mut conditions, "RestartRequired");
    }
    conditions
}

/// The printed status: the first word that fits.
fn printable(status: &Value, facts: &Facts<'_>) -> &'static str {
    let alive = facts
        .instance
        .filter(|instance| !is_final(instance.phase()));
    let seen = |kind: &str, wanted: &str, reason: &str| {
        alive
            .and_then(|instance| condition(instance.status, kind))
            .is_some_and(|found| {
                text(found, "/status") == wanted
                    && (reason.is_empty() || text(found, "/reason") == reason)
            })
    };
    let run = should_run(&facts.situation);
    let phase = alive.as_ref().map(Instance::phase);
    let starting = matches!(phase, Some("" | "Pending" | "Scheduling" | "Scheduled"));
    let rules = [
        ("Terminating", facts.deleting),
        ("Stopping", alive.is_some_and(|instance| instance.going)),
        (
            "Migrating",
            alive.is_some_and(|instance| migrating(instance.status)),
        ),
        ("Paused", seen("Paused", "True", "")),
        ("Running", phase == Some("Running")),
        (
            "ErrorPvcNotFound",
            seen("Synchronized", "False", "FailedPvcNotFound"),
        ),
        ("DataVolumeError", facts.disks.iter().any(Disk::failed)),
        (
            "ErrorUnschedulable",
            seen("PodScheduled", "False", "Unschedulable"),
        ),
        ("Provisioning", facts.disks.iter().any(Disk::filling)),
        (
            "WaitingForVolumeBinding",
            run && facts.disks.iter().any(|disk| disk.there && !disk.bound),
        ),
        ("Starting", starting || facts.started),
        (
            "CrashLoopBackOff",
            alive.is_none() && run_again(facts) && failed_starts(status) > 0,
        ),
        ("Stopped", alive.is_none()),
    ];
    let first = rules.into_iter().find(|(_, fits)| *fits);
    first.map_or("Unknown", |(word, _)| word)
}

fn run_again(facts: &Facts<'_>) -> bool {
    matches!(
        facts.situation.strategy,
        "Always" | "RerunOnFailure" | "Once"
    )
}

fn migrating(instance: &Value) -> bool {
    let Some(migration) = instance
        .get("migrationState")
        .filter(|found| found.is_object())
    else {
        return false;
    };
    !["completed", "failed"]
        .iter()
        .any(|end| migration[*end].as_bool() == Some(true))
}
