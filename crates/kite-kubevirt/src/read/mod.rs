//! Lenient views of what others write.
//!
//! They never refuse a value that upstream may invent: phases and states stay
//! text. They serialise only for comparison with a write view; writing a read
//! object back is never right, since it holds half of the truth.

mod data_source;
mod data_volume;
mod instance;
mod virtual_machine;

use serde::{Deserialize, Serialize};

pub use data_source::{DataSource, DataSourceSpec, DataSourceStatus, ImageSource, NamespacedName};
pub use data_volume::{
    DataVolume, DataVolumeSpec, DataVolumeStatus, Resources, SourceRef, Storage,
};
pub use instance::{
    Interface, Migration, PhaseReached, VirtualMachineInstance, VirtualMachineInstanceSpec,
    VirtualMachineInstanceStatus,
};
pub use virtual_machine::{
    CloudInit, Cpu, Devices, Disk, DiskTarget, Domain, LocalReference, Marker, Memory, NamedVolume,
    Network, NetworkInterface, StartFailure, StateChange, Template, TemplateMetadata, TemplateSpec,
    VirtualMachine, VirtualMachineSpec, VirtualMachineStatus, Volume,
};

/// A condition as KubeVirt and CDI write them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Condition {
    /// Which condition it is.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False`, `Unknown`, or what upstream invents.
    pub status: String,
    /// One word for machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A sentence for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When the status last changed, as the server gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<String>,
}

impl Condition {
    /// Whether the condition says True.
    pub fn is_true(&self) -> bool {
        self.status == "True"
    }

    /// The reason, or nothing.
    pub fn reason(&self) -> &str {
        self.reason.as_deref().unwrap_or_default()
    }

    /// The message, or nothing.
    pub fn message(&self) -> &str {
        self.message.as_deref().unwrap_or_default()
    }
}

/// The condition of a type in an optional list.
fn find<'a>(conditions: Option<&'a [Condition]>, type_: &str) -> Option<&'a Condition> {
    conditions?.iter().find(|c| c.type_ == type_)
}
