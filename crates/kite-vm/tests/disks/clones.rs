//! Not more than so many clones of one image at once, oldest machine first.

use kite_api::KiteVirtualMachine;
use kite_api::condition::{ACCEPTED, RESOURCES_APPLIED, STALLED};
use kite_kubevirt::read::DataVolume;
use kite_testkit::kstatus::Judge;
use kite_testkit::wait;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::common::{LONG, Place, condition_of};

/// The limit of a platform that sets none.
const LIMIT: usize = 10;

// V-14, P-2: the tenth clone begins and the eleventh waits, in words and at no cost; whoever ends
// makes room for the oldest
#[tokio::test]
async fn ten_machines_clone_an_image_at_once_and_the_others_take_turns_by_age() {
    let place = Place::new("turns").await;
    place.cluster.publish("debian-13").await.unwrap();
    let first: Vec<String> = (0..LIMIT).map(|n| format!("m{n}")).collect();
    for name in &first {
        place.fault(name, Some("clone-stuck")).await;
    }
    let wish = json!({"image": "debian-13", "powerState": "Off"});
    for name in &first {
        place.machine(name, wish.clone()).await;
    }
    let disks: Api<DataVolume> = place.api();
    wait::eventually("ten disks", LONG, async || {
        let all = disks.list(&ListParams::default()).await.unwrap();
        (all.items.len() == LIMIT).then_some(())
    })
    .await
    .unwrap();

    // Ages are whole seconds; the name of the younger one comes first.
    let older = place.machine("older", wish.clone()).await;
    wait::eventually("the next second", LONG, async || {
        let now = place.machine("clock", json!({"image": "none", "powerState": "Off"}));
        let now = now.await.creation_timestamp();
        let later = now > older.creation_timestamp();
        if !later {
            place
                .edit::<KiteVirtualMachine>("clock", json!({"spec": {"delete": true}}))
                .await;
            place.gone::<KiteVirtualMachine>("clock", LONG).await;
        }
        later.then_some(())
    })
    .await
    .unwrap();
    place.machine("a-younger", wish).await;
    let judge = Judge::start().await.unwrap();
    for name in ["older", "a-younger"] {
        let waits = place
            .says(name, RESOURCES_APPLIED, "WaitingForClones")
            .await;
        let message = &condition_of(&waits, RESOURCES_APPLIED).unwrap().message;
        assert!(message.contains("image debian-13"), "{message}");
        assert_eq!(condition_of(&waits, ACCEPTED).unwrap().status, "True");
        assert!(condition_of(&waits, STALLED).is_none(), "nobody need act");
        assert_eq!(judge.status_of(&waits).unwrap().status, "InProgress");
    }
    let audit = place.cluster.control_plane.audit().unwrap();
    let start = audit.settled_mark(&place.client).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let asked = audit.since(start).unwrap();
    let about = |r: &&kite_testkit::audit::Request| {
        r.is_by("kite-vm") && r.namespace == "turns" && !r.is_watch()
    };
    let asked: Vec<_> = asked.iter().filter(about).collect();
    assert!(asked.is_empty(), "waiting costs requests: {asked:#?}");

    // One goes away in the middle of its clone, and the older of the two begins.
    place
        .edit::<KiteVirtualMachine>("m0", json!({"spec": {"delete": true}}))
        .await;
    place.until("older", LONG, |_: &DataVolume| true).await;
    assert!(disks.get_opt("a-younger").await.unwrap().is_none());
    let younger = place
        .api::<KiteVirtualMachine>()
        .get("a-younger")
        .await
        .unwrap();
    let reason = &condition_of(&younger, RESOURCES_APPLIED).unwrap().reason;
    assert_eq!(reason, "WaitingForClones");

    // One ends well, and the other begins.
    place.fault("m1", None).await;
    place.until("a-younger", LONG, |_: &DataVolume| true).await;
    assert_eq!(disks.get("m1").await.unwrap().phase(), "Succeeded");
    place.applied("a-younger").await;
}
