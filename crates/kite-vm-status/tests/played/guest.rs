//! Guests that end, move, are paused, or whose node is lost.

use kite_api::KiteVirtualMachine;
use kite_api::condition::{AGENT_CONNECTED, LIVE_MIGRATABLE, PAUSED, READY, STALLED};
use kite_api::machine::PowerState;
use kite_kubevirt::{VirtualMachine, VirtualMachineInstance};
use kite_testkit::kstatus::Judge;
use kite_testkit::place::{LONG, Place, condition_of, conditions, is_ready, is_true};
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::json;

use crate::{blocked, cluster, line, mark, place, writes};

fn verdict(judge: &Judge, machine: &KiteVirtualMachine) -> String {
    let mut object = serde_json::to_value(machine).unwrap();
    object["apiVersion"] = json!("kite.dev/v1alpha1");
    object["kind"] = json!("KiteVirtualMachine");
    judge.status_of(&object).unwrap().status
}

fn last_stop(machine: &KiteVirtualMachine) -> Option<(&str, Option<&str>)> {
    let stop = machine.status.as_ref()?.last_stop.as_ref()?;
    Some((stop.reason.as_str(), stop.instance_uid.as_deref()))
}

async fn switch(place: &Place, power: &str) {
    let edit = json!({"spec": {"powerState": power}});
    place.edit::<KiteVirtualMachine>("web", edit).await;
}

async fn guest(place: &Place) -> VirtualMachineInstance {
    let runs = |i: &VirtualMachineInstance| i.phase() == "Running";
    place.until("web", LONG, runs).await
}

// S-2, S-5, C-11, C-16, V-16, F-24
#[tokio::test]
async fn a_guest_that_shut_itself_down_stays_down_until_off_and_on_and_says_so() {
    let place = place("stays-off").await;
    let judge = Judge::start().await.unwrap();
    place
        .machine("web", json!({"onGuestShutdown": "StayOff"}))
        .await;
    place.ready("web").await;
    let first = guest(&place).await.uid();
    let began = mark(&place).await;
    place.fault("web", Some("guest-shutdown")).await;
    place.says("web", READY, "GuestShutDown").await;
    let down = place.says("web", STALLED, "GuestShutDown").await;
    assert_eq!(line(&down), "Stopped Off False GuestShutDown");
    assert_eq!(last_stop(&down), Some(("GuestShutDown", first.as_deref())));
    assert_eq!(blocked(&down), "guest: GuestShutDown, see spec.powerState");
    assert_eq!(verdict(&judge, &down), "Failed", "a person has to act");
    let note = place.event("web", "GuestShutDown").await;
    assert!(
        note.contains("stays down") && note.contains("set spec.powerState: Off"),
        "{note}"
    );
    assert_eq!(writes(&place, began).await, 2, "on its way down, and down");

    switch(&place, "Off").await;
    let off = place.ready("web").await;
    assert_eq!(last_stop(&off), Some(("SwitchedOff", first.as_deref())));
    assert_eq!(blocked(&off), "");
    switch(&place, "On").await;
    let on = place.ready("web").await;
    assert_eq!(
        (line(&on), last_stop(&on)),
        ("Running On True Running".to_owned(), None)
    );

    // Whoever takes the guest away has not shut it down.
    let second = guest(&place).await.uid();
    let seen = place.follow::<KiteVirtualMachine>("web").await;
    place
        .api::<VirtualMachineInstance>()
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    place
        .until("web", LONG, |i: &VirtualMachineInstance| {
            i.uid() != second && i.phase() == "Running"
        })
        .await;
    let on = place.ready("web").await;
    let seen = seen.end(&on).await;
    let stops: Vec<_> = seen.iter().filter_map(last_stop).collect();
    // It may be on again before that is worth a write.
    assert!(
        stops.iter().all(|(reason, _)| *reason == "GuestStopped"),
        "{stops:?}"
    );
    let told: Vec<_> = place
        .events("web")
        .await
        .into_iter()
        .map(|(reason, _)| reason)
        .collect();
    for reason in ["GuestShutDown", "GuestStopped"] {
        assert_eq!(told.iter().filter(|r| *r == reason).count(), 1, "{told:?}");
    }
}

