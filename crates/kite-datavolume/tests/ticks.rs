//! What is told of a disk, when, and how often.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kite_api::condition::{DISK_READY, find};
use kite_api::{KiteVirtualMachine, KiteVirtualMachineStatus};
use kite_datavolume::observe::reading::read;
use kite_datavolume::status::clocks::{Clocks, Decision, Holds};
use kite_datavolume::status::{Disk, standing, tell};
use serde_json::{Value, json};
use tokio::time::Instant;

const HOLDS: Holds = Holds {
    error: Duration::from_secs(10),
    tick: Duration::from_secs(10),
    stuck: Duration::from_secs(900),
};

/// The controller with its watches and its clock played by a test.
struct Player {
    machine: KiteVirtualMachine,
    disk: Disk,
    holds: Holds,
    writes: Vec<(f64, KiteVirtualMachineStatus)>,
    clocks: Clocks,
    start: Instant,
    now: Duration,
}

impl Player {
    fn new() -> Self {
        let machine = json!({
            "apiVersion": "kite.dev/v1alpha1", "kind": "KiteVirtualMachine",
            "metadata": {"name": "web", "namespace": "alice", "uid": "k1", "generation": 1},
            "spec": {"cpu": 1, "memory": "1Gi", "disk": "2Gi", "image": "ubuntu"}
        });
        Self {
            machine: serde_json::from_value(machine).unwrap(),
            disk: Disk::None,
            holds: HOLDS,
            writes: Vec::new(),
            clocks: Clocks::default(),
            start: Instant::now(),
            now: Duration::ZERO,
        }
    }

    /// Time passes; the passes that were asked for meanwhile run.
    fn until(&mut self, seconds: f64) {
        let until = Duration::from_secs_f64(seconds);
        while let Some(wait) = self.pass() {
            if self.now + wait > until {
                break;
            }
            self.now += wait;
        }
        self.now = self.now.max(until);
    }

    fn pass(&mut self) -> Option<Duration> {
        let now = self.start + self.now;
        self.clocks.meet(&self.machine);
        let (elapsed, next) = self
            .clocks
            .note(&self.machine, &self.disk, &self.holds, now);
        let told = tell(
            &self.machine,
            &self.disk,
            elapsed,
            &Time(Timestamp::UNIX_EPOCH),
        );
        match self
            .clocks
            .decide(told, &standing(&self.machine), next, &self.holds, now)
        {
            Decision::Wait(next) => next,
            Decision::Write(status) => {
                self.writes
                    .push((self.now.as_secs_f64(), (*status).clone()));
                self.machine.status = Some(*status);
                self.pass()
            }
        }
    }

    /// CDI says something, after some seconds.
    fn cdi(&mut self, at: f64, status: &Value) {
        self.until(at);
        let disk =
            serde_json::from_value(json!({"metadata": {"name": "web"}, "status": status})).unwrap();
        self.disk = Disk::DataVolume(read(&disk), true);
        self.pass();
    }

    fn restart(&mut self) {
        self.clocks = Clocks::default();
        self.writes.clear();
        self.pass();
    }

    /// `status reason` of `DiskReady`.
    fn ready(&self) -> String {
        let status = self.machine.status.clone().unwrap_or_default();
        find(&status.conditions, DISK_READY).map_or_else(
            || "absent".to_owned(),
            |c| format!("{} {}", c.status, c.reason),
        )
    }

    fn clone_life(&mut self) {
        self.cdi(0.0, &json!({}));
        self.cdi(0.1, &json!({"phase": "Pending", "progress": "N/A"}));
        self.cdi(0.3, &json!({"phase": "CloneScheduled", "progress": "N/A"}));
        self.cdi(2.0, &json!({"phase": "CloneInProgress", "progress": "N/A"}));
        for tick in 1..=20 {
            let progress = format!("{}.5%", tick * 5 - 1);
            self.cdi(
                2.0 + 3.0 * f64::from(tick),
                &json!({"phase": "CloneInProgress", "progress": progress}),
            );
        }
        self.cdi(
            62.05,
            &json!({"phase": "RebindInProgress", "progress": "100.0%"}),
        );
        self.cdi(62.2, &json!({"phase": "Succeeded", "progress": "100.0%"}));
        self.until(120.0);
    }
}

fn error(message: &str) -> Value {
    json!({"phase": "CloneScheduled", "progress": "N/A", "conditions": [
        {"type": "Running", "status": "False", "reason": "Error", "message": message}
    ]})
}

// D-2, C-5: performance.md counts eight.
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
}

// D-5
#[test]
fn a_claim_without_its_datavolume_is_a_disk_and_a_lost_claim_is_none() {
    let mut player = Player::new();
    player.clone_life();
    player.disk = Disk::ClaimOnly;
    player.pass();
    assert_eq!(player.ready(), "True ClaimOnly");
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
