//! `KiteVirtualMachine`: one virtual machine with its disk, login, power and address.
//!
//! The status has several writers, each with fields of its own (rule C-9). It
//! never holds a password, a private key or anything else that is secret.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::GUEST_SHUT_DOWN;
use crate::quantity::Quantity;

/// What a user asks for: a size, an image, a login, power and perhaps a host name.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "kite.dev",
    version = "v1alpha1",
    kind = "KiteVirtualMachine",
    plural = "kitevirtualmachines",
    singular = "kitevirtualmachine",
    shortname = "ktvm",
    category = "kite",
    namespaced,
    status = "KiteVirtualMachineStatus",
    derive = "PartialEq",
    doc = "A virtual machine: a disk cloned from a published image, a login, power, a Service and perhaps a host name.",
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Power", type_ = "string", json_path = ".status.currentPowerState"),
    printcolumn(name = "CPU", type_ = "integer", json_path = ".spec.cpu"),
    printcolumn(name = "Memory", type_ = "string", json_path = ".spec.memory"),
    printcolumn(name = "Disk", type_ = "string", json_path = ".status.dataVolumeProgress", description = "Progress of the disk"),
    printcolumn(name = "Address", type_ = "string", json_path = ".status.ipAddresses[0]"),
    printcolumn(name = "Node", type_ = "string", json_path = ".status.nodeName"),
    printcolumn(name = "Blocked", type_ = "string", json_path = ".status.blockedBy"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Domain", type_ = "string", json_path = ".status.domain", priority = 1),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].message", priority = 1),
    validation = Rule::new("oldSelf.hasValue() || (self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))").message("the name of a machine is also the name of its Service; start with a letter and use at most 63 lower-case letters, digits and hyphens, without dots").optional_old_self(true)
)]
#[x_kube(
    validation = ("quantity(self.disk).compareTo(quantity(oldSelf.disk)) >= 0", "disk only grows; to have a smaller one, make a new machine"),
    validation = ("self.image == oldSelf.image", "image cannot change, since the disk was filled from it; to have another image, make a new machine"),
    validation = ("self.loginUser == oldSelf.loginUser", "loginUser cannot change, since it was made at the first boot; add the new user inside the machine"),
    validation = ("has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)", "storageClassName cannot be changed, set or unset later, since the disk is already there; to have another class, make a new machine"),
    validation = ("!oldSelf.delete || self.delete", "delete cannot be taken back: the machine is already going; make a new one")
)]
#[serde(rename_all = "camelCase")]
pub struct KiteVirtualMachineSpec {
    /// Virtual CPUs.
    #[schemars(range(min = 1, max = 256))]
    pub cpu: i32,
    /// Memory of the guest, for instance `4Gi`.
    // Rules about one value stand on its field: the server asks them again only when that value
    // changes, so an object that is older than a rule can still be switched off and deleted.
    #[x_kube(validation = ("quantity(self).compareTo(quantity('32Mi')) >= 0 && quantity(self).compareTo(quantity('12Ti')) <= 0", "memory must be between 32Mi and 12Ti, for instance 4Gi"))]
    pub memory: Quantity,
    /// Size of the disk, for instance `25Gi`. It may grow later and never shrinks.
    #[x_kube(validation = ("quantity(self).compareTo(quantity('64Mi')) >= 0 && quantity(self).compareTo(quantity('64Ti')) <= 0", "disk must be between 64Mi and 64Ti, for instance 25Gi"))]
    pub disk: Quantity,
    /// Name of an image that the administrator has published. It never changes.
    #[schemars(
        length(min = 1, max = 253),
        regex(
            pattern = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$"
        )
    )]
    pub image: String,
    /// Whether the machine should run.
    #[serde(default)]
    pub power_state: PowerState,
    /// First label of the machine's host name under the platform's base domain. Absent: no Ingress.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain_prefix: Option<String>,
    /// The user that cloud-init makes at the first boot. It never changes.
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[a-z_][a-z0-9_-]*$"))]
    #[x_kube(validation = ("self != 'root'", "loginUser must not be root; name an ordinary user, who may use sudo"))]
    #[serde(default = "login_user")]
    pub login_user: String,
    /// Public SSH keys of the login user, one entry each. None: Kite makes a pair and stores it in a Secret.
    #[schemars(
        length(max = 32),
        inner(
            length(min = 1, max = 4096),
            regex(
                pattern = r"^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)|sk-ssh-ed25519@openssh\.com|sk-ecdsa-sha2-nistp256@openssh\.com) [A-Za-z0-9+/]+={0,3}( [^\x00-\x1f\x7f]*)?$"
            )
        )
    )]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ssh_authorized_keys: Vec<String>,
    /// A Secret of the same namespace that holds the login user's password as a crypt hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_secret_ref: Option<PasswordSecretRef>,
    /// Storage class of the disk. Absent: the platform's. It never changes.
    #[schemars(
        length(min = 1, max = 253),
        regex(
            pattern = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$"
        )
    )]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
    /// What becomes of the disk when the machine is deleted.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
    /// What happens when the guest shuts itself down.
    #[serde(default)]
    pub on_guest_shutdown: OnGuestShutdown,
    /// True deletes the machine with all that belongs to it. It cannot be taken back.
    #[serde(default)]
    pub delete: bool,
}

fn login_user() -> String {
    "kite".to_owned()
}

