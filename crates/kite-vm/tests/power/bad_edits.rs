//! Edits that cannot be carried out, or not while the machine runs.

use std::time::Duration;

use k8s_openapi::api::storage::v1::StorageClass;
use kite_api::KiteVirtualMachine;
use kite_api::condition::{ACCEPTED, RESOURCES_APPLIED};
use kite_kubevirt::VirtualMachine;
use kite_testkit::install;
use kite_testkit::stand_ins::STORAGE_CLASS;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::common::{LONG, Place, condition_of, uid};
use crate::sockets;

// V-5, F-4: what cannot be carried out is told, and power goes on all the same, in both directions
#[tokio::test]
async fn a_bad_edit_of_any_kind_locks_nobody_out_of_switching() {
    let place = Place::new("bad-edits").await;
    let platform = json!({
        "apiVersion": "kite.dev/v1alpha1", "kind": "KitePlatform", "metadata": {"name": "default"},
        "spec": {"baseDomain": "vms.example.org", "limits": {"memory": "8Gi"}},
    });
    install::apply(&place.client, &platform.to_string())
        .await
        .unwrap();
    let classes: Api<StorageClass> = Api::all(place.client.clone());
    let rigid = Patch::Merge(json!({"allowVolumeExpansion": false}));
    classes
        .patch(STORAGE_CLASS, &PatchParams::default(), &rigid)
        .await
        .unwrap();
    place
        .machine(
            "other",
            json!({"domainPrefix": "taken", "powerState": "Off"}),
        )
        .await;
    place.says("other", "DomainReady", "Held").await;
    place.machine("web", json!({})).await;
    place.applied("web").await;
    place.guest("web").await;

    for (edit, type_, reason) in [
        (json!({"memory": "1Ti"}), ACCEPTED, "InvalidSpec"),
        (json!({"domainPrefix": "www"}), ACCEPTED, "InvalidSpec"),
        (
            json!({"domainPrefix": "taken"}),
            RESOURCES_APPLIED,
            "HostNameTaken",
        ),
        (
            json!({"passwordSecretRef": {"name": "absent"}}),
            RESOURCES_APPLIED,
            "PasswordNotFound",
        ),
        (json!({"disk": "4Gi"}), RESOURCES_APPLIED, "DiskCannotGrow"),
    ] {
        with_a_bad_edit(&place, &edit, type_, reason).await;
    }
    // These the server refuses as a whole, so that power has to be switched without them.
    for edit in [
        json!({"image": "another"}),
        json!({"disk": "1Gi"}),
        json!({"storageClassName": "another"}),
    ] {
        let mut whole = edit.clone();
        whole["powerState"] = json!("Off");
        let patch = Patch::Merge(json!({"spec": whole}));
        let answer = place
            .api::<KiteVirtualMachine>()
            .patch("web", &PatchParams::default(), &patch)
            .await;
        let words = answer.unwrap_err().to_string();
        assert!(words.contains("make a new machine"), "{edit}: {words}");
    }
    place.switch("web", "Off").await;
    place.off("web").await;
}

/// Makes an edit that cannot be carried out together with Off, switches on while it stands, mends it.
async fn with_a_bad_edit(place: &Place, edit: &Value, type_: &'static str, reason: &'static str) {
    let before = place.guest("web").await;
    let mut whole = edit.clone();
    whole["powerState"] = json!("Off");
    place
        .edit::<KiteVirtualMachine>("web", json!({"spec": whole}))
        .await;
    let machine = place.says("web", type_, reason).await;
    assert_eq!(condition_of(&machine, type_).unwrap().status, "False");
    place.off("web").await;
    place.switch("web", "On").await;
    place.next_guest("web", &before).await;
    place.says("web", type_, reason).await;
    // Disks only grow: what was asked for is had when the class allows it.
    let classes: Api<StorageClass> = Api::all(place.client.clone());
    if edit.get("disk").is_some() {
        let grows = Patch::Merge(json!({"allowVolumeExpansion": true}));
        classes
            .patch(STORAGE_CLASS, &PatchParams::default(), &grows)
            .await
            .unwrap();
    } else {
        let field = edit.as_object().unwrap().keys().next().unwrap().clone();
        let mended = if field == "memory" {
            json!("1Gi")
        } else {
            Value::Null
        };
        place
            .edit::<KiteVirtualMachine>("web", json!({"spec": {field: mended}}))
            .await;
    }
    place.applied("web").await;
}

// V-16, row VM11: more processors and memory reach the template, and nothing is restarted for them
#[tokio::test]
async fn a_larger_machine_is_applied_to_the_template_and_waits_for_its_next_start() {
    let place = Place::new("larger").await;
    place.machine("web", json!({})).await;
    let first = place.guest("web").await;
    let edit = json!({"spec": {"cpu": 2, "memory": "1030Mi"}});
    place.edit::<KiteVirtualMachine>("web", edit).await;
    place
        .until("web", LONG, |vm: &VirtualMachine| sockets(vm) == Some(2))
        .await;
    place.applied("web").await;
    // More sockets than there is room for cannot be had while it runs.
    let edit = json!({"spec": {"cpu": 5}});
    place.edit::<KiteVirtualMachine>("web", edit).await;
    let waits = |vm: &VirtualMachine| {
        vm.condition("RestartRequired")
            .is_some_and(|c| c.status == "True")
    };
    place.until("web", LONG, waits).await;
    let guest = place.guest("web").await;
    assert_eq!(uid(&guest), uid(&first), "it was restarted");
    place.switch("web", "Off").await;
    place.off("web").await;
    place.switch("web", "On").await;
    place.next_guest("web", &first).await;
    place
        .until("web", Duration::from_secs(30), |vm: &VirtualMachine| {
            !waits(vm)
        })
        .await;
}
