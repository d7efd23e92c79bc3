//! A disk grows, when and as far as it can, and says why where it cannot.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, ResourceQuota};
use k8s_openapi::api::storage::v1::StorageClass;
use kite_api::KiteVirtualMachine;
use kite_api::condition::{RESOURCES_APPLIED, STALLED};
use kite_kubevirt::read::{DataVolume, VirtualMachine};
use kite_testkit::install;
use kite_testkit::stand_ins::PROVISIONER;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use crate::common::{LONG, Place, condition_of};

fn requested(claim: &PersistentVolumeClaim) -> i64 {
    let spec = claim.spec.as_ref().unwrap();
    let requests = spec.resources.as_ref().unwrap().requests.as_ref().unwrap();
    kite_api::quantity::whole(&requests["storage"].0).unwrap()
}

fn disk_of(size: &str) -> serde_json::Value {
    json!({"spec": {"disk": size}})
}

// V-13: what is asked for in the middle of a clone comes after it, and costs no refused request
#[tokio::test]
async fn a_disk_that_is_still_being_filled_grows_afterwards() {
    let place = Place::new("early").await;
    let audit = place.cluster.control_plane.audit().unwrap();
    let start = audit.settled_mark(&place.client).await.unwrap();
    place.machine("web", json!({"powerState": "Off"})).await;
    let filling = |d: &DataVolume| d.phase() == "CloneInProgress";
    place.until("web", LONG, filling).await;
    let claim = place
        .until("web", LONG, |_: &PersistentVolumeClaim| true)
        .await;
    let before = requested(&claim);
    place
        .edit::<KiteVirtualMachine>("web", disk_of("4Gi"))
        .await;
    let grown = |c: &PersistentVolumeClaim| requested(c) > before;
    let claim = place.until("web", LONG, grown).await;
    assert_eq!(requested(&claim), before * 2);
    let disk = place.until("web", LONG, |_: &DataVolume| true).await;
    assert_eq!(disk.phase(), "Succeeded");
    let requests = audit.since(start).unwrap();
    let of_disk = |resource: &str| {
        let ours = requests.iter().filter(|r| {
            r.is_by("kite-vm") && r.namespace == "early" && r.resource == resource && !r.is_watch()
        });
        ours.map(|r| (r.verb.as_str(), r.code)).collect::<Vec<_>>()
    };
    assert_eq!(of_disk("persistentvolumeclaims"), [("patch", 200)]);
    assert_eq!(
        of_disk("cdi.kubevirt.io/datavolumes"),
        [("create", 201)],
        "CDI refuses every change of a disk's specification, so none is sent"
    );
    // F-25: no access mode is fixed; what the class can decides whether a machine may move.
    let spec = place
        .cluster
        .control_plane
        .kubectl(&[
            "get",
            "dv",
            "web",
            "-n",
            "early",
            "-o",
            "jsonpath={.spec.storage}",
        ])
        .await
        .unwrap();
    assert!(!spec.stdout.contains("accessModes"), "{}", spec.stdout);
}

// V-13, V-17, F-4: the class and the quota say no in words, power works all the same, and each
// heals when it is mended
#[tokio::test]
async fn a_disk_that_cannot_grow_says_so_and_grows_when_it_can() {
    let place = Place::new("rigid").await;
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "rigid"},
        "provisioner": PROVISIONER, "volumeBindingMode": "Immediate",
    });
    install::apply(&place.client, &class.to_string())
        .await
        .unwrap();
    let wish = json!({"powerState": "Off", "storageClassName": "rigid"});
    place.machine("web", wish).await;
    place
        .until("web", LONG, |d: &DataVolume| d.phase() == "Succeeded")
        .await;
    let machine = place.applied("web").await;
    assert_eq!(
        machine.status.unwrap().storage_class_name.as_deref(),
        Some("rigid")
    );
    let claim = place
        .until("web", LONG, |_: &PersistentVolumeClaim| true)
        .await;
    let before = requested(&claim);

    place
        .edit::<KiteVirtualMachine>("web", disk_of("4Gi"))
        .await;
    let told = place.says("web", RESOURCES_APPLIED, "DiskCannotGrow").await;
    let message = &condition_of(&told, STALLED).unwrap().message;
    assert!(
        message.contains("storage class \"rigid\" does not allow expansion"),
        "{message}"
    );
    place
        .edit::<KiteVirtualMachine>("web", json!({"spec": {"powerState": "On"}}))
        .await;
    let running = |vm: &VirtualMachine| vm.printable_status() == "Running";
    place.until("web", LONG, running).await;

    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "tight", "namespace": "rigid"},
        "spec": {"hard": {"requests.storage": "3Gi"}},
    });
    install::apply(&place.client, &quota.to_string())
        .await
        .unwrap();
    let is_counted = |q: &ResourceQuota| q.status.as_ref().is_some_and(|s| s.used.is_some());
    place.until("tight", LONG, is_counted).await;
    let classes: Api<StorageClass> = Api::all(place.client.clone());
    let may_expand = Patch::Merge(json!({"allowVolumeExpansion": true}));
    classes
        .patch("rigid", &PatchParams::default(), &may_expand)
        .await
        .unwrap();
    let told = place.says("web", RESOURCES_APPLIED, "QuotaExceeded").await;
    let message = &condition_of(&told, RESOURCES_APPLIED).unwrap().message;
    for words in [
        "exceeded quota: tight",
        "requested: requests.storage=",
        "used: ",
        "limited: ",
    ] {
        assert!(message.contains(words), "{message}");
    }
    assert!(
        condition_of(&told, STALLED).is_none(),
        "it may end by itself"
    );
    let quotas = place.api::<ResourceQuota>();
    quotas
        .delete("tight", &DeleteParams::default())
        .await
        .unwrap();
    let grown = |c: &PersistentVolumeClaim| requested(c) == before * 2;
    place.until("web", LONG, grown).await;
    place.applied("web").await;
}
