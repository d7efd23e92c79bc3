//! What the status says of a machine, and what of it is worth an event.
#![allow(clippy::unwrap_used, missing_docs)]

mod seen;

use kite_api::KiteVirtualMachineStatus;
use kite_api::condition::{self, ACCEPTED, DOMAIN_READY, RECONCILING, RESOURCES_APPLIED, STALLED};
use kite_api::machine::Phase;
use kite_runtime::{Class, clock};
use kite_vm::apply::{Applied, Trouble};
use kite_vm::observe::Observed;
use kite_vm::status::news::{News, news};
use kite_vm::status::{self, Outcome};
use kite_vm::validate::Refused;
use seen::{edited, fresh};
use serde_json::{Value, json};

/// A status with conditions as `(type, status, reason)`, each with a message of its own.
fn saying(conditions: &[(&str, &str, &str)]) -> KiteVirtualMachineStatus {
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
    saying(&[("ResourcesApplied", "True", "Applied")])
}

fn stalled(reason: &str) -> KiteVirtualMachineStatus {
    saying(&[
        ("ResourcesApplied", "False", reason),
        ("Stalled", "True", reason),
    ])
}

fn waits(reason: &str) -> KiteVirtualMachineStatus {
    saying(&[
        ("ResourcesApplied", "False", reason),
        ("Reconciling", "True", reason),
    ])
}

fn deleting(reason: &str) -> KiteVirtualMachineStatus {
    saying(&[("Deleting", "True", reason)])
}

fn domain(value: &str, reason: &str) -> KiteVirtualMachineStatus {
    saying(&[
        ("ResourcesApplied", "True", "Applied"),
        ("DomainReady", value, reason),
    ])
}

/// The reason of what is told, with a mark when it is a warning.
fn event(before: &KiteVirtualMachineStatus, after: &KiteVirtualMachineStatus) -> String {
    news(before, after).map_or_else(String::new, |n| {
        let mark = if n.warning { "!" } else { "" };
        [mark, n.reason.as_str()].concat()
    })
}

// C-16
#[test]
fn a_change_that_matters_is_told_once_and_what_belongs_to_a_life_is_not() {
    let new = KiteVirtualMachineStatus::default();
    let paused = saying(&[("ResourcesApplied", "False", "ReconciliationPaused")]);
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
        assert_eq!(event(before, &after), expected, "{before:?}\n{after:?}");
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
        saying(&[
            ("ResourcesApplied", "True", "Applied"),
            ("Stalled", "True", reason),
        ])
    };
    let mut recorded = down("GuestShutDown");
    recorded.last_stop =
        serde_json::from_value(json!({"instanceUID": "i-1", "reason": "GuestShutDown"})).unwrap();
    assert_eq!(event(&fine(), &recorded), "");
    assert_eq!(event(&fine(), &down("GuestShutDown")), "!GuestShutDown");
    assert_eq!(event(&fine(), &down("LastStopUnknown")), "!LastStopUnknown");
    let disk = saying(&[
        ("ResourcesApplied", "False", "CloneFailed"),
        ("Stalled", "True", "CloneFailed"),
        ("DiskReady", "False", "CloneFailed"),
    ]);
    assert_eq!(event(&fine(), &disk), "");
    // A disk that is merely being filled, or has another trouble, does not speak of this one.
    for disk in [
        ("DiskReady", "False", "InProgress"),
        ("DiskReady", "True", "Rejected"),
    ] {
        let rejected = ("Stalled", "True", "Rejected");
        assert_eq!(event(&fine(), &saying(&[rejected, disk])), "!Rejected");
    }
    // It is switched off: that is what was to be done.
    assert_eq!(event(&down("LastStopUnknown"), &fine()), "");
    assert_eq!(event(&down("GuestShutDown"), &fine()), "");
}

fn told(seen: &Observed, outcome: &Outcome) -> KiteVirtualMachineStatus {
    status::part(seen, outcome, &clock::now())
}

fn whole() -> Applied {
    Applied {
        claim_uid: Some("c-1".into()),
        disk: true,
        login: true,
        machine: true,
        service: true,
        ..Applied::default()
    }
}

// C-9, C-10, C-11
#[test]
fn the_status_is_complete_and_never_says_reconciling_and_stalled_at_once() {
    let outcomes = |trouble: Trouble| Applied {
        troubles: vec![trouble],
        ..whole()
    };
    let done = told(&fresh(), &Outcome::Applied(&whole()));
    assert!(
        condition::is_true(&done.conditions, RESOURCES_APPLIED)
            && condition::is_true(&done.conditions, ACCEPTED)
    );
    assert!(
        condition::find(&done.conditions, STALLED).is_none()
            && condition::find(&done.conditions, RECONCILING).is_none()
    );
    assert_eq!(
        (done.phase, done.observed_generation),
        (Some(Phase::Provisioning), None)
    );
    for (trouble, stalled) in [
        (Trouble::stalled("Rejected", "no"), true),
        (Trouble::waiting("QuotaExceeded", "later"), false),
        (
            Trouble {
                class: Class::DependencyMissing,
                ..Trouble::waiting("DependencyMissing", "kind")
            },
            false,
        ),
    ] {
        let part = told(&fresh(), &Outcome::Applied(&outcomes(trouble)));
        assert_eq!(condition::is_true(&part.conditions, STALLED), stalled);
        assert_eq!(condition::is_true(&part.conditions, RECONCILING), !stalled);
        let applied = condition::find(&part.conditions, RESOURCES_APPLIED).unwrap();
        assert_eq!(
            (applied.status.as_str(), applied.observed_generation),
            ("False", Some(1))
        );
        assert_eq!(
            part.phase,
            Some(if stalled {
                Phase::Failed
            } else {
                Phase::Provisioning
            })
        );
    }
    assert_eq!(
        told(&fresh(), &Outcome::Deleting(None)).phase,
        Some(Phase::Deleting)
    );
}

