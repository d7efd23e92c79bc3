//! The three recorded lives of machines, replayed step by step.
//!
//! Left out are only the states that the README of the recordings calls
//! untypical: `CrashLoopBackOff` where a run counted as a failed start.

use std::collections::BTreeSet;

use kite_testkit::stand_ins::Fault;
use kube::api::DynamicObject;
use serde_json::json;

use crate::harness::{Recorder, Stage, text};
use crate::recorded::{Recording, Said, compare};

struct Life {
    stage: Stage,
    machines: Recorder,
    recording: Recording,
    known: BTreeSet<Said>,
    mark: usize,
}

impl Life {
    async fn new(file: &str, namespace: &str) -> Self {
        let stage = Stage::new(namespace).await;
        // The player of the recordings was CDI; here the test is.
        stage.behaviour.set(namespace, "d", Fault::DiskUnseen);
        let machines = stage.record("VirtualMachine").await;
        let mut known = BTreeSet::new();
        for file in [
            "power.jsonl",
            "disk-and-run-strategy.jsonl",
            "order-of-creation.jsonl",
        ] {
            known.extend(Recording::read(file).vocabulary());
        }
        known.extend(tolerated());
        Self {
            stage,
            machines,
            recording: Recording::read(file),
            known,
            mark: 0,
        }
    }

    fn begin(&mut self) {
        self.mark = self.machines.mark();
    }

    /// Ends a step once the machine says what it ended with in the recording.
    async fn ends_as(&self, step: &str) {
        // Neither the failed starts that were none, nor the deletion between two steps.
        let untypical = ["CrashLoopBackOff", "Terminating"];
        let mut stood = self.recording.stood(step);
        stood.retain(|said| !untypical.contains(&said.printable.as_str()));
        let last = stood.last().unwrap().clone();
        eprintln!("step {step}: waiting for {last:?}");
        self.machines
            .wait("m", |machine| Said::live(machine).as_ref() == Some(&last))
            .await;
        let live = self.machines.since(self.mark, "m", Said::live);
        compare(step, &stood, &self.known, &live);
    }

    async fn volume_appears(&self) {
        self.stage.claim("d").await;
    }

    async fn create(&self, strategy: &str) {
        let volume = json!({"name": "root", "dataVolume": {"name": "d"}});
        self.stage
            .make("VirtualMachine", Stage::machine("m", strategy, &volume))
            .await;
    }

    async fn strategy(&self, strategy: &str) {
        let patch = json!({"spec": {"runStrategy": strategy}});
        self.stage.merge("VirtualMachine", "m", patch).await;
    }

    async fn data_volume(&self, phase: &str) {
        let namespace = &self.stage.namespace;
        self.stage.behaviour.set(namespace, "d", Fault::DiskUnseen);
        self.stage
            .make("DataVolume", Stage::disk("d", "golden"))
            .await;
        if !phase.is_empty() {
            self.stage.set_phase("d", phase).await;
        }
    }

    /// Machine, DataVolume and claim go.
    async fn clear(&self) {
        self.stage.delete("VirtualMachine", "m").await;
        self.stage.wait_gone("VirtualMachine", "m").await;
        assert!(
            self.stage
                .api("VirtualMachineInstance")
                .get_opt("m")
                .await
                .unwrap()
                .is_none()
        );
        for kind in ["DataVolume", "PersistentVolumeClaim"] {
            if self.stage.api(kind).get_opt("d").await.unwrap().is_some() {
                self.stage.delete(kind, "d").await;
            }
            self.stage.wait_gone(kind, "d").await;
        }
    }

    fn never_bound(&self, never: bool) {
        let (behaviour, namespace) = (&self.stage.behaviour, &self.stage.namespace);
        if never {
            behaviour.set(namespace, "d", Fault::NeverBound);
        } else {
            behaviour.clear(namespace, "d", &Fault::NeverBound);
        }
    }
}

/// States that the real controllers may pass through as well, but that none of
/// the three lives happened to show: the same words with another strategy, a
/// claim that is bound at once, or a launcher that ends in the other order.
fn tolerated() -> BTreeSet<Said> {
    let mut states = BTreeSet::new();
    let mut add = |printable: &str, created, ready: &str, strategy: &str| {
        states.insert(Said {
            printable: printable.to_owned(),
            created,
            ready: ready.to_owned(),
            strategy: strategy.to_owned(),
        });
    };
    for strategy in ["Always", "Halted", "RerunOnFailure"] {
        for ready in [
            "True",
            "False:GuestNotRunning",
            "False:PodTerminating",
            "False:PodNotExists",
        ] {
            add("Stopped", true, ready, strategy);
            add("Stopping", true, ready, strategy);
        }
        for ready in ["False:GuestNotRunning", "False:PodNotExists"] {
            add("Starting", true, ready, strategy);
        }
    }
    states
}

fn uid(object: &DynamicObject) -> String {
    object.metadata.uid.clone().unwrap()
}

