//! Makes the recording: a real control plane, all six controllers, two machines, and everything
//! that stands when nothing changes any more.

use anyhow::Result;
use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::Ingress;
use k8s_openapi::api::storage::v1::StorageClass;
use kite_api::{KiteHostClaim, KitePlatform, KiteUser, KiteVirtualMachine};
use kite_kubevirt::{DataSource, DataVolume, VirtualMachine, VirtualMachineInstance};
use kite_testkit::cluster::IMAGE_NAMESPACE;
use kite_testkit::counted::quiet;
use kite_testkit::tenant::Tenant;
use kite_testkit::{Cluster, ClusterOptions, install};
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::{Api, Client, Resource};
use serde_json::{Value, json};

use crate::recorded::{NAMESPACE, PLAIN, WEB, path};

/// Makes the recording.
pub(crate) async fn record() -> Result<()> {
    let cluster = Cluster::start(ClusterOptions::default()).await?;
    let alice = Tenant::new(&cluster, NAMESPACE).await;
    let platform = json!({
        "apiVersion": "kite.dev/v1alpha1", "kind": "KitePlatform", "metadata": {"name": "default"},
        "spec": {"baseDomain": "vms.example.org", "ingress": {"tls": "Wildcard"}},
    });
    install::apply(&alice.client, &platform.to_string()).await?;
    alice.create().await;
    alice.machine(PLAIN, json!({})).await;
    alice
        .machine(WEB, json!({"domainPrefix": "alice-web"}))
        .await;
    alice.ready(PLAIN).await;
    alice.ready(WEB).await;
    quiet(&cluster).await;
    let mut objects = Vec::new();
    let client = &alice.client;
    objects.extend(list::<KitePlatform>(client).await?);
    objects.extend(list::<KiteUser>(client).await?);
    objects.extend(list::<KiteHostClaim>(client).await?);
    objects.extend(list::<KiteVirtualMachine>(client).await?);
    objects.extend(list::<VirtualMachine>(client).await?);
    objects.extend(list::<VirtualMachineInstance>(client).await?);
    objects.extend(list::<DataVolume>(client).await?);
    objects.extend(list::<DataSource>(client).await?);
    objects.extend(list::<PersistentVolumeClaim>(client).await?);
    objects.extend(list::<Service>(client).await?);
    objects.extend(list::<EndpointSlice>(client).await?);
    objects.extend(list::<Ingress>(client).await?);
    objects.extend(list::<Namespace>(client).await?);
    objects.extend(list::<StorageClass>(client).await?);
    let text = serde_json::to_string_pretty(&objects)?;
    std::fs::write(path(), text + "\n")?;
    Ok(())
}

/// The objects of a kind that Kite's watches would show.
async fn list<K: Resource<DynamicType = ()>>(client: &Client) -> Result<Vec<Value>> {
    let kind = ApiResource::erase::<K>(&());
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    let mut objects = Vec::new();
    for mut object in api.list(&ListParams::default()).await? {
        let namespace = object.metadata.namespace.clone().unwrap_or_default();
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let elsewhere = kind.kind == "Namespace" && name != NAMESPACE;
        if elsewhere || !["", NAMESPACE, IMAGE_NAMESPACE].contains(&namespace.as_str()) {
            continue;
        }
        // Every watch drops it on arrival.
        object.metadata.managed_fields = None;
        let mut value = serde_json::to_value(&object)?;
        value["apiVersion"] = kind.api_version.clone().into();
        value["kind"] = kind.kind.clone().into();
        objects.push(value);
    }
    Ok(objects)
}
