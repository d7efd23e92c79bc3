//! A machine exists, is kept, and ceases, with kite-vm as the only controller:
//! repair and deletion need none of the other five.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use common::{LONG, Place, condition_of, uid};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Secret, Service};
use kite_api::KiteVirtualMachine;
use kite_api::condition::{RESOURCES_APPLIED, STALLED};
use kite_api::machine::Phase;
use kite_kubevirt::read::{DataVolume, VirtualMachine};
use kite_testkit::place::REPAIR;
use kite_testkit::wait;
use kube::api::{DeleteParams, PropagationPolicy};
use kube::{Api, ResourceExt};
use serde_json::json;

// V-2, V-11, V-12, V-13, V-16, V-17, C-7
#[tokio::test]
async fn a_machine_gets_everything_it_needs_and_nothing_owns_its_disk() {
    let place = Place::new("everything").await;
    place.machine("web", json!({})).await;
    let machine = place.applied("web").await;
    let status = machine.status.clone().unwrap();
    assert!(
        machine
            .finalizers()
            .contains(&"kite.dev/vm-cleanup".to_owned())
    );
    assert_eq!(
        status.phase,
        Some(Phase::Provisioning),
        "kite-vm-status is not there to say more"
    );
    assert_eq!(status.service_name.as_deref(), Some("web"));

    let disk = place.until("web", LONG, |_: &DataVolume| true).await;
    let claim = place
        .until("web", LONG, |_: &PersistentVolumeClaim| true)
        .await;
    assert!(
        disk.owner_references().is_empty(),
        "a foreground delete would take the disk: {disk:?}"
    );
    assert_eq!(
        disk.annotations().get("kite.dev/vm-uid"),
        Some(&uid(&machine))
    );
    assert_eq!(status.claim_uid, Some(uid(&claim)));
    assert_eq!(
        status.storage_class_name.as_deref(),
        Some(kite_testkit::stand_ins::STORAGE_CLASS)
    );

    let vm = place
        .until("web", LONG, |vm: &VirtualMachine| {
            vm.printable_status() == "Running"
        })
        .await;
    assert_eq!(vm.run_strategy(), Some("Always"));
    assert_eq!(vm.owner_references()[0].uid, uid(&machine));
    let service = place.until("web", LONG, |_: &Service| true).await;
    assert_eq!(
        service.spec.unwrap().selector.unwrap()["kite.dev/vm-uid"],
        uid(&machine)
    );

    // CR6: the key in cloud-init is the public half of the stored one.
    let secrets: Api<Secret> = place.api();
    let key = secrets.get("web-ssh-key").await.unwrap();
    let public = kite_render::machine::public_key_of(&key).unwrap();
    let login = secrets.get("web-cloud-init").await.unwrap();
    let text = String::from_utf8(login.data.unwrap()["userdata"].0.clone()).unwrap();
    assert!(text.contains(public.as_str()), "{text}");
}

// V-17, C-8: Services, VirtualMachines and Ingresses are compared field by field.
#[tokio::test]
async fn a_child_deleted_or_edited_by_hand_is_as_declared_again_within_five_seconds() {
    let place = Place::new("repair").await;
    place.machine("web", json!({})).await;
    place.applied("web").await;
    place
        .until("web", LONG, |vm: &VirtualMachine| {
            vm.printable_status() == "Running"
        })
        .await;

    let service = place.until("web", LONG, |_: &Service| true).await;
    let services: Api<Service> = place.api();
    services
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    place
        .until("web", REPAIR, |s: &Service| uid(s) != uid(&service))
        .await;

    place
        .edit::<Service>(
            "web",
            json!({"spec": {"selector": {"kite.dev/vm-uid": "another"}}}),
        )
        .await;
    place
        .until("web", REPAIR, |s: &Service| {
            s.spec.as_ref().unwrap().selector.as_ref().unwrap()["kite.dev/vm-uid"] != "another"
        })
        .await;

    place
        .edit::<Service>("web", json!({"spec": {"externalIPs": ["203.0.113.7"]}}))
        .await;
    place
        .until("web", REPAIR, |s: &Service| {
            s.spec.as_ref().unwrap().external_ips.is_none()
        })
        .await;

    // virtctl stop writes the run strategy; On means on.
    place
        .edit::<VirtualMachine>("web", json!({"spec": {"runStrategy": "Halted"}}))
        .await;
    place
        .until("web", REPAIR, |vm: &VirtualMachine| {
            vm.run_strategy() == Some("Always")
        })
        .await;
    place
        .until("web", LONG, |vm: &VirtualMachine| {
            vm.printable_status() == "Running"
        })
        .await;
    let said = place
        .cluster
        .control_plane
        .kubectl(&["describe", "ktvm", "web", "-n", "repair"])
        .await
        .unwrap();
    assert!(said.stdout.contains("set spec.powerState: Off"), "{said:?}");
}

