//! A new machine under the name of an old one, and disks that outlive theirs.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Secret};
use kite_api::KiteVirtualMachine;
use kite_api::condition::{RESOURCES_APPLIED, STALLED};
use kite_kubevirt::read::{DataVolume, VirtualMachine};
use kite_testkit::wait;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PropagationPolicy};
use serde_json::{Value, json};

use crate::common::{LONG, Place, condition_of, uid};

fn is_running(vm: &VirtualMachine) -> bool {
    vm.printable_status() == "Running"
}

/// Takes a machine away by removing its finalizer by hand, whatever kite-vm does meanwhile.
async fn force_away(place: &Place, name: &str) {
    let machines = place.api::<KiteVirtualMachine>();
    machines
        .delete(name, &DeleteParams::background())
        .await
        .unwrap();
    wait::eventually("the machine to be forced away", LONG, async || {
        let Some(left) = machines.get_opt(name).await.unwrap() else {
            return Some(());
        };
        if !left.finalizers().is_empty() {
            let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            machines
                .patch(name, &PatchParams::default(), &none)
                .await
                .ok();
        }
        None
    })
    .await
    .unwrap();
}

// V-19, V-22, #30, VM5
#[tokio::test]
async fn a_successor_waits_for_the_old_machine_and_takes_nothing_from_it() {
    let place = Place::new("again").await;
    place.fault("web", Some("vmi-finalizer-stays")).await;
    place.machine("web", json!({})).await;
    let first = place.applied("web").await;
    let old_vm = place.until("web", LONG, is_running).await;
    let old_disk = place.api::<DataVolume>().get("web").await.unwrap();
    let old_claim = place
        .api::<PersistentVolumeClaim>()
        .get("web")
        .await
        .unwrap();
    let old_key = place.api::<Secret>().get("web-ssh-key").await.unwrap();
    force_away(&place, "web").await;

    let second = place.machine("web", json!({"disk": "3Gi"})).await;
    assert_ne!(uid(&second), uid(&first));
    let waits = place
        .says("web", RESOURCES_APPLIED, "WaitingForPreviousVM")
        .await;
    assert!(condition_of(&waits, STALLED).is_none());
    let status = waits.status.clone().unwrap();
    assert_eq!((status.claim_uid, status.data_volume_name), (None, None));
    assert_eq!(
        uid(&place.api::<DataVolume>().get("web").await.unwrap()),
        uid(&old_disk)
    );

    place.fault("web", None).await;
    let machine = place.applied("web").await;
    let vm = place.until("web", LONG, is_running).await;
    let disk = place.api::<DataVolume>().get("web").await.unwrap();
    let claim = place
        .api::<PersistentVolumeClaim>()
        .get("web")
        .await
        .unwrap();
    let key = place.api::<Secret>().get("web-ssh-key").await.unwrap();
    assert_eq!(machine.status.unwrap().claim_uid, Some(uid(&claim)));
    for (old, new) in [
        (uid(&old_vm), uid(&vm)),
        (uid(&old_disk), uid(&disk)),
        (uid(&old_claim), uid(&claim)),
        (uid(&old_key), uid(&key)),
    ] {
        assert_ne!(old, new);
    }
    assert_ne!(key.data, old_key.data);
    assert_eq!(
        disk.annotations()["kite.dev/vm-uid"],
        uid(&machine_of(&place).await)
    );
}

async fn machine_of(place: &Place) -> KiteVirtualMachine {
    place.api::<KiteVirtualMachine>().get("web").await.unwrap()
}

