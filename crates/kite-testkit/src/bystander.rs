//! A namespace whose objects are none of Kite's business, though some look as if they were.
//!
//! It proves nothing by itself: a scenario compares it before and after.

use kite_kubevirt::VirtualMachine;
use serde_json::json;

use crate::tenant::{LONG, Tenant};
use crate::{Cluster, install};

/// The namespace.
pub const NAME: &str = "bystander";

/// Makes it, and waits until KubeVirt has done its part; what Kite may still write elsewhere is
/// the caller's to wait for.
///
/// # Panics
///
/// When the server does not take it.
pub async fn make(cluster: &Cluster) -> Tenant<'_> {
    let bystander = Tenant::new(cluster, NAME).await;
    let labels = json!({
        "kite.dev/managed-by": "kite-controller", "kite.dev/vm-name": "web",
        "kite.dev/vm-uid": "00000000-0000-0000-0000-000000000000",
    });
    let objects = [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAME}}),
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "web", "namespace": NAME, "labels": labels},
            "spec": {"ports": [{"port": 80}]},
        }),
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "web-cloud-init", "namespace": NAME, "labels": labels},
            "data": {"userdata": "Yg=="},
        }),
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
            "metadata": {"name": "theirs", "namespace": NAME}, "spec": {"podSelector": {}},
        }),
        json!({
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
            "metadata": {"name": "web", "namespace": NAME, "labels": labels},
            "spec": {
                "runStrategy": "Halted",
                "template": {"spec": {"domain": {"memory": {"guest": "1Gi"}, "devices": {}}}},
            },
        }),
    ];
    for object in objects {
        install::apply(&bystander.client, &object.to_string())
            .await
            .unwrap();
    }
    // KubeVirt's part of it comes to rest.
    let halted = |vm: &VirtualMachine| vm.is_seen() && vm.condition("Ready").is_some();
    bystander.until("web", LONG, halted).await;
    bystander
}
