//! How a machine last stopped, and what follows for one whose guest shut itself down.

use crate::common::{Player, guest, machine};
use kite_api::condition::{POWER_IN_SYNC, READY};
use kite_api::machine::{OnGuestShutdown, PowerState};
use kite_kubevirt::VirtualMachineInstance;
use serde_json::{Value, json};

fn ready() -> Value {
    json!([{"type": "Ready", "status": "True"}])
}

fn gone() -> Value {
    json!([{"type": "Ready", "status": "False", "reason": "VMINotExists"}])
}

fn strategy(policy: OnGuestShutdown) -> &'static str {
    match policy {
        OnGuestShutdown::Restart => "Always",
        OnGuestShutdown::StayOff => "RerunOnFailure",
    }
}

/// A machine that runs, with what is to become of a guest that shuts itself down.
fn running(policy: OnGuestShutdown) -> Player {
    let mut machine = machine("On");
    machine.spec.on_guest_shutdown = policy;
    let mut player = Player::new(machine);
    player.instance = Some(guest());
    player.set_vm(
        "Running",
        &json!({"created": true, "runStrategy": strategy(policy), "conditions": ready()}),
    );
    player.writes.clear();
    player
}

/// Something that KubeVirt says of a guest.
type Change = fn(&mut VirtualMachineInstance);

fn phase(guest: &mut VirtualMachineInstance, phase: &str) {
    guest.status.get_or_insert_default().phase = Some(phase.to_owned());
}

fn told_to_go(guest: &mut VirtualMachineInstance) {
    let now = json!("2026-01-01T00:00:00Z");
    guest.metadata.deletion_timestamp = serde_json::from_value(now).unwrap();
}

/// The guest has ended, and KubeVirt clears it away.
fn cleared(player: &mut Player) {
    let strategy = strategy(player.machine.spec.on_guest_shutdown);
    player.set_vm(
        "Stopped",
        &json!({"created": true, "runStrategy": strategy, "conditions": ready()}),
    );
    player.set_guest(told_to_go);
    player.instance = None;
    player.set_vm(
        "Stopped",
        &json!({"runStrategy": strategy, "conditions": gone()}),
    );
    let now = player.now();
    player.until(now + 5.0);
}

// S-2, V-16: Off, then On is what starts it again.
#[test]
fn a_guest_that_shut_itself_down_stays_down_until_the_machine_was_off_by_its_specification() {
    let mut player = running(OnGuestShutdown::StayOff);
    player.set_guest(|g| phase(g, "Succeeded"));
    assert!(
        player.writes.is_empty(),
        "KubeVirt's word for it comes at once"
    );
    cleared(&mut player);
    assert_eq!(player.condition(READY), "False GuestShutDown");
    assert_eq!(player.condition(POWER_IN_SYNC), "True GuestShutDown");
    assert_eq!(player.last_stop(), "GuestShutDown i1");
    assert_eq!(player.phases(), ["Stopping", "Stopped"]);
    assert_eq!(player.writes.len(), 2, "as many as for any other stop");

    player.restart();
    player.until(2000.0);
    assert_eq!(
        player.writes.len(),
        2,
        "it is on purpose, however long it takes"
    );

    player.power(PowerState::Off);
    player.set_vm(
        "Stopped",
        &json!({"runStrategy": "Halted", "conditions": gone()}),
    );
    assert_eq!(player.condition(READY), "True Stopped");
    assert_eq!(player.last_stop(), "SwitchedOff i1");

    player.restart();
    player.power(PowerState::On);
    player.pass();
    player.until(2010.0);
    assert_eq!(player.condition(READY), "False StartPending");
    player.set_vm(
        "Starting",
        &json!({"runStrategy": "RerunOnFailure", "conditions": gone()}),
    );
    assert_eq!(
        player.last_stop(),
        "none",
        "a start ends the stop before it"
    );
}

// S-2
#[test]
fn with_restart_a_guest_that_shut_itself_down_is_on_its_way_again() {
    let mut player = running(OnGuestShutdown::Restart);
    player.set_guest(|g| phase(g, "Succeeded"));
    player.set_vm("Stopped", &json!({"created": true, "conditions": ready()}));
    assert_eq!(player.last_stop(), "GuestShutDown i1");
    player.instance = None;
    player.set_vm("Starting", &json!({"conditions": gone()}));
    player.until(5.0);
    assert_eq!(player.condition(READY), "False Starting");
    assert_eq!(player.last_stop(), "none");

    // The start may be over before anybody looks.
    let mut player = running(OnGuestShutdown::Restart);
    player.set_guest(|g| phase(g, "Succeeded"));
    player.set_vm("Stopped", &json!({"created": true, "conditions": ready()}));
    player.instance = Some(guest());
    player.instance.as_mut().unwrap().metadata.uid = Some("i2".to_owned());
    player.set_vm("Running", &json!({"created": true, "conditions": ready()}));
    player.until(5.0);
    assert_eq!(player.last_stop(), "none");
}

