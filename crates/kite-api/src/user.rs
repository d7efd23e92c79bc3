//! `KiteUser`: a user's namespace, its network isolation and its quota.
//!
//! Written by administrators only. It holds no credential: who the user is to
//! the cluster is said by `subjects`, which the cluster authenticates.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::Quantity;

/// A user's namespace, how much of the cluster it may use, and who works in it.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "kite.dev",
    version = "v1alpha1",
    kind = "KiteUser",
    plural = "kiteusers",
    singular = "kiteuser",
    shortname = "ku",
    category = "kite",
    status = "KiteUserStatus",
    derive = "PartialEq",
    doc = "A user: an isolated namespace with a quota, in which the user's subjects may run machines.",
    selectable = ".spec.namespace",
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Namespace", type_ = "string", json_path = ".spec.namespace"),
    printcolumn(name = "Machines", type_ = "integer", json_path = ".spec.quota.virtualMachines", description = "Most machines; what is used stands in the ResourceQuota"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].reason", priority = 1),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].message", priority = 1),
    validation = Rule::new("oldSelf.hasValue() || (self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'))").message("the name of a KiteUser stands in labels; use at most 63 lower-case letters, digits and hyphens, without dots").optional_old_self(true)
)]
#[x_kube(
    validation = ("self.__namespace__ == oldSelf.__namespace__", "namespace cannot change, since every machine in the old one would be lost; make a second KiteUser for the new namespace"),
    validation = ("self.__namespace__ != 'default' && !self.__namespace__.startsWith('kube-')", "namespace must not be default or kube-*; name a namespace of the user's own, for instance the user's name")
)]
#[serde(rename_all = "camelCase")]
pub struct KiteUserSpec {
    /// The user's namespace, made by Kite. It never changes.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub namespace: String,
    /// How much the user's machines may use together. Absent: the platform's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<UserQuota>,
    /// What the user's machines may reach, and be reached from, beyond the platform's defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<UserNetwork>,
    /// Users and groups that get the role `kite-tenant` in the namespace.
    #[schemars(length(max = 64))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subjects: Vec<UserSubject>,
}

/// How much machines may use together, counted as their owner counts: virtual CPUs, guest memory, disk.
///
/// Kite adds what KubeVirt and CDI need on top; the formula is in the reference documentation.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    validation = ("!has(self.memory) || (quantity(self.memory).compareTo(quantity('32Mi')) >= 0 && quantity(self.memory).compareTo(quantity('1Pi')) <= 0)", "quota.memory must be between 32Mi and 1Pi, for instance 16Gi"),
    validation = ("!has(self.storage) || (quantity(self.storage).compareTo(quantity('64Mi')) >= 0 && quantity(self.storage).compareTo(quantity('64Pi')) <= 0)", "quota.storage must be between 64Mi and 64Pi, for instance 100Gi"),
    validation = ("!has(self.hard) || self.hard.all(k, k.matches('^[a-zA-Z0-9]([-._/a-zA-Z0-9]{0,251}[a-zA-Z0-9])?$'))", "quota.hard has a key that no ResourceQuota knows; write keys such as services.loadbalancers"),
    validation = ("!has(self.hard) || !self.hard.exists(k, k in ['requests.cpu', 'requests.memory', 'requests.storage', 'persistentvolumeclaims', 'count/kitevirtualmachines.kite.dev'])", "quota.hard is for further keys; set cpu, memory, storage and virtualMachines instead of the keys Kite computes from them"),
    validation = ("!has(self.hard) || !('limits.ephemeral-storage' in self.hard)", "quota.hard must not have limits.ephemeral-storage, with which no machine could start; use requests.ephemeral-storage")
)]
#[serde(rename_all = "camelCase")]
pub struct UserQuota {
    /// Virtual CPUs of all machines together.
    #[schemars(range(min = 1, max = 100_000))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<i32>,
    /// Guest memory of all machines together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Quantity>,
    /// Disks of all machines together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Quantity>,
    /// Number of machines.
    #[schemars(range(min = 0, max = 10_000))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_machines: Option<i32>,
    /// Further keys of a Kubernetes ResourceQuota, for instance `services.loadbalancers`, as they are.
    #[schemars(extend("maxProperties" = 32))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hard: BTreeMap<String, Quantity>,
}

/// Additions to the platform's network defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserNetwork {
    /// Namespaces whose pods may reach the user's machines on every port.
    #[schemars(
        length(max = 32),
        inner(
            length(min = 1, max = 63),
            regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
        )
    )]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_from_namespaces: Vec<String>,
    /// Destinations the user's machines may reach although they lie in a private range.
    #[schemars(length(max = 32))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra_egress: Vec<EgressRule>,
}

/// One destination that machines may reach.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EgressRule {
    /// A range of addresses, for instance `10.20.0.0/16`.
    #[schemars(length(min = 1, max = 64))]
    #[x_kube(validation = ("isCIDR(self)", "cidr must be a range of addresses, for instance 10.20.0.0/16 or fd00:1234::/32"))]
    pub cidr: String,
    /// Ports; none means every port.
    #[schemars(length(max = 32))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<EgressPort>,
}

/// A port of a destination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EgressPort {
    /// Transport protocol.
    #[serde(default)]
    pub protocol: Protocol,
    /// Port number.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
}

/// Transport protocols that a network policy knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Protocol {
    /// TCP.
    #[default]
    TCP,
    /// UDP.
    UDP,
}

/// A user or a group that the cluster authenticates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserSubject {
    /// Whether `name` is a user or a group.
    pub kind: SubjectKind,
    /// The name as the cluster's authentication gives it.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// The kinds of subject that may get a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SubjectKind {
    /// One user.
    User,
    /// All members of a group.
    Group,
}

/// What Kite made for the user, and whether it is in force.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KiteUserStatus {
    /// The generation that the rest of the status speaks of.
    #[schemars(extend("default" = -1))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// A summary for people; tools read the conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<UserPhase>,
    /// The namespace, once it is the user's and safe to use.
    #[schemars(length(max = 63))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_namespace: Option<String>,
    /// The limits in force. What is used stands in the ResourceQuota `kite-quota` of the namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<QuotaStatus>,
    /// `NamespaceReady`, `IsolationReady`, `QuotaReady`, `Ready`; `Reconciling` and `Stalled` only when True.
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// The limits in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuotaStatus {
    /// Keys and limits of the ResourceQuota.
    #[schemars(extend("maxProperties" = 64))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hard: BTreeMap<String, Quantity>,
}

/// A user's state in one word, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UserPhase {
    /// The namespace is safe to use.
    Ready,
    /// It is not, or not yet; the conditions say why.
    Failed,
    /// The user is being removed.
    Deleting,
}
