//! Whether a machine is to be started, as a table: run strategies, guests, how the last one ended.
#![allow(clippy::unwrap_used, missing_docs)]

use kite_api::KiteVirtualMachineStatus;
use kite_api::machine::OnGuestShutdown::{Restart, StayOff};
use kite_api::machine::PowerState::{Off, On};
use kite_kubevirt::read::VirtualMachine;
use kite_kubevirt::write::RunStrategy;
use kite_runtime::Key;
use kite_vm::observe::witness::{End, Witness};
use kite_vm::plan::power::{Decision, Down, Guest, Situation, StartNote, Why, decide, start_note};
use serde_json::{Value, json};

const ALWAYS: Decision = Decision::Run(RunStrategy::Always);
const HALTED: Decision = Decision::Run(RunStrategy::Halted);
const RERUN: Decision = Decision::Run(RunStrategy::RerunOnFailure);

/// A machine with a run strategy in its spec and one that KubeVirt has noted; its last guest
/// came with generation 6.
fn vm(asked: &str, noted: &str) -> VirtualMachine {
    with(asked, noted, &json!({}), &json!({}))
}

/// As [`vm`], with annotations and more of a status.
fn with(asked: &str, noted: &str, annotations: &Value, status: &Value) -> VirtualMachine {
    let mut whole = json!({"runStrategy": noted, "observedGeneration": 6});
    let more = status.as_object().unwrap().clone();
    whole.as_object_mut().unwrap().extend(more);
    serde_json::from_value(json!({
        "metadata": {"name": "web", "uid": "v-1", "generation": 6, "annotations": annotations},
        "spec": {"runStrategy": asked}, "status": whole,
    }))
    .unwrap()
}

fn started(note: &str) -> VirtualMachine {
    let note = json!({"kite.dev/start": note});
    with("RerunOnFailure", "RerunOnFailure", &note, &json!({}))
}

fn stopped(uid: &str, reason: &str) -> KiteVirtualMachineStatus {
    serde_json::from_value(json!({"lastStop": {"instanceUID": uid, "reason": reason}})).unwrap()
}

fn silent() -> KiteVirtualMachineStatus {
    KiteVirtualMachineStatus::default()
}

fn at<'a>(vm: &'a VirtualMachine, status: &'a KiteVirtualMachineStatus) -> Situation<'a> {
    Situation {
        power: On,
        on_guest_shutdown: StayOff,
        vm: Some(vm),
        guest: None,
        status,
        seen: None,
    }
}

// V-16
#[test]
fn without_stay_off_the_run_strategy_is_the_power_and_kubevirt_does_the_rest() {
    let shut_down = stopped("i-1", "GuestShutDown");
    for (asked, noted) in [("Always", "Always"), ("Halted", "RerunOnFailure")] {
        let vm = vm(asked, noted);
        let on = Situation {
            on_guest_shutdown: Restart,
            ..at(&vm, &shut_down)
        };
        assert_eq!(decide(&on), ALWAYS);
        for on_guest_shutdown in [Restart, StayOff] {
            let off = Situation {
                power: Off,
                on_guest_shutdown,
                ..on
            };
            assert_eq!(decide(&off), HALTED);
            assert_eq!(start_note(&off, HALTED), None);
            // The note of an earlier start goes.
            let noted = started("started 3");
            let off = Situation {
                vm: Some(&noted),
                ..off
            };
            assert_eq!(start_note(&off, HALTED), None);
        }
    }
}

