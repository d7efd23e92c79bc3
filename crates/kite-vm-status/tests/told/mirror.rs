//! What KubeVirt says that is shown as it is, and a node that is lost (rules S-6, S-9).

use crate::common::{Player, guest, machine, say};
use kite_api::condition::{
    AGENT_CONNECTED, LIVE_MIGRATABLE, PAUSED, POWER_IN_SYNC, READY, RESTART_REQUIRED,
};
use kite_api::machine::{Phase, PowerState};
use kite_kubevirt::VirtualMachineInstance;
use kite_kubevirt::read::Condition;
use serde_json::{Value, json};

fn ready() -> Value {
    json!({"created": true, "conditions": [{"type": "Ready", "status": "True"}]})
}

/// A machine that runs and of which that is told.
fn running() -> Player {
    let mut player = Player::new(machine("On"));
    player.instance = Some(guest());
    player.set_vm("Running", &ready());
    player.writes.clear();
    player
}

fn says(guest: &mut VirtualMachineInstance, type_: &str, status: &str, reason: &str) {
    let conditions = guest
        .status
        .as_mut()
        .unwrap()
        .conditions
        .get_or_insert_default();
    conditions.retain(|c| c.type_ != type_);
    conditions.push(Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some("since 12:00:03, request 4711".to_owned()),
        last_transition_time: None,
    });
}

// S-6
#[test]
fn an_agent_that_connects_is_one_write_more_and_no_other_when_nothing_changes() {
    let mut player = running();
    player.set_guest(|g| says(g, "AgentConnected", "True", ""));
    player.until(10.0);
    assert_eq!(player.writes.len(), 1);
    assert_eq!(player.condition(AGENT_CONNECTED), "True AgentAnswers");
    player.restart();
    player.until(1000.0);
    assert_eq!(player.writes.len(), 1);
}

// S-6, C-5
#[test]
fn what_is_told_aside_waits_a_moment_for_more_of_it() {
    let mut player = running();
    player.set_guest(|g| says(g, "LiveMigratable", "True", ""));
    player.until(1.0);
    player.set_guest(|g| says(g, "AgentConnected", "True", ""));
    player.until(1.9);
    assert!(player.writes.is_empty());
    player.until(10.0);
    assert_eq!(player.writes.len(), 1);
    assert_eq!(player.condition(LIVE_MIGRATABLE), "True ToldByKubeVirt");
    assert_eq!(player.condition(AGENT_CONNECTED), "True AgentAnswers");
}

// S-7, C-5: so does the line that says what is in the way.
#[test]
fn a_service_that_has_long_been_missing_is_told_of_a_moment_later() {
    let mut player = running();
    say(&mut player.machine, "ServiceReady", "False", "Missing");
    player.pass();
    player.until(11.5);
    assert!(player.writes.is_empty());
    player.until(13.0);
    assert_eq!(player.writes.len(), 1);
}

// S-6, C-5, V-5: a refusal is told at once, and what is told aside of that machine is not.
#[test]
fn what_is_told_aside_of_a_machine_that_was_refused_waits_as_well() {
    let mut player = running();
    for (type_, status) in [
        ("ResourcesApplied", "False"),
        ("Accepted", "False"),
        ("Stalled", "True"),
    ] {
        say(&mut player.machine, type_, status, "InvalidSpec");
    }
    player.pass();
    assert_eq!(player.writes.len(), 1);
    player.until(10.0);
    player.set_guest(|g| says(g, "AgentConnected", "True", ""));
    assert_eq!(player.writes.len(), 1);
    player.until(20.0);
    assert_eq!(player.writes.len(), 2);
}

