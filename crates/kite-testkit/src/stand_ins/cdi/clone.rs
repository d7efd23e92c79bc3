//! The life of a DataVolume that clones: what cdi-controller does next.
//!
//! Pure: what is there in, one step out. Times are seconds of the script.

use serde_json::{Value, json};

use super::claim::PROVISIONER_WAITS;
use crate::stand_ins::value::{list, new_condition, put_condition, text};

/// From the claim's creation until the clone is scheduled.
const SCHEDULED: f64 = 1.0;
/// From there until the populator runs.
const POPULATOR: f64 = 0.05;
/// Between two ticks of progress.
const TICK: f64 = 3.0;
/// Until the finished claim takes over the volume.
const REBIND: f64 = 0.05;
/// How long a volume may stay unbound before CDI calls it an error.
const UNBOUND: f64 = 5.0;
/// Until an object that was refused is tried again.
const RETRY: f64 = 5.0;

/// Where the clone comes from.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Source {
    /// The DataSource does not exist.
    DataSourceAbsent,
    /// The source claim of this name does not exist.
    ClaimAbsent(String),
    /// It is there.
    Found,
}

/// A claim as far as the clone needs it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) bound: bool,
    /// CDI's finalizer is still on it.
    pub(super) populating: bool,
}

/// What is asked to go wrong.
#[allow(clippy::struct_excessive_bools)] // Each is asked for by itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wishes {
    pub(super) stuck: bool,
    pub(super) restarts: bool,
    pub(super) failed: bool,
    /// The storage waits for a consumer and there is none.
    pub(super) no_consumer: bool,
}

/// Everything that the next step depends on.
#[derive(Clone, Debug)]
pub(super) struct Facts<'a> {
    pub(super) name: &'a str,
    pub(super) status: &'a Value,
    pub(super) source: Source,
    pub(super) claim: Option<Claim>,
    pub(super) temporary: Option<Claim>,
    /// Whether a temporary claim is used at all.
    pub(super) populator: bool,
    /// Why the server refused the claim that was last tried.
    pub(super) refused: Option<&'a str>,
    pub(super) wishes: Wishes,
    /// From the DataVolume's creation until its claim is made.
    pub(super) first_look: f64,
    /// How many ticks of progress make a clone.
    pub(super) ticks: u32,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Nothing until something changes.
    Rest,
    /// Write this status.
    Write(Value),
    /// Create the claim.
    MakeClaim,
    /// Create the temporary claim.
    MakeTemporary,
    /// Give the temporary claim's volume to the claim.
    Rebind,
    /// Take CDI's finalizer off the claim.
    Finish,
}

/// A step, and how long the DataVolume must have stood as it is before it.
pub(super) type Next = (f64, Step);

/// What the worker does, as the Running condition says it.
#[derive(Clone, Copy)]
enum Worker<'a> {
    Absent,
    Populator,
    Pod,
    Done,
    Failed(&'a str),
}

/// The next step.
pub(super) fn next(facts: &Facts<'_>) -> Next {
    let phase = text(facts.status, "/phase");
    if facts.wishes.failed && facts.claim.is_some() && !matches!(phase, "Succeeded" | "Failed") {
        let reason = Worker::Failed("the clone failed");
        return (0.0, write(facts, "Failed", "N/A", reason));
    }
    let claimless = matches!(phase, "" | "Pending" | "Succeeded" | "Failed");
    if facts.claim.is_none() && !claimless {
        // The claim was lost while it was being filled.
        let lost = Worker::Failed("the claim is gone");
        return (0.0, write(facts, "Failed", "N/A", lost));
    }
    match phase {
        "" | "Pending" => pending(facts),
        "WaitForFirstConsumer" | "PendingPopulation" if facts.wishes.no_consumer => {
            (0.0, Step::Rest)
        }
        "Failed" if facts.wishes.failed || facts.claim.is_none() => (0.0, Step::Rest),
        "CloneScheduled" => scheduled(facts),
        "CloneInProgress" => in_progress(facts),
        "RebindInProgress" => rebinding(facts),
        "Succeeded" => succeeded(facts),
        _ => (0.0, write(facts, "CloneScheduled", "N/A", Worker::Absent)),
    }
}

