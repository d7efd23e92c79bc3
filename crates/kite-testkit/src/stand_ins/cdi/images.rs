//! A published image, as an administrator would have it: a claim with the
//! contents and a DataSource that names it.

use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use crate::stand_ins::names::{PUBLISHED_LABEL, Res, STORAGE_CLASS};

/// Field manager of what is published.
const MANAGER: &str = "stand-in-administrator";

/// Publishes an image in a Namespace: makes the Namespace, the source claim and
/// the DataSource, or brings them up to date. The DataSource becomes ready once
/// the stand-in has seen the claim.
pub async fn publish_image(
    client: &Client,
    namespace: &str,
    name: &str,
    size: &str,
) -> Result<(), kube::Error> {
    apply(
        client,
        Res::Namespace,
        "",
        json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": namespace},
        }),
    )
    .await?;
    apply(
        client,
        Res::Claim,
        namespace,
        json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": STORAGE_CLASS,
                "resources": {"requests": {"storage": size}},
            },
        }),
    )
    .await?;
    apply(
        client,
        Res::DataSource,
        namespace,
        json!({
            "apiVersion": "cdi.kubevirt.io/v1beta1",
            "kind": "DataSource",
            "metadata": {"name": name, "namespace": namespace, "labels": {PUBLISHED_LABEL: "true"}},
            "spec": {"source": {"pvc": {"name": name, "namespace": namespace}}},
        }),
    )
    .await
}

async fn apply(
    client: &Client,
    kind: Res,
    namespace: &str,
    object: Value,
) -> Result<(), kube::Error> {
    let resource = kind.api_resource();
    let api: Api<DynamicObject> = if kind.namespaced() {
        Api::namespaced_with(client.clone(), namespace, &resource)
    } else {
        Api::all_with(client.clone(), &resource)
    };
    let name = object["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let params = PatchParams::apply(MANAGER).force();
    api.patch(&name, &params, &Patch::Apply(&object)).await?;
    Ok(())
}
