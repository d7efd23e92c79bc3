//! `KitePlatform`: what the administrator sets once for the whole cluster.
//!
//! One object, named `default`. When it is absent the defaults below hold. It
//! sets what is shared; nothing about a single user or machine stands here.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::Quantity;
use crate::user::UserQuota;

/// The one name a KitePlatform may have.
pub const PLATFORM_NAME: &str = "default";

/// What the administrator sets once: names, networks, defaults and limits.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "kite.dev",
    version = "v1alpha1",
    kind = "KitePlatform",
    plural = "kiteplatforms",
    singular = "kiteplatform",
    category = "kite",
    status = "KitePlatformStatus",
    derive = "PartialEq",
    doc = "What the administrator sets once for all users and machines. One object, named default.",
    printcolumn(name = "Accepted", type_ = "string", json_path = ".status.conditions[?(@.type==\"Accepted\")].status"),
    printcolumn(name = "Domain", type_ = "string", json_path = ".spec.baseDomain"),
    printcolumn(name = "Images", type_ = "string", json_path = ".spec.imageNamespace"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.conditions[?(@.type==\"Accepted\")].message", priority = 1),
    validation = ("self.metadata.name == 'default'", "there is one KitePlatform and its name is default; put these settings there")
)]
#[serde(rename_all = "camelCase")]
pub struct KitePlatformSpec {
    /// Domain under which machines with a domainPrefix get their host name, for instance `vms.example.org`.
    #[schemars(
        length(min = 1, max = 189),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_domain: Option<String>,
    /// How machines are reached over HTTP.
    #[serde(default)]
    pub ingress: PlatformIngress,
    /// Storage class of machines that name none. Absent: the cluster's default for virtualization.
    #[schemars(length(min = 1, max = 253))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
    /// Namespace that holds the published images (CDI DataSources).
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    #[serde(default = "image_namespace")]
    pub image_namespace: String,
    /// Namespaces that no KiteUser may name, beside `default`, `kube-*` and those of Kite, KubeVirt, CDI and the images.
    #[schemars(length(max = 256), inner(length(min = 1, max = 63)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reserved_namespaces: Vec<String>,
    /// Host name prefixes that no machine may ask for, for instance `www`.
    #[schemars(length(max = 256), inner(length(min = 1, max = 63)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reserved_domain_prefixes: Vec<String>,
    /// The cluster's networks, from which the isolation of users is made.
    #[serde(default)]
    pub network: PlatformNetwork,
    /// Quota of users that set none. Absent: no quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<UserQuota>,
    /// The largest machine, and how many clones run at once.
    #[serde(default)]
    pub limits: PlatformLimits,
    /// How many virtual CPUs KubeVirt counts as one physical CPU; the same number as in KubeVirt's own configuration.
    #[schemars(range(min = 1, max = 1000))]
    #[serde(default = "cpu_allocation_ratio")]
    pub cpu_allocation_ratio: i32,
    /// True: a machine needs a namespace that a KiteUser owns. Either way the namespace must be prepared.
    #[serde(default)]
    pub require_user: bool,
}

fn image_namespace() -> String {
    "kite-images".to_owned()
}

/// KubeVirt's own default.
fn cpu_allocation_ratio() -> i32 {
    10
}

impl Default for KitePlatformSpec {
    fn default() -> Self {
        Self {
            base_domain: None,
            ingress: PlatformIngress::default(),
            storage_class_name: None,
            image_namespace: image_namespace(),
            reserved_namespaces: Vec::new(),
            reserved_domain_prefixes: Vec::new(),
            network: PlatformNetwork::default(),
            quota: None,
            limits: PlatformLimits::default(),
            cpu_allocation_ratio: cpu_allocation_ratio(),
            require_user: false,
        }
    }
}

/// How machines are reached over HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlatformIngress {
    /// The IngressClass of machines' Ingresses. Absent: the cluster's default class.
    #[schemars(length(min = 1, max = 253))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class_name: Option<String>,
    /// Namespace of the ingress controller's pods, from which HTTP is let in. Absent: HTTP is let in from nowhere.
    #[schemars(length(min = 1, max = 63))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller_namespace: Option<String>,
    /// Who holds the certificate. No key is ever copied to a user's namespace.
    #[serde(default)]
    pub tls: IngressTls,
}

/// Who terminates TLS for machines' hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum IngressTls {
    /// Nobody; plain HTTP.
    #[default]
    None,
    /// The ingress controller, with its own wildcard certificate for the base domain.
    Wildcard,
}