fn succeeded(facts: &Facts<'_>) -> Next {
    let bound = write(facts, "Succeeded", "100.0%", Worker::Done);
    if bound != Step::Rest && facts.claim.is_some() {
        return (0.0, bound);
    }
    if facts.claim.is_some_and(|claim| claim.populating) {
        return (REBIND, Step::Finish);
    }
    (0.0, Step::Rest)
}

fn pending(facts: &Facts<'_>) -> Next {
    if facts.claim.is_none() {
        return match (&facts.source, facts.refused) {
            (Source::DataSourceAbsent, _) => (0.0, Step::Rest),
            (Source::ClaimAbsent(name), _) => (0.0, without_source(facts, name)),
            (Source::Found, None) => (facts.first_look, Step::MakeClaim),
            (Source::Found, Some(message)) => match over_quota(facts, message) {
                Step::Rest => (RETRY, Step::MakeClaim),
                step => (0.0, step),
            },
        };
    }
    let seen = write(facts, "Pending", "N/A", Worker::Absent);
    if seen != Step::Rest {
        return (0.0, seen);
    }
    let phase = match (facts.wishes.no_consumer, facts.populator) {
        (true, true) => "PendingPopulation",
        (true, false) => "WaitForFirstConsumer",
        (false, _) => "CloneScheduled",
    };
    (SCHEDULED, write(facts, phase, "N/A", Worker::Absent))
}

fn scheduled(facts: &Facts<'_>) -> Next {
    let ready = if facts.populator {
        facts.temporary.is_some()
    } else {
        facts.claim.is_some_and(|claim| claim.bound)
    };
    if ready {
        return (
            POPULATOR,
            write(facts, "CloneInProgress", "N/A", Worker::Populator),
        );
    }
    match facts.refused {
        _ if !facts.populator => (0.0, write(facts, "CloneScheduled", "N/A", Worker::Absent)),
        None => (POPULATOR, Step::MakeTemporary),
        Some(message) => match write(facts, "CloneScheduled", "N/A", Worker::Failed(message)) {
            Step::Rest => (RETRY, Step::MakeTemporary),
            step => (0.0, step),
        },
    }
}

/// Percent that the status tells, zero when it tells none.
fn percent(status: &Value) -> u32 {
    let text = text(status, "/progress").trim_end_matches('%');
    let whole = text.split('.').next().unwrap_or_default();
    whole.parse().unwrap_or_default()
}

fn in_progress(facts: &Facts<'_>) -> Next {
    let filled = if facts.populator {
        facts.temporary
    } else {
        facts.claim
    };
    let progress = text(facts.status, "/progress").to_owned();
    if !filled.is_some_and(|claim| claim.bound) {
        let error = Worker::Failed("PersistentVolume \"\" not found");
        return (UNBOUND, write(facts, "CloneInProgress", &progress, error));
    }
    if facts.wishes.restarts {
        return (TICK, restarted(facts, &progress));
    }
    if facts.wishes.stuck {
        return (0.0, Step::Rest);
    }
    let done = percent(facts.status) + 100_u32.div_ceil(facts.ticks.max(1));
    let step = match (done >= 100, facts.populator) {
        (false, _) => write(
            facts,
            "CloneInProgress",
            &format!("{done}.00%"),
            Worker::Pod,
        ),
        (true, true) => write(facts, "RebindInProgress", "100.0%", Worker::Done),
        (true, false) => write(facts, "Succeeded", "100.0%", Worker::Done),
    };
    (TICK, step)
}