// V-19: whichever way a machine with Retain goes, its disk stays, marked; a successor leaves it alone
// until it is named, and then has what stands on it
#[tokio::test]
async fn a_retained_disk_outlives_every_way_of_deleting_and_is_adopted_by_its_uid() {
    let place = Place::new("kept").await;
    let ways = [
        ("asked", None),
        ("background", Some(PropagationPolicy::Background)),
        ("foreground", Some(PropagationPolicy::Foreground)),
        ("orphan", Some(PropagationPolicy::Orphan)),
    ];
    for (name, _) in &ways {
        let wish = json!({"deletionPolicy": "Retain", "powerState": "Off"});
        place.machine(name, wish).await;
    }
    // The policy of this one is changed later, and then its finalizer is taken off.
    place.machine("forced", json!({"powerState": "Off"})).await;
    let filled = |d: &DataVolume| d.phase() == "Succeeded";
    for name in ["asked", "background", "foreground", "orphan", "forced"] {
        place.until(name, LONG, filled).await;
        place.applied(name).await;
    }
    let edit = json!({"spec": {"deletionPolicy": "Retain"}});
    place.edit::<KiteVirtualMachine>("forced", edit).await;
    let noted = |d: &DataVolume| d.annotations()["kite.dev/deletion-policy"] == "Retain";
    place.until("forced", LONG, noted).await;
    let noted = |c: &PersistentVolumeClaim| c.annotations()["kite.dev/deletion-policy"] == "Retain";
    place.until("forced", LONG, noted).await;
    for (name, way) in ways {
        let machines = place.api::<KiteVirtualMachine>();
        match way {
            None => drop(
                place
                    .edit::<KiteVirtualMachine>(name, json!({"spec": {"delete": true}}))
                    .await,
            ),
            Some(policy) => {
                let params = DeleteParams {
                    propagation_policy: Some(policy),
                    ..DeleteParams::default()
                };
                machines.delete(name, &params).await.unwrap();
            }
        }
    }
    force_away(&place, "forced").await;
    let marked = ListParams::default().labels(kite_api::labels::RETAINED_SELECTOR);
    let claims = place.api::<PersistentVolumeClaim>();
    for name in ["asked", "background", "foreground", "orphan", "forced"] {
        place.gone::<KiteVirtualMachine>(name, LONG).await;
        place.gone::<VirtualMachine>(name, LONG).await;
        place
            .gone::<Secret>(&format!("{name}-cloud-init"), LONG)
            .await;
    }
    let kept = |c: &PersistentVolumeClaim| c.labels().contains_key("kite.dev/retained");
    for name in ["asked", "background", "foreground", "orphan", "forced"] {
        place.until(name, LONG, kept).await;
    }
    assert_eq!(claims.list(&marked).await.unwrap().items.len(), 5);
    let disks = place.api::<DataVolume>().list(&marked).await.unwrap();
    assert!(
        disks
            .items
            .iter()
            .all(|d| d.metadata.deletion_timestamp.is_none())
    );
    assert_eq!(disks.items.len(), 5);

    a_successor_adopts(&place).await;
}

/// A successor of the retained machine that is Off, with a disk of twice the size.
async fn a_successor_adopts(place: &Place) {
    let claims = place.api::<PersistentVolumeClaim>();
    let old = claims.get("asked").await.unwrap();
    let key = "kite.dev/adopt-retained-disk";
    let adopt = |uid: &str| -> Value { json!({"metadata": {"annotations": {key: uid}}}) };
    place
        .machine("asked", json!({"disk": "4Gi", "powerState": "Off"}))
        .await;
    place
        .says("asked", RESOURCES_APPLIED, "RetainedDiskExists")
        .await;
    place
        .edit::<KiteVirtualMachine>("asked", adopt("another"))
        .await;
    let told = place
        .says("asked", RESOURCES_APPLIED, "RetainedDiskExists")
        .await;
    let message = &condition_of(&told, STALLED).unwrap().message;
    assert!(
        message.contains(&format!("{key}={}", uid(&old))),
        "{message}"
    );
    let vms = place.api::<VirtualMachine>();
    assert!(vms.get_opt("asked").await.unwrap().is_none());
    place
        .edit::<KiteVirtualMachine>("asked", adopt(&uid(&old)))
        .await;
    let machine = place.applied("asked").await;
    assert_eq!(machine.status.clone().unwrap().claim_uid, Some(uid(&old)));
    // What it asks for now holds for the adopted disk: its size, and what becomes of it.
    let requested = |c: &PersistentVolumeClaim| {
        let spec = c.spec.as_ref().unwrap();
        let requests = spec.resources.as_ref().unwrap().requests.as_ref().unwrap();
        kite_api::quantity::whole(&requests["storage"].0).unwrap()
    };
    let before = requested(&old);
    place
        .until("asked", LONG, |c: &PersistentVolumeClaim| {
            requested(c) == before * 2
        })
        .await;
    let claim = claims.get("asked").await.unwrap();
    assert!(!claim.labels().contains_key("kite.dev/retained"));
    assert_eq!(claim.annotations()["kite.dev/deletion-policy"], "Delete");
    place
        .edit::<KiteVirtualMachine>("asked", json!({"spec": {"delete": true}}))
        .await;
    place.gone::<KiteVirtualMachine>("asked", LONG).await;
    place.gone::<PersistentVolumeClaim>("asked", LONG).await;
}
