//! What Kubernetes itself does to Kite's objects goes on under the policies.

use k8s_openapi::api::core::v1::{Namespace, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kite_api::KiteVirtualMachine;
use kite_testkit::{install, wait};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::world::{marked, world};
use crate::{LONG, POLICIES};

const SPACE: &str = r"
apiVersion: v1
kind: Namespace
metadata: {name: going, labels: {kite.dev/user: going}, annotations: {kite.dev/user-uid: u-9}}
---
apiVersion: kite.dev/v1alpha1
kind: KiteVirtualMachine
metadata: {name: web, namespace: going}
spec: {cpu: 1, memory: 1Gi, disk: 2Gi, image: ubuntu-24.04}
---
apiVersion: v1
kind: Secret
metadata: {name: web-cloud-init, namespace: going, labels: {kite.dev/managed-by: kite-controller}}
";

// C-7, V-20: labels are copied, garbage is collected and a namespace goes, whatever is marked in it.
#[tokio::test]
async fn labels_are_copied_garbage_is_collected_and_namespaces_go() {
    let _policies = POLICIES.read().await;
    let world = world().await;
    let admin = world.plane.admin_client().await.unwrap();
    install::apply(&admin, SPACE).await.unwrap();
    let machines: Api<KiteVirtualMachine> = Api::namespaced(admin.clone(), "going");
    let machine = machines.get("web").await.unwrap();
    let mut meta = marked("web");
    meta["namespace"] = "going".into();
    meta["ownerReferences"] = json!([{
        "apiVersion": "kite.dev/v1alpha1", "kind": "KiteVirtualMachine", "name": "web",
        "uid": machine.uid(), "controller": true, "blockOwnerDeletion": true,
    }]);
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": meta,
        "spec": {"selector": {"kite.dev/vm-uid": "m-1"}, "ports": [{"port": 80}]},
    });
    install::apply(&admin, &service.to_string()).await.unwrap();

    let slices: Api<EndpointSlice> = Api::namespaced(admin.clone(), "going");
    let copied = ListParams::default().labels("kite.dev/vm-name=web");
    wait::eventually("an EndpointSlice with Kite's labels", LONG, async || {
        let slices = slices.list(&copied).await.ok()?;
        (!slices.items.is_empty()).then_some(())
    })
    .await
    .unwrap();

    let tenants: Api<KiteVirtualMachine> = Api::namespaced(world.client("editor").await, "going");
    tenants
        .delete("web", &DeleteParams::foreground())
        .await
        .unwrap();
    let services: Api<Service> = Api::namespaced(admin.clone(), "going");
    wait::wait_gone(&services, "web", LONG).await.unwrap();
    wait::wait_gone(&machines, "web", LONG).await.unwrap();

    let secrets: Api<Secret> = Api::namespaced(admin.clone(), "going");
    secrets.get("web-cloud-init").await.unwrap();
    let keeper: Api<Namespace> = Api::all(world.client("kite-namespace").await);
    keeper
        .delete("going", &DeleteParams::default())
        .await
        .unwrap();
    let namespaces: Api<Namespace> = Api::all(admin);
    wait::wait_gone(&namespaces, "going", LONG).await.unwrap();
}
