//! What stands in a machine's way, and what is asked for later: foreign objects,
//! missing images, host names, larger disks, a pause.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use common::{LONG, Place, condition_of};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::api::networking::v1::Ingress;
use kite_api::condition::{ACCEPTED, DOMAIN_READY, RESOURCES_APPLIED, STALLED};
use kite_api::machine::Phase;
use kite_api::{KiteHostClaim, KitePlatform, KiteVirtualMachine};
use kite_kubevirt::read::{DataVolume, VirtualMachine};
use kite_testkit::place::REPAIR;
use kite_testkit::{install, wait};
use kube::Api;
use serde_json::json;

// C-7, row VM6: a foreign object under our name is not touched, and Kite goes on when it is gone.
#[tokio::test]
async fn a_foreign_object_of_each_kind_is_left_alone_and_the_machine_heals_when_it_goes() {
    let place = Place::new("foreign").await;
    let objects = [
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web-cloud-init", "namespace": "foreign"}, "data": {"a": "Yg=="}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web-ssh-key", "namespace": "foreign"}, "data": {"a": "Yg=="}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "foreign"}, "spec": {"ports": [{"port": 80}]}}),
        json!({"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": {"name": "web", "namespace": "foreign"}, "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}}),
        json!({"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "web", "namespace": "foreign"}, "spec": {"runStrategy": "Halted", "template": {"spec": {"domain": {"memory": {"guest": "1Gi"}, "devices": {}}}}}}),
    ];
    for (number, object) in objects.into_iter().enumerate() {
        place
            .meets_foreign(&format!("web{number}"), object, json!({}))
            .await;
    }
}

// V-10, C-20, V-6: what is missing is told, and the machine starts when it comes.
#[tokio::test]
async fn what_is_missing_is_named_and_the_machine_starts_when_it_comes() {
    let place = Place::unprepared("missing").await;
    place.machine("unprepared", json!({})).await;
    let machine = place
        .says("unprepared", ACCEPTED, "NamespaceNotPrepared")
        .await;
    let message = condition_of(&machine, ACCEPTED).unwrap().message.clone();
    assert!(
        message.contains("kubectl create rolebinding kite-vm-secrets -n missing"),
        "{message}"
    );
    let command: Vec<&str> = message
        .split(": kubectl ")
        .nth(1)
        .unwrap()
        .split(' ')
        .collect();
    place.cluster.control_plane.kubectl(&command).await.unwrap();
    place.applied("unprepared").await;

    place
        .machine("imageless", json!({"image": "debian-13"}))
        .await;
    let machine = place.says("imageless", ACCEPTED, "ImageNotFound").await;
    assert_eq!(machine.status.as_ref().unwrap().phase, Some(Phase::Failed));
    assert!(condition_of(&machine, STALLED).is_some());
    place.cluster.publish("debian-13").await.unwrap();
    place.applied("imageless").await;
}

fn platform_with(domain: &str) -> serde_json::Value {
    json!({
        "apiVersion": "kite.dev/v1alpha1", "kind": "KitePlatform", "metadata": {"name": "default"},
        "spec": {"baseDomain": domain, "ingress": {"className": "public"}},
    })
}

// V-8, V-9, P-1, P-3, F-9: an Ingress goes with its prefix; F-10: a new base domain is rolled out
#[tokio::test]
async fn a_host_name_belongs_to_one_machine_and_goes_to_the_next_when_it_is_free() {
    let place = Place::new("hosts").await;
    let wish = json!({"domainPrefix": "shop", "powerState": "Off"});
    place.machine("first", wish.clone()).await;
    let machine = place.says("first", DOMAIN_READY, "BaseDomainMissing").await;
    assert!(condition_of(&machine, RESOURCES_APPLIED).is_some());
    let platform = platform_with("vms.example.org");
    install::apply(&place.client, &platform.to_string())
        .await
        .unwrap();
    place.says("first", DOMAIN_READY, "Held").await;
    let ingress = place.until("first", LONG, |_: &Ingress| true).await;
    assert_eq!(
        ingress.spec.unwrap().rules.unwrap()[0].host.as_deref(),
        Some("shop.vms.example.org")
    );
    let platforms: Api<KitePlatform> = Api::all(place.client.clone());
    wait::wait_until(&platforms, "default", LONG, |p| {
        p.status
            .as_ref()
            .is_some_and(|s| s.conditions.iter().any(|c| c.status == "True"))
    })
    .await
    .unwrap();

    let platform = platform_with("cloud.example.org");
    install::apply(&place.client, &platform.to_string())
        .await
        .unwrap();
    let claims: Api<KiteHostClaim> = Api::all(place.client.clone());
    wait::wait_gone(&claims, "shop.vms.example.org", LONG)
        .await
        .unwrap();
    place
        .until("first", LONG, |m: &KiteVirtualMachine| {
            m.status.as_ref().unwrap().domain.as_deref() == Some("shop.cloud.example.org")
        })
        .await;
    let ingress = place.until("first", LONG, |_: &Ingress| true).await;
    assert_eq!(
        ingress.spec.unwrap().rules.unwrap()[0].host.as_deref(),
        Some("shop.cloud.example.org")
    );

    place.machine("second", wish).await;
    let second = place.says("second", DOMAIN_READY, "HostNameTaken").await;
    let message = &condition_of(&second, DOMAIN_READY).unwrap().message;
    assert!(
        !message.contains("first") && !message.contains("hosts/"),
        "it names another tenant: {message}"
    );
    assert!(
        place
            .api::<Ingress>()
            .get_opt("second")
            .await
            .unwrap()
            .is_none()
    );

    place
        .edit::<KiteVirtualMachine>("first", json!({"spec": {"domainPrefix": null}}))
        .await;
    place.gone::<Ingress>("first", REPAIR).await;
    place
        .until(
            "second",
            std::time::Duration::from_secs(10),
            |_: &Ingress| true,
        )
        .await;
    place
        .edit::<KiteVirtualMachine>("second", json!({"spec": {"delete": true}}))
        .await;
    place.gone::<KiteVirtualMachine>("second", LONG).await;
    wait::wait_gone(&claims, "shop.cloud.example.org", LONG)
        .await
        .unwrap();
}

// V-13
#[tokio::test]
async fn a_larger_disk_grows_the_claim_in_proportion() {
    let place = Place::new("growth").await;
    place.machine("web", json!({"powerState": "Off"})).await;
    place.applied("web").await;
    let requested = |c: &PersistentVolumeClaim| {
        let spec = c.spec.as_ref().unwrap();
        kite_api::quantity::whole(
            &spec.resources.as_ref().unwrap().requests.as_ref().unwrap()["storage"].0,
        )
        .unwrap()
    };
    let before = requested(
        &place
            .until("web", LONG, |_: &PersistentVolumeClaim| true)
            .await,
    );
    place
        .until("web", LONG, |d: &DataVolume| d.phase() == "Succeeded")
        .await;
    place
        .edit::<KiteVirtualMachine>("web", json!({"spec": {"disk": "3Gi"}}))
        .await;
    let after = requested(
        &place
            .until("web", LONG, |c: &PersistentVolumeClaim| {
                requested(c) > before
            })
            .await,
    );
    assert_eq!(
        after,
        (before * 3 + 1) / 2,
        "the overhead grows with the disk"
    );
    place
        .edit::<KiteVirtualMachine>("web", json!({"spec": {"disk": "6Gi"}}))
        .await;
    place
        .until("web", LONG, |c: &PersistentVolumeClaim| {
            requested(c) == after * 2
        })
        .await;
}

// V-4, V-5
#[tokio::test]
async fn a_paused_machine_is_left_alone_and_can_still_be_deleted() {
    let place = Place::new("paused").await;
    place.machine("web", json!({"powerState": "Off"})).await;
    place.applied("web").await;
    place
        .edit::<KiteVirtualMachine>(
            "web",
            json!({"metadata": {"annotations": {"kite.dev/paused": "true"}}}),
        )
        .await;
    place
        .says("web", RESOURCES_APPLIED, "ReconciliationPaused")
        .await;
    place
        .edit::<KiteVirtualMachine>("web", json!({"spec": {"powerState": "On"}}))
        .await;
    place
        .until("web", LONG, |m: &KiteVirtualMachine| {
            condition_of(m, RESOURCES_APPLIED)
                .unwrap()
                .observed_generation
                == m.metadata.generation
        })
        .await;
    let vm = place.until("web", LONG, |_: &VirtualMachine| true).await;
    assert_eq!(vm.run_strategy(), Some("Halted"));
    place
        .edit::<KiteVirtualMachine>("web", json!({"spec": {"delete": true}}))
        .await;
    place.gone::<KiteVirtualMachine>("web", LONG).await;
}
