//! How a clone is told of, and what is made of one that does not go on.

use std::time::Duration;

use kite_api::condition::DISK_READY;
use kite_kubevirt::DataVolume;
use kite_testkit::by_hand::condition;
use serde_json::{Value, json};

use crate::{LONG, NAME, QUIET, by_hand, cdi, claim, disk, message, scene, told, until};

// D-1, D-2, C-5
#[tokio::test]
async fn a_clone_is_told_in_few_writes_the_first_number_and_the_end_at_once() {
    let scene = scene().await;
    let _one = scene.one_copy().await;
    let hand = by_hand("clone").await;
    let machine = hand.machine("web", &json!({})).await.unwrap();
    let began = scene.mark(&hand).await.unwrap();
    let disk = disk(&hand, &machine).await;
    cdi(&hand, "web", "Pending", "N/A", &json!([])).await;
    claim(&hand, &machine, &disk).await;
    cdi(&hand, "web", "CloneScheduled", "N/A", &json!([])).await;
    hand.until("web", LONG, |m| told(m).0 == Some("CloneScheduled"))
        .await
        .unwrap();
    cdi(&hand, "web", "CloneInProgress", "N/A", &json!([])).await;
    // Twenty ticks a quarter of a second apart: two intervals of 2.75 s are over within them.
    for tick in 1..=20 {
        cdi(
            &hand,
            "web",
            "CloneInProgress",
            &format!("{}.5%", tick * 5 - 1),
            &json!([]),
        )
        .await;
        if tick == 1 {
            hand.until("web", Duration::from_secs(2), |m| {
                told(m) == (Some("CloneInProgress"), Some("4%"))
            })
            .await
            .unwrap();
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    cdi(&hand, "web", "Succeeded", "100.0%", &json!([])).await;
    let done = hand
        .until("web", Duration::from_secs(2), |m| {
            condition(m, DISK_READY) == "True Succeeded"
        })
        .await
        .unwrap();
    assert_eq!(told(&done), (Some("Succeeded"), Some("100%")));
    let sent = scene.requests(&hand, began).await.unwrap().len();
    assert!((4..=6).contains(&sent), "{sent} writes");
    let owned = hand.owned("web", NAME).await.unwrap();
    assert_eq!(
        owned,
        [
            "condition {\"type\":\"DiskReady\"}",
            "dataVolumePhase",
            "dataVolumeProgress"
        ]
    );
}

// C-5: nothing changes → nothing is sent, a restart and a new generation included.
#[tokio::test]
async fn a_settled_disk_costs_nothing_at_a_restart_or_when_the_specification_changes() {
    let scene = scene().await;
    let _two = scene.two_copies().await;
    let hand = by_hand("settled").await;
    let machine = hand.machine("web", &json!({})).await.unwrap();
    disk(&hand, &machine).await;
    cdi(&hand, "web", "Succeeded", "100.0%", &json!([])).await;
    hand.until("web", LONG, |m| {
        condition(m, DISK_READY) == "True Succeeded"
    })
    .await
    .unwrap();
    let began = scene.mark(&hand).await.unwrap();
    scene.start_second().await.unwrap();
    hand.machine("web", &json!({"powerState": "Off"}))
        .await
        .unwrap();
    hand.edit::<DataVolume>("web", &json!({"metadata": {"labels": {"touched": "yes"}}}))
        .await
        .unwrap();
    tokio::time::sleep(QUIET).await;
    scene.end_second();
    let sent = scene.requests(&hand, began).await.unwrap();
    assert!(sent.is_empty(), "{sent:?}");
}

/// A condition of a DataVolume that is False.
fn says(type_: &str, reason: &str, message: &str) -> Value {
    json!([{"type": type_, "status": "False", "reason": reason, "message": message}])
}

// D-3, D-4, C-16, #38
#[tokio::test]
async fn each_error_of_a_clone_is_told_when_it_has_stood_and_forgotten_when_the_clone_goes_on() {
    let scene = scene().await;
    let hand = by_hand("errors").await;
    let full = "exceeded quota: q";
    let errors = [
        (
            "full-running",
            "CloneScheduled",
            says("Running", "Error", full),
            "QuotaExceeded",
            full,
        ),
        (
            "full-bound",
            "Pending",
            says("Bound", "ErrExceededQuota", full),
            "QuotaExceeded",
            full,
        ),
        (
            "full-ready",
            "Pending",
            says("Ready", "ErrExceededQuota", full),
            "QuotaExceeded",
            full,
        ),
        (
            "no-source",
            "",
            says(
                "Bound",
                "CloneWithoutSource",
                "The source pvc x doesn't exist",
            ),
            "CloneFailed",
            "source pvc",
        ),
        (
            "lost",
            "Failed",
            says("Bound", "ClaimLost", "Claim Lost"),
            "CloneFailed",
            "Claim Lost",
        ),
        (
            "no-image",
            "CloneInProgress",
            says("Running", "ImagePullFailed", "failed to pull image"),
            "Retrying",
            "pull image",
        ),
        (
            "unbound",
            "CloneInProgress",
            says("Running", "Error", "PersistentVolume not found"),
            "Retrying",
            "not found",
        ),
    ];
    for (name, phase, conditions, ..) in &errors {
        let machine = hand.machine(name, &json!({})).await.unwrap();
        disk(&hand, &machine).await;
        cdi(&hand, name, phase, "N/A", conditions).await;
    }
    for (name, _, _, reason, words) in &errors {
        // First as what it may still turn out to be.
        until(&hand, name, &format!("False {reason}")).await;
        let event = scene.event(&hand, reason, LONG).await.unwrap();
        assert_eq!(event.type_.as_deref(), Some("Warning"));
        let machine = until(&hand, name, &format!("False {reason}")).await;
        assert!(message(&machine).contains(words), "{}", message(&machine));
        let told = machine.status.unwrap().data_volume_message.unwrap();
        assert!(told.contains(words), "{told}");
    }
    for (name, ..) in &errors {
        cdi(&hand, name, "CloneInProgress", "20.00%", &json!([])).await;
    }
    for (name, ..) in &errors {
        let machine = until(&hand, name, "False InProgress").await;
        assert_eq!(machine.status.unwrap().data_volume_message, None);
    }
    let recovered = scene.event(&hand, "DiskRecovered", LONG).await.unwrap();
    assert_eq!(recovered.type_.as_deref(), Some("Normal"));
}

// D-4, VM16, VM17
#[tokio::test]
async fn a_clone_that_does_not_move_is_stuck_one_that_begins_again_retries_and_one_that_waits_is_neither()
 {
    let hand = by_hand("stuck").await;
    for (name, power) in [("silent", "On"), ("halted", "Off"), ("loop", "On")] {
        let machine = hand
            .machine(name, &json!({"powerState": power}))
            .await
            .unwrap();
        disk(&hand, &machine).await;
    }
    let pending = json!([{"type": "Bound", "status": "False", "reason": "Pending", "message": "PVC halted Pending"}]);
    cdi(&hand, "halted", "WaitForFirstConsumer", "N/A", &pending).await;
    for restarts in 0..5 {
        let progress = if restarts == 0 { "97.00%" } else { "0.00%" };
        let status =
            json!({"phase": "CloneInProgress", "progress": progress, "restartCount": restarts});
        hand.status::<DataVolume>("loop", &status).await.unwrap();
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    let looping = until(&hand, "loop", "False Retrying").await;
    assert!(
        message(&looping).contains("started anew"),
        "{}",
        message(&looping)
    );
    hand.until("loop", LONG, |m| told(m).1 == Some("0%"))
        .await
        .unwrap();
    // The DataSource is absent: CDI never says anything.
    let silent = until(&hand, "silent", "False Stuck").await;
    assert_eq!(told(&silent).0, Some("Pending"));
    // By now far more than the time has passed after which the others are stuck.
    let halted: kite_api::KiteVirtualMachine = hand.api().get("halted").await.unwrap();
    assert_eq!(condition(&halted, DISK_READY), "False WaitingForFirstBoot");
    cdi(&hand, "halted", "PendingPopulation", "N/A", &pending).await;
    hand.until("halted", LONG, |m| told(m).0 == Some("PendingPopulation"))
        .await
        .unwrap();
    let events = scene().await.events(&hand, "WaitingForFirstBoot").await;
    assert!(events.unwrap().is_empty());
}
