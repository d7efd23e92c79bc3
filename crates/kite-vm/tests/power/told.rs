//! What people are told by events, and how often (rule C-16).

use kite_api::KiteVirtualMachine;
use kite_api::condition::RESOURCES_APPLIED;
use kite_kubevirt::VirtualMachine;
use serde_json::{Value, json};

use crate::common::{LONG, Place, condition_of};
use crate::sockets;

/// The reasons of all events about a machine, in order.
async fn reasons(place: &Place, name: &str) -> Vec<String> {
    let events = place.events(name).await;
    events.into_iter().map(|(reason, _)| reason).collect()
}

async fn paused(place: &Place, value: Value) {
    let edit = json!({"metadata": {"annotations": {"kite.dev/paused": value}}});
    place.edit::<KiteVirtualMachine>("web", edit).await;
}

// C-16, V-4: what a person cares about is told once, and an ordinary life is none of it
#[tokio::test]
async fn each_change_that_matters_is_told_once_and_an_ordinary_life_is_silent() {
    let place = Place::new("told").await;
    place.machine("web", json!({})).await;
    place.applied("web").await;
    place.guest("web").await;
    place.switch("web", "Off").await;
    place.off("web").await;
    place.applied("web").await;
    assert_eq!(reasons(&place, "web").await, [""; 0]);

    paused(&place, json!("true")).await;
    place
        .says("web", RESOURCES_APPLIED, "ReconciliationPaused")
        .await;
    let edit = json!({"spec": {"passwordSecretRef": {"name": "absent"}}});
    place.edit::<KiteVirtualMachine>("web", edit).await;
    paused(&place, Value::Null).await;
    place
        .says("web", RESOURCES_APPLIED, "PasswordNotFound")
        .await;
    // The same trouble stands for another generation: it is the same trouble.
    let edit = json!({"spec": {"cpu": 2}});
    place.edit::<KiteVirtualMachine>("web", edit).await;
    let told = |m: &KiteVirtualMachine| {
        let applied = condition_of(m, RESOURCES_APPLIED).unwrap();
        applied.observed_generation == m.metadata.generation && applied.status == "False"
    };
    place.until("web", LONG, told).await;
    let edit = json!({"spec": {"passwordSecretRef": null}});
    place.edit::<KiteVirtualMachine>("web", edit).await;
    place.applied("web").await;
    let note = place.event("web", "Recovered").await;
    assert!(note.contains("there is no Secret absent"), "{note}");
    paused(&place, json!("true")).await;
    place
        .says("web", RESOURCES_APPLIED, "ReconciliationPaused")
        .await;
    paused(&place, Value::Null).await;
    place.event("web", "ReconciliationResumed").await;
    let all = [
        "ReconciliationPaused",
        "PasswordNotFound",
        "Recovered",
        "ReconciliationResumed",
    ];
    assert_eq!(reasons(&place, "web").await, all);
}

// C-16, C-4, row AP11: an error that lasts is told once, in words that stay the same, and heals by itself
#[tokio::test]
async fn a_webhook_that_does_not_answer_is_told_when_it_has_not_answered_for_a_while() {
    let place = Place::new("unanswered").await;
    place.machine("web", json!({})).await;
    place.applied("web").await;
    place.guest("web").await;
    place.fault("web", Some("no-answer")).await;
    let edit = json!({"spec": {"cpu": 2}});
    place.edit::<KiteVirtualMachine>("web", edit).await;
    let machine = place.says("web", RESOURCES_APPLIED, "ApplyFailed").await;
    let words = &condition_of(&machine, RESOURCES_APPLIED).unwrap().message;
    assert!(
        words.starts_with("cannot change VirtualMachine web: the admission webhook ")
            && words.contains("does not answer"),
        "{words}"
    );
    place.fault("web", None).await;
    place.applied("web").await;
    place
        .until("web", LONG, |vm: &VirtualMachine| sockets(vm) == Some(2))
        .await;
    place.event("web", "Recovered").await;
    assert_eq!(reasons(&place, "web").await, ["ApplyFailed", "Recovered"]);
}
