//! The DataVolume that Kite creates once and never applies again (rule V-13).

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::core::{ObjectMeta, TypeMeta};
use serde::Serialize;

use crate::read;

/// A disk to be cloned from a DataSource.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DataVolume {
    /// `apiVersion` and `kind`.
    #[serde(flatten)]
    pub types: TypeMeta,
    /// Name, labels and annotations.
    pub metadata: ObjectMeta,
    /// What is asked for.
    pub spec: DataVolumeSpec,
}

impl DataVolume {
    /// A DataVolume with its type filled in.
    pub fn new(metadata: ObjectMeta, spec: DataVolumeSpec) -> Self {
        Self {
            types: TypeMeta::resource::<read::DataVolume>(),
            metadata,
            spec,
        }
    }
}

/// Where the data comes from and where it goes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DataVolumeSpec {
    /// The image.
    pub source_ref: SourceRef,
    /// Size and class; CDI fills in modes and overhead from its profile of the class.
    pub storage: Storage,
}

/// A reference to a DataSource in another namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceRef {
    /// The only kind that Kite clones from.
    pub kind: SourceKind,
    /// The namespace of the images.
    pub namespace: String,
    /// The image.
    pub name: String,
}

/// The kinds that a `sourceRef` may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum SourceKind {
    /// A DataSource.
    DataSource,
}

/// Size and class of a disk.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// The class. Left out, CDI takes the cluster's default for virtual machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
    /// The size.
    pub resources: Resources,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Resources {
    /// The amounts.
    pub requests: Requests,
}

/// The one amount that a disk has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Requests {
    /// The size that the user asked for; CDI adds the file system's overhead.
    pub storage: Quantity,
}
