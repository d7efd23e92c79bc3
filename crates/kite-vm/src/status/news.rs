//! What of a changed status is news to a person (rule C-16). Pure.
//!
//! An event is written when a status that says so was, so each change is told
//! once, and not again after a restart. What passes by itself within a life, such
//! as the wait for a disk, is read in the status and is no news.

use kite_api::Condition;
use kite_api::KiteVirtualMachineStatus;
use kite_api::condition::{
    self, DELETING, DISK_READY, DOMAIN_READY, GUEST_SHUT_DOWN, RECONCILING, RESOURCES_APPLIED,
    STALLED,
};
use kite_api::machine::LastStop;

/// Waits that belong to an ordinary life.
const ORDINARY: [&str; 6] = [
    "ImageNotReady",
    "NamespaceNotReady",
    "WaitingForClaim",
    "WaitingForClones",
    "WaitingForDeletion",
    "WaitingForShutdown",
];
/// The reason of a machine that is left alone.
const PAUSED: &str = "ReconciliationPaused";
/// The reason of a machine that is held because its kind is being removed.
const REMOVAL_HELD: &str = "RemovalHeld";

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// Whether a person may have to act.
    pub warning: bool,
    /// One CamelCase word.
    pub reason: String,
    /// What happened, and what to do.
    pub note: String,
}

impl News {
    fn warning(condition: &Condition) -> Self {
        Self {
            warning: true,
            reason: condition.reason.clone(),
            note: condition.message.clone(),
        }
    }

    fn normal(reason: &str, note: impl Into<String>) -> Self {
        Self {
            warning: false,
            reason: reason.to_owned(),
            note: note.into(),
        }
    }
}

/// What is news between two states of kite-vm's part.
pub fn news(before: &KiteVirtualMachineStatus, after: &KiteVirtualMachineStatus) -> Option<News> {
    let of = |status: &'_ KiteVirtualMachineStatus, type_: &str| {
        condition::find(&status.conditions, type_).cloned()
    };
    if let Some(deleting) = of(after, DELETING) {
        let known = of(before, DELETING).is_some_and(|d| d.reason == deleting.reason);
        // A blocked deletion is told where it is found.
        return (deleting.reason == REMOVAL_HELD && !known).then(|| News::warning(&deleting));
    }
    let is_paused = |s| of(s, RESOURCES_APPLIED).is_some_and(|c| c.reason == PAUSED);
    match (is_paused(before), is_paused(after)) {
        (false, true) => {
            return of(after, RESOURCES_APPLIED).map(|c| News::normal(PAUSED, c.message));
        }
        // Whoever lets it go on is told what is in the way rather than that it goes on.
        (true, false) if problem(after).is_none() => {
            return Some(News::normal(
                "ReconciliationResumed",
                "the annotation kite.dev/paused is gone, and the machine is kept again",
            ));
        }
        _ => {}
    }
    match (problem(before), problem(after)) {
        (None, Some(problem)) => Some(News::warning(problem)),
        (Some(old), Some(new)) => is_another(old, new).then(|| News::warning(new)),
        (Some(old), None) => recovered(old, after),
        (None, None) => domain(before, after),
    }
}

/// What stands in the way and is worth an event.
fn problem(status: &KiteVirtualMachineStatus) -> Option<&Condition> {
    let stalled = condition::find(&status.conditions, STALLED);
    let waits = condition::find(&status.conditions, RECONCILING);
    // kite-vm-status tells of a guest that it saw shut down, kite-datavolume of its disk.
    let told = |c: &&Condition| {
        let last = status.last_stop.as_ref();
        let shut_down =
            c.reason == GUEST_SHUT_DOWN && last.is_some_and(LastStop::is_guest_shut_down);
        let disk = condition::find(&status.conditions, DISK_READY);
        shut_down || disk.is_some_and(|d| d.status == "False" && d.reason == c.reason)
    };
    stalled
        .or(waits)
        .filter(|c| !ORDINARY.contains(&c.reason.as_str()) && !told(c))
}

/// The words of one that passes by itself may hold amounts; those of one that does not say what is wrong.
fn is_another(old: &Condition, new: &Condition) -> bool {
    let is_stalled = new.type_ == STALLED;
    old.reason != new.reason || (is_stalled && old.message != new.message)
}

fn recovered(old: &Condition, after: &KiteVirtualMachineStatus) -> Option<News> {
    let applied = condition::is_true(&after.conditions, RESOURCES_APPLIED);
    let power = [GUEST_SHUT_DOWN, "LastStopUnknown"].contains(&old.reason.as_str());
    (applied && !power).then(|| {
        let note = [
            "everything the machine needs is as declared; what stood in the way is over: ",
            &old.message,
        ];
        News::normal("Recovered", note.concat())
    })
}

/// A host name that has to wait for the platform, which stops nothing else.
fn domain(before: &KiteVirtualMachineStatus, after: &KiteVirtualMachineStatus) -> Option<News> {
    let old = condition::find(&before.conditions, DOMAIN_READY);
    let new = condition::find(&after.conditions, DOMAIN_READY)?;
    let was_refused = old.is_some_and(|c| c.status == "False");
    match (was_refused, new.status.as_str()) {
        (false, "False") => Some(News::warning(new)),
        (true, "True") if new.reason == "Held" => Some(News::normal("HostNameHeld", &new.message)),
        _ => None,
    }
}