// V-15, F-5
#[tokio::test]
async fn a_disk_that_vanished_is_reported_and_made_again_only_when_confirmed() {
    let place = Place::new("lost").await;
    place.machine("web", json!({"powerState": "Off"})).await;
    place.applied("web").await;
    place
        .until("web", LONG, |d: &DataVolume| d.phase() == "Succeeded")
        .await;
    let claim = place
        .until("web", LONG, |_: &PersistentVolumeClaim| true)
        .await;

    // CDI's own garbage collection takes the DataVolume and leaves the claim: nothing is lost.
    let disks: Api<DataVolume> = place.api();
    let orphan = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Orphan),
        ..DeleteParams::default()
    };
    disks.delete("web", &orphan).await.unwrap();
    place.gone::<DataVolume>("web", LONG).await;
    place
        .edit::<KiteVirtualMachine>("web", json!({"spec": {"cpu": 2}}))
        .await;
    let machine = place.applied("web").await;
    assert_eq!(machine.status.unwrap().claim_uid, Some(uid(&claim)));

    place
        .api::<PersistentVolumeClaim>()
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    let machine = place.says("web", RESOURCES_APPLIED, "DiskLost").await;
    assert!(
        condition_of(&machine, STALLED)
            .unwrap()
            .message
            .contains("kite.dev/confirm-new-disk")
    );
    assert!(
        disks.get_opt("web").await.unwrap().is_none(),
        "a disk was cloned again unasked"
    );

    place
        .edit::<KiteVirtualMachine>(
            "web",
            json!({"metadata": {"annotations": {"kite.dev/confirm-new-disk": uid(&claim)}}}),
        )
        .await;
    place
        .until("web", LONG, |d: &DataVolume| d.phase() == "Succeeded")
        .await;
    let machine = place.applied("web").await;
    assert_ne!(machine.status.unwrap().claim_uid, Some(uid(&claim)));
}

// V-1, V-3, V-18, V-19, V-20: whichever way it is asked for, nothing is left, and nothing of others is touched.
#[tokio::test]
async fn each_way_of_deleting_leaves_nothing_behind() {
    let place = Place::new("deleting").await;
    for (name, way) in [
        ("asked", None),
        ("background", Some(PropagationPolicy::Background)),
        ("foreground", Some(PropagationPolicy::Foreground)),
        ("orphan", Some(PropagationPolicy::Orphan)),
    ] {
        place.machine(name, json!({})).await;
        place.applied(name).await;
        place
            .until(name, LONG, |vm: &VirtualMachine| {
                vm.printable_status() == "Running"
            })
            .await;
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
                place
                    .api::<KiteVirtualMachine>()
                    .delete(name, &params)
                    .await
                    .unwrap();
            }
        }
        place.gone::<KiteVirtualMachine>(name, LONG).await;
        place.gone::<VirtualMachine>(name, LONG).await;
        place.gone::<DataVolume>(name, LONG).await;
        place.gone::<PersistentVolumeClaim>(name, LONG).await;
        place.gone::<Service>(name, LONG).await;
        place
            .gone::<Secret>(&format!("{name}-cloud-init"), LONG)
            .await;
        place.gone::<Secret>(&format!("{name}-ssh-key"), LONG).await;
    }
}

// V-19
#[tokio::test]
async fn a_retained_disk_outlives_its_machine_and_is_taken_only_by_name() {
    let place = Place::new("retained").await;
    place
        .machine("web", json!({"deletionPolicy": "Retain"}))
        .await;
    place.applied("web").await;
    place
        .until("web", LONG, |vm: &VirtualMachine| {
            vm.printable_status() == "Running"
        })
        .await;
    place
        .edit::<KiteVirtualMachine>("web", json!({"spec": {"delete": true}}))
        .await;
    place.gone::<KiteVirtualMachine>("web", LONG).await;
    let claim = place
        .until("web", LONG, |c: &PersistentVolumeClaim| {
            c.labels().contains_key("kite.dev/retained")
        })
        .await;
    assert!(claim.metadata.deletion_timestamp.is_none());

    place.machine("web", json!({})).await;
    place
        .says("web", RESOURCES_APPLIED, "RetainedDiskExists")
        .await;
    assert!(
        place
            .api::<VirtualMachine>()
            .get_opt("web")
            .await
            .unwrap()
            .is_none()
    );
    place
        .edit::<KiteVirtualMachine>(
            "web",
            json!({"metadata": {"annotations": {"kite.dev/adopt-retained-disk": uid(&claim)}}}),
        )
        .await;
    let machine = place.applied("web").await;
    assert_eq!(machine.status.unwrap().claim_uid, Some(uid(&claim)));
}

// V-1, V-20: in a namespace deletion Kubernetes takes the children in its own order; nothing hangs and nothing is made.
#[tokio::test]
async fn a_namespace_goes_with_the_machines_in_it() {
    let place = Place::new("namespace-goes").await;
    place.machine("web", json!({})).await;
    place.applied("web").await;
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(place.client.clone());
    namespaces
        .delete("namespace-goes", &DeleteParams::default())
        .await
        .unwrap();
    wait::wait_gone(&namespaces, "namespace-goes", LONG)
        .await
        .unwrap();
}