// V-16, S-5: what KubeVirt does not do by itself under this strategy wakes kite-vm at once.
#[test]
fn a_guest_that_was_taken_away_is_to_come_back_whatever_becomes_of_one_that_shuts_itself_down() {
    let ends: [(&str, &[Change]); 3] = [
        ("GuestStopped i1", &[told_to_go, |g| phase(g, "Succeeded")]),
        (
            "GuestEvicted i1",
            &[
                |g| g.status.get_or_insert_default().evacuation_node_name = Some("n1".to_owned()),
                told_to_go,
                |g| phase(g, "Succeeded"),
            ],
        ),
        ("GuestCrashed i1", &[|g| phase(g, "Failed")]),
    ];
    for (expected, steps) in ends {
        let mut player = running(OnGuestShutdown::StayOff);
        for step in steps {
            player.set_guest(step);
        }
        cleared(&mut player);
        assert_eq!(player.last_stop(), expected);
        assert_eq!(player.condition(READY), "False StartPending");
        assert_eq!(player.condition(POWER_IN_SYNC), "False StartNeeded");
        // kite-vm applies Halted, waits for it, and then what it was.
        let writes = player.writes.len();
        player.set_vm(
            "Stopped",
            &json!({"runStrategy": "Halted", "conditions": gone()}),
        );
        player.until(20.0);
        assert_eq!(player.writes.len(), writes, "it is not told so in between");
        player.set_vm(
            "Starting",
            &json!({"runStrategy": "RerunOnFailure", "conditions": gone()}),
        );
        assert_eq!(player.condition(POWER_IN_SYNC), "Unknown InTransition");
        assert_eq!(player.events, Vec::<String>::new());
    }
}

// S-2: a start that is queued is KubeVirt's own business.
#[test]
fn a_crashed_guest_that_kubevirt_starts_again_wakes_nobody() {
    let mut player = running(OnGuestShutdown::StayOff);
    player.set_guest(|g| phase(g, "Failed"));
    player.instance = None;
    let queued = json!({
        "runStrategy": "RerunOnFailure", "conditions": gone(), "stateChangeRequests": [{"action": "Start"}],
    });
    player.set_vm("Stopped", &queued);
    player.until(10.0);
    assert_eq!(player.condition(POWER_IN_SYNC), "Unknown InTransition");
    assert_eq!(player.last_stop(), "GuestCrashed i1");
}

// S-2: the two kinds are watched one by one, and either may be late.
#[test]
fn a_machine_that_reads_stopped_before_its_guest_is_seen_to_have_ended_is_still_stopping() {
    let mut player = running(OnGuestShutdown::StayOff);
    player.set_vm(
        "Stopped",
        &json!({"runStrategy": "RerunOnFailure", "conditions": gone()}),
    );
    player.until(60.0);
    assert_eq!(player.condition(READY), "False Stopping");
    player.set_guest(|g| phase(g, "Succeeded"));
    player.instance = None;
    player.pass();
    player.until(70.0);
    assert_eq!(player.condition(READY), "False GuestShutDown");
}

// S-2, V-16: it may have shut itself down, and then it must not be started.
#[test]
fn a_guest_that_ended_while_nobody_looked_stays_down_and_says_that_nobody_knows_why() {
    let mut player = running(OnGuestShutdown::StayOff);
    player.instance = None;
    player.restart();
    player.set_vm(
        "Stopped",
        &json!({"runStrategy": "RerunOnFailure", "conditions": gone()}),
    );
    player.until(10.0);
    assert_eq!(player.last_stop(), "NotSeen -");
    assert_eq!(player.condition(READY), "False LastStopUnknown");
    assert_eq!(player.condition(POWER_IN_SYNC), "True LastStopUnknown");
    player.writes.clear();
    player.restart();
    player.until(60.0);
    assert!(player.writes.is_empty());
    player.power(PowerState::Off);
    player.set_vm(
        "Stopped",
        &json!({"runStrategy": "Halted", "conditions": gone()}),
    );
    assert_eq!(player.last_stop(), "SwitchedOff -");
    player.power(PowerState::On);
    player.pass();
    player.until(70.0);
    assert_eq!(player.condition(READY), "False StartPending");
}

// S-2, C-5: off and on take the writes that they took without it.
#[test]
fn a_machine_that_is_switched_off_says_so_in_the_write_that_says_stopped() {
    let mut player = running(OnGuestShutdown::Restart);
    player.power(PowerState::Off);
    player.set_guest(told_to_go);
    player.set_vm("Stopping", &json!({"created": true, "conditions": ready()}));
    player.set_guest(|g| phase(g, "Succeeded"));
    player.set_vm("Stopped", &json!({"created": true, "conditions": ready()}));
    player.until(5.0);
    player.instance = None;
    player.set_vm("Stopped", &json!({"conditions": gone()}));
    player.until(10.0);
    assert_eq!(player.writes.len(), 2);
    assert_eq!(player.last_stop(), "SwitchedOff i1");
    assert_eq!(player.writes[0].1.last_stop, None);
    // Taken out of the status, it is told again; alone it is not urgent.
    player.machine.status.as_mut().unwrap().last_stop = None;
    player.pass();
    assert_eq!(player.writes.len(), 2);
    player.until(15.0);
    assert_eq!(player.writes.len(), 3);
    assert_eq!(player.last_stop(), "SwitchedOff i1");
    player.restart();
    player.until(100.0);
    assert_eq!(player.writes.len(), 3);
}

// S-8
#[test]
fn a_machine_that_is_leaving_says_nothing_of_its_last_stop() {
    let mut player = running(OnGuestShutdown::StayOff);
    player.set_guest(|g| phase(g, "Succeeded"));
    cleared(&mut player);
    player.machine.spec.delete = true;
    crate::common::say(&mut player.machine, "Deleting", "True", "Requested");
    player.pass();
    assert_eq!(player.last_stop(), "none");
}
