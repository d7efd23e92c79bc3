//! A disk that grows.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kite_api::KiteVirtualMachine;
use kite_api::condition::DISK_READY;
use kite_testkit::by_hand::{ByHand, condition};
use serde_json::{Value, json};

use crate::{LONG, by_hand, cdi, claim, disk, message, record, scene, until};

/// What the storage says of a claim.
async fn storage(hand: &ByHand, capacity: &str, conditions: &Value) {
    let status = json!({"phase": "Bound", "capacity": {"storage": capacity}, "accessModes": ["ReadWriteOnce"], "conditions": conditions});
    hand.status::<PersistentVolumeClaim>("web", &status)
        .await
        .unwrap();
}

// D-6, C-5, C-16
#[tokio::test]
async fn a_disk_that_grows_can_be_used_and_says_when_its_file_system_must_follow() {
    let scene = scene().await;
    let _one = scene.one_copy().await;
    let hand = by_hand("growth").await;
    let machine = hand.machine("web", &json!({})).await.unwrap();
    let disk = disk(&hand, &machine).await;
    let claim = claim(&hand, &machine, &disk).await;
    storage(&hand, "2Gi", &json!([])).await;
    cdi(&hand, "web", "Succeeded", "100.0%", &json!([])).await;
    record(&hand, "web", &claim).await;
    until(&hand, "web", "True Succeeded").await;

    let began = scene.mark(&hand).await.unwrap();
    // As kite-vm does when spec.disk has grown (V-13); then as a CSI resizer and a kubelet do.
    let larger = json!({"spec": {"resources": {"requests": {"storage": "4Gi"}}}});
    hand.edit::<PersistentVolumeClaim>("web", &larger)
        .await
        .unwrap();
    let growing = until(&hand, "web", "True Expanding").await;
    assert!(message(&growing).contains("4Gi"), "{}", message(&growing));
    assert!(
        !message(&growing).contains("guest"),
        "{}",
        message(&growing)
    );
    let condition_of = |type_: &str, words: &str| json!({"type": type_, "status": "True", "message": words, "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let resizing = condition_of("Resizing", "");
    storage(&hand, "2Gi", &json!([resizing])).await;
    let pending = condition_of(
        "FileSystemResizePending",
        "Waiting for user to (re-)start a pod to finish file system resize of volume on node.",
    );
    storage(&hand, "2Gi", &json!([pending])).await;
    let hinted = |m: &KiteVirtualMachine| {
        condition(m, DISK_READY) == "True Expanding"
            && message(m).contains("the guest's own partition")
    };
    hand.until("web", LONG, hinted).await.unwrap();
    storage(&hand, "4Gi", &json!([])).await;
    until(&hand, "web", "True Succeeded").await;
    let sent = scene.requests(&hand, began).await.unwrap();
    assert_eq!(sent.len(), 3, "{sent:?}");
    let event = scene.event(&hand, "Expanded", LONG).await.unwrap();
    assert!(event.note.unwrap().contains("growpart"));

    // A driver that cannot, for a disk whose DataVolume was collected meanwhile.
    hand.api::<kite_kubevirt::DataVolume>()
        .delete("web", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    until(&hand, "web", "True ClaimOnly").await;
    let larger = json!({"spec": {"resources": {"requests": {"storage": "8Gi"}}}});
    hand.edit::<PersistentVolumeClaim>("web", &larger)
        .await
        .unwrap();
    let failed = condition_of(
        "ControllerResizeError",
        "rpc error: request 7f3a9: no space",
    );
    storage(&hand, "4Gi", &json!([resizing, failed])).await;
    let cannot = |m: &KiteVirtualMachine| {
        condition(m, DISK_READY) == "True Expanding"
            && message(m).contains("cannot grow the disk to 8Gi")
    };
    let told = hand.until("web", LONG, cannot).await.unwrap();
    // C-4: a request's id would change by itself.
    assert!(!message(&told).contains("7f3a9"));
}