// C-3, C-10, F-7
#[test]
fn the_phase_is_left_to_its_owner_and_names_stay_recorded() {
    let running = KiteVirtualMachineStatus {
        virtual_machine_uid: Some("v-1".into()),
        ..told(&fresh(), &Outcome::Applied(&whole()))
    };
    let seen = edited(fresh(), |m| m.status = Some(running));
    let lost = Applied {
        disk: false,
        claim_uid: None,
        troubles: vec![Trouble::stalled("DiskLost", "gone")],
        ..whole()
    };
    let part = told(&seen, &Outcome::Applied(&lost));
    assert_eq!(
        part.phase, None,
        "a running machine is never Failed because one apply failed"
    );
    assert_eq!(part.claim_uid.as_deref(), Some("c-1"));
    assert_eq!(part.data_volume_name.as_deref(), Some("web"));
    assert!(condition::find(&part.conditions, DOMAIN_READY).is_some());
    // TS3: the same input gives the same bytes.
    let stands = KiteVirtualMachineStatus {
        virtual_machine_uid: Some("v-1".into()),
        ..part.clone()
    };
    let again = edited(seen, |m| m.status = Some(stands));
    assert_eq!(told(&again, &Outcome::Applied(&lost)), part);
}

/// `Accepted`, `ResourcesApplied`, and of the two abnormal conditions the one there is.
fn summary(part: &KiteVirtualMachineStatus) -> [String; 3] {
    let say = |type_| {
        let found = condition::find(&part.conditions, type_);
        found.map(|c| format!("{} {}", c.status, c.reason))
    };
    let named = |type_| say(type_).map(|words| format!("{type_} {words}"));
    [
        say(ACCEPTED).unwrap_or_default(),
        say(RESOURCES_APPLIED).unwrap_or_default(),
        named(STALLED).or(named(RECONCILING)).unwrap_or_default(),
    ]
}

// C-9, C-11, D-4, V-5: whose word counts, and whether a person is called
#[test]
fn what_a_pass_came_to_is_told_in_every_condition() {
    let troubled = |trouble| Applied {
        troubles: vec![trouble],
        ..whole()
    };
    let without_machine = || Applied {
        machine: false,
        ..whole()
    };
    let with_disk = |value, reason| {
        let status = saying(&[("DiskReady", value, reason)]);
        edited(fresh(), |m| m.status = Some(status))
    };
    let waits = "Reconciling True WaitingForClaim";
    for (seen, applied, [accepted, resources, going_on]) in [
        (
            fresh(),
            troubled(Trouble::stalled("HostNameTaken", "by another")),
            [
                "False HostNameTaken",
                "False HostNameTaken",
                "Stalled True HostNameTaken",
            ],
        ),
        (
            fresh(),
            troubled(Trouble::stalled("NamespaceNotPrepared", "no right")),
            [
                "False NamespaceNotPrepared",
                "False NamespaceNotPrepared",
                "Stalled True NamespaceNotPrepared",
            ],
        ),
        (
            fresh(),
            troubled(Trouble::stalled("Rejected", "no")),
            ["True Valid", "False Rejected", "Stalled True Rejected"],
        ),
        (
            with_disk("False", "CloneFailed"),
            without_machine(),
            [
                "True Valid",
                "False CloneFailed",
                "Stalled True CloneFailed",
            ],
        ),
        (
            with_disk("False", "Stuck"),
            whole(),
            ["True Valid", "True Applied", "Stalled True Stuck"],
        ),
        (
            with_disk("False", "InProgress"),
            without_machine(),
            ["True Valid", "False WaitingForClaim", waits],
        ),
        (
            with_disk("Unknown", "Stuck"),
            without_machine(),
            ["True Valid", "False WaitingForClaim", waits],
        ),
    ] {
        let part = told(&seen, &Outcome::Applied(&applied));
        assert_eq!(summary(&part), [accepted, resources, going_on]);
    }
}

// V-5, V-21, C-11
#[test]
fn a_refusal_and_a_deletion_are_told_with_what_else_is_in_the_way() {
    let refused = Refused::stalled("InvalidSpec", "spec.cpu is 0");
    let applied = Applied {
        troubles: vec![Trouble::waiting("ApplyFailed", "the server is away")],
        ..whole()
    };
    let part = told(&fresh(), &Outcome::Refused(&refused, &applied));
    let expected = [
        "False InvalidSpec",
        "False NotAccepted",
        "Stalled True InvalidSpec",
    ];
    assert_eq!(summary(&part), expected);
    let resources = condition::find(&part.conditions, RESOURCES_APPLIED).unwrap();
    assert_eq!(resources.message, "spec.cpu is 0; the server is away");

    let blocked = Trouble::waiting("DeletionBlocked", "held by example.org/mine");
    for (trouble, reason) in [(None, "Requested"), (Some(&blocked), "DeletionBlocked")] {
        let part = told(&fresh(), &Outcome::Deleting(trouble));
        let deleting = condition::find(&part.conditions, condition::DELETING).unwrap();
        assert_eq!(
            (deleting.status.as_str(), deleting.reason.as_str()),
            ("True", reason)
        );
        assert_eq!(summary(&part), ["", "False Deleting", ""]);
    }
}
