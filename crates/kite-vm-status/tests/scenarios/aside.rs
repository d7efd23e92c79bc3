//! What is told beside phase and readiness: advice, what is in the way, and how it last stopped.

use kite_api::KiteVirtualMachine;
use kite_api::condition::{POWER_IN_SYNC, READY, RESTART_REQUIRED};
use kite_kubevirt::VirtualMachineInstance;
use kite_testkit::by_hand::{ByHand, condition};
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::support::{ALONE, LONG, by_hand, mark, ready, requests, running, says};

/// What kite-service says.
async fn service(hand: &ByHand, status: &str, reason: &str) {
    let object = json!({
        "apiVersion": "kite.dev/v1alpha1", "kind": "KiteVirtualMachine", "metadata": {"name": "web"},
        "status": {"conditions": [{
            "type": "ServiceReady", "status": status, "reason": reason, "message": "",
            "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]},
    });
    let params = kube::api::PatchParams::apply("kite-service").force();
    hand.api::<KiteVirtualMachine>()
        .patch_status("web", &params, &kube::api::Patch::Apply(&object))
        .await
        .unwrap();
}

fn blocked(machine: &KiteVirtualMachine) -> Option<&str> {
    machine.status.as_ref()?.blocked_by.as_deref()
}

// S-6, C-16
#[tokio::test]
async fn a_restart_that_is_required_is_shown_and_moves_nothing() {
    let _alone = ALONE.read().await;
    let hand = by_hand("advice").await;
    running(&hand, "web").await;
    let began = mark(&hand).await;
    let mut status = ready();
    status["conditions"].as_array_mut().unwrap().push(json!({
        "type": "RestartRequired", "status": "True",
        "message": "a non-live-updatable field was changed in the template spec",
    }));
    says(&hand, "web", "Running", &status).await;
    let told = hand
        .until("web", LONG, |m| condition(m, RESTART_REQUIRED) != "absent")
        .await
        .unwrap();
    assert_eq!(
        condition(&told, RESTART_REQUIRED),
        "True ChangesWaitForRestart"
    );
    assert_eq!(condition(&told, READY), "True Running");
    assert_eq!(condition(&told, POWER_IN_SYNC), "True InSync");
    assert_eq!(requests(&hand, began).await.len(), 1);
}

// S-7: kite-vm is not there to mend it.
#[tokio::test]
async fn a_service_that_nobody_mends_is_in_the_way_of_those_who_want_to_reach_the_machine() {
    let hand = by_hand("unmended").await;
    running(&hand, "web").await;
    service(&hand, "False", "Missing").await;
    let line = "service: Missing, see Service web";
    let told = hand
        .until("web", LONG, |m| blocked(m) == Some(line))
        .await
        .unwrap();
    assert_eq!(condition(&told, READY), "True Running");
    service(&hand, "True", "Reachable").await;
    hand.until("web", LONG, |m| blocked(m).is_none())
        .await
        .unwrap();
}

/// The guest ends as its steps say, and is cleared away.
async fn ends(hand: &ByHand, steps: &[Value]) {
    for step in steps {
        hand.edit::<VirtualMachineInstance>("web", step)
            .await
            .unwrap();
    }
    let made = json!({"created": true, "runStrategy": "RerunOnFailure"});
    says(hand, "web", "Stopped", &made).await;
    hand.api::<VirtualMachineInstance>()
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    let gone = json!({"runStrategy": "RerunOnFailure"});
    says(hand, "web", "Stopped", &gone).await;
}

// S-2, S-5, V-16: only what shut itself down is left as it is; the rest wakes kite-vm.
#[tokio::test]
async fn how_a_guest_ended_decides_whether_kite_vm_is_woken() {
    let ended = |phase: &str| json!({"status": {"phase": phase}});
    let evicted = json!({"status": {"evacuationNodeName": "n1"}});
    let table = [
        (
            "shut-down",
            vec![ended("Succeeded")],
            "GuestShutDown",
            "True GuestShutDown",
            "False GuestShutDown",
        ),
        (
            "evicted",
            vec![evicted, ended("Succeeded")],
            "GuestEvicted",
            "False StartNeeded",
            "False StartPending",
        ),
    ];
    for (namespace, steps, reason, power, ready) in table {
        let hand = by_hand(namespace).await;
        running(&hand, "web").await;
        let guest: VirtualMachineInstance = hand.api().get("web").await.unwrap();
        // As kite-vm would, for what is now a new generation.
        hand.machine("web", &json!({"onGuestShutdown": "StayOff"}))
            .await
            .unwrap();
        let applied = [("ResourcesApplied", "True", "Applied")];
        hand.say("web", &json!({}), &applied).await.unwrap();
        ends(&hand, &steps).await;
        let told = hand
            .until("web", LONG, |m| {
                condition(m, POWER_IN_SYNC) == power && condition(m, READY) == ready
            })
            .await
            .unwrap();
        let stop = told.status.unwrap().last_stop.unwrap();
        assert_eq!(
            (stop.reason.as_str(), stop.instance_uid),
            (reason, guest.uid())
        );
        assert!(stop.time.is_some());
    }
}
