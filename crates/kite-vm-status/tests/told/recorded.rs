//! The recorded life of real machines: what would have been said of it.

use std::path::Path;
use std::sync::Arc;

use kite_api::condition::{LIVE_MIGRATABLE, PAUSED, READY, find};
use kite_api::machine::{LastStop, OnGuestShutdown, PowerState};
use kite_api::{KiteVirtualMachineStatus, Phase};
use kite_vm_status::observe::reading::Found;
use serde_json::{Value, json};

use crate::common::{Player, machine};

/// Plays one of the recordings (kite-testkit/recordings) and gives the player.
fn replay(file: &str, steps: &str) -> Player {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../kite-testkit/recordings")
        .join(file);
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text
        .lines()
        .map(|l| serde_json::from_str::<Value>(l).unwrap());
    let mut lines = lines
        .filter(|l| l["step"].as_str().unwrap().starts_with(steps))
        .peekable();
    let start = lines.peek().unwrap()["t"].as_f64().unwrap();
    let mut player = Player::new(machine("Off"));
    let mut guests = 0;
    for line in lines {
        player.until(line["t"].as_f64().unwrap() - start);
        guests += i32::from(line["kind"] == "VMI" && line["type"] == "ADDED");
        let uid = if line["kind"] == "VMI" {
            format!("i{guests}")
        } else {
            "v1".to_owned()
        };
        let deletion = (line["deleting"] == true).then_some("2026-01-01T00:00:00Z");
        let object = json!({
            "metadata": {"name": "web", "namespace": "alice", "uid": uid, "finalizers": line["finalizers"],
                "deletionTimestamp": deletion, "ownerReferences": [{"apiVersion": "kubevirt.io/v1",
                    "kind": "VirtualMachine", "name": "web", "uid": "v1", "controller": true}]},
            "status": line["status"]
        });
        let gone = line["type"] == "DELETED";
        if line["kind"] == "VMI" {
            player.instance = (!gone).then(|| serde_json::from_value(object).unwrap());
        } else {
            let wanted = match line["spec.runStrategy"].as_str() {
                Some("Halted") => PowerState::Off,
                _ => PowerState::On,
            };
            if line["spec.runStrategy"] == "RerunOnFailure" {
                player.machine.spec.on_guest_shutdown = OnGuestShutdown::StayOff;
            }
            if player.machine.spec.power_state != wanted {
                player.power(wanted);
            }
            player.vm = if gone {
                Found::Absent
            } else {
                Found::Ours(Arc::new(serde_json::from_value(object).unwrap()))
            };
        }
        player.pass();
    }
    let end = player.now() + 30.0;
    player.until(end);
    player
}

// S-2: on with no disk is held back as an error until it has one; then the life of a machine.
#[test]
fn the_recorded_life_of_power_shows_these_phases() {
    let expected = "Stopped Starting Provisioning Starting Running Stopping Failed Starting Running \
                    Stopping Stopped Starting Running Failed Starting Running";
    // The two failures are back-offs that stood for 10 s; the recording says why they are not typical.
    assert_eq!(replay("power.jsonl", "").phases().join(" "), expected);
}

// S-2
#[test]
fn the_recorded_life_of_disks_and_run_strategies_shows_these_phases() {
    let expected = "Provisioning Failed Provisioning Starting Running Stopping Starting Failed Starting Running \
                    Paused Running Stopping Stopped Starting Running Stopping Starting";
    let player = replay("disk-and-run-strategy.jsonl", "");
    assert_eq!(player.phases().join(" "), expected);
    assert_eq!(
        player.condition(READY),
        "False VirtualMachineMissing",
        "the recording ends with a deletion"
    );
}

// S-2
#[test]
fn a_machine_made_after_its_claim_is_provisioning_until_it_starts_in_every_recorded_order() {
    for step in ["B", "C", "D"] {
        let phases = replay("order-of-creation.jsonl", step).phases();
        assert_eq!(
            phases,
            ["Provisioning", "Stopping"],
            "{step}: each is deleted before it runs"
        );
    }
    assert_eq!(
        replay("order-of-creation.jsonl", "E").phases(),
        ["Provisioning"]
    );
    assert_eq!(replay("order-of-creation.jsonl", "F").phases(), ["Stopped"]);
}

/// How the machine stopped, each stop once, with the number of its guest.
fn stops(player: &Player) -> Vec<String> {
    let stops = player
        .writes
        .iter()
        .filter_map(|(_, s)| s.last_stop.as_ref());
    let word = |s: &LastStop| [s.reason.as_str(), " ", s.instance_uid.as_deref().unwrap()].concat();
    let mut stops: Vec<_> = stops.map(word).collect();
    stops.dedup();
    stops
}

// S-2, V-16: what the real virt-controller shows when a guest is deleted, switched off, or shuts itself down.
#[test]
fn the_recorded_ends_of_guests_are_told_apart() {
    let power = replay("power.jsonl", "");
    assert_eq!(
        stops(&power),
        ["GuestStopped i1", "SwitchedOff i2", "GuestShutDown i3"]
    );
    let player = replay("disk-and-run-strategy.jsonl", "");
    assert_eq!(
        stops(&player),
        [
            "GuestShutDown i2",
            "GuestShutDown i4",
            "SwitchedOff i4",
            "GuestCrashed i5"
        ]
    );
    // With RerunOnFailure it stayed down until the run strategy was Halted for a while.
    let ready = |s: &KiteVirtualMachineStatus| find(&s.conditions, READY).map(|c| c.reason.clone());
    let mut reasons: Vec<_> = player.writes.iter().filter_map(|(_, s)| ready(s)).collect();
    reasons.dedup();
    let down = reasons.iter().position(|r| r == "GuestShutDown").unwrap();
    assert_eq!(reasons[down + 1], "Stopped", "{reasons:?}");
}

// S-6: what the real virt-controller says beside it.
#[test]
fn the_recorded_conditions_are_shown_of_guests_that_run_and_of_no_other() {
    for file in ["power.jsonl", "disk-and-run-strategy.jsonl"] {
        for (at, status) in replay(file, "").writes {
            let shown = find(&status.conditions, LIVE_MIGRATABLE);
            let paused = find(&status.conditions, PAUSED).is_some();
            assert_eq!(
                paused,
                status.phase == Some(Phase::Paused),
                "{file} at {at}"
            );
            if let Some(shown) = shown {
                assert_eq!(shown.reason, "DisksNotLiveMigratable");
                assert_eq!(
                    status.current_power_state,
                    Some(PowerState::On),
                    "{file} at {at}"
                );
            }
        }
    }
}
