//! How often a clone is told of.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::player::Player;

// D-2, C-5: the budget has eight.
#[test]
fn a_clone_of_twenty_ticks_is_told_in_eight_writes_the_first_and_the_last_at_once() {
    let mut player = Player::new();
    player.clone_life();
    let told: Vec<String> = player
        .writes
        .iter()
        .map(|(_, s)| {
            format!(
                "{} {}",
                s.data_volume_phase.as_deref().unwrap(),
                s.data_volume_progress.as_deref().unwrap_or("-")
            )
        })
        .collect();
    assert_eq!(told.len(), 8, "{told:?}");
    assert_eq!(
        (told[0].as_str(), told[7].as_str()),
        ("CloneScheduled -", "Succeeded 100%")
    );
    assert_eq!(told[1], "CloneInProgress 4%");
    let (first, last) = (player.writes[1].0, player.writes[7].0);
    assert!(
        (first - 5.0).abs() < 0.01 && (last - 62.2).abs() < 0.01,
        "{first} {last}"
    );
    assert_eq!(player.ready(), "True Succeeded");
}

// D-2
#[test]
fn every_tick_is_told_to_those_who_want_all() {
    let mut player = Player::new();
    player.holds.tick = Duration::ZERO;
    player.clone_life();
    assert!(player.writes.len() >= 22, "{}", player.writes.len());
    // Also two of them that are closer than a moment.
    let mut player = Player::new();
    player.holds.tick = Duration::ZERO;
    for (at, progress) in [(0.0, "1%"), (5.0, "2%"), (5.1, "3%"), (5.2, "4%")] {
        player.cdi(
            at,
            &json!({"phase": "CloneInProgress", "progress": progress}),
        );
    }
    let told = player.writes.iter().map(|(_, s)| &s.data_volume_progress);
    let told: Vec<_> = told.map(|p| p.as_deref().unwrap()).collect();
    assert_eq!(told, ["1%", "2%", "3%", "4%"]);
}

// C-5
#[test]
fn a_restart_after_a_clone_writes_nothing() {
    let mut player = Player::new();
    player.clone_life();
    player.restart();
    player.until(5000.0);
    assert!(player.writes.is_empty());
}

// D-2, VM17
#[test]
fn a_clone_that_begins_again_is_told_as_it_is_and_its_progress_alone_is_no_success() {
    let mut player = Player::new();
    let at = |progress: &str, restarts: i64| json!({"phase": "CloneInProgress", "progress": progress, "restartCount": restarts});
    player.cdi(0.0, &at("97.20%", 98));
    player.cdi(20.0, &at("0.00%", 99));
    player.until(40.0);
    let told = |player: &Player| player.machine.status.clone().unwrap();
    assert_eq!(told(&player).data_volume_progress.as_deref(), Some("0%"));
    assert_eq!(
        told(&player).data_volume_message.as_deref(),
        Some("CDI's worker was started anew 99 times")
    );
    assert_eq!(player.ready(), "False Retrying");
    player.cdi(50.0, &at("100.0%", 99));
    player.until(70.0);
    assert_eq!(told(&player).data_volume_progress.as_deref(), Some("100%"));
    assert_eq!(player.ready(), "False Retrying");
    player.cdi(
        71.0,
        &json!({"phase": "Succeeded", "progress": "100.0%", "restartCount": 99}),
    );
    assert_eq!(player.ready(), "True Succeeded");
    assert_eq!(told(&player).data_volume_message, None);
}

// D-2
#[test]
fn what_is_no_number_is_not_told_and_does_not_count_as_the_last() {
    let mut player = Player::new();
    let at = |progress: &str| json!({"phase": "CloneInProgress", "progress": progress});
    for (time, raw, told) in [
        (0.0, "N/A", None),
        (20.0, "many", None),
        (40.0, "12.9%", Some("12%")),
        (60.0, "101%", None),
        (80.0, "13%", Some("13%")),
    ] {
        player.cdi(time, &at(raw));
        player.until(time + 15.0);
        let status = player.machine.status.clone().unwrap();
        assert_eq!(status.data_volume_progress.as_deref(), told, "{raw}");
    }
}

// D-3, D-4: what the real CDI wrote.
#[test]
fn the_recorded_clones_succeed_and_the_recorded_quota_is_named() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kite-testkit/recordings/clone.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    for name in ["m", "m3", "p1", "q1"] {
        let mut player = Player::new();
        let mut said = Vec::new();
        for line in lines
            .iter()
            .filter(|l| l["kind"] == "DV" && l["name"] == name && l["type"] != "DELETED")
        {
            player.until(line["t"].as_f64().unwrap());
            said.push(player.ready());
            player.cdi(line["t"].as_f64().unwrap(), &line["status"]);
        }
        assert_eq!(player.ready(), "True Succeeded", "{name}");
        let quota = said.iter().any(|s| s == "False QuotaExceeded");
        assert_eq!(quota, name == "q1", "{name}: {said:?}");
    }
}
