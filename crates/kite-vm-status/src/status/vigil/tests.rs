//! Guests as the watch shows them, event by event.

use kite_api::machine::PowerState::{Off, On};
use serde_json::{Value, json};

use super::*;

/// What the watch shows: UID, phase, and what else there is.
fn guest(uid: &str, phase: &str, status: &Value) -> VirtualMachineInstance {
    let mut guest: VirtualMachineInstance = serde_json::from_value(json!({
        "metadata": {"name": "web", "uid": uid, "ownerReferences": [{
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web",
            "uid": "v1", "controller": true,
        }]},
        "status": status,
    }))
    .unwrap();
    guest.status.get_or_insert_default().phase = Some(phase.to_owned());
    guest
}

fn going(mut guest: VirtualMachineInstance) -> VirtualMachineInstance {
    let time = json!("2026-01-01T00:00:10Z");
    guest.metadata.deletion_timestamp = serde_json::from_value(time).unwrap();
    guest
}

fn ended_at(mut guest: VirtualMachineInstance, time: &str) -> VirtualMachineInstance {
    let phase = guest.phase().to_owned();
    let reached = json!([{"phase": phase, "phaseTransitionTimestamp": time}]);
    guest
        .status
        .get_or_insert_default()
        .phase_transition_timestamps = serde_json::from_value(reached).unwrap();
    guest
}

fn not_ready(reason: &str) -> Value {
    json!({"conditions": [{"type": "Ready", "status": "False", "reason": reason}]})
}

fn plain(phase: &str) -> VirtualMachineInstance {
    guest("a", phase, &json!({}))
}

fn told(events: &[VirtualMachineInstance], present: Option<&str>) -> Option<&'static str> {
    let mut vigil = Vigil::default();
    for event in events {
        vigil.look(event);
    }
    vigil.last_end(Some("v1"), present).map(|e| e.end.reason())
}

/// What is made of these events, the last of which is still there.
fn after(events: &[VirtualMachineInstance]) -> Option<&'static str> {
    told(events, events.last()?.metadata.uid.as_deref())
}

/// What is made of them when nothing is there any more.
fn after_all(events: &[VirtualMachineInstance]) -> Option<&'static str> {
    told(events, None)
}

// S-2, V-16: a clean shutdown from inside is told from everything that looks like it at the end.
#[test]
fn how_a_guest_ended_is_told_by_what_came_before_its_end() {
    let evicted = json!({"evacuationNodeName": "n1"});
    let asked = json!({"conditions": [{"type": "EvictionRequested", "status": "True"}]});
    let cleared = not_ready("PodTerminating");
    let lost = json!({"reason": "NodeUnresponsive"});
    let table = [
        // From inside: it ends, and is cleared away.
        (
            vec![plain("Running"), plain("Succeeded")],
            Some("GuestShutDown"),
        ),
        (
            vec![
                plain("Running"),
                plain("Succeeded"),
                going(plain("Succeeded")),
                going(guest("a", "Succeeded", &cleared)),
            ],
            Some("GuestShutDown"),
        ),
        // From outside: it is told to go, and ends.
        (
            vec![
                plain("Running"),
                going(plain("Running")),
                going(plain("Succeeded")),
            ],
            Some("GuestStopped"),
        ),
        // A drained node, by each way that KubeVirt has.
        (
            vec![guest("a", "Running", &asked), plain("Succeeded")],
            Some("GuestEvicted"),
        ),
        (
            vec![
                guest("a", "Running", &evicted),
                going(guest("a", "Running", &evicted)),
                going(plain("Succeeded")),
            ],
            Some("GuestEvicted"),
        ),
        (
            vec![
                plain("Running"),
                guest("a", "Running", &cleared),
                guest("a", "Succeeded", &cleared),
            ],
            Some("GuestEvicted"),
        ),
        // A migration that was asked for by a drain, and is over long before the guest ends.
        (
            vec![
                guest("a", "Running", &evicted),
                plain("Running"),
                plain("Succeeded"),
            ],
            Some("GuestShutDown"),
        ),
        (
            vec![plain("Running"), plain("Failed")],
            Some("GuestCrashed"),
        ),
        (
            vec![plain("Running"), guest("a", "Failed", &cleared)],
            Some("GuestStopped"),
        ),
        (
            vec![
                plain("Running"),
                plain("Unknown"),
                guest("a", "Failed", &lost),
            ],
            Some("NodeUnreachable"),
        ),
        // It goes on.
        (vec![plain("Running"), going(plain("Running"))], None),
        (vec![plain("Scheduling")], None),
        // It never ran, so it has not stopped either.
        (vec![plain("Scheduling"), plain("Failed")], None),
    ];
    for (events, expected) in table {
        assert_eq!(after(&events), expected, "{events:#?}");
    }
}

// S-2: a restart of this process finds what is left.
#[test]
fn an_end_that_nobody_saw_is_told_by_its_times_as_long_as_the_instance_is_there() {
    let ended = |time| ended_at(going(plain("Succeeded")), time);
    // It was told to go at 00:00:10.
    for (time, expected) in [
        ("2026-01-01T00:00:09Z", "GuestShutDown"),
        ("2026-01-01T00:00:10Z", "GuestShutDown"),
        ("2026-01-01T00:00:15Z", "GuestStopped"),
        ("when it pleased", "GuestShutDown"),
    ] {
        assert_eq!(after(&[ended(time)]), Some(expected), "{time}");
    }
    assert_eq!(after_all(&[]), None);
}