#[tokio::test]
async fn power_goes_as_recorded() {
    let mut life = Life::new("power.jsonl", "power").await;
    life.create("Halted").await;
    life.ends_as("1 ").await;
    let machine = life.stage.api("VirtualMachine").get("m").await.unwrap();
    assert!(
        machine.metadata.generation.unwrap() >= 2,
        "virt-controller writes the spec at once"
    );

    life.begin();
    life.strategy("Always").await;
    life.ends_as("2 ").await;
    life.begin();
    life.never_bound(true);
    life.volume_appears().await;
    life.ends_as("3 ").await;
    life.begin();
    life.never_bound(false);
    life.ends_as("5 ").await;

    life.begin();
    let before = life
        .stage
        .api("VirtualMachineInstance")
        .get("m")
        .await
        .unwrap();
    life.stage.delete("VirtualMachineInstance", "m").await;
    life.stage
        .wait("VirtualMachineInstance", "m", |now| {
            uid(now) != uid(&before)
        })
        .await;
    life.ends_as("6 ").await;
    life.begin();
    life.strategy("Halted").await;
    life.ends_as("7 ").await;
    life.begin();
    life.strategy("Always").await;
    life.ends_as("8 ").await;

    life.begin();
    let before = life
        .stage
        .api("VirtualMachineInstance")
        .get("m")
        .await
        .unwrap();
    life.stage.behaviour.set("power", "m", Fault::GuestShutdown);
    life.stage
        .wait("VirtualMachineInstance", "m", |now| {
            uid(now) != uid(&before)
        })
        .await;
    life.ends_as("9 ").await;
}

#[tokio::test]
async fn disk_and_run_strategy_go_as_recorded() {
    let mut life = Life::new("disk-and-run-strategy.jsonl", "disk").await;
    life.never_bound(true);
    life.create("Always").await;
    life.ends_as("1 ").await;
    life.begin();
    life.data_volume("").await;
    life.stage
        .wait("VirtualMachineInstance", "m", |vmi| {
            crate::harness::conditions(vmi).contains_key("DataVolumesReady")
        })
        .await;
    life.begin();
    life.volume_appears().await;
    life.ends_as("3 ").await;
    life.begin();
    for phase in [
        "Pending",
        "CloneScheduled",
        "CloneInProgress",
        "WaitForFirstConsumer",
        "Failed",
    ] {
        life.stage.set_phase("d", phase).await;
        if matches!(phase, "WaitForFirstConsumer" | "Failed") {
            life.ends_as(&format!("4 DV {phase}")).await;
        }
    }
    life.begin();
    life.stage.set_phase("d", "Unknown").await;
    life.ends_as("4 DV Unknown").await;
    life.never_bound(false);
    life.stage
        .wait("PersistentVolumeClaim", "d", |claim| {
            text(claim, "/status/phase") == "Bound"
        })
        .await;
    life.begin();
    life.stage.set_phase("d", "Succeeded").await;
    life.ends_as("7 ").await;

    life.begin();
    let before = life
        .stage
        .api("VirtualMachineInstance")
        .get("m")
        .await
        .unwrap();
    life.stage.behaviour.set("disk", "m", Fault::GuestShutdown);
    life.stage
        .wait("VirtualMachineInstance", "m", |now| {
            uid(now) != uid(&before)
        })
        .await;
    life.ends_as("9 ").await;
    pause_and_rerun(life).await;
}

async fn pause_and_rerun(mut life: Life) {
    life.begin();
    life.stage.behaviour.set("disk", "m", Fault::Paused);
    life.machines
        .wait("m", |machine| {
            text(machine, "/status/printableStatus") == "Paused"
        })
        .await;
    life.stage.behaviour.clear("disk", "m", &Fault::Paused);
    life.ends_as("10 ").await;
    life.begin();
    life.strategy("RerunOnFailure").await;
    life.ends_as("11 ").await;
    life.begin();
    life.stage.behaviour.set("disk", "m", Fault::GuestShutdown);
    life.ends_as("12 ").await;

    // Applied again it changes nothing, so there is no event to wait for.
    let seen = life.machines.mark();
    life.strategy("RerunOnFailure").await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    assert_eq!(life.machines.mark(), seen);
    let instances = life.stage.api("VirtualMachineInstance");
    assert!(instances.get_opt("m").await.unwrap().is_none());

    life.begin();
    life.strategy("Halted").await;
    life.machines
        .wait("m", |machine| {
            text(machine, "/status/runStrategy") == "Halted"
        })
        .await;
    life.strategy("RerunOnFailure").await;
    life.ends_as("14 ").await;
    let before = life
        .stage
        .api("VirtualMachineInstance")
        .get("m")
        .await
        .unwrap();
    life.stage.behaviour.set("disk", "m", Fault::GuestCrash);
    life.stage
        .wait("VirtualMachineInstance", "m", |now| {
            uid(now) != uid(&before)
        })
        .await;
    life.ends_as("14 ").await;
    life.clear().await;
}

#[tokio::test]
async fn order_of_creation_goes_as_recorded() {
    let mut life = Life::new("order-of-creation.jsonl", "order").await;
    life.never_bound(true);
    life.data_volume("").await;
    life.create("Always").await;
    life.ends_as("A ").await;
    life.begin();
    life.volume_appears().await;
    life.ends_as("A2 ").await;
    life.stage.set_phase("d", "CloneInProgress").await;
    life.clear().await;

    life.begin();
    life.data_volume("Pending").await;
    life.volume_appears().await;
    life.create("Always").await;
    life.ends_as("B ").await;
    life.begin();
    life.stage.set_phase("d", "PendingPopulation").await;
    life.ends_as("B2 PendingPopulation").await;
    life.clear().await;

    life.begin();
    life.data_volume("CloneInProgress").await;
    life.volume_appears().await;
    life.create("Always").await;
    life.ends_as("C ").await;
    life.begin();
    life.stage.set_phase("d", "Succeeded").await;
    life.ends_as("C2 Succeeded").await;
    life.clear().await;

    life.begin();
    life.data_volume("Succeeded").await;
    life.volume_appears().await;
    life.create("Always").await;
    life.ends_as("D ").await;
    life.clear().await;

    life.begin();
    life.data_volume("CloneInProgress").await;
    life.volume_appears().await;
    life.create("Halted").await;
    life.ends_as("E ").await;
    life.clear().await;
    life.begin();
    life.create("Halted").await;
    life.ends_as("F ").await;
    life.clear().await;
}
