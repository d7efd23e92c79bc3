//! Lives that do not go as planned: deleted while the disk is filled, finalizers
//! taken off by hand, a lost key, a host whose holder is gone, a full quota.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{LONG, Place, condition_of, uid};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, ResourceQuota, Secret, Service};
use kite_api::condition::{DOMAIN_READY, RESOURCES_APPLIED, STALLED};
use kite_api::{KiteHostClaim, KiteVirtualMachine};
use kite_kubevirt::read::{DataVolume, VirtualMachine};
use kite_testkit::{install, wait};
use kube::api::{DeleteParams, ListParams, PostParams, PropagationPolicy};
use kube::{Api, ResourceExt};
use serde_json::json;

// V-19, VM1, #26: deleting in the middle of a clone leaves nothing, temporary claims included
#[tokio::test]
async fn a_machine_deleted_while_its_disk_is_filled_leaves_nothing() {
    let place = Place::new("midway").await;
    place.machine("web", json!({})).await;
    place
        .until("web", LONG, |d: &DataVolume| d.phase() == "CloneInProgress")
        .await;
    place
        .edit::<KiteVirtualMachine>("web", json!({"spec": {"delete": true}}))
        .await;
    place.gone::<KiteVirtualMachine>("web", LONG).await;
    place.gone::<DataVolume>("web", LONG).await;
    let claims: Api<PersistentVolumeClaim> = place.api();
    wait::eventually("all claims to go", LONG, async || {
        let left = claims.list(&ListParams::default()).await.unwrap();
        left.items.is_empty().then_some(())
    })
    .await
    .unwrap();
}

// V-19: somebody took the finalizer off; the disk has no owner, and is still collected by its policy
#[tokio::test]
async fn a_disk_left_behind_by_a_forced_deletion_is_collected_by_its_recorded_policy() {
    let place = Place::new("forced").await;
    for (name, policy) in [("dropped", "Delete"), ("kept", "Retain")] {
        place.machine(name, json!({"deletionPolicy": policy})).await;
        place.applied(name).await;
        place
            .until(name, LONG, |vm: &VirtualMachine| {
                vm.printable_status() == "Running"
            })
            .await;
        let machines: Api<KiteVirtualMachine> = place.api();
        place
            .edit::<KiteVirtualMachine>(name, json!({"metadata": {"finalizers": null}}))
            .await;
        machines
            .delete(name, &DeleteParams::background())
            .await
            .unwrap();
        // kite-vm may have put it back in between; whoever forces, forces again.
        wait::eventually("the machine to be forced away", LONG, async || {
            let Some(left) = machines.get_opt(name).await.unwrap() else {
                return Some(());
            };
            if !left.finalizers().is_empty() {
                place
                    .edit::<KiteVirtualMachine>(name, json!({"metadata": {"finalizers": null}}))
                    .await;
            }
            None
        })
        .await
        .unwrap();
        place.gone::<VirtualMachine>(name, LONG).await;
    }
    place.gone::<DataVolume>("dropped", LONG).await;
    place.gone::<PersistentVolumeClaim>("dropped", LONG).await;
    let kept = place
        .until("kept", LONG, |c: &PersistentVolumeClaim| {
            c.labels().contains_key("kite.dev/retained")
        })
        .await;
    assert!(kept.metadata.deletion_timestamp.is_none());
}

// V-19, row VM15: CDI collected the DataVolume; its claim is ours all the same, and goes with us
#[tokio::test]
async fn a_claim_whose_datavolume_was_collected_goes_with_its_machine() {
    let place = Place::new("collected").await;
    place.machine("web", json!({"powerState": "Off"})).await;
    place.applied("web").await;
    place
        .until("web", LONG, |d: &DataVolume| d.phase() == "Succeeded")
        .await;
    let orphan = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Orphan),
        ..DeleteParams::default()
    };
    let disks: Api<DataVolume> = place.api();
    disks.delete("web", &orphan).await.unwrap();
    place.gone::<DataVolume>("web", LONG).await;
    let unowned = |c: &PersistentVolumeClaim| c.owner_references().is_empty();
    place.until("web", LONG, unowned).await;
    place
        .edit::<KiteVirtualMachine>("web", json!({"spec": {"delete": true}}))
        .await;
    place.gone::<KiteVirtualMachine>("web", LONG).await;
    place.gone::<PersistentVolumeClaim>("web", LONG).await;
}

// V-12, F-12: a key that the guest does not know is never quietly made
#[tokio::test]
async fn a_generated_key_that_vanished_is_reported_and_power_still_works() {
    let place = Place::new("keyless").await;
    place.machine("web", json!({})).await;
    place.applied("web").await;
    place
        .until("web", LONG, |vm: &VirtualMachine| {
            vm.printable_status() == "Running"
        })
        .await;
    place
        .api::<Secret>()
        .delete("web-ssh-key", &DeleteParams::default())
        .await
        .unwrap();
    place
        .edit::<KiteVirtualMachine>("web", json!({"spec": {"powerState": "Off"}}))
        .await;
    place
        .until("web", LONG, |vm: &VirtualMachine| {
            vm.printable_status() == "Stopped"
        })
        .await;
    place
        .edit::<KiteVirtualMachine>("web", json!({"spec": {"powerState": "On"}}))
        .await;
    let machine = place.says("web", RESOURCES_APPLIED, "SshKeyLost").await;
    assert!(
        condition_of(&machine, STALLED)
            .unwrap()
            .message
            .contains("spec.sshAuthorizedKeys")
    );
    place
        .until("web", LONG, |vm: &VirtualMachine| {
            vm.run_strategy() == Some("Always")
        })
        .await;
    assert!(
        place
            .api::<Secret>()
            .get_opt("web-ssh-key")
            .await
            .unwrap()
            .is_none()
    );
    let key =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIK0wmN/Cr3JXqmLW7u+g9pTh+wyqDHpSQEIQczXkVx9q alice";
    place
        .edit::<KiteVirtualMachine>("web", json!({"spec": {"sshAuthorizedKeys": [key]}}))
        .await;
    place.applied("web").await;
}

