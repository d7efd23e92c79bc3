//! A whole life: creation, power, deletion.

use kite_api::condition::READY;
use kite_api::machine::PowerState;
use kite_api::{KiteVirtualMachine, Phase};
use kite_kubevirt::VirtualMachineInstance;
use kite_testkit::audit::Table;
use kite_testkit::by_hand::{ByHand, condition};
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::json;

use crate::support::{
    ALONE, LONG, NAME, QUIET, Watcher, by_hand, guest, mark, phase, ready, requests, says, vm,
};

/// What kite-vm says when all is well.
const APPLIED: [(&str, &str, &str); 2] = [
    ("Accepted", "True", "Accepted"),
    ("ResourcesApplied", "True", "Applied"),
];

async fn comes_up(hand: &ByHand) {
    let began = mark(hand).await;
    let vm = vm(hand, "web").await;
    hand.say("web", &json!({"phase": "Provisioning"}), &APPLIED)
        .await
        .unwrap();
    let told = hand
        .until("web", LONG, |m| condition(m, READY) != "absent")
        .await
        .unwrap();
    assert_eq!(condition(&told, READY), "False Provisioning");
    says(
        hand,
        "web",
        "Starting",
        &json!({"created": true, "runStrategy": "Always"}),
    )
    .await;
    hand.until("web", LONG, |m| phase(m) == Some(Phase::Starting))
        .await
        .unwrap();
    guest(hand, "web", &vm).await;
    says(
        hand,
        "web",
        "Running",
        &json!({"created": true, "runStrategy": "Always"}),
    )
    .await;
    says(hand, "web", "Running", &ready()).await;
    let told = hand
        .until("web", LONG, |m| condition(m, READY) == "True Running")
        .await
        .unwrap();
    let status = told.status.unwrap();
    assert_eq!(
        (status.node_name.as_deref(), status.ip_addresses),
        (Some("n1"), vec!["10.0.0.9".to_owned()])
    );
    assert_eq!(
        (status.observed_generation, status.virtual_machine_uid),
        (Some(1), vm.uid())
    );
    let sent = requests(hand, began).await;
    eprintln!("{}", Table::of(&sent));
    assert_eq!(sent.len(), 3, "create → Running");
}

async fn goes_off(hand: &ByHand) {
    let began = mark(hand).await;
    hand.machine("web", &json!({"powerState": "Off"}))
        .await
        .unwrap();
    hand.say("web", &json!({}), &APPLIED).await.unwrap();
    says(hand, "web", "Stopping", &ready()).await;
    hand.until("web", LONG, |m| phase(m) == Some(Phase::Stopping))
        .await
        .unwrap();
    says(hand, "web", "Stopped", &ready()).await;
    hand.api::<VirtualMachineInstance>()
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    says(hand, "web", "Stopped", &json!({"runStrategy": "Halted"})).await;
    let told = hand
        .until("web", LONG, |m| condition(m, READY) == "True Stopped")
        .await
        .unwrap();
    let status = told.status.unwrap();
    assert!(status.node_name.is_none() && status.ip_addresses.is_empty());
    assert_eq!(
        (status.observed_generation, status.current_power_state),
        (Some(2), Some(PowerState::Off))
    );
    assert_eq!(requests(hand, began).await.len(), 2, "power off");
}

async fn is_deleted(hand: &ByHand) {
    let began = mark(hand).await;
    hand.machine("web", &json!({"powerState": "Off", "delete": true}))
        .await
        .unwrap();
    let deleting = [APPLIED[0], APPLIED[1], ("Deleting", "True", "Requested")];
    hand.say("web", &json!({"phase": "Deleting"}), &deleting)
        .await
        .unwrap();
    hand.until("web", LONG, |m| {
        m.status.as_ref().unwrap().virtual_machine_uid.is_none()
    })
    .await
    .unwrap();
    says(hand, "web", "Terminating", &json!({})).await;
    tokio::time::sleep(QUIET).await;
    assert_eq!(requests(hand, began).await.len(), 1, "delete");
    assert!(hand.owned("web", NAME).await.unwrap().is_empty());
}

// C-5, C-9, C-10, C-11, S-2, S-3, S-4, S-8, F-2, F-6
#[tokio::test]
async fn a_life_is_told_in_few_writes_with_each_phase_once_and_never_ready_too_early() {
    let _alone = ALONE.read().await;
    let hand = by_hand("life").await;
    hand.machine("web", &json!({})).await.unwrap();
    let watcher = Watcher::of(&hand, "web").await;
    comes_up(&hand).await;
    goes_off(&hand).await;
    let owned = hand.owned("web", NAME).await.unwrap();
    for field in ["phase", "observedGeneration", "virtualMachineUID"] {
        assert!(owned.iter().any(|f| f == field), "{owned:?}");
        assert!(
            !hand
                .owned("web", "kite-vm")
                .await
                .unwrap()
                .iter()
                .any(|f| f == field)
        );
    }
    is_deleted(&hand).await;

    let seen = watcher.stop();
    let mut phases: Vec<String> = seen
        .iter()
        .filter_map(|(m, _)| phase(m))
        .map(|p| format!("{p:?}"))
        .collect();
    phases.dedup();
    assert_eq!(
        phases.join(" "),
        "Provisioning Starting Running Stopping Stopped Deleting"
    );
    for (machine, verdict) in &seen {
        assert_eq!(
            verdict == "Current",
            is_done(machine),
            "kstatus says {verdict} of {:?}",
            machine.status
        );
    }
}

/// Whether what is wanted is there, and told for the generation that wants it.
fn is_done(machine: &KiteVirtualMachine) -> bool {
    let observed = machine.status.as_ref().and_then(|s| s.observed_generation);
    let ready = condition(machine, READY);
    observed == machine.metadata.generation && (ready == "True Running" || ready == "True Stopped")
}
