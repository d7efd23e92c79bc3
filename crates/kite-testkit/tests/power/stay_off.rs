//! Guests that are to stay down when they shut themselves down, with all six controllers.

use kite_api::KiteVirtualMachine;
use kite_api::condition::{READY, STALLED};
use kite_api::machine::Phase;
use kite_kubevirt::{VirtualMachine, VirtualMachineInstance};
use kite_testkit::kstatus::Judge;
use kite_testkit::tenant::{LONG, condition_of, is_ready, phase};
use kube::api::DeleteParams;
use serde_json::json;

use super::{guest, on_again, tenant, uid};

// V-16, S-2, F-24, C-11: whoever chose StayOff finds the machine down, is told so once, and can start it
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_that_shuts_itself_down_stays_down_where_that_was_chosen_and_off_then_on_starts_it()
{
    let (grace, _turn) = tenant("stay-off").await;
    let judge = Judge::start().await.unwrap();
    grace
        .machine("web", json!({"onGuestShutdown": "StayOff"}))
        .await;
    grace.ready("web").await;
    let before = guest(&grace).await;
    grace.fault("web", Some("guest-shutdown")).await;
    let is_down = |m: &KiteVirtualMachine| {
        let says = |type_| condition_of(m, type_).is_some_and(|c| c.reason == "GuestShutDown");
        says(READY) && says(STALLED) && phase(m) == Some(Phase::Stopped)
    };
    let machine = grace.until("web", LONG, is_down).await;
    let last = machine.status.as_ref().unwrap().last_stop.clone().unwrap();
    assert_eq!(last.instance_uid, Some(uid(&before)));
    let judged = judge.status_of(&machine).unwrap();
    assert_eq!(judged.status, "Failed", "{}", judged.message);
    grace.fault("web", None).await;

    // What was recorded outlives the process, and another edit starts nothing.
    let cluster = grace.cluster;
    drop(cluster.take("kite-vm"));
    cluster.run("kite-vm", "kite-vm", &[]).await.unwrap();
    grace
        .edit::<KiteVirtualMachine>("web", json!({"spec": {"cpu": 2}}))
        .await;
    let told = |m: &KiteVirtualMachine| {
        let stalled = condition_of(m, STALLED).and_then(|c| c.observed_generation);
        is_down(m) && stalled == m.metadata.generation
    };
    grace.until("web", LONG, told).await;
    let guests = grace.api::<VirtualMachineInstance>();
    assert!(guests.get_opt("web").await.unwrap().is_none());
    let of_power = || async {
        let events = grace.events("web").await.into_iter();
        let power = |reason: &String| reason.starts_with("Guest") || reason == "PowerRestored";
        events.map(|e| e.0).filter(power).collect::<Vec<_>>()
    };
    assert_eq!(of_power().await, ["GuestShutDown"]);

    grace
        .edit::<KiteVirtualMachine>("web", json!({"spec": {"powerState": "Off"}}))
        .await;
    grace
        .until("web", LONG, |m: &KiteVirtualMachine| {
            is_ready(m) && phase(m) == Some(Phase::Stopped)
        })
        .await;
    grace
        .edit::<KiteVirtualMachine>("web", json!({"spec": {"powerState": "On"}}))
        .await;
    on_again(&grace, &before, "switched off and on").await;

    // A guest that was taken away is another matter: it is started again, in one go.
    let before = guest(&grace).await;
    let seen = grace.follow::<VirtualMachine>("web").await;
    guests
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    on_again(&grace, &before, "instance deleted").await;
    let vm = grace.api::<VirtualMachine>().get("web").await.unwrap();
    let seen = seen.end(&vm).await;
    let mut strategies: Vec<_> = seen
        .iter()
        .filter_map(VirtualMachine::run_strategy)
        .collect();
    strategies.dedup();
    assert_eq!(strategies, ["RerunOnFailure", "Halted", "RerunOnFailure"]);
    assert_eq!(of_power().await, ["GuestShutDown", "GuestStopped"]);
}
