//! The disk: a DataVolume cloned from a published image (rule V-13).
//!
//! It is created once; CDI refuses changes of its spec. It never carries an
//! owner reference (rule V-19).

use kite_api::labels::DELETION_POLICY;
use kite_api::machine::DeletionPolicy;
use kite_kubevirt::names::{BIND_IMMEDIATE, DELETE_AFTER_COMPLETION};
use kite_kubevirt::write::{
    DataVolume, DataVolumeSpec, Requests, Resources, SourceKind, SourceRef, Storage,
};

use super::child_name;
use crate::meta::{Component, annotate, bound_to_machine};
use crate::validate::{DnsName, ValidMachine, ValidPlatform};

/// The disk of a machine, in the storage class that was chosen for it (rule V-11).
pub fn data_volume(
    machine: &ValidMachine,
    platform: &ValidPlatform,
    class: Option<&DnsName>,
) -> DataVolume {
    let mut metadata =
        bound_to_machine(&machine.owner, child_name(&machine.owner), Component::Disk);
    // A machine that is Off would otherwise never get its disk filled.
    annotate(&mut metadata, BIND_IMMEDIATE, "");
    annotate(&mut metadata, DELETE_AFTER_COMPLETION, "false");
    annotate(
        &mut metadata,
        DELETION_POLICY,
        policy_text(machine.deletion_policy),
    );
    let spec = DataVolumeSpec {
        source_ref: SourceRef {
            kind: SourceKind::DataSource,
            namespace: platform.image_namespace.to_string(),
            name: machine.image.to_string(),
        },
        storage: Storage {
            storage_class_name: class.map(ToString::to_string),
            resources: Resources {
                requests: Requests {
                    storage: machine.disk.quantity(),
                },
            },
        },
    };
    DataVolume::new(metadata, spec)
}

/// The word that the API uses.
pub const fn policy_text(policy: DeletionPolicy) -> &'static str {
    match policy {
        DeletionPolicy::Delete => "Delete",
        DeletionPolicy::Retain => "Retain",
    }
}
