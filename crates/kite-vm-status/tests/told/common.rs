//! Machines and KubeVirt objects for the tests of this crate.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kite_api::condition;
use kite_api::machine::PowerState;
use kite_api::ownership::is_leaving;
use kite_api::{KiteVirtualMachine, KiteVirtualMachineStatus};
use kite_kubevirt::{VirtualMachine, VirtualMachineInstance};
use kite_runtime::mirror::{Decision, Pulse};
use kite_vm_status::observe::reading::{Found, Reading, read};
use kite_vm_status::status::clocks::{Clocks, Holds};
use kite_vm_status::status::news::news;
use kite_vm_status::status::stop::judged;
use kite_vm_status::status::vigil::Vigil;
use kite_vm_status::status::{farewell, standing, tell};
use serde_json::{Value, json};
use tokio::time::Instant;

pub const HOLDS: Holds = Holds {
    error: Duration::from_secs(10),
    settle: Duration::from_secs(2),
    transition: Duration::from_secs(300),
};

/// A machine of which kite-vm says that all is applied.
pub fn machine(power: &str) -> KiteVirtualMachine {
    let mut machine: KiteVirtualMachine = serde_json::from_value(json!({
        "apiVersion": "kite.dev/v1alpha1", "kind": "KiteVirtualMachine",
        "metadata": {"name": "web", "namespace": "alice", "uid": "k1", "generation": 1, "resourceVersion": "5"},
        "spec": {"cpu": 1, "memory": "1Gi", "disk": "2Gi", "image": "ubuntu", "powerState": power},
        "status": {"observedGeneration": -1, "phase": "Provisioning"}
    }))
    .unwrap();
    say(&mut machine, "ResourcesApplied", "True", "Applied");
    machine
}

/// Another controller says something about the current generation.
pub fn say(machine: &mut KiteVirtualMachine, type_: &str, status: &str, reason: &str) {
    let condition = json!({
        "type": type_, "status": status, "reason": reason, "message": format!("words about {reason}"),
        "observedGeneration": machine.metadata.generation, "lastTransitionTime": "2026-01-01T00:00:00Z"
    });
    let conditions = &mut machine.status.get_or_insert_default().conditions;
    conditions.retain(|c| c.type_ != type_);
    conditions.push(serde_json::from_value(condition).unwrap());
}

/// A VirtualMachine that virt-controller has judged.
pub fn vm(word: &str, status: &Value) -> VirtualMachine {
    let mut whole = json!({
        "runStrategy": "Always",
        "conditions": [{"type": "Ready", "status": "False", "reason": "GuestNotRunning"}]
    });
    whole
        .as_object_mut()
        .unwrap()
        .extend(status.as_object().unwrap().clone());
    if !word.is_empty() {
        whole["printableStatus"] = word.into();
    }
    serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": "alice", "uid": "v1",
            "finalizers": ["kubevirt.io/virtualMachineControllerFinalize"]},
        "status": whole
    }))
    .unwrap()
}

/// A guest that runs.
pub fn guest() -> VirtualMachineInstance {
    serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": "alice", "uid": "i1", "ownerReferences": [{
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web", "uid": "v1", "controller": true
        }]},
        "status": {"phase": "Running", "nodeName": "n1", "interfaces": [
            {"name": "default", "ipAddress": "10.0.0.9", "ipAddresses": ["10.0.0.9", "10.0.0.10"]}
        ]}
    }))
    .unwrap()
}

/// The controller with its watches and its clock played by a test.
pub struct Player {
    pub machine: KiteVirtualMachine,
    pub vm: Found<Arc<VirtualMachine>>,
    pub instance: Option<VirtualMachineInstance>,
    /// Each status that was written, with the time in seconds.
    pub writes: Vec<(f64, KiteVirtualMachineStatus)>,
    /// The reason of each event about what was written.
    pub events: Vec<String>,
    vigil: Vigil,
    clocks: Clocks,
    start: Instant,
    now: Duration,
}

impl Player {
    pub fn new(machine: KiteVirtualMachine) -> Self {
        Self {
            machine,
            vm: Found::Absent,
            instance: None,
            writes: Vec::new(),
            events: Vec::new(),
            vigil: Vigil::default(),
            clocks: Clocks::default(),
            start: Instant::now(),
            now: Duration::ZERO,
        }
    }

    /// Seconds since the start.
    pub fn now(&self) -> f64 {
        self.now.as_secs_f64()
    }

    /// Time passes; the passes that were asked for meanwhile run.
    pub fn until(&mut self, seconds: f64) {
        let until = Duration::from_secs_f64(seconds);
        while let Some(wait) = self.pass() {
            if self.now + wait > until {
                break;
            }
            self.now += wait;
        }
        self.now = self.now.max(until);
    }

