//! The roles of people and those that are handed out namespace by namespace, as
//! tables of rights.
//!
//! `cargo xtask generate` makes ClusterRoles of them. `kite-user` binds some in
//! each user's namespace; others become part of the roles `view`, `edit` and
//! `admin` that every cluster has. A controller's own rights are not here: they
//! stand beside its watches and writes.

use crate::rbac::Rule;

/// What a user's subjects may do in the user's namespace (ClusterRole `kite-tenant`).
///
/// A machine's children are read only: they are Kite's, and a claim or a
/// DataVolume planted under a machine's name would be booted (rule D-7). The
/// quota and the isolation can be seen, not changed. KiteUsers are not here at
/// all: they are written by administrators only (rule U-3).
pub const TENANT: &[Rule] = &[
    Rule::cluster(
        "kite.dev",
        &["kitevirtualmachines"],
        &[
            "get",
            "list",
            "watch",
            "create",
            "update",
            "patch",
            "delete",
            "deletecollection",
        ],
        "the machines themselves; their status has writers of its own",
    ),
    Rule::cluster(
        "kubevirt.io",
        &[
            "virtualmachines",
            "virtualmachineinstances",
            "virtualmachineinstancemigrations",
        ],
        &["get", "list", "watch"],
        "see what runs; power is switched in the KiteVirtualMachine",
    ),
    Rule::cluster(
        "subresources.kubevirt.io",
        &[
            "virtualmachineinstances/console",
            "virtualmachineinstances/vnc",
            "virtualmachineinstances/portforward",
        ],
        &["get"],
        "reach the machine's console, screen and ports with virtctl",
    ),
    Rule::cluster(
        "cdi.kubevirt.io",
        &["datavolumes"],
        &["get", "list", "watch"],
        "see how a disk is filled",
    ),
    Rule::cluster(
        "",
        &[
            "persistentvolumeclaims",
            "pods",
            "services",
            "events",
            "resourcequotas",
            "limitranges",
        ],
        &["get", "list", "watch"],
        "see a machine's disk, pod, address and events, and what is left of the quota",
    ),
    Rule::cluster(
        "events.k8s.io",
        &["events"],
        &["get", "list", "watch"],
        "see what was done and why something waits",
    ),
    Rule::cluster(
        "discovery.k8s.io",
        &["endpointslices"],
        &["get", "list", "watch"],
        "see whether a Service has an endpoint",
    ),
    Rule::cluster(
        "networking.k8s.io",
        &["ingresses", "networkpolicies"],
        &["get", "list", "watch"],
        "see the host name and the isolation",
    ),
    Rule::cluster(
        "",
        &["secrets"],
        &["get", "list", "create", "update", "patch", "delete"],
        "the password hashes that machines refer to, and the generated SSH keys",
    ),
];

/// What `kite-vm` may do with Secrets where it is bound (ClusterRole `kite-vm-secrets`, rule C-20).
///
/// No list and no watch: the rights cannot be limited to metadata.
pub const VM_SECRETS: &[Rule] = &[Rule::cluster(
    "",
    &["secrets"],
    &["get", "create", "patch", "delete"],
    "read a password hash, write cloud-init and the generated SSH key, remove both with the machine",
)];

/// What `view` gains, and with it `edit` and `admin` (ClusterRole `kite-view`).
///
/// The cluster-scoped kinds can be seen by those only who have `view` in the whole cluster: a
/// RoleBinding gives nothing on them.
pub const VIEW: &[Rule] = &[
    Rule::cluster(
        "kite.dev",
        &["kitevirtualmachines"],
        &["get", "list", "watch"],
        "see the machines of a namespace and how they are",
    ),
    Rule::cluster(
        "kite.dev",
        &["kiteusers", "kiteplatforms", "kitehostclaims"],
        &["get", "list", "watch"],
        "see users, settings and host names, where the role is bound in the whole cluster",
    ),
];

/// What `edit` gains, and with it `admin` (ClusterRole `kite-edit`).
///
/// KiteUsers and the KitePlatform are not here: they are written by administrators only (rules
/// U-3, P-1).
pub const EDIT: &[Rule] = &[Rule::cluster(
    "kite.dev",
    &["kitevirtualmachines"],
    &["create", "update", "patch", "delete", "deletecollection"],
    "make, change and remove machines; their status has writers of its own",
)];
