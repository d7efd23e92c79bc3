//! kite-datavolume alone on a real API server; CDI, kite-vm and the storage are played by hand.

#![allow(clippy::unwrap_used, clippy::panic)]

mod claims;
mod clone;
mod growth;

use std::time::Duration;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kite_api::KiteVirtualMachine;
use kite_api::condition::DISK_READY;
use kite_kubevirt::DataVolume;
use kite_testkit::by_hand::{ByHand, condition};
use kite_testkit::mirror_scene::Scene;
use kite_testkit::{ClusterOptions, Options, install};
use kube::ResourceExt;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// The controller under test.
const NAME: &str = "kite-datavolume";
/// Longer than anything here takes on two busy cores.
const LONG: Duration = Duration::from_mins(1);
/// Long enough for a write that must not come.
const QUIET: Duration = Duration::from_secs(4);
/// A storage class whose claims may grow.
const CLASS: &str = "grows";

/// One scene for all tests; errors are held for 2.5 s, progress is told every 2.5 s.
async fn scene() -> &'static Scene {
    static SCENE: OnceCell<Scene> = OnceCell::const_new();
    SCENE
        .get_or_init(|| async {
            let options = ClusterOptions {
                speed: 4.0,
                args: vec![(NAME, "--stuck-after=6s".to_owned())],
                control_plane: Options {
                    controller_manager: false,
                    ..Options::default()
                },
                ..ClusterOptions::default()
            };
            let scene = Scene::start(NAME, options).await.unwrap();
            early(&scene).await;
            let class = json!({
                "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
                "metadata": {"name": CLASS}, "provisioner": "by.hand", "allowVolumeExpansion": true,
            });
            install::apply(&scene.cluster.client().await, &class.to_string())
                .await
                .unwrap();
            scene
        })
        .await
}

/// C-14: CDI comes after Kite, and is picked up within 30 s.
async fn early(scene: &Scene) {
    let hand = scene.by_hand("early").await.unwrap();
    hand.machine("web", &json!({})).await.unwrap();
    until(&hand, "web", "Unknown DependencyMissing").await;
    install::upstream_crds(&scene.cluster.control_plane)
        .await
        .unwrap();
    let began = std::time::Instant::now();
    let machine: KiteVirtualMachine = hand.api().get("web").await.unwrap();
    disk(&hand, &machine).await;
    cdi(&hand, "web", "Succeeded", "100.0%", &json!([])).await;
    until(&hand, "web", "True Succeeded").await;
    let took = began.elapsed();
    assert!(took < Duration::from_secs(30), "{took:?}");
}

async fn by_hand(namespace: &str) -> ByHand {
    scene().await.by_hand(namespace).await.unwrap()
}

/// Waits until `DiskReady` says so, as `status reason`.
async fn until(hand: &ByHand, name: &str, ready: &str) -> KiteVirtualMachine {
    hand.until(name, LONG, |m| condition(m, DISK_READY) == ready)
        .await
        .unwrap()
}

async fn disk(hand: &ByHand, machine: &KiteVirtualMachine) -> DataVolume {
    let object = json!({
        "apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume",
        "spec": {"sourceRef": {"kind": "DataSource", "name": "ubuntu", "namespace": "kite-images"},
            "storage": {"resources": {"requests": {"storage": "2Gi"}}}},
    });
    hand.child(machine, false, object).await.unwrap()
}

/// What every claim here asks for.
fn claim_spec() -> Value {
    json!({
        "accessModes": ["ReadWriteOnce"], "storageClassName": CLASS,
        "resources": {"requests": {"storage": "2Gi"}},
    })
}

/// The claim as CDI makes it: with the DataVolume's labels and annotations, owned by it.
async fn claim(
    hand: &ByHand,
    machine: &KiteVirtualMachine,
    disk: &DataVolume,
) -> PersistentVolumeClaim {
    let object = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": machine.name_any(), "labels": disk.labels(), "annotations": disk.annotations(),
            "ownerReferences": [{
                "apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "name": disk.name_any(),
                "uid": disk.uid().unwrap(), "controller": true,
            }],
        },
        "spec": claim_spec(),
    });
    hand.apply("cdi-controller", &machine.name_any(), &object)
        .await
        .unwrap()
}

/// There is no controller here that would let a protected claim go.
async fn remove_claim(hand: &ByHand, name: &str) {
    let free = json!({"metadata": {"finalizers": null}});
    hand.edit::<PersistentVolumeClaim>(name, &free)
        .await
        .unwrap();
    hand.api::<PersistentVolumeClaim>()
        .delete(name, &kube::api::DeleteParams::default())
        .await
        .unwrap();
}

/// What kite-vm records of a claim.
async fn record(hand: &ByHand, name: &str, claim: &PersistentVolumeClaim) {
    let recorded = json!({"claimUID": claim.uid(), "dataVolumeName": name});
    let applied = [("ResourcesApplied", "True", "Applied")];
    hand.say(name, &recorded, &applied).await.unwrap();
}

/// CDI says something of a disk.
async fn cdi(hand: &ByHand, name: &str, phase: &str, progress: &str, conditions: &Value) {
    let status = json!({"phase": phase, "progress": progress, "conditions": conditions});
    hand.status::<DataVolume>(name, &status).await.unwrap();
}

fn told(machine: &KiteVirtualMachine) -> (Option<&str>, Option<&str>) {
    let status = machine.status.as_ref();
    let phase = status.and_then(|s| s.data_volume_phase.as_deref());
    (
        phase,
        status.and_then(|s| s.data_volume_progress.as_deref()),
    )
}

/// The message of `DiskReady`.
fn message(machine: &KiteVirtualMachine) -> String {
    let conditions = &machine.status.as_ref().unwrap().conditions;
    let ready = kite_api::condition::find(conditions, DISK_READY).unwrap();
    ready.message.clone()
}