fn restarted(facts: &Facts<'_>, progress: &str) -> Step {
    let count = facts.status["restartCount"].as_i64().unwrap_or_default() + 1;
    let error = Worker::Failed("Unable to process data: connection reset by peer");
    let mut status = dressed(facts, "CloneInProgress", progress, error);
    status["restartCount"] = json!(count);
    Step::Write(status)
}

fn rebinding(facts: &Facts<'_>) -> Next {
    if facts.claim.is_some_and(|claim| claim.bound) {
        return (REBIND, write(facts, "Succeeded", "100.0%", Worker::Done));
    }
    (REBIND, Step::Rebind)
}

fn write(facts: &Facts<'_>, phase: &str, progress: &str, worker: Worker<'_>) -> Step {
    let status = dressed(facts, phase, progress, worker);
    if &status == facts.status {
        Step::Rest
    } else {
        Step::Write(status)
    }
}

fn dressed(facts: &Facts<'_>, phase: &str, progress: &str, worker: Worker<'_>) -> Value {
    let mut status = facts.status.clone();
    status["phase"] = json!(phase);
    status["progress"] = json!(progress);
    status["claimName"] = json!(facts.name);
    let mut conditions = list(&status, "/conditions").to_vec();
    put_condition(&mut conditions, bound(facts, phase, worker));
    let ready = match (phase, worker) {
        ("Succeeded", _) => new_condition("Ready", "True", "", ""),
        (_, Worker::Pod | Worker::Populator) => {
            new_condition("Ready", "False", "TransferRunning", "")
        }
        _ => new_condition("Ready", "False", "", ""),
    };
    put_condition(&mut conditions, ready);
    let running = match worker {
        Worker::Absent => new_condition("Running", "False", "", ""),
        Worker::Populator => new_condition("Running", "True", "Populator is running", ""),
        Worker::Pod => new_condition("Running", "True", "Pod is running", ""),
        Worker::Done => new_condition("Running", "False", "Completed", "Clone Complete"),
        Worker::Failed(message) => new_condition("Running", "False", "Error", message),
    };
    put_condition(&mut conditions, running);
    status["conditions"] = json!(conditions);
    status
}

fn bound(facts: &Facts<'_>, phase: &str, worker: Worker<'_>) -> Value {
    let name = facts.name;
    if facts.claim.is_some_and(|claim| claim.bound) {
        return new_condition("Bound", "True", "Bound", &format!("PVC {name} Bound"));
    }
    let message = match worker {
        Worker::Failed(message) if phase == "CloneScheduled" => {
            format!("target PVC {name} Pending and {message}")
        }
        Worker::Absent if phase == "Pending" => format!("PVC {name} Pending"),
        _ => format!("target PVC {name} Pending and {PROVISIONER_WAITS}"),
    };
    new_condition("Bound", "False", "Pending", &message)
}

/// CDI leaves the phase empty here, and so does this.
fn without_source(facts: &Facts<'_>, source: &str) -> Step {
    let message = format!("The source pvc {source} doesn't exist");
    refused(facts, None, "CloneWithoutSource", &message)
}

fn over_quota(facts: &Facts<'_>, message: &str) -> Step {
    refused(facts, Some("Pending"), "ErrExceededQuota", message)
}

fn refused(facts: &Facts<'_>, phase: Option<&str>, reason: &str, message: &str) -> Step {
    let mut status = facts.status.clone();
    if let Some(phase) = phase {
        status["phase"] = json!(phase);
    }
    let mut conditions = list(&status, "/conditions").to_vec();
    for kind in ["Bound", "Ready"] {
        put_condition(
            &mut conditions,
            new_condition(kind, "False", reason, message),
        );
    }
    put_condition(&mut conditions, new_condition("Running", "False", "", ""));
    status["conditions"] = json!(conditions);
    if &status == facts.status {
        Step::Rest
    } else {
        Step::Write(status)
    }
}

#[cfg(test)]
mod tests;
