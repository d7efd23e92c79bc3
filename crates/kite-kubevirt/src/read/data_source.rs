//! A CDI DataSource: an image that an administrator may have published.
//!
//! Kite reads these and never writes one.

use kube::core::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::{Condition, find};
use crate::resource::resource;

/// A named source of disks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DataSource {
    /// Name, labels and the rest.
    pub metadata: ObjectMeta,
    /// Where the data is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<DataSourceSpec>,
    /// What CDI found there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<DataSourceStatus>,
}

resource!(
    DataSource,
    "cdi.kubevirt.io",
    "v1beta1",
    "DataSource",
    "datasources"
);

impl DataSource {
    /// The condition of a type.
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        find(self.status.as_ref()?.conditions.as_deref(), type_)
    }

    /// Whether a clone of it can start.
    pub fn is_ready(&self) -> bool {
        self.condition("Ready").is_some_and(Condition::is_true)
    }

    /// Whether the administrator has published it: the label is there and says `true` (rule V-10).
    pub fn is_published(&self) -> bool {
        let labels = self.metadata.labels.as_ref();
        labels
            .and_then(|l| l.get(kite_api::labels::PUBLISHED))
            .is_some_and(|v| v == "true")
    }
}

/// Where a DataSource points.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DataSourceSpec {
    /// One of several kinds of source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<ImageSource>,
}

/// What CDI says about a DataSource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DataSourceStatus {
    /// `Ready` and whatever else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
}

/// The kinds of source that Kite knows. Another kind leaves all of them empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImageSource {
    /// A claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pvc: Option<NamespacedName>,
    /// A snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<NamespacedName>,
}

/// A name in a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NamespacedName {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}
