//! Deletions that stand still, and the order in which everything goes.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Service};
use k8s_openapi::api::networking::v1::Ingress;
use kite_api::KiteVirtualMachine;
use kite_api::condition::DELETING;
use kite_kubevirt::read::{DataVolume, VirtualMachine, VirtualMachineInstance};
use kite_testkit::audit::Request;
use kite_testkit::kite_process::Metrics;
use kite_testkit::{KiteProcess, http_get, install};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::common::{LONG, Place, condition_of};

/// How many deletions kite-vm counts as blocked by a kind of object.
async fn blocked_by(place: &Place, kind: &str) -> f64 {
    let address = place.cluster.with("kite-vm", KiteProcess::address);
    let (_, text) = http_get::get(address, "/metrics").await.unwrap();
    let metrics = Metrics::parse(&text).unwrap();
    metrics.sum("kite_deletions_blocked", &[&format!("kind=\"{kind}\"")])
}

/// Puts somebody else's finalizer beside those that are there.
async fn hold<K>(place: &Place)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + Debug,
{
    let theirs =
        json!([{"op": "add", "path": "/metadata/finalizers/-", "value": "example.org/theirs"}]);
    let theirs: Patch<()> = Patch::Json(serde_json::from_value(theirs).unwrap());
    let api = place.api::<K>();
    api.patch("web", &PatchParams::default(), &theirs)
        .await
        .unwrap();
}

/// What kite-vm deleted in a namespace, in order. A deletion that was decided on an older version is
/// answered 409 and asked for again.
fn deleted<'a>(requests: &'a [Request], namespace: &str) -> Vec<&'a str> {
    let ours = |r: &&Request| {
        r.is_by("kite-vm") && r.namespace == namespace && r.verb == "delete" && r.code == 200
    };
    requests
        .iter()
        .filter(ours)
        .map(|r| r.resource.as_str())
        .collect()
}

fn is_running(vm: &VirtualMachine) -> bool {
    vm.printable_status() == "Running"
}

// V-18, V-19, V-21, F-14, row VM12: while the guest is held its disk stays, and the status says what
// holds it; then all goes in its order
#[tokio::test]
async fn a_deletion_that_is_held_up_says_by_what_and_never_takes_the_disk_from_under_a_guest() {
    let place = Place::new("held").await;
    let platform = json!({
        "apiVersion": "kite.dev/v1alpha1", "kind": "KitePlatform", "metadata": {"name": "default"},
        "spec": {"baseDomain": "vms.example.org"},
    });
    install::apply(&place.client, &platform.to_string())
        .await
        .unwrap();
    place.fault("web", Some("vmi-finalizer-stays")).await;
    place.machine("web", json!({"domainPrefix": "held"})).await;
    place.applied("web").await;
    place.until("web", LONG, is_running).await;
    place.until("web", LONG, |_: &Ingress| true).await;
    let audit = place.cluster.control_plane.audit().unwrap();
    let start = audit.settled_mark(&place.client).await.unwrap();
    // F-13: others may hold the machine too, and Kite takes off its own finalizer only.
    hold::<KiteVirtualMachine>(&place).await;
    place
        .edit::<KiteVirtualMachine>("web", json!({"spec": {"delete": true}}))
        .await;

    let told = place.says("web", DELETING, "DeletionBlocked").await;
    let message = &condition_of(&told, DELETING).unwrap().message;
    let guest = place
        .until("web", LONG, |_: &VirtualMachineInstance| true)
        .await;
    let words = format!(
        "VirtualMachineInstance web is held by the finalizer {}",
        guest.finalizers()[0]
    );
    assert!(message.contains(&words), "{message}");
    assert!(
        message.contains("VirtualMachine web is held by"),
        "{message}"
    );
    assert!(blocked_by(&place, "VirtualMachineInstance").await > 0.5);
    let note = place.event("web", "DeletionBlocked").await;
    assert!(note.contains(&words), "{note}");
    for (kind, stays) in [
        (
            "Ingress",
            place
                .api::<Ingress>()
                .get_opt("web")
                .await
                .unwrap()
                .is_some(),
        ),
        (
            "Service",
            place
                .api::<Service>()
                .get_opt("web")
                .await
                .unwrap()
                .is_some(),
        ),
    ] {
        assert!(!stays, "the {kind} is of no use any more");
    }
    let volume = place.api::<DataVolume>().get("web").await.unwrap();
    let claim = place
        .api::<PersistentVolumeClaim>()
        .get("web")
        .await
        .unwrap();
    assert!(volume.metadata.deletion_timestamp.is_none());
    assert!(claim.metadata.deletion_timestamp.is_none());

    place.fault("web", None).await;
    place.gone::<DataVolume>("web", LONG).await;
    let only_theirs = |m: &KiteVirtualMachine| m.finalizers() == ["example.org/theirs"];
    place.until("web", LONG, only_theirs).await;
    let nobody = json!({"metadata": {"finalizers": null}});
    place.edit::<KiteVirtualMachine>("web", nobody).await;
    place.gone::<KiteVirtualMachine>("web", LONG).await;

    let requests = audit.since(start).unwrap();
    assert_eq!(
        deleted(&requests, "held"),
        [
            "networking.k8s.io/ingresses",
            "services",
            "kubevirt.io/virtualmachines",
            "cdi.kubevirt.io/datavolumes",
            "secrets",
            "secrets",
            "kite.dev/kitevirtualmachines",
        ]
    );
}

// V-18, V-20, V-21, row VM4: asked for in every way at once, all goes once; for the claim, too, it is
// told what holds it, and another obstacle begins anew
#[tokio::test]
async fn a_held_claim_is_named_and_the_deletion_goes_on_when_it_is_let_go() {
    let place = Place::new("held-claim").await;
    place.fault("web", Some("vm-finalizer-stays")).await;
    place.machine("web", json!({})).await;
    place.applied("web").await;
    place.until("web", LONG, is_running).await;
    hold::<PersistentVolumeClaim>(&place).await;
    let machines = place.api::<KiteVirtualMachine>();
    let audit = place.cluster.control_plane.audit().unwrap();
    let start = audit.settled_mark(&place.client).await.unwrap();
    for params in [DeleteParams::background(), DeleteParams::foreground()] {
        machines.delete("web", &params).await.unwrap();
        let asked = json!({"spec": {"delete": true}});
        place.edit::<KiteVirtualMachine>("web", asked).await;
    }
    let about = |words: &'static str| {
        move |m: &KiteVirtualMachine| {
            condition_of(m, DELETING)
                .is_some_and(|c| c.reason == "DeletionBlocked" && c.message.starts_with(words))
        }
    };
    place
        .until(
            "web",
            LONG,
            about("VirtualMachine web is held by the finalizer"),
        )
        .await;
    place.fault("web", None).await;
    let words = "PersistentVolumeClaim web is held by the finalizer example.org/theirs";
    place.until("web", LONG, about(words)).await;
    place
        .edit::<PersistentVolumeClaim>("web", json!({"metadata": {"finalizers": null}}))
        .await;
    place.gone::<KiteVirtualMachine>("web", LONG).await;
    // The foreground one has the garbage collector take what has an owner, which the disk has not.
    let requests = audit.since(start).unwrap();
    let mut once = deleted(&requests, "held-claim");
    once.retain(|resource| *resource != "secrets");
    let all = once.len();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), all, "{requests:#?}");
    assert!(once.contains(&"cdi.kubevirt.io/datavolumes"));
}
