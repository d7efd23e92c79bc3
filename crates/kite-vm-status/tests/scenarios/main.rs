//! kite-vm-status alone on a real API server; KubeVirt and kite-vm are played by hand.

#![allow(clippy::unwrap_used, clippy::panic, unreachable_pub, missing_docs)]

mod aside;
mod life;
mod support;

use std::time::Duration;

use kite_api::condition::{POWER_IN_SYNC, READY};
use kite_api::machine::PowerState;
use kite_api::{KiteVirtualMachine, Phase};
use kite_kubevirt::{VirtualMachine, VirtualMachineInstance};
use kite_testkit::by_hand::condition;
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::json;

use support::{
    ALONE, LONG, NAME, QUIET, Watcher, by_hand, guest, mark, phase, ready, requests, running, says,
    vm, world,
};

// C-5, S-2: nothing changes → nothing is sent, although how long an error has stood is forgotten.
#[tokio::test]
async fn a_settled_machine_costs_nothing_at_a_restart_or_when_a_label_is_touched() {
    let _alone = ALONE.write().await;
    let hand = by_hand("settled").await;
    running(&hand, "web").await;
    running(&hand, "broken").await;
    let made = json!({"created": true, "runStrategy": "Always"});
    says(&hand, "broken", "CrashLoopBackOff", &made).await;
    hand.until("broken", LONG, |m| phase(m) == Some(Phase::Failed))
        .await
        .unwrap();
    let began = mark(&hand).await;
    let cluster = &world().await.cluster;
    cluster
        .run(NAME, "second", &["--leader-election", "false"])
        .await
        .unwrap();
    hand.edit::<KiteVirtualMachine>("web", &json!({"metadata": {"labels": {"touched": "yes"}}}))
        .await
        .unwrap();
    hand.edit::<VirtualMachine>("web", &json!({"metadata": {"labels": {"touched": "yes"}}}))
        .await
        .unwrap();
    tokio::time::sleep(QUIET).await;
    drop(cluster.take("second"));
    let sent = requests(&hand, began).await;
    assert!(sent.is_empty(), "{sent:?}");
}

// C-1, C-9: kite-vm has said nothing.
#[tokio::test]
async fn alone_it_tells_what_runs_and_moves_no_generation() {
    let hand = by_hand("alone").await;
    hand.machine("web", &json!({})).await.unwrap();
    let vm = vm(&hand, "web").await;
    guest(&hand, "web", &vm).await;
    says(&hand, "web", "Running", &ready()).await;
    let told = hand
        .until("web", LONG, |m| phase(m) == Some(Phase::Running))
        .await
        .unwrap();
    assert_eq!(condition(&told, READY), "absent");
    assert_eq!(condition(&told, POWER_IN_SYNC), "True InSync");
    let status = told.status.unwrap();
    assert_eq!(status.observed_generation, Some(-1));
    assert_eq!(status.virtual_machine_uid, vm.uid());
}

// C-9, C-11
#[tokio::test]
async fn a_refused_specification_is_failed_for_tools_although_there_is_no_machine() {
    let hand = by_hand("refused").await;
    hand.machine("web", &json!({})).await.unwrap();
    let refused = [
        ("Accepted", "False", "InvalidSpec"),
        ("ResourcesApplied", "False", "NotAccepted"),
        ("Stalled", "True", "InvalidSpec"),
    ];
    let watcher = Watcher::of(&hand, "web").await;
    hand.say("web", &json!({"phase": "Failed"}), &refused)
        .await
        .unwrap();
    let told = hand
        .until("web", LONG, |m| condition(m, READY) == "False InvalidSpec")
        .await
        .unwrap();
    assert_eq!(told.status.as_ref().unwrap().observed_generation, Some(1));
    assert_eq!(phase(&told), Some(Phase::Failed));
    assert!(
        !hand
            .owned("web", NAME)
            .await
            .unwrap()
            .contains(&"phase".to_owned()),
        "phase is kite-vm's"
    );
    tokio::time::sleep(Duration::from_millis(300)).await;
    let seen = watcher.stop();
    assert_eq!(
        seen.last().map(|(_, verdict)| verdict.as_str()),
        Some("Failed")
    );
}

// S-2, C-16, F-8: an error word that has stood is a failure, and an event says so.
#[tokio::test]
async fn an_error_that_stands_is_a_failure_with_an_event() {
    let hand = by_hand("error").await;
    running(&hand, "web").await;
    says(
        &hand,
        "web",
        "ErrorUnschedulable",
        &json!({"created": true, "runStrategy": "Always"}),
    )
    .await;
    let told = hand
        .until("web", LONG, |m| {
            condition(m, READY) == "False ErrorUnschedulable"
        })
        .await
        .unwrap();
    assert_eq!(
        phase(&told),
        Some(Phase::Running),
        "the phase before it stands at first"
    );
    hand.until("web", LONG, |m| phase(m) == Some(Phase::Failed))
        .await
        .unwrap();
    let events = kite_testkit::wait::eventually("an event", LONG, async || {
        let events = hand
            .api::<k8s_openapi::api::events::v1::Event>()
            .list(&kube::api::ListParams::default())
            .await
            .ok()?;
        let found = events
            .items
            .into_iter()
            .find(|e| e.reason.as_deref() == Some("ErrorUnschedulable"));
        found.map(|e| e.reporting_controller)
    });
    assert_eq!(events.await.unwrap().as_deref(), Some(NAME));
}

// C-7: names never prove ownership.
#[tokio::test]
async fn somebody_elses_machine_of_the_same_name_is_none_of_ours() {
    let hand = by_hand("foreign").await;
    let machine = hand.machine("web", &json!({})).await.unwrap();
    let object = json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
        "spec": {"runStrategy": "Always", "template": {"spec": {"domain": {"devices": {}}}}},
    });
    hand.child::<VirtualMachine>(&machine, false, object)
        .await
        .unwrap();
    says(&hand, "web", "Running", &ready()).await;
    hand.say(
        "web",
        &json!({"phase": "Provisioning"}),
        &[("ResourcesApplied", "False", "NameConflict")],
    )
    .await
    .unwrap();
    let told = hand
        .until("web", LONG, |m| condition(m, READY) != "absent")
        .await
        .unwrap();
    assert_eq!(condition(&told, READY), "False NameConflict");
    assert_eq!(phase(&told), Some(Phase::Provisioning));
    assert_eq!(told.status.unwrap().virtual_machine_uid, None);
}

// S-8
#[tokio::test]
async fn a_virtual_machine_that_was_deleted_leaves_nothing_of_it_behind() {
    let hand = by_hand("deleted").await;
    running(&hand, "web").await;
    hand.api::<VirtualMachineInstance>()
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    hand.api::<VirtualMachine>()
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    let told = hand
        .until("web", LONG, |m| {
            m.status.as_ref().unwrap().virtual_machine_uid.is_none()
        })
        .await
        .unwrap();
    assert_eq!(condition(&told, READY), "False VirtualMachineMissing");
    let status = told.status.unwrap();
    assert!(status.node_name.is_none() && status.ip_addresses.is_empty());
    assert_eq!(status.current_power_state, Some(PowerState::Off));
}

// C-14
#[tokio::test]
async fn kubevirt_is_missed_in_words_and_picked_up_when_it_is_installed() {
    let world = world().await;
    assert_eq!(world.before, "False DependencyMissing");
    assert!(
        world.picked_up < Duration::from_secs(30),
        "{:?}",
        world.picked_up
    );
}