// C-20: the Secret that a start needs is looked at, and made again, before it
#[tokio::test]
async fn a_login_secret_deleted_by_hand_is_there_again_at_the_next_start() {
    let place = Place::new("login").await;
    let key =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIK0wmN/Cr3JXqmLW7u+g9pTh+wyqDHpSQEIQczXkVx9q alice";
    place
        .machine(
            "web",
            json!({"sshAuthorizedKeys": [key], "powerState": "Off"}),
        )
        .await;
    place.applied("web").await;
    let secrets: Api<Secret> = place.api();
    let first = secrets.get("web-cloud-init").await.unwrap();
    assert!(
        secrets.get_opt("web-ssh-key").await.unwrap().is_none(),
        "no key is made when one was given"
    );
    secrets
        .delete("web-cloud-init", &DeleteParams::default())
        .await
        .unwrap();
    place
        .until("web", LONG, |d: &DataVolume| d.phase() == "Succeeded")
        .await;
    place
        .edit::<KiteVirtualMachine>("web", json!({"spec": {"powerState": "On"}}))
        .await;
    let again = place.until("web-cloud-init", LONG, |_: &Secret| true).await;
    assert_ne!(uid(&again), uid(&first));
    assert_eq!(again.data, first.data);
    place
        .until("web", LONG, |vm: &VirtualMachine| {
            vm.printable_status() == "Running"
        })
        .await;
}

// V-9: a claim whose machine is gone, as a live look shows, is taken over
#[tokio::test]
async fn a_host_claim_of_a_machine_that_is_gone_is_taken_over() {
    let place = Place::new("takeover").await;
    let platform = json!({
        "apiVersion": "kite.dev/v1alpha1", "kind": "KitePlatform", "metadata": {"name": "default"},
        "spec": {"baseDomain": "vms.example.org"},
    });
    install::apply(&place.client, &platform.to_string())
        .await
        .unwrap();
    let claims: Api<KiteHostClaim> = Api::all(place.client.clone());
    let dead = json!({
        "apiVersion": "kite.dev/v1alpha1", "kind": "KiteHostClaim", "metadata": {"name": "old.vms.example.org"},
        "spec": {"namespace": "nowhere", "name": "gone", "uid": "00000000-0000-0000-0000-000000000000"},
    });
    claims
        .create(
            &PostParams::default(),
            &serde_json::from_value(dead).unwrap(),
        )
        .await
        .unwrap();
    // C-7: an Ingress of somebody else under the machine's name is left alone.
    let ingress = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": "web", "namespace": "takeover"},
        "spec": {"defaultBackend": {"service": {"name": "theirs", "port": {"number": 80}}}},
    });
    let wish = json!({"domainPrefix": "foreign", "powerState": "Off"});
    place.meets_foreign("shop", ingress, wish).await;
    place
        .machine("web", json!({"domainPrefix": "old", "powerState": "Off"}))
        .await;
    place.says("web", DOMAIN_READY, "Held").await;
    let machine = place.api::<KiteVirtualMachine>().get("web").await.unwrap();
    assert_eq!(
        claims.get("old.vms.example.org").await.unwrap().spec.uid,
        uid(&machine)
    );
}

// V-17: one failure does not stop the others, and the quota's own words are told
#[tokio::test]
async fn a_full_quota_is_told_with_its_words_and_heals_when_there_is_room() {
    let place = Place::new("full").await;
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "tight", "namespace": "full"},
        "spec": {"hard": {"count/virtualmachines.kubevirt.io": "0"}},
    });
    install::apply(&place.client, &quota.to_string())
        .await
        .unwrap();
    let counted = |q: &ResourceQuota| q.status.as_ref().is_some_and(|s| s.used.is_some());
    place.until("tight", LONG, counted).await;
    place.machine("web", json!({"powerState": "Off"})).await;
    let machine = place.says("web", RESOURCES_APPLIED, "QuotaExceeded").await;
    let message = &condition_of(&machine, RESOURCES_APPLIED).unwrap().message;
    assert!(
        message.contains("exceeded quota: tight") && message.contains("used:"),
        "{message}"
    );
    assert!(
        condition_of(&machine, STALLED).is_none(),
        "it may end by itself"
    );
    assert!(
        place
            .api::<Service>()
            .get_opt("web")
            .await
            .unwrap()
            .is_some()
    );
    place
        .api::<ResourceQuota>()
        .delete("tight", &DeleteParams::default())
        .await
        .unwrap();
    place.applied("web").await;
}
