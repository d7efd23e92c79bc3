//! Claims that no watch shows any more: some have lost their labels, some are gone for good.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kite_api::KiteVirtualMachine;
use kite_api::condition::{NAME_CONFLICT, RESOURCES_APPLIED, STALLED};
use kite_kubevirt::{DataVolume, VirtualMachine, VirtualMachineInstance};
use kite_testkit::audit::Request;
use kite_testkit::stand_ins::STORAGE_CLASS;
use kube::ResourceExt;
use kube::api::{DeleteParams, PostParams, PropagationPolicy};
use serde_json::{Value, json};

use crate::common::{LONG, Place, condition_of, uid};

fn strategy(vm: &VirtualMachine) -> Option<&str> {
    vm.run_strategy()
}

async fn runs(place: &Place, name: &str) -> VirtualMachineInstance {
    let runs = |i: &VirtualMachineInstance| i.phase() == "Running";
    place.until(name, LONG, runs).await
}

async fn filled(place: &Place, name: &str) -> String {
    let filled = |d: &DataVolume| d.phase() == "Succeeded";
    place.until(name, LONG, filled).await;
    let machine = place.applied(name).await;
    machine.status.unwrap().claim_uid.unwrap()
}

/// The DataVolume goes and leaves its claim, as when CDI collects it.
async fn collected(place: &Place, name: &str) {
    let orphan = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Orphan),
        ..DeleteParams::default()
    };
    place
        .api::<DataVolume>()
        .delete(name, &orphan)
        .await
        .unwrap();
    place.gone::<DataVolume>(name, LONG).await;
}

// V-15, C-7: a watch shows what is labelled, which is not all there is
#[tokio::test]
async fn a_claim_that_lost_its_labels_is_no_lost_disk_and_gets_them_back() {
    let place = Place::new("unlabelled").await;
    place.machine("web", json!({})).await;
    place.machine("off", json!({"powerState": "Off"})).await;
    let guest = runs(&place, "web").await;
    let mut claims = Vec::new();
    for name in ["web", "off"] {
        claims.push((name, filled(&place, name).await));
    }
    collected(&place, "off").await;
    let audit = place.cluster.control_plane.audit().unwrap();
    let start = audit.settled_mark(&place.client).await.unwrap();

    for (name, claim) in &claims {
        let marks = place.api::<PersistentVolumeClaim>().get(name).await;
        let labels = marks.unwrap().labels().clone();
        let bare = json!({"metadata": {"labels": null, "annotations": {"kite.dev/vm-uid": null}}});
        place.edit::<PersistentVolumeClaim>(name, bare).await;
        let back = |c: &PersistentVolumeClaim| {
            let of_kite = |key: &&String| key.starts_with("kite.dev/");
            let mut ours = labels.keys().filter(of_kite).peekable();
            ours.peek().is_some()
                && ours.all(|key| c.labels().get(key) == labels.get(key))
                && c.annotations().contains_key("kite.dev/vm-uid")
        };
        let after = place.until(name, LONG, back).await;
        assert_eq!(&uid(&after), claim);
    }

    // That was all: nothing else was written, of the status neither.
    audit.settled_mark(&place.client).await.unwrap();
    let requests = audit.since(start).unwrap();
    let ours = |r: &&Request| r.is_by("kite-vm") && r.namespace == "unlabelled" && !r.is_watch();
    let what = |r: &Request| [&r.verb, " ", &r.target()].concat();
    let mut made: Vec<_> = requests.iter().filter(ours).map(what).collect();
    made.sort_unstable();
    let (look, label) = ("get persistentvolumeclaims", "patch persistentvolumeclaims");
    assert_eq!(made, [look, look, label, label]);
    // The machine that was off is started on the disk that it had, and the other one ran on.
    let on = json!({"spec": {"powerState": "On"}});
    place.edit::<KiteVirtualMachine>("off", on).await;
    runs(&place, "off").await;
    let machine = place.applied("off").await;
    assert_eq!(
        machine.status.unwrap().claim_uid.as_ref(),
        Some(&claims[1].1)
    );
    assert_eq!(uid(&runs(&place, "web").await), uid(&guest));
}