// S-2
#[test]
fn a_guest_that_vanished_between_two_looks_was_taken_away() {
    assert_eq!(after_all(&[plain("Running")]), Some("GuestStopped"));
    assert_eq!(
        after_all(&[plain("Running"), plain("Succeeded")]),
        Some("GuestShutDown")
    );
    let next = guest("b", "Scheduling", &json!({}));
    assert_eq!(after(&[plain("Running"), next]), None, "it is on again");
    let newer = told(&[plain("Running")], Some("b"));
    assert_eq!(newer, None, "it is on again, by a guest yet to be seen");
}

// C-7: somebody else's instance of the same name tells nothing about the machine's.
#[test]
fn another_machines_guest_is_none_of_this_one() {
    let mut vigil = Vigil::default();
    vigil.look(&plain("Running"));
    let mut foreign = guest("f", "Succeeded", &json!({}));
    foreign.metadata.owner_references = None;
    vigil.look(&foreign);
    assert_eq!(vigil.last_end(Some("v1"), Some("a")), None);
    let beside = vigil.last_end(Some("v1"), Some("f")).unwrap();
    assert_eq!((beside.uid.as_str(), beside.end), ("a", End::TakenAway));
    assert_eq!(vigil.last_end(Some("v2"), None), None);
    assert_eq!(vigil.last_end(None, None), None);
}

// V-16, C-16, F-24
#[test]
fn the_end_of_a_guest_that_was_to_run_is_news_once_and_by_its_kind() {
    let (a, b) = (Some("a"), Some("b"));
    for (ended, end) in [
        (plain("Succeeded"), End::ShutDown),
        (plain("Failed"), End::Crashed),
        (going(plain("Running")), End::TakenAway),
    ] {
        let mut vigil = Vigil::default();
        vigil.look(&plain("Running"));
        assert_eq!(vigil.news(On, true, a, None), None);
        vigil.look(&ended);
        assert_eq!(vigil.news(On, true, a, None), Some(end));
        // KubeVirt's word for the machine comes a moment later than the guest's.
        vigil.look(&going(plain("Succeeded")));
        assert_eq!(vigil.news(On, true, a, None), None);
        assert_eq!(vigil.news(On, false, None, None), None);
        vigil.look(&guest("b", "Running", &json!({})));
        assert_eq!(vigil.news(On, false, b, None), None);
    }
}

// V-16, C-16
#[test]
fn a_guest_that_was_to_end_or_was_never_ready_is_not_news() {
    let a = Some("a");
    let mut vigil = Vigil::default();
    vigil.look(&plain("Running"));
    assert_eq!(vigil.news(On, true, a, None), None);
    assert_eq!(vigil.news(Off, true, a, None), None);
    vigil.look(&going(plain("Succeeded")));
    assert_eq!(vigil.news(Off, false, a, None), None);
    assert_eq!(vigil.news(On, false, None, None), None);
    vigil.look(&guest("b", "Failed", &json!({})));
    assert_eq!(vigil.news(On, false, Some("b"), None), None);
}

// C-16: a pass may come late, when another guest is there already, and somebody else's.
#[test]
fn how_a_guest_ended_is_still_known_when_two_others_have_come() {
    let mut vigil = Vigil::default();
    vigil.look(&plain("Running"));
    assert_eq!(vigil.news(On, true, Some("a"), None), None);
    vigil.look(&plain("Failed"));
    vigil.look(&guest("f", "Running", &json!({})));
    vigil.look(&guest("b", "Running", &json!({})));
    let ended = vigil.news(On, true, Some("b"), None);
    assert_eq!(ended, Some(End::Crashed));
    // One of which nothing was seen but that it was there, and then was not.
    let mut vigil = Vigil::default();
    assert_eq!(vigil.news(On, true, Some("a"), None), None);
    assert_eq!(vigil.news(On, true, Some("a"), None), None);
    assert_eq!(vigil.news(On, false, None, None), Some(End::TakenAway));
}

// C-16, V-16: what a person is told, and what to do.
#[test]
fn each_end_is_told_with_what_comes_of_it() {
    use OnGuestShutdown::{Restart, StayOff};
    for (end, words) in [
        (End::ShutDown, "has shut itself down; "),
        (End::Crashed, "has crashed"),
        (End::Evicted, "had to leave its node"),
        (End::NodeLost, "node was lost"),
        (End::TakenAway, "stopped from outside"),
    ] {
        let note = end.note(Restart);
        assert!(note.contains(words), "{note}");
        assert!(
            note.ends_with("to switch it off, set spec.powerState: Off"),
            "{note}"
        );
    }
    let stays = End::ShutDown.note(StayOff);
    assert!(
        stays.contains("stays down") && stays.ends_with("set it to On"),
        "{stays}"
    );
}

// C-16: what stands in the status was told before this process was started.
#[test]
fn a_restart_tells_nothing_twice_and_what_it_finds_once() {
    let a = Some("a");
    let mut vigil = Vigil::default();
    vigil.look(&plain("Succeeded"));
    assert_eq!(vigil.news(On, true, a, a), None);
    assert_eq!(vigil.news(On, true, a, None), Some(End::ShutDown));
    assert_eq!(vigil.news(On, true, a, None), None);
}
