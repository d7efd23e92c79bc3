//! Lives as a user would see them: what is written, in which order, and how often.

use kite_api::condition::{POWER_IN_SYNC, READY, find};
use kite_api::machine::PowerState;
use kite_api::{KiteVirtualMachine, Phase};
use kite_vm_status::observe::reading::Found;
use kite_vm_status::status::standing;
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

// S-5, S-2: what has to wait for its disk is not on its way, and off is reached without one.
#[test]
fn power_waits_for_a_disk_and_needs_none_to_be_off() {
    let failed = Some("CloneFailed");
    for (word, disk, power, said) in [
        ("Provisioning", None, "On", "Unknown Waiting"),
        ("Provisioning", None, "Off", "True InSync"),
        ("Stopped", failed, "On", "Unknown Waiting"),
        ("Stopped", failed, "Off", "True InSync"),
        ("ErrorUnschedulable", None, "On", "Unknown InTransition"),
        ("ErrorUnschedulable", None, "Off", "True InSync"),
    ] {
        let mut player = Player::new(machine(power));
        if let Some(reason) = disk {
            say(&mut player.machine, "DiskReady", "False", reason);
        }
        player.set_vm(word, &json!({}));
        player.until(20.0);
        assert_eq!(
            player.condition(POWER_IN_SYNC),
            said,
            "{word} {disk:?} {power}"
        );
    }
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
    player.until(60.0);
    player.set_vm("Paused", &json!({"created": true}));
    assert_eq!(player.phases(), ["Running", "Paused"], "at once, then");
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
    assert_eq!(player.condition(READY), "True Running");
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
    player.machine.status.as_mut().unwrap().phase = Some(Phase::Deleting);
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
    // Once its guest on the other node is told of, those are its node and addresses.
    player.instance = Some(guest());
    player.set_guest(|g| g.status.as_mut().unwrap().node_name = Some("n2".to_owned()));
    let (_, status) = player.writes.last().unwrap();
    assert_eq!(status.node_name.as_deref(), Some("n2"));
    assert_eq!(status.ip_addresses.len(), 2);
}

// S-4: a node that was chosen, or an address of one that has ended, leads nowhere.
#[test]
fn a_guest_that_does_not_run_has_neither_node_nor_addresses() {
    for (word, phase) in [
        ("Provisioning", "Scheduled"),
        ("ErrorUnschedulable", "Failed"),
    ] {
        let mut player = Player::new(machine("On"));
        let mut half = guest();
        half.status.as_mut().unwrap().phase = Some(phase.to_owned());
        player.instance = Some(half);
        player.set_vm(word, &json!({}));
        player.until(20.0);
        let status = player.machine.status.clone().unwrap();
        assert_eq!(status.node_name, None, "{word}");
        assert!(status.ip_addresses.is_empty(), "{word}");
    }
}

// C-10
#[test]
fn the_phase_is_its_own_from_the_virtual_machine_until_the_machine_is_leaving() {
    let mut machine = machine("On");
    let stands = |machine: &KiteVirtualMachine| standing(machine).phase;
    assert_eq!(stands(&machine), None, "kite-vm's");
    let status = machine.status.as_mut().unwrap();
    status.virtual_machine_uid = Some("v1".to_owned());
    status.phase = Some(Phase::Running);
    assert_eq!(stands(&machine), Some(Phase::Running));
    machine.status.as_mut().unwrap().phase = Some(Phase::Deleting);
    assert_eq!(stands(&machine), None, "kite-vm's again");
}
