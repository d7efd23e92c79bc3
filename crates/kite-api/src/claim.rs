//! `KiteHostClaim`: which machine holds a host name. Written by kite-vm only (rule V-9).
//!
//! The object is named like the host, so that its creation decides between two
//! machines that ask at the same instant; the API server is the judge.

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// The machine that holds the host name this object is named after.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "kite.dev",
    version = "v1alpha1",
    kind = "KiteHostClaim",
    plural = "kitehostclaims",
    singular = "kitehostclaim",
    category = "kite",
    derive = "PartialEq",
    doc = "Which machine holds a host name. Its name is the host; kite-vm writes it and nobody else.",
    printcolumn(name = "Namespace", type_ = "string", json_path = ".spec.namespace"),
    printcolumn(name = "Machine", type_ = "string", json_path = ".spec.name"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[x_kube(validation = ("self == oldSelf", "a host claim never changes hands in place; delete it, and the machine that asks next makes its own"))]
#[serde(rename_all = "camelCase")]
pub struct KiteHostClaimSpec {
    /// Namespace of the machine that holds the host.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Name of the machine that holds the host.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// UID of the KiteVirtualMachine. A machine of the same name with another UID is another machine.
    #[schemars(length(min = 1, max = 64))]
    pub uid: String,
}