// S-6, C-5, S-2, F-7
#[tokio::test]
async fn what_kubevirt_says_of_a_guest_is_shown_and_costs_a_write_only_when_it_changes() {
    let place = place("mirrored").await;
    place.machine("web", json!({})).await;
    let ready = place.ready("web").await;
    assert!(condition_of(&ready, AGENT_CONNECTED).is_none());
    let told = |m: &KiteVirtualMachine| condition_of(m, LIVE_MIGRATABLE).is_some();
    let ready = place.until("web", LONG, told).await;
    let told = condition_of(&ready, LIVE_MIGRATABLE).unwrap();
    assert_eq!(
        (told.status.as_str(), told.reason.as_str()),
        ("False", "DisksNotLiveMigratable")
    );
    let began = mark(&place).await;
    place.fault("web", Some("agent-connected")).await;
    let connected = |m: &KiteVirtualMachine| is_true(conditions(m), AGENT_CONNECTED);
    place.until("web", LONG, connected).await;
    assert_eq!(writes(&place, began).await, 1, "the agent");

    let began = mark(&place).await;
    place.fault("web", Some("agent-connected,paused")).await;
    let paused = place.says("web", PAUSED, "PausedByUser").await;
    assert_eq!(line(&paused), "Paused On False Paused");
    assert_eq!(
        blocked(&paused),
        "guest: Paused, see VirtualMachineInstance web"
    );
    place.fault("web", Some("agent-connected")).await;
    let ready = place.ready("web").await;
    assert!(condition_of(&ready, PAUSED).is_none() && connected(&ready));
    assert_eq!(blocked(&ready), "");
    assert_eq!(writes(&place, began).await, 2, "paused, and not");
    place.event("web", "Paused").await;

    let began = mark(&place).await;
    switch(&place, "Off").await;
    let off = place.ready("web").await;
    for type_ in [AGENT_CONNECTED, LIVE_MIGRATABLE] {
        assert!(
            condition_of(&off, type_).is_none(),
            "{type_} of a guest that is gone"
        );
    }
    assert_eq!(writes(&place, began).await, 2, "off");
}

// S-9, S-4, C-16
#[tokio::test]
async fn a_lost_node_is_told_with_what_was_known_until_it_comes_back() {
    let place = place("lost").await;
    place.machine("web", json!({})).await;
    let before = place.ready("web").await.status.unwrap();
    place.fault("web", Some("node-lost")).await;
    let lost = place.says("web", READY, "NodeUnreachable").await;
    assert_eq!(line(&lost), "Unknown On False NodeUnreachable");
    let node = before.node_name.unwrap();
    assert_eq!(
        blocked(&lost),
        format!("scheduling: NodeUnreachable, see Node {node}")
    );
    let status = lost.status.as_ref().unwrap();
    assert_eq!(status.node_name.as_deref(), Some(node.as_str()));
    assert_eq!(status.ip_addresses, before.ip_addresses);
    let told = place.event("web", "NodeUnreachable").await;
    assert!(told.contains("does not answer"), "{told}");
    // Nothing is over: the node may come back with its guest.
    assert_eq!(status.last_stop, None);
    place.fault("web", None).await;
    let back = place.ready("web").await;
    assert_eq!(
        (line(&back), blocked(&back)),
        ("Running On True Running".to_owned(), "")
    );
    place.event("web", "Recovered").await;
}

// S-2, S-4, VM19
#[tokio::test]
async fn a_machine_that_moves_is_ready_throughout_and_changes_its_node_once() {
    let place = place("moves").await;
    place.machine("web", json!({})).await;
    let before = place.ready("web").await;
    let vm: VirtualMachine = place.api().get("web").await.unwrap();
    let seen = place.follow::<KiteVirtualMachine>("web").await;
    let node = |m: &KiteVirtualMachine| m.status.as_ref().unwrap().node_name.clone();
    let from = node(&before);
    place.fault("web", Some("migrate")).await;
    let moved = |m: &KiteVirtualMachine| node(m) != from && line(m) == "Running On True Running";
    let after = place.until("web", LONG, moved).await;
    let seen = seen.end(&after).await;
    assert!(seen.iter().all(is_ready), "{seen:#?}");
    let dedup = |mut words: Vec<String>| {
        words.dedup();
        words
    };
    let lines = dedup(seen.iter().map(line).collect());
    let expected = [
        "Running On True Running",
        "Migrating On True Migrating",
        "Running On True Running",
    ];
    assert_eq!(lines, expected);
    let nodes = dedup(seen.iter().filter_map(node).collect());
    assert_eq!(nodes.len(), 2, "{nodes:?}");
    let power = seen
        .iter()
        .map(|m| m.status.as_ref().unwrap().current_power_state);
    assert!(power.into_iter().all(|p| p == Some(PowerState::On)));
    let now: VirtualMachine = place.api().get("web").await.unwrap();
    assert_eq!(
        now.metadata.generation, vm.metadata.generation,
        "its spec was written"
    );
    assert!(
        cluster().await.names().iter().any(|n| n == "kite-vm"),
        "and somebody could have"
    );
}