// S-6, C-4: KubeVirt's words may hold what changes by itself.
#[test]
fn the_words_are_kites_own_and_the_reason_is_kubevirts_where_it_is_one() {
    let mut player = running();
    player.set_guest(|g| says(g, "LiveMigratable", "False", "DisksNotLiveMigratable"));
    player.until(10.0);
    assert_eq!(
        player.condition(LIVE_MIGRATABLE),
        "False DisksNotLiveMigratable"
    );
    let status = player.machine.status.clone().unwrap();
    let told = kite_api::condition::find(&status.conditions, LIVE_MIGRATABLE).unwrap();
    assert!(!told.message.contains("4711"), "{}", told.message);
    for (reason, expected) in [
        ("two words", "ToldByKubeVirt"),
        ("", "ToldByKubeVirt"),
        ("-", "ToldByKubeVirt"),
    ] {
        player.set_guest(|g| says(g, "LiveMigratable", "Maybe", reason));
        let now = player.now();
        player.until(now + 10.0);
        assert_eq!(
            player.condition(LIVE_MIGRATABLE),
            format!("Unknown {expected}")
        );
    }
}

// S-6
#[test]
fn a_restart_that_is_required_is_advice_and_moves_nothing() {
    let mut player = running();
    let mut vm = ready();
    vm["conditions"]
        .as_array_mut()
        .unwrap()
        .push(json!({"type": "RestartRequired", "status": "True"}));
    player.set_vm("Running", &vm);
    player.until(10.0);
    assert_eq!(
        player.condition(RESTART_REQUIRED),
        "True ChangesWaitForRestart"
    );
    assert_eq!(player.condition(READY), "True Running");
    assert_eq!(player.condition(POWER_IN_SYNC), "True InSync");
    assert_eq!(player.phases(), ["Running"]);
    assert_eq!(player.events, ["RestartRequired"]);
    player.set_vm("Running", &ready());
    player.until(20.0);
    assert_eq!(player.condition(RESTART_REQUIRED), "absent");
}

// S-6, F-7
#[test]
fn a_paused_machine_is_shown_as_paused_and_heals() {
    let mut player = running();
    let paused = json!({"created": true, "conditions": [
        {"type": "Ready", "status": "True"}, {"type": "Paused", "status": "True", "reason": "PausedByUser"},
    ]});
    player.set_vm("Paused", &paused);
    assert_eq!(player.condition(PAUSED), "True PausedByUser");
    assert_eq!(player.condition(READY), "False Paused");
    assert_eq!(player.writes.len(), 1, "all of it is one write");
    player.set_vm("Running", &ready());
    assert_eq!(player.condition(PAUSED), "absent");
    assert_eq!(player.condition(READY), "True Running");
    assert_eq!(player.writes.len(), 2);
    assert_eq!(player.events, ["Paused"]);
}

// S-6
#[test]
fn what_is_told_of_a_guest_is_kept_on_its_way_down_and_not_told_of_one_that_is_gone() {
    let mut player = running();
    player.set_guest(|g| says(g, "LiveMigratable", "False", "DisksNotLiveMigratable"));
    player.set_guest(|g| says(g, "AgentConnected", "Maybe", ""));
    player.until(10.0);
    player.power(PowerState::Off);
    player.set_guest(|g| g.status.as_mut().unwrap().conditions = None);
    player.set_vm("Stopping", &ready());
    player.until(20.0);
    let kept = "False DisksNotLiveMigratable";
    assert_eq!(player.condition(LIVE_MIGRATABLE), kept);
    assert_eq!(player.condition(AGENT_CONNECTED), "Unknown AgentAnswers");
    player.instance = None;
    let waits = json!({"conditions": [
        {"type": "Ready", "status": "False"}, {"type": "RestartRequired", "status": "True"},
    ]});
    player.set_vm("Stopped", &waits);
    player.until(30.0);
    assert_eq!(player.condition(LIVE_MIGRATABLE), "absent");
    assert_eq!(player.condition(RESTART_REQUIRED), "absent");
}

