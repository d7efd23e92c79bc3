//! Lives as a user would see them: what is written, in which order, and how often.

use kite_api::condition::{POWER_IN_SYNC, READY, find};
use kite_api::machine::PowerState;
use kite_vm_status::observe::reading::Found;
use serde_json::json;

use crate::common::{Player, guest, machine, say};

/// A machine that runs and has been told of.
fn running() -> Player {
    let mut player = Player::new(machine("On"));
    player.instance = Some(guest());
    player.set_vm(
        "Running",
        &json!({"created": true, "conditions": [{"type": "Ready", "status": "True"}]}),
    );
    assert_eq!(player.writes.len(), 1);
    player.writes.clear();
    player
}

// C-5, C-9: the budget has three.
#[test]
fn from_creation_to_running_takes_three_writes() {
    let mut player = Player::new(machine("On"));
    player.machine.status.as_mut().unwrap().conditions.clear();
    player.set_vm("Stopped", &json!({"runStrategy": null, "conditions": []}));
    player.set_vm("Provisioning", &json!({"runStrategy": null}));
    assert_eq!(player.writes.len(), 0, "kite-vm's one write comes first");
    say(&mut player.machine, "ResourcesApplied", "True", "Applied");
    say(&mut player.machine, "DiskReady", "False", "CloneScheduled");
    player.pass();
    player.until(60.0);
    assert_eq!(player.writes.len(), 1);
    player.set_vm("WaitingForVolumeBinding", &json!({"created": true}));
    say(&mut player.machine, "DiskReady", "True", "Succeeded");
    player.pass();
    player.set_vm("ErrorUnschedulable", &json!({"created": true}));
    player.set_vm("Starting", &json!({"created": true}));
    player.until(65.0);
    let mut half = guest();
    half.status.as_mut().unwrap().interfaces = None;
    player.instance = Some(half);
    player.set_vm("Starting", &json!({"created": true}));
    player.set_vm("Running", &json!({"created": true}));
    player.until(66.0);
    player.set_vm(
        "Running",
        &json!({"created": true, "conditions": [{"type": "Ready", "status": "True"}]}),
    );
    player.instance = Some(guest());
    player.pass();
    player.until(120.0);
    assert_eq!(player.phases(), ["Provisioning", "Starting", "Running"]);
    assert_eq!(player.writes.len(), 3);
    let last = &player.writes[2].1;
    assert_eq!(
        (last.node_name.as_deref(), last.ip_addresses.len()),
        (Some("n1"), 2)
    );
}

// C-5, S-2
#[test]
fn off_and_on_again_take_two_writes_each() {
    let mut player = running();
    let ready = json!([{"type": "Ready", "status": "True"}]);
    let gone = json!([{"type": "Ready", "status": "False", "reason": "VMINotExists"}]);
    player.power(PowerState::Off);
    player.set_vm("Running", &json!({"created": true, "conditions": ready}));
    player.set_vm("Stopping", &json!({"created": true, "conditions": ready}));
    player.until(5.0);
    player.set_vm("Stopped", &json!({"created": true, "conditions": ready}));
    player.instance = None;
    player.set_vm("Stopped", &json!({"conditions": gone}));
    assert_eq!(player.phases(), ["Stopping", "Stopped"]);
    assert_eq!(player.writes.len(), 2);
    let off = &player.writes[1].1;
    assert!(off.node_name.is_none() && off.ip_addresses.is_empty());
    assert_eq!(player.condition(READY), "True Stopped");

    player.writes.clear();
    player.until(20.0);
    player.power(PowerState::On);
    player.pass();
    player.set_vm("Starting", &json!({"conditions": gone}));
    player.until(25.0);
    player.instance = Some(guest());
    player.set_vm("Running", &json!({"created": true, "conditions": ready}));
    assert_eq!(player.phases(), ["Starting", "Running"]);
    assert_eq!(player.writes.len(), 2);
}

// S-2
#[test]
fn an_error_word_counts_when_it_has_stood_for_ten_seconds_and_is_named_before() {
    let mut player = Player::new(machine("On"));
    player.set_vm("Starting", &json!({"created": true}));
    player.set_vm("ErrorUnschedulable", &json!({"created": true}));
    player.until(9.0);
    assert_eq!(player.phases(), ["Starting"]);
    assert_eq!(player.condition(READY), "False ErrorUnschedulable");
    player.until(11.0);
    assert_eq!(player.phases(), ["Starting", "Failed"]);
    player.writes.clear();
    player.restart();
    player.until(60.0);
    assert_eq!(player.writes.len(), 0, "a restart has nothing new to say");
}

