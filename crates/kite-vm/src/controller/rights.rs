//! What kite-vm may do. Each right stands with what it is for.

use kite_runtime::rbac::{Rule, Scope};

use super::MACHINES_CRD;

/// What this controller may do, beyond what every controller may.
pub const RULES: &[Rule] = &[
    Rule::cluster(
        "kite.dev",
        &["kitevirtualmachines"],
        &["get", "list", "watch", "patch", "delete"],
        "what is asked for; the finalizer; the last step of spec.delete; a live look at a host's holder",
    ),
    Rule::cluster(
        "kite.dev",
        &["kitevirtualmachines/status"],
        &["patch"],
        "its own part of the status",
    ),
    Rule::cluster(
        "kite.dev",
        &["kitevirtualmachines/finalizers"],
        &["update"],
        "children that block their owner's deletion, where the server checks that right",
    ),
    Rule::cluster(
        "kite.dev",
        &["kiteusers"],
        &["list", "watch"],
        "whether a namespace is safe to use",
    ),
    Rule::cluster(
        "kite.dev",
        &["kiteplatforms"],
        &["list", "watch"],
        "the administrator's settings",
    ),
    Rule::cluster(
        "kite.dev",
        &["kiteplatforms/status"],
        &["patch"],
        "whether those settings are in force",
    ),
    Rule::cluster(
        "kite.dev",
        &["kitehostclaims"],
        &["get", "list", "watch", "create", "patch", "delete"],
        "who holds a host name",
    ),
    Rule::cluster(
        "kubevirt.io",
        &["virtualmachines"],
        &["get", "list", "watch", "create", "patch", "delete"],
        "the machine",
    ),
    Rule::cluster(
        "kubevirt.io",
        &["virtualmachineinstances"],
        &["get", "list", "watch"],
        "whether a guest still runs, before its disk goes",
    ),
    Rule::cluster(
        "cdi.kubevirt.io",
        &["datavolumes"],
        &["get", "list", "watch", "create", "patch", "delete"],
        "the disk",
    ),
    Rule::cluster(
        "cdi.kubevirt.io",
        &["datasources"],
        &["list", "watch"],
        "the published images",
    ),
    Rule::cluster(
        "cdi.kubevirt.io",
        &["datavolumes/source"],
        &["create"],
        "clone a published image; CDI asks for this right",
    )
    .within(Scope::ImageNamespace),
    Rule::cluster(
        "",
        &["services"],
        &["get", "list", "watch", "create", "patch", "delete"],
        "the address",
    ),
    Rule::cluster(
        "",
        &["persistentvolumeclaims"],
        &["get", "list", "watch", "patch", "delete"],
        "see the disk filled, grow it, take away one whose DataVolume is gone; one look at a recorded claim that no watch of Kite's labels shows, and its labels put back",
    ),
    Rule::cluster(
        "",
        &["namespaces"],
        &["list", "watch"],
        "whether a namespace goes away or is nobody's",
    ),
    Rule::cluster(
        "networking.k8s.io",
        &["ingresses"],
        &["get", "list", "watch", "create", "patch", "delete"],
        "the host name's way in",
    ),
    Rule::cluster(
        "storage.k8s.io",
        &["storageclasses"],
        &["list", "watch"],
        "which class is the default, and which can grow",
    ),
    Rule::cluster(
        "apiextensions.k8s.io",
        &["customresourcedefinitions"],
        &["list", "watch"],
        "whether the kind itself is being removed, which destroys nothing until acknowledged",
    )
    .named(&[MACHINES_CRD]),
];
