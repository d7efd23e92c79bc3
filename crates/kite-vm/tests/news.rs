//! What of a changed status is worth an event, as a table.
#![allow(clippy::unwrap_used, missing_docs)]

use kite_api::KiteVirtualMachineStatus;
use kite_vm::status::news::{News, news};
use serde_json::{Value, json};

/// A status with conditions as `(type, status, reason)`, each with a message of its own.
fn status(conditions: &[(&str, &str, &str)]) -> KiteVirtualMachineStatus {
    let condition = |(type_, status, reason): &(&str, &str, &str)| -> Value {
        json!({
            "type": type_, "status": status, "reason": reason, "message": format!("because of {reason}"),
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let conditions: Vec<Value> = conditions.iter().map(condition).collect();
    serde_json::from_value(json!({"conditions": conditions})).unwrap()
}

fn fine() -> KiteVirtualMachineStatus {
    status(&[("ResourcesApplied", "True", "Applied")])
}

fn stalled(reason: &str) -> KiteVirtualMachineStatus {
    status(&[
        ("ResourcesApplied", "False", reason),
        ("Stalled", "True", reason),
    ])
}

fn waits(reason: &str) -> KiteVirtualMachineStatus {
    status(&[
        ("ResourcesApplied", "False", reason),
        ("Reconciling", "True", reason),
    ])
}

fn deleting(reason: &str) -> KiteVirtualMachineStatus {
    status(&[("Deleting", "True", reason)])
}

fn domain(value: &str, reason: &str) -> KiteVirtualMachineStatus {
    status(&[
        ("ResourcesApplied", "True", "Applied"),
        ("DomainReady", value, reason),
    ])
}

/// The reason of what is told, with a mark when it is a warning.
fn told(before: &KiteVirtualMachineStatus, after: &KiteVirtualMachineStatus) -> String {
    news(before, after).map_or_else(String::new, |n| {
        let mark = if n.warning { "!" } else { "" };
        [mark, n.reason.as_str()].concat()
    })
}

// C-16
#[test]
fn a_change_that_matters_is_told_once_and_what_belongs_to_a_life_is_not() {
    let new = KiteVirtualMachineStatus::default();
    let paused = status(&[("ResourcesApplied", "False", "ReconciliationPaused")]);
    for (before, after, expected) in [
        // A create without trouble, with the waits that belong to it.
        (&new, waits("NamespaceNotReady"), ""),
        (&new, waits("WaitingForClones"), ""),
        (&new, waits("WaitingForClaim"), ""),
        (&waits("WaitingForClaim"), fine(), ""),
        (&fine(), waits("WaitingForShutdown"), ""),
        (&new, domain("True", "Held"), ""),
        // Trouble begins, changes, stays, ends.
        (&new, stalled("ImageNotFound"), "!ImageNotFound"),
        (
            &waits("WaitingForClaim"),
            waits("QuotaExceeded"),
            "!QuotaExceeded",
        ),
        (&waits("QuotaExceeded"), stalled("Rejected"), "!Rejected"),
        (&stalled("Rejected"), stalled("Rejected"), ""),
        (&stalled("Rejected"), fine(), "Recovered"),
        (&stalled("Rejected"), waits("WaitingForClaim"), ""),
        // A pause, and what is found when it ends.
        (&fine(), paused.clone(), "ReconciliationPaused"),
        (&paused, paused.clone(), ""),
        (&paused, fine(), "ReconciliationResumed"),
        (&paused, stalled("DiskLost"), "!DiskLost"),
        // A host name that waits for the platform stops nothing else.
        (
            &fine(),
            domain("False", "BaseDomainMissing"),
            "!BaseDomainMissing",
        ),
        (
            &domain("False", "BaseDomainMissing"),
            domain("False", "BaseDomainMissing"),
            "",
        ),
        (
            &domain("False", "BaseDomainMissing"),
            domain("True", "Held"),
            "HostNameHeld",
        ),
        (
            &domain("False", "BaseDomainMissing"),
            domain("True", "NotRequested"),
            "",
        ),
        // A deletion that was asked for is no news; one that waits for a word is.
        (&fine(), deleting("Requested"), ""),
        (
            &deleting("Requested"),
            deleting("RemovalHeld"),
            "!RemovalHeld",
        ),
        (&deleting("RemovalHeld"), deleting("RemovalHeld"), ""),
        (&stalled("Rejected"), deleting("Requested"), ""),
        // It is told where it is found.
        (&deleting("Requested"), deleting("DeletionBlocked"), ""),
    ] {
        assert_eq!(told(before, &after), expected, "{before:?}\n{after:?}");
    }
}

// C-16
#[test]
fn words_that_hold_amounts_are_told_again_only_when_a_person_must_act() {
    let reworded = |mut status: KiteVirtualMachineStatus| {
        for condition in &mut status.conditions {
            condition.message.push_str(", now with another amount");
        }
        status
    };
    let full = waits("QuotaExceeded");
    assert_eq!(news(&full, &reworded(full.clone())), None);
    let invalid = stalled("InvalidSpec");
    let said = news(&invalid, &reworded(invalid.clone()));
    let expected = News {
        warning: true,
        reason: "InvalidSpec".to_owned(),
        note: "because of InvalidSpec, now with another amount".to_owned(),
    };
    assert_eq!(said, Some(expected));
}

// C-16, S-2, D-4: of two who know of a guest's shutdown or of a disk's trouble one tells
#[test]
fn what_kite_vm_status_or_kite_datavolume_has_told_is_not_told_again() {
    let down = |reason: &str| {
        status(&[
            ("ResourcesApplied", "True", "Applied"),
            ("Stalled", "True", reason),
        ])
    };
    let mut recorded = down("GuestShutDown");
    recorded.last_stop =
        serde_json::from_value(json!({"instanceUID": "i-1", "reason": "GuestShutDown"})).unwrap();
    assert_eq!(told(&fine(), &recorded), "");
    assert_eq!(told(&fine(), &down("GuestShutDown")), "!GuestShutDown");
    assert_eq!(told(&fine(), &down("LastStopUnknown")), "!LastStopUnknown");
    let disk = status(&[
        ("ResourcesApplied", "False", "CloneFailed"),
        ("Stalled", "True", "CloneFailed"),
        ("DiskReady", "False", "CloneFailed"),
    ]);
    assert_eq!(told(&fine(), &disk), "");
    // It is switched off: that is what was to be done.
    assert_eq!(told(&down("LastStopUnknown"), &fine()), "");
    assert_eq!(told(&down("GuestShutDown"), &fine()), "");
}
