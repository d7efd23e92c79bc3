//! Which claim is a machine's disk, and what is told when it is not there.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kite_api::KiteVirtualMachine;
use kite_api::condition::DISK_READY;
use kite_kubevirt::DataVolume;
use kite_testkit::by_hand::{ByHand, condition};
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::{
    LONG, QUIET, by_hand, cdi, claim, claim_spec, disk, message, record, remove_claim, scene, told,
    until,
};

// D-4, D-5: CDI copies our labels to a temporary claim as well.
#[tokio::test]
async fn a_lost_datavolume_is_no_lost_disk_and_a_lost_claim_is() {
    let hand = by_hand("lost").await;
    let machine = hand.machine("web", &json!({})).await.unwrap();
    let disk = disk(&hand, &machine).await;
    let claim = claim(&hand, &machine, &disk).await;
    let mut temporary = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}},
    });
    temporary["metadata"] =
        json!({"name": "tmp-pvc-1", "labels": claim.labels(), "annotations": claim.annotations()});
    hand.apply::<PersistentVolumeClaim>("cdi", "tmp-pvc-1", &temporary)
        .await
        .unwrap();
    cdi(&hand, "web", "Succeeded", "100.0%", &json!([])).await;
    let recorded = json!({"claimUID": claim.uid(), "dataVolumeName": "web"});
    hand.say("web", &recorded, &[("ResourcesApplied", "True", "Applied")])
        .await
        .unwrap();
    hand.until("web", LONG, |m| {
        condition(m, DISK_READY) == "True Succeeded"
    })
    .await
    .unwrap();

    hand.api::<DataVolume>()
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    hand.until("web", LONG, |m| {
        condition(m, DISK_READY) == "True ClaimOnly"
    })
    .await
    .unwrap();
    remove_claim(&hand, "web").await;
    let told = hand
        .until("web", LONG, |m| {
            condition(m, DISK_READY) == "False DiskLost"
        })
        .await
        .unwrap();
    assert_eq!(told.status.unwrap().data_volume_phase, None);
    assert!(
        hand.api::<DataVolume>()
            .get_opt("web")
            .await
            .unwrap()
            .is_none(),
        "it re-creates nothing"
    );
}

// C-7, C-10
#[tokio::test]
async fn a_disk_of_another_machine_is_not_told_and_after_a_deletion_nothing_is() {
    let scene = scene().await;
    let _one = scene.one_copy().await;
    let hand = by_hand("others").await;
    let machine = hand.machine("web", &json!({})).await.unwrap();
    disk(&hand, &machine).await;
    let other = json!({"metadata": {"annotations": {"kite.dev/vm-uid": "somebody-else"}}});
    hand.edit::<DataVolume>("web", &other).await.unwrap();
    cdi(&hand, "web", "Succeeded", "100.0%", &json!([])).await;
    tokio::time::sleep(QUIET).await;
    let now: KiteVirtualMachine = hand.api().get("web").await.unwrap();
    assert_ne!(told(&now).0, Some("Succeeded"));

    let gone = by_hand("gone").await;
    let machine = gone.machine("web", &json!({"delete": true})).await.unwrap();
    let began = scene.mark(&gone).await.unwrap();
    disk(&gone, &machine).await;
    cdi(&gone, "web", "Succeeded", "100.0%", &json!([])).await;
    tokio::time::sleep(QUIET).await;
    assert!(scene.requests(&gone, began).await.unwrap().is_empty());
}
/// Somebody makes a claim under a machine's name.
async fn plant(hand: &ByHand, name: &str, meta: &Value) {
    let mut object = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": claim_spec(),
    });
    object["metadata"]["name"] = json!(name);
    hand.apply::<PersistentVolumeClaim>("somebody", name, &object)
        .await
        .unwrap();
}

// D-7, C-7, C-16
#[tokio::test]
async fn a_claim_that_somebody_planted_is_a_conflict_with_our_marks_and_without_until_it_is_gone() {
    let scene = scene().await;
    let _one = scene.one_copy().await;
    let hand = by_hand("planted").await;
    let began = scene.mark(&hand).await.unwrap();
    // With all of Kite's marks; with none, so that no watch shows it; and before CDI could begin,
    // which only kite-vm knows of.
    for name in ["forged", "bare", "early"] {
        let machine = hand.machine(name, &json!({})).await.unwrap();
        let marks = json!({
            "labels": {"kite.dev/managed-by": "kite-controller", "kite.dev/vm-uid": machine.uid()},
            "annotations": {"kite.dev/vm-uid": machine.uid()},
        });
        let marks = if name == "forged" { marks } else { json!({}) };
        plant(&hand, name, &marks).await;
        if name == "early" {
            let refused = [("ResourcesApplied", "False", "NameConflict")];
            hand.say(name, &json!({}), &refused).await.unwrap();
        } else {
            disk(&hand, &machine).await;
        }
    }
    for name in ["forged", "bare", "early"] {
        let machine = until(&hand, name, "False NameConflict").await;
        let words = message(&machine);
        assert!(
            words.contains(&format!("PersistentVolumeClaim {name}")),
            "{words}"
        );
        assert_eq!(machine.status.unwrap().data_volume_phase, None);
    }
    let event = scene.event(&hand, "NameConflict", LONG).await.unwrap();
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    let asked = scene.requests(&hand, began).await.unwrap();
    let looks = asked.iter().filter(|r| r.verb == "get");
    assert!(
        looks.count() <= 3,
        "one look for each that no watch shows: {asked:?}"
    );

    // Gone, and CDI goes on with its own.
    for name in ["forged", "bare", "early"] {
        remove_claim(&hand, name).await;
        let machine: KiteVirtualMachine = hand.api().get(name).await.unwrap();
        if name == "early" {
            let applied = [("ResourcesApplied", "True", "Applied")];
            hand.say(name, &json!({}), &applied).await.unwrap();
        }
        let disk = disk(&hand, &machine).await;
        claim(&hand, &machine, &disk).await;
        cdi(&hand, name, "CloneScheduled", "N/A", &json!([])).await;
    }
    for name in ["forged", "bare", "early"] {
        until(&hand, name, "False InProgress").await;
    }
}

// C-7 (d), D-5
#[tokio::test]
async fn a_disk_whose_labels_somebody_took_away_is_not_called_lost() {
    let scene = scene().await;
    let _one = scene.one_copy().await;
    let hand = by_hand("bare").await;
    let machine = hand.machine("web", &json!({})).await.unwrap();
    let disk = disk(&hand, &machine).await;
    let claim = claim(&hand, &machine, &disk).await;
    cdi(&hand, "web", "Succeeded", "100.0%", &json!([])).await;
    record(&hand, "web", &claim).await;
    until(&hand, "web", "True Succeeded").await;
    let began = scene.mark(&hand).await.unwrap();
    let bare = json!({"metadata": {"labels": {"kite.dev/managed-by": null}}});
    hand.edit::<PersistentVolumeClaim>("web", &bare)
        .await
        .unwrap();
    tokio::time::sleep(QUIET).await;
    let asked = scene.requests(&hand, began).await.unwrap();
    let verbs: Vec<&str> = asked.iter().map(|r| r.verb.as_str()).collect();
    assert_eq!(verbs, ["get"], "{asked:?}");
    let now: KiteVirtualMachine = hand.api().get("web").await.unwrap();
    assert_eq!(condition(&now, DISK_READY), "True Succeeded");
}
