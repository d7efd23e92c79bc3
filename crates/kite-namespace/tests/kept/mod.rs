//! Namespaces that nobody needs and that stay all the same: for a retained disk,
//! because they changed at the last moment, or because something in them does
//! not let go.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim};
use kite_namespace::apply;
use kite_runtime::apply::Writer;
use kite_runtime::metrics::Metrics;
use kite_runtime::{Cache, Refusal};
use kite_testkit::wait::{eventually, wait_gone};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::support::*;
use crate::{GRACE, process};

const HELD: &str = "kite.dev/deletion-held";

// N-5, V-19: a disk that its owner wanted kept keeps the namespace, and lets it go when it goes.
pub async fn a_retained_disk_keeps_its_namespace() {
    let process = process().await;
    let admin = Admin::new().await;
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(admin.client.clone(), "keeper");
    admin.user_with_namespace("keeper").await;
    for (name, labels) in [
        ("db", json!({"kite.dev/retained": "true"})),
        ("scratch", json!({})),
    ] {
        let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "keeper", "labels": labels},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
        admin.apply(&claim).await;
    }
    admin.delete_user("keeper").await;
    assert_eq!(admin.annotated("keeper", HELD).await, "OrphanRetained");
    let note = admin.event("keeper", "OrphanRetained").await;
    assert!(note.contains("PersistentVolumeClaim db."), "{note}");
    let kept = process.metrics().await.unwrap();
    assert!(kept.sum("kite_namespaces_retained", &[]) >= 1.0, "{kept:?}");
    admin.stays(&["keeper"], GRACE).await;
    assert_eq!(admin.events("keeper", "OrphanRetained").await, 1);
    let unmark = json!({"metadata": {"labels": {"kite.dev/retained": null}}});
    claims
        .patch("db", &PatchParams::default(), &Patch::Merge(unmark))
        .await
        .unwrap();
    wait_gone(&admin.namespaces(), "keeper", LIMIT)
        .await
        .unwrap();
}

// N-8: what does not come to its end is said once, with the kinds and finalizers in the way, and no longer when it is gone.
pub async fn a_deletion_that_something_blocks_is_told_with_what_blocks_it() {
    let process = process().await;
    let admin = Admin::new().await;
    let name = "blocked";
    admin.user_with_namespace(name).await;
    let anchor = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "anchor", "namespace": name, "finalizers": ["example.org/anchor"]}});
    admin.apply(&anchor).await;
    let own = json!({"metadata": {"finalizers": ["example.org/space"]}});
    let merge = PatchParams::default();
    let namespaces = admin.namespaces();
    namespaces
        .patch(name, &merge, &Patch::Merge(own))
        .await
        .unwrap();
    namespaces
        .delete(name, &DeleteParams::default())
        .await
        .unwrap();
    let note = admin.event(name, "DeletionBlocked").await;
    for way in ["configmaps", "example.org/anchor", "example.org/space"] {
        assert!(note.contains(way), "{way} is not in: {note}");
    }
    assert_eq!(admin.annotated(name, HELD).await, "DeletionBlocked");
    let series = async |way: &str| {
        let metrics = process.metrics().await.unwrap();
        let label = format!("name=\"{way}\"");
        metrics.sum("kite_namespaces_deletion_blocked", &[&label])
    };
    for way in ["configmaps", "example.org/anchor", "example.org/space"] {
        assert!(series(way).await >= 1.0, "{way}");
    }
    let maps: Api<ConfigMap> = Api::namespaced(admin.client.clone(), name);
    let free = json!({"metadata": {"finalizers": null}});
    maps.patch("anchor", &merge, &Patch::Merge(&free))
        .await
        .unwrap();
    let emptied = async || (series("example.org/anchor").await < 1.0).then_some(());
    eventually("the metric to forget the finalizer", LIMIT, emptied)
        .await
        .unwrap();
    assert_eq!(admin.events(name, "DeletionBlocked").await, 1);
    namespaces
        .patch(name, &merge, &Patch::Merge(&free))
        .await
        .unwrap();
    wait_gone(&namespaces, name, LIMIT).await.unwrap();
    let gone = async || (series("example.org/space").await < 1.0).then_some(());
    eventually("the metric to forget the namespace", LIMIT, gone)
        .await
        .unwrap();
}

// N-7, NS12: whatever has happened to a namespace since it was looked at stops its deletion.
#[tokio::test]
async fn a_deletion_that_was_decided_on_an_older_look_is_refused() {
    let admin = Admin::new().await;
    // No process: the namespace is not even managed, and only the write itself is looked at.
    let metrics = std::sync::Arc::new(Metrics::new("kite-namespace").unwrap());
    let writer = Writer::new(admin.client.clone(), "kite-namespace", metrics);
    let cache = Cache::new(|_| 0);
    let plain = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "decided"}});
    admin.apply(&plain).await;
    let looked_at = admin.namespaces().get("decided").await.unwrap();
    admin
        .annotate("decided", json!({"kite.dev/user-uid": "somebody-new"}))
        .await;
    let refused = apply::delete(&writer, &cache, &looked_at).await;
    assert_eq!(refused.unwrap_err().refusal(), Some(Refusal::Conflict));
    let mut successor = admin.namespaces().get("decided").await.unwrap();
    successor.metadata.uid = looked_at.uid().map(|uid| uid.replace('-', "0"));
    let refused = apply::delete(&writer, &cache, &successor).await;
    assert_eq!(refused.unwrap_err().refusal(), Some(Refusal::Conflict));
    admin.stays(&["decided"], Duration::ZERO).await;
    let now = admin.namespaces().get("decided").await.unwrap();
    apply::delete(&writer, &cache, &now).await.unwrap();
    wait_gone(&admin.namespaces(), "decided", LIMIT)
        .await
        .unwrap();
}