// V-16, F-24
#[test]
fn a_machine_without_a_guest_is_started_unless_its_guest_has_shut_itself_down() {
    let quiet = silent();
    let (first, second) = (
        stopped("i-1", "GuestShutDown"),
        stopped("i-2", "GuestStopped"),
    );
    let (bare, answered) = (started("started 3"), started("started 3 i-1"));
    let failed = started("started 6 i-1");
    let table = [
        // kite-vm-status has the word.
        (&bare, &first, None, Decision::StaysDown(Down::ShutDown)),
        (
            &bare,
            &first,
            Some(End::Otherwise),
            Decision::StaysDown(Down::ShutDown),
        ),
        (
            &answered,
            &second,
            Some(End::ShutDown),
            Decision::Start(Why::Ended),
        ),
        // It says nothing of the last guest; this process may have seen it.
        (
            &answered,
            &first,
            Some(End::ShutDown),
            Decision::StaysDown(Down::ShutDownUntold),
        ),
        (
            &answered,
            &first,
            Some(End::Otherwise),
            Decision::Start(Why::EndedUntold),
        ),
        (
            &bare,
            &quiet,
            Some(End::ShutDown),
            Decision::StaysDown(Down::ShutDownUntold),
        ),
        // Nobody saw it: it may have been a shutdown.
        (&answered, &first, None, Decision::StaysDown(Down::Unknown)),
        (&bare, &quiet, None, Decision::StaysDown(Down::Unknown)),
        // No guest came since the start, whatever became of the one before.
        (&failed, &first, None, Decision::Start(Why::StartFailed)),
        (
            &failed,
            &first,
            Some(End::ShutDown),
            Decision::Start(Why::StartFailed),
        ),
        (&failed, &second, None, Decision::Start(Why::Ended)),
    ];
    for (number, (vm, status, seen, expected)) in table.into_iter().enumerate() {
        let at = Situation {
            seen,
            ..at(vm, status)
        };
        assert_eq!(decide(&at), expected, "row {number}");
    }
    // A stop that nobody saw has no guest's UID, and is no word about how it ended.
    let unseen: KiteVirtualMachineStatus =
        serde_json::from_value(json!({"lastStop": {"reason": "NotSeen"}})).unwrap();
    for vm in [&bare, &answered] {
        let nobody = at(vm, &unseen);
        assert_eq!(decide(&nobody), Decision::StaysDown(Down::Unknown));
    }
    // A machine that was never started by this rule carries no note: a guest may have been there.
    let plain = vm("RerunOnFailure", "RerunOnFailure");
    assert_eq!(
        decide(&at(&plain, &quiet)),
        Decision::StaysDown(Down::Unknown)
    );
    let unknown = Decision::StaysDown(Down::Unknown);
    assert!(unknown.is_hasty() && Decision::Start(Why::Ended).is_hasty());
    assert!(!Decision::StaysDown(Down::ShutDown).is_hasty());
}

// V-16
#[test]
fn nothing_is_done_while_kubevirt_is_about_to_act() {
    let shut_down = stopped("i-1", "GuestShutDown");
    let requested = json!({"stateChangeRequests": [{"action": "Start"}]});
    let none = json!({});
    for vm in [
        // New to the strategy: KubeVirt starts it.
        vm("RerunOnFailure", "Halted"),
        vm("RerunOnFailure", "Always"),
        with("RerunOnFailure", "RerunOnFailure", &none, &requested),
        // Its guest is there, and our watch of guests is behind.
        with(
            "RerunOnFailure",
            "RerunOnFailure",
            &none,
            &json!({"created": true}),
        ),
        // Switched on: it is about to be new to the strategy.
        vm("Halted", "Halted"),
        vm("Always", "Always"),
    ] {
        assert_eq!(decide(&at(&vm, &shut_down)), RERUN, "{vm:?}");
    }
    let noted = started("started 3");
    let running = Situation {
        guest: Some(Guest::There),
        ..at(&noted, &shut_down)
    };
    assert_eq!(decide(&running), RERUN);
    let absent = Situation {
        vm: None,
        ..running
    };
    assert_eq!(decide(&absent), RERUN, "it is still to be made");
}