/// Somebody's claim under a machine's name, which could be booted.
async fn plant(place: &Place, name: &str) {
    let planted = json!({
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}},
            "storageClassName": STORAGE_CLASS,
        },
    });
    let planted = serde_json::from_value(planted).unwrap();
    let claims = place.api::<PersistentVolumeClaim>();
    claims
        .create(&PostParams::default(), &planted)
        .await
        .unwrap();
}

/// Waits until a machine's present generation was worked on and came to this.
async fn answers(place: &Place, name: &str, reason: &'static str) {
    let said = |m: &KiteVirtualMachine| {
        condition_of(m, RESOURCES_APPLIED)
            .is_some_and(|c| c.reason == reason && c.observed_generation == m.metadata.generation)
    };
    let machine = place.until(name, LONG, said).await;
    assert_eq!(condition_of(&machine, STALLED).unwrap().reason, reason);
}

// V-15, D-7: without its disk a machine is not started, whatever lies under its disk's name; one that
// runs is not stopped, and can be switched off
#[tokio::test]
async fn a_machine_without_its_disk_runs_on_and_is_not_started_on_what_others_put_there() {
    let place = Place::new("not-the-disk").await;
    let stays_off: Value = json!({"onGuestShutdown": "StayOff", "powerState": "Off"});
    place.machine("web", json!({})).await;
    place.machine("off", stays_off).await;
    let guest = runs(&place, "web").await;
    let claims = place.api::<PersistentVolumeClaim>();
    let mut lost = Vec::new();
    for name in ["web", "off"] {
        lost.push((name, filled(&place, name).await));
    }
    let followed = place.follow::<VirtualMachine>("off").await;
    for (name, _) in &lost {
        claims.delete(name, &DeleteParams::default()).await.unwrap();
    }
    // The server keeps a claim that a guest uses, unless somebody helps.
    let free = json!({"metadata": {"finalizers": null}});
    place.edit::<PersistentVolumeClaim>("web", free).await;
    for (name, _) in &lost {
        answers(&place, name, "DiskLost").await;
        plant(&place, name).await;
    }
    // Of that guest the watch shows nothing any more.
    let bare = json!({"metadata": {"labels": {"kite.dev/vm-uid": null}}});
    place.edit::<VirtualMachineInstance>("web", bare).await;
    let wider = json!({"spec": {"cpu": 2}});
    place.edit::<KiteVirtualMachine>("web", wider).await;
    answers(&place, "web", "DiskLost").await;
    assert_eq!(uid(&runs(&place, "web").await), uid(&guest));
    let off = json!({"spec": {"powerState": "Off"}});
    place.edit::<KiteVirtualMachine>("web", off).await;
    place.gone::<VirtualMachineInstance>("web", LONG).await;

    let on = json!({"spec": {"powerState": "On"}});
    for (name, _) in &lost {
        place.edit::<KiteVirtualMachine>(name, on.clone()).await;
        answers(&place, name, "DiskLost").await;
    }
    // Nor after an edit that is refused, of which power alone is kept.
    let bad = json!({"spec": {"domainPrefix": "www"}});
    place.edit::<KiteVirtualMachine>("web", bad).await;
    place.says("web", STALLED, "InvalidSpec").await;
    let good = json!({"spec": {"domainPrefix": null}});
    place.edit::<KiteVirtualMachine>("web", good).await;
    answers(&place, "web", "DiskLost").await;

    for (name, claim) in &lost {
        let vm = place.api::<VirtualMachine>().get(name).await.unwrap();
        assert_eq!(strategy(&vm), Some("Halted"), "{name}");
        let confirm = json!({"metadata": {"annotations": {"kite.dev/confirm-new-disk": claim}}});
        place.edit::<KiteVirtualMachine>(name, confirm).await;
        answers(&place, name, NAME_CONFLICT).await;
    }
    let now = place.api::<VirtualMachine>().get("off").await.unwrap();
    let so_far = followed.end(&now).await;
    assert!(so_far.iter().all(|vm| strategy(vm) == Some("Halted")));
    for (name, claim) in &lost {
        claims.delete(name, &DeleteParams::default()).await.unwrap();
        runs(&place, name).await;
        let machine = place.applied(name).await;
        assert_ne!(machine.status.unwrap().claim_uid.as_ref(), Some(claim));
    }
}
