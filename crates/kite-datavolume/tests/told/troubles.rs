//! What is made of a clone that does not go on, and of a disk that is gone.

use kite_datavolume::status::Disk;
use serde_json::json;

use crate::player::{Player, error};

// D-4
#[test]
fn an_error_counts_when_it_has_stood_for_ten_seconds() {
    let mut player = Player::new();
    player.cdi(0.0, &error("exceeded quota: q"));
    player.until(9.9);
    assert_eq!(player.ready(), "False InProgress");
    player.until(10.1);
    assert_eq!(player.ready(), "False QuotaExceeded");
    player.restart();
    player.until(60.0);
    assert!(player.writes.is_empty(), "a restart does not take it back");
    player.cdi(
        61.0,
        &json!({"phase": "CloneInProgress", "progress": "N/A"}),
    );
    player.until(63.0);
    assert_eq!(player.ready(), "False InProgress", "it heals by itself");
}

// D-4: what the real CDI does for 30 ms when its worker ends.
#[test]
fn a_flicker_when_the_worker_ends_is_not_told() {
    let mut player = Player::new();
    player.cdi(0.0, &json!({"phase": "CloneInProgress", "progress": "50%"}));
    player.until(20.0);
    let writes = player.writes.len();
    let flicker = json!({"phase": "CloneInProgress", "progress": "50%", "conditions": [
        {"type": "Running", "status": "False", "reason": "Error", "message": "the worker has ended"}
    ]});
    player.cdi(20.0, &flicker);
    player.cdi(
        20.03,
        &json!({"phase": "CloneInProgress", "progress": "50%"}),
    );
    player.until(60.0);
    assert_eq!(player.writes.len(), writes);
}

// D-4
#[test]
fn a_disk_on_which_nothing_moves_is_stuck_after_a_while_unless_it_waits_for_its_first_boot() {
    let mut player = Player::new();
    player.cdi(0.0, &json!({"phase": "CloneScheduled", "progress": "N/A"}));
    player.until(899.0);
    assert_eq!(player.ready(), "False InProgress");
    player.until(901.0);
    assert_eq!(player.ready(), "False Stuck");
    player.restart();
    player.until(5000.0);
    assert!(player.writes.is_empty(), "{:?}", player.writes);
    for phase in ["WaitForFirstConsumer", "PendingPopulation"] {
        let mut player = Player::new();
        player.cdi(0.0, &json!({"phase": phase, "progress": "N/A"}));
        player.until(5000.0);
        assert_eq!(player.ready(), "False WaitingForFirstBoot");
    }
}

// D-4: clone errors never set CDI's phase to Failed.
#[test]
fn an_error_that_lasts_is_retrying_and_then_stuck() {
    let mut player = Player::new();
    player.cdi(0.0, &error("no volume"));
    player.until(20.0);
    assert_eq!(player.ready(), "False Retrying");
    let status = player.machine.status.clone().unwrap();
    assert_eq!(status.data_volume_message.as_deref(), Some("no volume"));
    player.until(1000.0);
    assert_eq!(player.ready(), "False Stuck");
    player.restart();
    player.until(5000.0);
    assert!(player.writes.is_empty(), "{:?}", player.writes);
}

// D-4
#[test]
fn a_growing_restart_count_is_retrying_and_one_that_was_there_before_is_not() {
    let mut player = Player::new();
    let restarted =
        |n: i64| json!({"phase": "CloneInProgress", "progress": "10%", "restartCount": n});
    player.cdi(0.0, &restarted(2));
    player.until(5.0);
    assert_eq!(player.ready(), "False InProgress");
    player.cdi(6.0, &restarted(3));
    assert_eq!(player.ready(), "False Retrying");
    // Told with its error, it need not stand first: it has happened before.
    let mut player = Player::new();
    player.cdi(0.0, &restarted(2));
    let mut failed = restarted(3);
    failed["conditions"] = error("reset")["conditions"].clone();
    player.cdi(6.0, &failed);
    assert_eq!(player.ready(), "False Retrying");
}

// D-4, C-5: after a restart of this process what was told stands, until the clone has gone on for long.
#[test]
fn a_restart_loop_that_was_told_is_forgiven_when_it_has_not_gone_on_for_long() {
    let running = |restarts: i64| json!({"phase": "CloneInProgress", "progress": "3%", "restartCount": restarts});
    for (restarts, said) in [
        (2, "False Retrying"),
        (1, "False Retrying"),
        (0, "False InProgress"),
    ] {
        let mut player = Player::new();
        player.cdi(0.0, &error("reset"));
        player.until(20.0);
        assert_eq!(player.ready(), "False Retrying");
        player.shows(&running(restarts));
        player.restart();
        player.until(30.0);
        assert_eq!(player.ready(), said, "{restarts} restarts");
        for minute in 1..=20 {
            let mut moved = running(restarts);
            moved["progress"] = format!("{}%", 3 + minute).into();
            player.cdi(30.0 + 60.0 * f64::from(minute), &moved);
        }
        assert_eq!(player.ready(), "False InProgress", "{restarts} restarts");
    }
}

// D-4, F-1: a worker that crashes every few seconds; its error comes and goes with it.
#[test]
fn a_restart_loop_is_one_trouble_and_does_not_go_to_and_fro() {
    let mut player = Player::new();
    let (mut at, mut said) = (0.0, Vec::new());
    for restarts in 0..40 {
        let running =
            json!({"phase": "CloneInProgress", "progress": "3%", "restartCount": restarts});
        player.cdi(at, &running);
        said.push(player.ready());
        let mut failed = running.clone();
        failed["conditions"] = error("reset")["conditions"].clone();
        player.cdi(at + 7.0, &failed);
        said.push(player.ready());
        at += 10.0;
    }
    said.dedup();
    assert_eq!(said, ["absent", "False InProgress", "False Retrying"]);
    let least = player.writes.windows(2).map(|w| w[1].0 - w[0].0);
    let at_once = least.filter(|gap| *gap < 10.0).count();
    assert!(at_once <= 2, "the first number and the trouble: {at_once}");
}

// D-5
#[test]
fn a_claim_without_its_datavolume_is_a_disk_and_a_lost_claim_is_none() {
    let mut player = Player::new();
    player.clone_life();
    player.disk = Disk::ClaimOnly(None);
    player.pass();
    assert_eq!(player.ready(), "True ClaimOnly");
    // What was last told of the DataVolume goes on standing.
    let told = player.machine.status.clone().unwrap();
    assert_eq!(told.data_volume_phase.as_deref(), Some("Succeeded"));
    assert_eq!(told.data_volume_progress.as_deref(), Some("100%"));
    player.disk = Disk::Lost;
    player.until(125.0);
    assert_eq!(player.ready(), "False DiskLost");
}

// C-14
#[test]
fn a_kind_that_is_not_served_is_not_read_as_a_disk_that_is_gone() {
    let mut player = Player::new();
    player.clone_life();
    player.disk = Disk::KindMissing;
    player.pass();
    assert_eq!(player.ready(), "Unknown DependencyMissing");
    assert_eq!(
        player.machine.status.unwrap().data_volume_phase.as_deref(),
        Some("Succeeded")
    );
    let mut player = Player::new();
    player.cdi(0.0, &error("no volume"));
    player.until(20.0);
    player.disk = Disk::KindMissing;
    player.pass();
    let told = player.machine.status.unwrap();
    assert_eq!(told.data_volume_message.as_deref(), Some("no volume"));
}
