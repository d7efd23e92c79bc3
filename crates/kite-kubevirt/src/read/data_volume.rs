//! A CDI DataVolume as kite-vm and kite-datavolume see it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::core::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::{Condition, find};
use crate::resource::resource;

/// A disk that CDI fills.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DataVolume {
    /// Name, labels and the rest.
    pub metadata: ObjectMeta,
    /// What was asked for; CDI refuses any change of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<DataVolumeSpec>,
    /// How far CDI has come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<DataVolumeStatus>,
}

resource!(
    DataVolume,
    "cdi.kubevirt.io",
    "v1beta1",
    "DataVolume",
    "datavolumes"
);

impl DataVolume {
    /// The condition of a type: `Bound`, `Running`, `Ready`.
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        find(self.status.as_ref()?.conditions.as_deref(), type_)
    }

    /// The phase as CDI says it; empty before it has said one.
    pub fn phase(&self) -> &str {
        let phase = self.status.as_ref().and_then(|s| s.phase.as_deref());
        phase.unwrap_or_default()
    }
}

/// The part of a DataVolume's spec that Kite wrote.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DataVolumeSpec {
    /// The DataSource it is cloned from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_ref: Option<SourceRef>,
    /// Size and class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
}

/// A reference to a DataSource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceRef {
    /// `DataSource`.
    pub kind: String,
    /// Its namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

/// Size and class of a disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Storage {
    /// The storage class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
    /// The size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
}

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// `storage` and its amount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<BTreeMap<String, Quantity>>,
}

/// What CDI says about a DataVolume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DataVolumeStatus {
    /// Any of two dozen words, and what upstream invents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// `N/A`, or a number with a percent sign.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// The claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim_name: Option<String>,
    /// How often the worker was started anew; a growing count is the sign of a stuck import.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_count: Option<i64>,
    /// `Bound`, `Running`, `Ready`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
}
