//! Guests that shut themselves down, are taken away, or do not come.

use k8s_openapi::api::core::v1::ResourceQuota;
use kite_api::KiteVirtualMachine;
use kite_api::condition::{RESOURCES_APPLIED, STALLED};
use kite_kubevirt::{VirtualMachine, VirtualMachineInstance};
use kite_testkit::followed::Followed;
use kite_testkit::install;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::json;

use crate::common::{LONG, Place, condition_of, uid};
use crate::{sockets, strategies};

// V-16, S-2, F-24: a guest that shut itself down stays down, and whoever switches it off and on starts it
#[tokio::test]
async fn a_guest_that_shut_itself_down_stays_down_until_it_is_switched_off_and_on() {
    let place = Place::new("stay-off").await;
    place
        .machine("web", json!({"onGuestShutdown": "StayOff"}))
        .await;
    let first = place.guest("web").await;
    let followed = Followed::<VirtualMachine>::start(place.api(), "web").await;
    place.fault("web", Some("guest-shutdown")).await;
    let machine = place.says("web", STALLED, "GuestShutDown").await;
    let words = &condition_of(&machine, STALLED).unwrap().message;
    assert!(words.contains("set spec.powerState to Off"), "{words}");
    assert_eq!(
        condition_of(&machine, RESOURCES_APPLIED).unwrap().status,
        "True"
    );
    place.fault("web", None).await;

    // Another edit is no reason to start it.
    place
        .edit::<KiteVirtualMachine>("web", json!({"spec": {"cpu": 2}}))
        .await;
    let edited = place
        .until("web", LONG, |vm: &VirtualMachine| sockets(vm) == Some(2))
        .await;
    place.applied("web").await;
    place.says("web", STALLED, "GuestShutDown").await;
    assert_eq!(
        strategies(followed, &edited).await,
        ["RerunOnFailure"],
        "it was started, or tried to be"
    );
    let guests: Api<VirtualMachineInstance> = place.api();
    assert!(guests.get_opt("web").await.unwrap().is_none());

    place.switch("web", "Off").await;
    let off = |m: &KiteVirtualMachine| condition_of(m, STALLED).is_none();
    place.until("web", LONG, off).await;
    place.off("web").await;
    place.switch("web", "On").await;
    let second = place.next_guest("web", &first).await;
    place.until("web", LONG, off).await;

    // A guest that somebody took away is not one that shut itself down, nor is one that virtctl
    // stopped: it asks KubeVirt for that and leaves the run strategy alone.
    let mut guest = second;
    for by_virtctl in [false, true] {
        let followed = Followed::<VirtualMachine>::start(place.api(), "web").await;
        if by_virtctl {
            place.fault("web", Some("virtctl-stop")).await;
        } else {
            place.deleted_guest("web").await;
        }
        guest = place.next_guest("web", &guest).await;
        let vm = place.api::<VirtualMachine>().get("web").await.unwrap();
        assert_eq!(
            strategies(followed, &vm).await,
            ["RerunOnFailure", "Halted", "RerunOnFailure"],
            "it is started in one go"
        );
    }
    let told = place.events("web").await;
    let told: Vec<_> = told.iter().filter(|(r, _)| r == "PowerRestored").collect();
    // What is said twice is counted on one event.
    assert!(
        told.len() == 1 && told[0].1.contains("set spec.powerState: Off"),
        "{told:?}"
    );

    // A crash is KubeVirt's own to mend.
    let followed = Followed::<VirtualMachine>::start(place.api(), "web").await;
    place.fault("web", Some("guest-crash")).await;
    place.next_guest("web", &guest).await;
    let vm = place.api::<VirtualMachine>().get("web").await.unwrap();
    assert_eq!(strategies(followed, &vm).await, ["RerunOnFailure"]);
}

// V-16: kite-vm-status has the word, also against what kite-vm saw; a start that failed is tried again
#[tokio::test]
async fn a_recorded_shutdown_keeps_a_machine_down_and_a_failed_start_is_tried_again() {
    let place = Place::new("failed-start").await;
    place
        .machine("web", json!({"onGuestShutdown": "StayOff"}))
        .await;
    let first = place.guest("web").await;
    place.last_stop("web", &first, "GuestShutDown").await;
    place.deleted_guest("web").await;
    place.says("web", STALLED, "GuestShutDown").await;

    place.switch("web", "Off").await;
    place.off("web").await;
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": "failed-start"},
        "spec": {"hard": {"count/virtualmachineinstances.kubevirt.io": "0"}},
    });
    install::apply(&place.client, &quota.to_string())
        .await
        .unwrap();
    let counted = |q: &ResourceQuota| q.status.as_ref().is_some_and(|s| s.used.is_some());
    place.until("none", LONG, counted).await;
    place.switch("web", "On").await;
    let note = place.event("web", "StartFailed").await;
    assert!(
        note.contains("kubectl describe virtualmachine web -n failed-start"),
        "{note}"
    );
    let machine = place.applied("web").await;
    assert!(
        condition_of(&machine, STALLED).is_none(),
        "the shutdown was answered"
    );
    place
        .api::<ResourceQuota>()
        .delete("none", &DeleteParams::default())
        .await
        .unwrap();
    let second = place.next_guest("web", &first).await;

    // A guest that was stopped from outside is started again, whatever this process saw.
    place.last_stop("web", &second, "GuestStopped").await;
    place.deleted_guest("web").await;
    place.next_guest("web", &second).await;
}

// V-16, row ST5: between Restart and StayOff nothing is restarted, and On after Off waits for the old guest
#[tokio::test]
async fn a_changed_choice_restarts_nothing_and_a_machine_switched_on_while_it_stops_is_started() {
    let place = Place::new("choice").await;
    place.machine("web", json!({})).await;
    let first = place.guest("web").await;
    for (choice, strategy) in [
        ("StayOff", "RerunOnFailure"),
        ("Restart", "Always"),
        ("StayOff", "RerunOnFailure"),
    ] {
        let edit = json!({"spec": {"onGuestShutdown": choice}});
        place.edit::<KiteVirtualMachine>("web", edit).await;
        let noted = |vm: &VirtualMachine| {
            let status = vm.status.as_ref().and_then(|s| s.run_strategy.as_deref());
            vm.run_strategy() == Some(strategy) && status == Some(strategy)
        };
        place.until("web", LONG, noted).await;
    }
    let guest = place.guest("web").await;
    assert_eq!(uid(&guest), uid(&first), "it was restarted");
    assert!(guest.metadata.deletion_timestamp.is_none());

    place.switch("web", "Off").await;
    let going = |i: &VirtualMachineInstance| i.metadata.deletion_timestamp.is_some();
    place.until("web", LONG, going).await;
    place.switch("web", "On").await;
    place.next_guest("web", &first).await;
    place.applied("web").await;
    let told = place.events("web").await;
    assert!(told.is_empty(), "nobody else touched it: {told:?}");
}