/// The cluster's networks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlatformNetwork {
    /// Pod, Service and node ranges of this cluster (CIDR); machines do not reach them.
    #[schemars(length(max = 64), inner(length(min = 1, max = 64)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_ranges: Vec<String>,
    /// Further private ranges (CIDR) that machines do not reach, for instance a corporate network.
    #[schemars(length(max = 64), inner(length(min = 1, max = 64)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub private_ranges: Vec<String>,
    /// Namespace of the cluster's DNS pods.
    #[schemars(length(min = 1, max = 63))]
    #[serde(default = "dns_namespace")]
    pub dns_namespace: String,
    /// Labels of the cluster's DNS pods. Absent: `k8s-app: kube-dns`.
    // No default in the schema: it would stay in the map beside what is set later.
    #[schemars(extend("maxProperties" = 16))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dns_labels: BTreeMap<String, String>,
    /// Address of the node-local DNS cache. An empty string: there is none.
    #[schemars(length(max = 45))]
    #[serde(default = "node_local_dns")]
    pub node_local_dns: String,
    /// From where SSH to machines is let in.
    #[schemars(length(max = 64))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ssh_sources: Vec<SshSource>,
    /// Namespace of CDI's pods; a clone's traffic comes from there or from the image namespace.
    #[schemars(length(min = 1, max = 63))]
    #[serde(default = "cdi_namespace")]
    pub cdi_namespace: String,
}

fn dns_namespace() -> String {
    "kube-system".to_owned()
}

/// The address that the upstream node-local DNS manifests use.
fn node_local_dns() -> String {
    "169.254.20.10".to_owned()
}

fn cdi_namespace() -> String {
    "cdi".to_owned()
}

impl PlatformNetwork {
    /// The labels of the cluster's DNS pods, by which upstream Kubernetes and most others mark them when none are set.
    pub fn dns_pods(&self) -> BTreeMap<String, String> {
        if self.dns_labels.is_empty() {
            BTreeMap::from([("k8s-app".to_owned(), "kube-dns".to_owned())])
        } else {
            self.dns_labels.clone()
        }
    }
}

impl Default for PlatformNetwork {
    fn default() -> Self {
        Self {
            cluster_ranges: Vec::new(),
            private_ranges: Vec::new(),
            dns_namespace: dns_namespace(),
            dns_labels: BTreeMap::new(),
            node_local_dns: node_local_dns(),
            ssh_sources: Vec::new(),
            cdi_namespace: cdi_namespace(),
        }
    }
}

/// One place from which SSH is let in: a range of addresses or a namespace.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(validation = ("has(self.cidr) != has(self.__namespace__)", "an SSH source is either a cidr or a namespace; give exactly one"))]
#[serde(rename_all = "camelCase")]
pub struct SshSource {
    /// A range of addresses, for instance `203.0.113.0/24`.
    #[schemars(length(min = 1, max = 64))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cidr: Option<String>,
    /// A namespace whose pods may connect.
    #[schemars(length(min = 1, max = 63))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// The largest machine, and how many clones run at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlatformLimits {
    /// Most virtual CPUs of one machine.
    #[schemars(range(min = 1, max = 256))]
    #[serde(default = "largest_cpu")]
    pub cpu: i32,
    /// Most memory of one machine.
    #[serde(default = "largest_memory")]
    pub memory: Quantity,
    /// Largest disk of one machine.
    #[serde(default = "largest_disk")]
    pub disk: Quantity,
    /// Most clones of one image that are under way at the same time.
    #[schemars(range(min = 1, max = 1000))]
    #[serde(default = "clones_per_image")]
    pub clones_per_image: i32,
}

fn largest_cpu() -> i32 {
    64
}

fn largest_memory() -> Quantity {
    "256Gi".into()
}

fn largest_disk() -> Quantity {
    "4Ti".into()
}

/// CDI has failed at 20 to 50 clones of one source at once.
fn clones_per_image() -> i32 {
    10
}

impl Default for PlatformLimits {
    fn default() -> Self {
        Self {
            cpu: largest_cpu(),
            memory: largest_memory(),
            disk: largest_disk(),
            clones_per_image: clones_per_image(),
        }
    }
}

/// Whether the settings are in force.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KitePlatformStatus {
    /// The generation that was last judged.
    #[schemars(extend("default" = -1))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Accepted`: False says in words what is wrong, and that the last good settings stay in force.
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