// S-6, C-5: a guest on its way down loses one after the other.
#[test]
fn switching_off_takes_no_more_writes_for_what_was_mirrored() {
    let mut player = running();
    player.set_guest(|g| says(g, "LiveMigratable", "True", ""));
    player.set_guest(|g| says(g, "AgentConnected", "True", ""));
    player.until(10.0);
    player.writes.clear();
    player.power(PowerState::Off);
    player.set_vm("Stopping", &ready());
    player.set_guest(|g| g.status.as_mut().unwrap().conditions = None);
    player.until(20.0);
    player.instance = None;
    let gone =
        json!({"conditions": [{"type": "Ready", "status": "False", "reason": "VMINotExists"}]});
    player.set_vm("Stopped", &gone);
    player.until(30.0);
    assert_eq!(player.writes.len(), 2);
    for type_ in [LIVE_MIGRATABLE, AGENT_CONNECTED] {
        assert_eq!(player.condition(type_), "absent");
    }
}

// S-9, C-16
#[test]
fn a_node_that_is_lost_is_told_with_what_was_known_and_heals() {
    let mut player = running();
    player.set_guest(|g| {
        g.status.as_mut().unwrap().phase = Some("Unknown".to_owned());
        says(g, "Ready", "False", "GuestNotRunning");
    });
    let lost = json!({"created": true, "conditions": [{"type": "Ready", "status": "False"}]});
    player.set_vm("Unknown", &lost);
    player.until(100.0);
    assert_eq!(player.condition(READY), "False NodeUnreachable");
    assert_eq!(player.condition(POWER_IN_SYNC), "Unknown NodeUnreachable");
    assert_eq!(player.writes.len(), 1);
    let status = player.machine.status.clone().unwrap();
    assert_eq!(status.phase, Some(Phase::Unknown));
    assert_eq!(status.current_power_state, Some(PowerState::On));
    assert_eq!(status.node_name.as_deref(), Some("n1"));
    assert_eq!(status.last_stop, None);
    player.restart();
    player.until(1000.0);
    assert_eq!(player.writes.len(), 1);

    // It is told to go, which it cannot: the node is still what is in the way.
    player.power(PowerState::Off);
    player.set_guest(|g| {
        let now = json!("2026-01-01T00:00:00Z");
        g.metadata.deletion_timestamp = serde_json::from_value(now).unwrap();
    });
    player.set_vm("Stopping", &lost);
    player.until(2000.0);
    assert_eq!(player.condition(READY), "False NodeUnreachable");
    assert_eq!(
        player.machine.status.as_ref().unwrap().phase,
        Some(Phase::Stopping)
    );
    assert_eq!(player.events, ["NodeUnreachable"]);
}

// S-9, C-16
#[test]
fn a_node_that_comes_back_brings_the_machine_back() {
    let mut player = running();
    player.set_guest(|g| g.status.as_mut().unwrap().phase = Some("Unknown".to_owned()));
    player.set_vm("Unknown", &json!({"created": true}));
    player.set_guest(|g| g.status.as_mut().unwrap().phase = Some("Running".to_owned()));
    player.set_vm("Running", &ready());
    player.until(10.0);
    assert_eq!(player.condition(READY), "True Running");
    assert_eq!(player.condition(POWER_IN_SYNC), "True InSync");
    assert_eq!(player.events, ["NodeUnreachable", "Recovered"]);
    assert_eq!(player.phases(), ["Unknown", "Running"]);
}

// S-9: KubeVirt gives the guest up, and starts another elsewhere.
#[test]
fn a_guest_that_kubevirt_gave_up_with_its_node_is_told_as_such() {
    let mut player = running();
    player.set_guest(|g| {
        let status = g.status.as_mut().unwrap();
        status.phase = Some("Failed".to_owned());
        status.reason = Some("NodeUnresponsive".to_owned());
    });
    player.until(5.0);
    assert_eq!(player.condition(READY), "False NodeUnreachable");
    assert_eq!(player.last_stop(), "NodeUnreachable i1");
    player.instance = None;
    player.set_vm("Starting", &json!({}));
    assert_eq!(player.condition(READY), "False Starting");
    assert_eq!(player.last_stop(), "none");
}