/// Whether a machine should run, or does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PowerState {
    /// It runs.
    #[default]
    On,
    /// It does not.
    Off,
}

/// Where a password hash is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PasswordSecretRef {
    /// Name of the Secret.
    #[schemars(
        length(min = 1, max = 253),
        regex(
            pattern = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$"
        )
    )]
    pub name: String,
    /// Key within the Secret.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^([-_a-zA-Z0-9]|\.[-_a-zA-Z0-9])[-._a-zA-Z0-9]*$")
    )]
    #[serde(default = "password_key")]
    pub key: String,
}

fn password_key() -> String {
    "passwordHash".to_owned()
}

/// What becomes of the disk when the machine is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// It is deleted too.
    #[default]
    Delete,
    /// It is kept, labelled as retained.
    Retain,
}

/// What happens when the guest shuts itself down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnGuestShutdown {
    /// It is started again: On means on.
    #[default]
    Restart,
    /// It stays down until it is switched off and on.
    StayOff,
}

/// What the machine is doing, told by the controllers that keep it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KiteVirtualMachineStatus {
    /// The generation that `Ready` speaks of. Written by kite-vm-status.
    #[schemars(extend("default" = -1))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// A summary for people; tools read the conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// UID of the disk's claim, once it was seen. Written by kite-vm.
    #[schemars(length(max = 64))]
    #[serde(default, rename = "claimUID", skip_serializing_if = "Option::is_none")]
    pub claim_uid: Option<String>,
    /// Name of the DataVolume. Written by kite-vm.
    #[schemars(length(max = 253))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_volume_name: Option<String>,
    /// Name of the cloud-init Secret. Written by kite-vm.
    #[schemars(length(max = 253))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloud_init_secret_name: Option<String>,
    /// Name of the Secret with the generated SSH key, if one was made. Written by kite-vm.
    #[schemars(length(max = 253))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_key_secret_name: Option<String>,
    /// Name of the Service. Written by kite-vm.
    #[schemars(length(max = 253))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_name: Option<String>,
    /// Name of the Ingress, if there is one. Written by kite-vm.
    #[schemars(length(max = 253))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress_name: Option<String>,
    /// The host name, once it is the machine's. Written by kite-vm.
    #[schemars(length(max = 253))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// The storage class that was chosen at creation. Written by kite-vm.
    #[schemars(length(max = 253))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
    /// Whether the machine runs. Written by kite-vm-status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_power_state: Option<PowerState>,
    /// UID of KubeVirt's VirtualMachine. Written by kite-vm-status.
    #[schemars(length(max = 64))]
    #[serde(
        default,
        rename = "virtualMachineUID",
        skip_serializing_if = "Option::is_none"
    )]
    pub virtual_machine_uid: Option<String>,
    /// The node it runs on. Written by kite-vm-status.
    #[schemars(length(max = 253))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// Addresses of the machine, sorted. Written by kite-vm-status.
    #[schemars(length(max = 32), inner(length(max = 64)), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ip_addresses: Vec<String>,
    /// How it last stopped. Written by kite-vm-status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_stop: Option<LastStop>,
    /// What stands in the way, in one line, with the object to look at. Written by kite-vm-status.
    #[schemars(length(max = 256))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<String>,
    /// Where the machine is reached. Written by kite-service.
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<Endpoint>,
    /// CDI's word for the state of the disk. Written by kite-datavolume.
    #[schemars(length(max = 64))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_volume_phase: Option<String>,
    /// How much of the disk is filled, in whole percent. Written by kite-datavolume.
    #[schemars(length(max = 16))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_volume_progress: Option<String>,
    /// CDI's explanation. Written by kite-datavolume.
    #[schemars(length(max = 1024))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_volume_message: Option<String>,
    /// Each condition has one writer; the reference documentation lists them.
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A machine's state in one word, for people (rule C-10). No controller reads it to decide anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// The disk is being filled, or the machine was never started.
    Provisioning,
    /// KubeVirt is starting it.
    Starting,
    /// It runs.
    Running,
    /// KubeVirt has paused it.
    Paused,
    /// It runs and moves to another node.
    Migrating,
    /// It is going down.
    Stopping,
    /// It is off.
    Stopped,
    /// It cannot go on; the conditions say why.
    Failed,
    /// KubeVirt does not know, or says something this version does not know.
    Unknown,
    /// It is being deleted.
    Deleting,
}

/// How a machine last stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastStop {
    /// UID of the VirtualMachineInstance that ended.
    #[schemars(length(max = 64))]
    #[serde(
        default,
        rename = "instanceUID",
        skip_serializing_if = "Option::is_none"
    )]
    pub instance_uid: Option<String>,
    /// One CamelCase word, for instance `GuestShutDown`.
    #[schemars(length(max = 64))]
    pub reason: String,
    /// When it was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
}

impl LastStop {
    /// Whether the guest has shut itself down (rule V-16); every other reason is another kind of end.
    pub fn is_guest_shut_down(&self) -> bool {
        self.reason == GUEST_SHUT_DOWN
    }
}

/// One way to reach the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// Name of the port: `ssh` or `http`.
    #[schemars(length(max = 63))]
    pub name: String,
    /// The Service's address in the cluster.
    #[schemars(length(max = 64))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The Service's DNS name in the cluster.
    #[schemars(length(max = 253))]
    pub dns_name: String,
    /// Port number.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// Address outside the cluster, if the Service has one.
    #[schemars(length(max = 253))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_address: Option<String>,
}
