//! The controller with its watches and its clock played by a test.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kite_api::condition::{DISK_READY, find};
use kite_api::{KiteVirtualMachine, KiteVirtualMachineStatus};
use kite_datavolume::observe::reading::read;
use kite_datavolume::status::clocks::{Clocks, Holds};
use kite_datavolume::status::{Disk, standing, tell};
use kite_runtime::mirror::Decision;
use serde_json::{Value, json};
use tokio::time::Instant;

/// The times of an installation that sets none.
pub(crate) const HOLDS: Holds = Holds {
    error: Duration::from_secs(10),
    tick: Duration::from_secs(10),
    stuck: Duration::from_secs(900),
};

/// The controller with its watches and its clock played by a test.
pub(crate) struct Player {
    pub(crate) machine: KiteVirtualMachine,
    pub(crate) disk: Disk,
    pub(crate) holds: Holds,
    pub(crate) writes: Vec<(f64, KiteVirtualMachineStatus)>,
    clocks: Clocks,
    start: Instant,
    now: Duration,
}

impl Player {
    pub(crate) fn new() -> Self {
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
    pub(crate) fn until(&mut self, seconds: f64) {
        let until = Duration::from_secs_f64(seconds);
        while let Some(wait) = self.pass() {
            if self.now + wait > until {
                break;
            }
            self.now += wait;
        }
        self.now = self.now.max(until);
    }

    pub(crate) fn pass(&mut self) -> Option<Duration> {
        let now = self.start + self.now;
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
    pub(crate) fn cdi(&mut self, at: f64, status: &Value) {
        self.until(at);
        self.shows(status);
        self.pass();
    }

    /// CDI has said something, and the next pass sees it.
    pub(crate) fn shows(&mut self, status: &Value) {
        let disk =
            serde_json::from_value(json!({"metadata": {"name": "web"}, "status": status})).unwrap();
        self.disk = Disk::DataVolume(read(&disk), None);
    }

    pub(crate) fn restart(&mut self) {
        self.clocks = Clocks::default();
        self.writes.clear();
        self.pass();
    }

    /// `status reason` of `DiskReady`.
    pub(crate) fn ready(&self) -> String {
        let status = self.machine.status.clone().unwrap_or_default();
        find(&status.conditions, DISK_READY).map_or_else(
            || "absent".to_owned(),
            |c| format!("{} {}", c.status, c.reason),
        )
    }

    pub(crate) fn clone_life(&mut self) {
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

/// A clone that CDI cannot begin, and why.
pub(crate) fn error(message: &str) -> Value {
    json!({"phase": "CloneScheduled", "progress": "N/A", "conditions": [
        {"type": "Running", "status": "False", "reason": "Error", "message": message}
    ]})
}