    /// One pass after a change.
    pub fn pass(&mut self) -> Option<Duration> {
        let now = self.start + self.now;
        let stands = standing(&self.machine);
        self.look();
        let (told, next) = if is_leaving(&self.machine) {
            (farewell(&self.machine), None)
        } else {
            let time = Time(
                Timestamp::from_millisecond(self.now.as_millis().try_into().unwrap()).unwrap(),
            );
            let reading = judged(self.reading(&stands), &stands, &time);
            let (elapsed, next) =
                self.clocks
                    .note(&self.machine, &reading, &HOLDS, &Pulse::default(), now);
            (tell(&self.machine, &reading, elapsed, &time), next)
        };
        match self.clocks.decide(told, &stands, next, &HOLDS, now) {
            Decision::Wait(next) => next,
            Decision::Write(status) => {
                self.take(*status);
                self.pass()
            }
        }
    }

    /// The watch shows the guest, whether or not a pass comes to look.
    pub fn look(&mut self) {
        if let Some(instance) = &self.instance {
            self.vigil.look(instance);
        }
    }

    fn reading(&mut self, stands: &KiteVirtualMachineStatus) -> Reading {
        let mut reading = read(&self.machine, &self.vm, self.instance.as_ref());
        let vm = reading.vm_uid.as_ref();
        let vm = vm.or(stands.virtual_machine_uid.as_ref());
        let present = self.instance.as_ref().and_then(|i| i.metadata.uid.clone());
        reading.ended = self
            .vigil
            .last_end(vm.map(String::as_str), present.as_deref());
        reading
    }

    /// The server takes a write: our fields are replaced, those of others stay.
    fn take(&mut self, part: KiteVirtualMachineStatus) {
        let status = self.machine.status.get_or_insert_default();
        let others = [
            "ResourcesApplied",
            "Accepted",
            "Stalled",
            "DiskReady",
            "Deleting",
            "ServiceReady",
        ];
        let mut conditions = condition::part(&status.conditions, &others);
        conditions.extend(part.conditions.clone());
        let phase = if part.phase.is_none() && status.virtual_machine_uid.is_none() {
            status.phase
        } else {
            part.phase
        };
        let told = news(&standing(&self.machine), &part);
        self.events.extend(told.into_iter().map(|news| news.reason));
        let status = self.machine.status.get_or_insert_default();
        self.writes.push((self.now.as_secs_f64(), part.clone()));
        *status = KiteVirtualMachineStatus {
            conditions,
            phase,
            ..part
        };
    }

    /// KubeVirt says something else, and a pass runs.
    pub fn set_vm(&mut self, word: &str, status: &Value) {
        self.vm = Found::Ours(Arc::new(vm(word, status)));
        self.pass();
    }

    /// KubeVirt says something about the guest, and a pass runs.
    pub fn set_guest(&mut self, change: impl FnOnce(&mut VirtualMachineInstance)) {
        change(self.instance.as_mut().unwrap());
        self.pass();
    }

    /// `reason uid` of how it last stopped.
    pub fn last_stop(&self) -> String {
        let stop = self.machine.status.as_ref().unwrap().last_stop.as_ref();
        stop.map_or_else(
            || "none".to_owned(),
            |s| format!("{} {}", s.reason, s.instance_uid.as_deref().unwrap_or("-")),
        )
    }

    /// The process forgets everything it held in memory.
    pub fn restart(&mut self) {
        self.clocks = Clocks::default();
        self.vigil = Vigil::default();
        self.pass();
    }

    /// The user changes the power, and kite-vm applies it.
    pub fn power(&mut self, power: PowerState) {
        self.machine.spec.power_state = power;
        self.machine.metadata.generation = self.machine.metadata.generation.map(|g| g + 1);
        say(&mut self.machine, "ResourcesApplied", "True", "Applied");
    }

    /// The phases that were written, each once in a row.
    pub fn phases(&self) -> Vec<String> {
        let phases = self.writes.iter().filter_map(|(_, s)| s.phase);
        let mut phases: Vec<String> = phases.map(|p| format!("{p:?}")).collect();
        phases.dedup();
        phases
    }

    /// `status reason` of a condition that stands now.
    pub fn condition(&self, type_: &str) -> String {
        let status = self.machine.status.as_ref().unwrap();
        condition::find(&status.conditions, type_).map_or_else(
            || "absent".to_owned(),
            |c| format!("{} {}", c.status, c.reason),
        )
    }
}
