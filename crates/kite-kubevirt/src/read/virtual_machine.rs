//! A KubeVirt VirtualMachine: the spec parts that Kite writes, so that they can
//! be compared, and the status that kite-vm-status tells of.
//!
//! Upstream's random additions (firmware, machine type, PCI topology) are left
//! out on purpose: what is not read cannot be mistaken for drift.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::core::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::{Condition, find};
use crate::resource::resource;

/// A machine that may run or not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VirtualMachine {
    /// Name, labels and the rest.
    pub metadata: ObjectMeta,
    /// What is wanted of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<VirtualMachineSpec>,
    /// What virt-controller says of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<VirtualMachineStatus>,
}

resource!(
    VirtualMachine,
    "kubevirt.io",
    "v1",
    "VirtualMachine",
    "virtualmachines"
);

impl VirtualMachine {
    /// The condition of a type: `Ready`, `Paused`, `RestartRequired` and others.
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        find(self.status.as_ref()?.conditions.as_deref(), type_)
    }

    /// KubeVirt's one word for the state; empty before there is one.
    pub fn printable_status(&self) -> &str {
        let word = self
            .status
            .as_ref()
            .and_then(|s| s.printable_status.as_deref());
        word.unwrap_or_default()
    }

    /// The run strategy in the spec, as text.
    pub fn run_strategy(&self) -> Option<&str> {
        self.spec.as_ref()?.run_strategy.as_deref()
    }

    /// Whether virt-controller has seen the machine; until then its status is only a default (rule S-2).
    pub fn is_seen(&self) -> bool {
        let finalizers = self.metadata.finalizers.iter().flatten();
        finalizers
            .into_iter()
            .any(|f| f == crate::names::VM_FINALIZER)
            || self.condition("Ready").is_some()
    }

    /// Whether an instance exists, as the status tells it.
    pub fn is_created(&self) -> bool {
        self.status
            .as_ref()
            .and_then(|s| s.created)
            .unwrap_or(false)
    }
}

/// The spec parts that Kite writes, and `running`, which others may have set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VirtualMachineSpec {
    /// When KubeVirt runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_strategy: Option<String>,
    /// The old form of the same wish; both at once are refused by KubeVirt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<bool>,
    /// What an instance is made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<Template>,
}

/// What an instance is made from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Template {
    /// Labels and annotations of the instance and its pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
    /// The hardware.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<TemplateSpec>,
}

/// Labels and annotations of the instance and its pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TemplateMetadata {
    /// The labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// The annotations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
}

/// The hardware of an instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TemplateSpec {
    /// Processor, memory and devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<Domain>,
    /// What the interfaces are plugged into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub networks: Option<Vec<Network>>,
    /// What the disks are made of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volumes: Option<Vec<Volume>>,
}

/// Processor, memory and devices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Domain {
    /// The processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    /// The memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// The devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub devices: Option<Devices>,
}

/// The processor of a guest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Cpu {
    /// Sockets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sockets: Option<i64>,
    /// Cores of each socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores: Option<i64>,
    /// Threads of each core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<i64>,
    /// Sockets it can grow to while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_sockets: Option<i64>,
}

/// The memory of a guest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Memory {
    /// What the guest sees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guest: Option<Quantity>,
    /// What it can grow to while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_guest: Option<Quantity>,
}

/// The devices of a guest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Devices {
    /// Disks, each naming its volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disks: Option<Vec<Disk>>,
    /// Interfaces, each naming its network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interfaces: Option<Vec<NetworkInterface>>,
}

/// One disk of a guest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Disk {
    /// Its name, and its volume's.
    pub name: String,
    /// How it is attached, when as a plain disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskTarget>,
}

/// How a disk is attached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskTarget {
    /// The bus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bus: Option<String>,
}

/// One interface of a guest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkInterface {
    /// Its name, and its network's.
    pub name: String,
    /// Present when the guest is hidden behind the pod's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub masquerade: Option<Marker>,
}

/// One network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Network {
    /// Its name.
    pub name: String,
    /// Present when it is the pod's network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<Marker>,
}

/// A field whose presence is its meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {}

/// One volume. A kind that Kite does not know leaves all but the name empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Volume {
    /// Its name.
    pub name: String,
    /// A disk of CDI's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_volume: Option<NamedVolume>,
    /// What cloud-init reads at boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cloud_init_no_cloud: Option<CloudInit>,
}

/// A volume that is named.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NamedVolume {
    /// The name.
    pub name: String,
}

/// What cloud-init reads at boot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CloudInit {
    /// The Secret that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalReference>,
}

/// A name in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LocalReference {
    /// The name.
    pub name: String,
}

/// What virt-controller says of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VirtualMachineStatus {
    /// One of seventeen words, or what upstream invents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub printable_status: Option<String>,
    /// An instance exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<bool>,
    /// The instance is ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// The run strategy that virt-controller last acted on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_strategy: Option<String>,
    /// The generation that the instance was made from; means nothing without an instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The generation that the instance should have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_generation: Option<i64>,
    /// `Ready`, `Paused`, `RestartRequired` and others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// Starts that failed in a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_failure: Option<StartFailure>,
    /// Starts and stops that were asked for through the sub-resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_change_requests: Option<Vec<StateChange>>,
}

/// Starts that failed in a row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StartFailure {
    /// How many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consecutive_fail_count: Option<i64>,
}

/// A start or a stop that was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StateChange {
    /// `Start` or `Stop`.
    pub action: String,
}
