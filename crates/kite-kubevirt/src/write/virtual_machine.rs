//! The VirtualMachine that Kite applies (rule V-16).

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::core::{ObjectMeta, TypeMeta};
use serde::Serialize;

use super::Marker;
use crate::compare::{Difference, Rules, differences};
use crate::read;

/// A machine as it should be.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VirtualMachine {
    /// `apiVersion` and `kind`.
    #[serde(flatten)]
    pub types: TypeMeta,
    /// Name, labels, annotations, owner.
    pub metadata: ObjectMeta,
    /// Power and hardware.
    pub spec: VirtualMachineSpec,
}

/// Memory is an amount. All lists are atomic in KubeVirt's schema, so an apply
/// owns them whole and they are compared whole, in order.
const RULES: Rules = Rules {
    amounts: &["spec.template.spec.domain.memory"],
    keyed: &[],
};

impl VirtualMachine {
    /// A VirtualMachine with its type filled in.
    pub fn new(metadata: ObjectMeta, spec: VirtualMachineSpec) -> Self {
        Self {
            types: TypeMeta::resource::<read::VirtualMachine>(),
            metadata,
            spec,
        }
    }

    /// What Kite wants and the live object does not have. Additions by others are no difference.
    pub fn differences(&self, live: &read::VirtualMachine) -> Vec<Difference> {
        differences(self, live, &RULES)
    }

    /// Whether everything that Kite wants is there.
    pub fn matches(&self, live: &read::VirtualMachine) -> bool {
        self.differences(live).is_empty()
    }
}

/// Power and hardware.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineSpec {
    /// When KubeVirt runs it.
    pub run_strategy: RunStrategy,
    /// What an instance is made from.
    pub template: Template,
}

/// The run strategies that Kite uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum RunStrategy {
    /// It runs, and is started again whatever ends it.
    Always,
    /// It is started again after a failure; a shutdown from inside the guest is respected.
    RerunOnFailure,
    /// It does not run.
    Halted,
}

impl RunStrategy {
    /// The strategy that a word names, if Kite uses it.
    pub fn parse(word: &str) -> Option<Self> {
        let all = [Self::Always, Self::RerunOnFailure, Self::Halted];
        all.into_iter().find(|s| s.as_str() == word)
    }

    /// The word the API uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Always => "Always",
            Self::RerunOnFailure => "RerunOnFailure",
            Self::Halted => "Halted",
        }
    }
}

/// What an instance is made from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Template {
    /// Labels of the instance and its pod.
    pub metadata: TemplateMetadata,
    /// The hardware.
    pub spec: TemplateSpec,
}

/// Labels of the instance and its pod; they reach the pod at the next start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TemplateMetadata {
    /// The labels.
    pub labels: BTreeMap<String, String>,
}

/// The hardware of an instance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TemplateSpec {
    /// Processor, memory and devices.
    pub domain: Domain,
    /// All networks, in stable order.
    pub networks: Vec<Network>,
    /// All volumes, in stable order.
    pub volumes: Vec<Volume>,
}

/// Processor, memory and devices.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Domain {
    /// The processor.
    pub cpu: Cpu,
    /// The memory.
    pub memory: Memory,
    /// The devices.
    pub devices: Devices,
}

/// The processor: growing a running guest works by sockets, so they carry the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cpu {
    /// Sockets.
    pub sockets: i64,
    /// Cores of each socket.
    pub cores: i64,
    /// Threads of each core.
    pub threads: i64,
    /// Sockets it can grow to while it runs.
    pub max_sockets: i64,
}

/// The memory of a guest.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// What the guest sees.
    pub guest: Quantity,
    /// What it can grow to while it runs; left out where KubeVirt's webhook would refuse it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_guest: Option<Quantity>,
}

/// The devices of a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Devices {
    /// All disks, in stable order.
    pub disks: Vec<Disk>,
    /// All interfaces, in stable order; none given and KubeVirt adds one of its own.
    pub interfaces: Vec<Interface>,
}

/// One disk of a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Disk {
    /// Its name, and its volume's.
    pub name: String,
    /// How it is attached.
    pub disk: DiskTarget,
}

/// How a disk is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DiskTarget {
    /// The bus.
    pub bus: DiskBus,
}

/// The buses that Kite uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum DiskBus {
    /// Paravirtual: every cloud image can boot from it.
    Virtio,
}

/// One interface of a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Interface {
    /// Its name, and its network's.
    pub name: String,
    /// The guest hides behind the pod's address, so policies and Services apply to it.
    pub masquerade: Marker,
}

/// One network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Network {
    /// Its name.
    pub name: String,
    /// The pod's network.
    pub pod: Marker,
}

/// One volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Volume {
    /// Its name.
    pub name: String,
    /// What it is made of.
    #[serde(flatten)]
    pub source: VolumeSource,
}

/// What a volume is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum VolumeSource {
    /// A disk of CDI's. KubeVirt is content with the claim of that name when CDI
    /// has collected the DataVolume.
    DataVolume(NamedVolume),
    /// What cloud-init reads at boot.
    CloudInitNoCloud(CloudInit),
}

/// A volume that is named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamedVolume {
    /// The name.
    pub name: String,
}

/// What cloud-init reads at boot: a Secret, since inline data is limited to 2 kB and readable by all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CloudInit {
    /// The Secret that holds it.
    pub secret_ref: LocalReference,
}

/// A name in the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LocalReference {
    /// The name.
    pub name: String,
}