// C-5
#[test]
fn a_restart_at_any_moment_of_a_settled_life_writes_nothing() {
    let mut player = running();
    player.restart();
    player.until(1000.0);
    assert!(player.writes.is_empty());
}

// S-5
#[test]
fn power_that_does_not_come_is_out_of_sync_after_a_bounded_time_and_in_words_that_do_not_change() {
    let mut player = Player::new(machine("On"));
    player.set_vm("Stopped", &json!({}));
    player.until(299.0);
    assert_eq!(player.condition(POWER_IN_SYNC), "Unknown InTransition");
    player.until(305.0);
    assert_eq!(player.condition(POWER_IN_SYNC), "False NotStarted");
    player.writes.clear();
    player.restart();
    player.until(2000.0);
    assert!(player.writes.is_empty());
    player.power(PowerState::Off);
    player.set_vm("Running", &json!({"created": true}));
    player.until(2010.0);
    assert_eq!(
        player.condition(POWER_IN_SYNC),
        "Unknown InTransition",
        "another wish has its own time"
    );
}

// C-9: alone, it tells what is, and says nothing for a generation that kite-vm has not told of.
#[test]
fn without_kite_vm_it_tells_what_runs_and_moves_no_generation() {
    let mut player = Player::new(machine("On"));
    player.machine.status = None;
    player.instance = Some(guest());
    player.set_vm(
        "Running",
        &json!({"created": true, "conditions": [{"type": "Ready", "status": "True"}]}),
    );
    player.until(1.9);
    assert!(player.writes.is_empty());
    player.until(5.0);
    assert_eq!(player.phases(), ["Running"]);
    assert_eq!(player.writes.len(), 1);
    assert_eq!(player.writes[0].1.observed_generation, None);
    assert_eq!(player.condition(READY), "absent");
}

// C-9
#[test]
fn a_new_generation_is_never_seen_with_the_readiness_of_an_old_one() {
    let mut player = running();
    player.machine.metadata.generation = Some(2);
    player.pass();
    player.until(60.0);
    // kite-vm has not told of it: power is kept up to date, the generation and `Ready` are not moved.
    let status = player.machine.status.clone().unwrap();
    assert_eq!(status.observed_generation, Some(1));
    assert_eq!(
        find(&status.conditions, READY).unwrap().observed_generation,
        Some(1)
    );
    player.writes.clear();
    say(
        &mut player.machine,
        "ResourcesApplied",
        "False",
        "NotAccepted",
    );
    say(&mut player.machine, "Accepted", "False", "InvalidSpec");
    say(&mut player.machine, "Stalled", "True", "InvalidSpec");
    player.pass();
    assert_eq!(player.condition(READY), "False InvalidSpec");
    assert_eq!(
        player.phases(),
        ["Running"],
        "a machine that runs has not failed"
    );
    assert_eq!(player.writes[0].1.observed_generation, Some(2));
}

// C-10, S-8
#[test]
fn a_machine_that_is_leaving_is_cleared_in_one_write_after_kite_vm_has_the_phase() {
    let mut player = running();
    player.machine.spec.delete = true;
    player.pass();
    player.until(1.0);
    assert!(player.writes.is_empty());
    say(&mut player.machine, "Deleting", "True", "Requested");
    player.machine.status.as_mut().unwrap().phase = Some(kite_api::Phase::Deleting);
    player.pass();
    player.set_vm("Stopping", &json!({"created": true}));
    player.until(60.0);
    assert_eq!(player.writes.len(), 1);
    assert_eq!(
        player.writes[0].1,
        kite_api::KiteVirtualMachineStatus::default()
    );
}

// S-8
#[test]
fn a_virtual_machine_that_was_taken_away_takes_node_addresses_and_uid_with_it() {
    let mut player = running();
    player.instance = None;
    player.vm = Found::Absent;
    player.pass();
    let (_, status) = player.writes.last().unwrap();
    assert_eq!(status.virtual_machine_uid, None);
    assert!(status.node_name.is_none() && status.ip_addresses.is_empty());
    assert_eq!(status.current_power_state, Some(PowerState::Off));
    assert_eq!(player.condition(READY), "False VirtualMachineMissing");
}

// S-4
#[test]
fn node_and_addresses_are_kept_while_a_machine_moves() {
    let mut player = running();
    player
        .instance
        .as_mut()
        .unwrap()
        .status
        .as_mut()
        .unwrap()
        .interfaces = None;
    player.set_vm(
        "Migrating",
        &json!({"created": true, "conditions": [{"type": "Ready", "status": "True"}]}),
    );
    let (_, status) = player.writes.last().unwrap();
    assert_eq!(status.node_name.as_deref(), Some("n1"));
    assert_eq!(status.ip_addresses.len(), 2);
    assert_eq!(player.condition(READY), "True Migrating");
}
