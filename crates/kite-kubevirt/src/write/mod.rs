//! Strict views of what Kite writes: server-side apply owns exactly these fields.
//!
//! They serialise and nothing else. A field that is always sent is no `Option`;
//! a choice that Kite makes is a closed enum.

mod data_volume;
mod virtual_machine;

use serde::Serialize;

pub use data_volume::{
    DataVolume, DataVolumeSpec, Requests, Resources, SourceKind, SourceRef, Storage,
};
pub use virtual_machine::{
    CloudInit, Cpu, Devices, Disk, DiskBus, DiskTarget, Domain, Interface, LocalReference, Memory,
    NamedVolume, Network, RunStrategy, Template, TemplateMetadata, TemplateSpec, VirtualMachine,
    VirtualMachineSpec, Volume, VolumeSource,
};

/// A field whose presence is its meaning: `masquerade: {}`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Marker {}
