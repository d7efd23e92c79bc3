//! A running machine: KubeVirt's VirtualMachineInstance. Read, never written.

use kube::core::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::{Condition, find};
use crate::resource::resource;

/// A guest that runs, or is about to, or has just ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VirtualMachineInstance {
    /// Name, labels and the rest; a deletion time tells that the end was asked for.
    pub metadata: ObjectMeta,
    /// The one wish that Kite looks at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<VirtualMachineInstanceSpec>,
    /// Where it runs and how it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<VirtualMachineInstanceStatus>,
}

resource!(
    VirtualMachineInstance,
    "kubevirt.io",
    "v1",
    "VirtualMachineInstance",
    "virtualmachineinstances"
);

impl VirtualMachineInstance {
    /// The condition of a type.
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        find(self.status.as_ref()?.conditions.as_deref(), type_)
    }

    /// The phase as KubeVirt says it; empty before it has said one.
    pub fn phase(&self) -> &str {
        let phase = self.status.as_ref().and_then(|s| s.phase.as_deref());
        phase.unwrap_or_default()
    }

    /// When the instance reached a phase, if it did.
    pub fn reached(&self, phase: &str) -> Option<&str> {
        let reached = self.status.as_ref()?.phase_transition_timestamps.iter();
        let found = reached.flatten().find(|r| r.phase == phase)?;
        found.phase_transition_timestamp.as_deref()
    }

    /// Every address of every interface, sorted, each once (rule S-4).
    pub fn ip_addresses(&self) -> Vec<String> {
        let interfaces = self
            .status
            .iter()
            .flat_map(|s| s.interfaces.iter().flatten());
        let mut addresses: Vec<String> = interfaces
            .flat_map(|i| i.ip_address.iter().chain(i.ip_addresses.iter().flatten()))
            .filter(|a| !a.is_empty())
            .cloned()
            .collect();
        addresses.sort();
        addresses.dedup();
        addresses
    }
}

/// What Kite looks at in an instance's spec.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VirtualMachineInstanceSpec {
    /// What happens to the guest when its node is drained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eviction_strategy: Option<String>,
}

/// What KubeVirt says about an instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VirtualMachineInstanceStatus {
    /// `Pending`, `Running`, `Succeeded` and so on, and what upstream invents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Why, for some ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The node it runs on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// The node that wants to be rid of it; set while it is being evicted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evacuation_node_name: Option<String>,
    /// Its interfaces and their addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interfaces: Option<Vec<Interface>>,
    /// `Ready`, `Paused`, `LiveMigratable`, `AgentConnected` and others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// When it reached each of its phases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase_transition_timestamps: Option<Vec<PhaseReached>>,
    /// The last migration, under way or over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub migration_state: Option<Migration>,
}

/// When a phase was reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PhaseReached {
    /// The phase.
    pub phase: String,
    /// The time, to the second, as virt-controller or virt-handler gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase_transition_timestamp: Option<String>,
}

/// One interface of a guest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Interface {
    /// Its name in the spec.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its first address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_address: Option<String>,
    /// All of its addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_addresses: Option<Vec<String>>,
}

/// A migration from one node to another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Migration {
    /// Where it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_node: Option<String>,
    /// Where it goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_node: Option<String>,
    /// It is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed: Option<bool>,
    /// It went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<bool>,
}