// V-16, row ST5
#[test]
fn a_start_waits_until_the_old_guest_is_gone_and_halted_is_noted() {
    let quiet = silent();
    let halted = vm("Halted", "RerunOnFailure");
    assert_eq!(decide(&at(&halted, &quiet)), Decision::AwaitHalted);
    for (guest, expected) in [
        (Guest::Going, Decision::AwaitShutdown),
        // It was not told to go yet, and need not be.
        (Guest::There, RERUN),
    ] {
        let at = Situation {
            guest: Some(guest),
            ..at(&halted, &quiet)
        };
        assert_eq!(decide(&at), expected);
    }
    let noted = vm("Halted", "Halted");
    assert_eq!(decide(&at(&noted, &quiet)), RERUN);
    // It goes down without us: KubeVirt starts it again, or it stays down, by how it ends.
    let running = vm("RerunOnFailure", "RerunOnFailure");
    let going = Situation {
        guest: Some(Guest::Going),
        ..at(&running, &quiet)
    };
    assert_eq!(decide(&going), RERUN);
}

// V-16
#[test]
fn a_start_is_noted_with_what_was_known_and_a_running_machine_gets_no_note() {
    let last = stopped("i-1", "GuestStopped");
    let note = |at: &Situation, decision| start_note(at, decision).map(|n| n.text());
    let ended = started("started 3");
    let start = at(&ended, &last);
    assert_eq!(
        note(&start, Decision::Start(Why::Ended)).as_deref(),
        Some("halted 6 i-1")
    );
    let halted = with(
        "Halted",
        "Halted",
        &json!({"kite.dev/start": "halted 6 i-1"}),
        &json!({}),
    );
    let second = at(&halted, &last);
    assert_eq!(note(&second, RERUN).as_deref(), Some("started 6 i-1"));
    assert_eq!(
        note(&second, Decision::AwaitHalted).as_deref(),
        Some("halted 6 i-1")
    );
    // Restart became StayOff while it runs: nothing was started.
    let always = vm("Always", "Always");
    let switched = Situation {
        guest: Some(Guest::There),
        ..at(&always, &last)
    };
    assert_eq!(note(&switched, RERUN), None);
    assert_eq!(
        note(&at(&ended, &last), Decision::StaysDown(Down::ShutDown)).as_deref(),
        Some("started 3")
    );
    let read = StartNote::of(&halted).unwrap();
    assert!(read.halted && read.generation == 6 && read.after == "i-1");
}

fn word(word: &str, more: &Value) -> VirtualMachine {
    let mut status = json!({"printableStatus": word, "created": true});
    let more = more.as_object().unwrap().clone();
    status.as_object_mut().unwrap().extend(more);
    with("RerunOnFailure", "RerunOnFailure", &json!({}), &status)
}

// V-16, with kite-vm-status absent
#[test]
fn how_a_guest_ends_is_seen_in_kubevirts_words_for_its_machine() {
    let evicted = json!({"conditions": [{"type": "EvictionRequested", "status": "True"}]});
    let crashed = json!({"stateChangeRequests": [{"action": "Start"}]});
    let gone = word("Stopped", &json!({"created": false}));
    let plain = |w| word(w, &json!({}));
    for (views, expected) in [
        (
            vec![plain("Running"), plain("Stopped"), gone.clone()],
            Some(End::ShutDown),
        ),
        (
            vec![
                plain("Running"),
                plain("Stopping"),
                plain("Stopped"),
                gone.clone(),
            ],
            Some(End::Otherwise),
        ),
        (
            vec![plain("Running"), word("Stopped", &crashed), gone.clone()],
            Some(End::Otherwise),
        ),
        (
            vec![plain("Running"), word("Stopped", &evicted), gone.clone()],
            Some(End::Otherwise),
        ),
        (
            vec![plain("Stopped"), gone.clone(), plain("Starting")],
            None,
        ),
        (vec![gone.clone()], None),
        // Another strategy, another machine: what was seen says nothing about them.
        (vec![plain("Stopped"), vm("Always", "Always")], None),
        (
            vec![plain("Stopped"), {
                let mut successor = gone;
                successor.metadata.uid = Some("v-2".into());
                successor
            }],
            None,
        ),
    ] {
        let (witness, key) = (Witness::default(), Key::new("alice", "web"));
        for view in &views {
            witness.note(&key, Some(view));
        }
        assert_eq!(witness.end(&key), expected, "{views:?}");
    }
}
