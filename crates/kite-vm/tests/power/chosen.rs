//! What is chosen or looked up when a machine is made: image, storage class, login.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Secret};
use k8s_openapi::api::storage::v1::StorageClass;
use kite_api::KiteVirtualMachine;
use kite_api::condition::{ACCEPTED, STALLED};
use kite_kubevirt::{DataSource, DataVolume};
use kite_testkit::cluster::{IMAGE, IMAGE_NAMESPACE};
use kite_testkit::install;
use kite_testkit::stand_ins::{PROVISIONER, STORAGE_CLASS};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::common::{LONG, Place, condition_of, uid};

/// Makes or changes a DataSource in the images' namespace, with or without the label.
async fn source(place: &Place, published: Option<&str>, claim: &str) {
    let object = json!({
        "apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataSource",
        "metadata": {
            "name": "secret-image", "namespace": IMAGE_NAMESPACE,
            "labels": {"kite.dev/published": published},
        },
        "spec": {"source": {"pvc": {"name": claim, "namespace": IMAGE_NAMESPACE}}},
    });
    let sources: Api<DataSource> = Api::namespaced(place.client.clone(), IMAGE_NAMESPACE);
    let params = PatchParams::apply("administrator").force();
    sources
        .patch("secret-image", &params, &Patch::Apply(&object))
        .await
        .unwrap();
}

// V-10, F-19: an image that is there and not published gets the same answer as one that is not there
#[tokio::test]
async fn an_image_serves_when_it_is_published_and_ready_and_says_nothing_of_itself_before() {
    let place = Place::new("images").await;
    place.machine("web", json!({"image": "secret-image"})).await;
    let absent = place.says("web", ACCEPTED, "ImageNotFound").await;
    let words = |m: &KiteVirtualMachine| condition_of(m, ACCEPTED).unwrap().message.clone();
    assert!(condition_of(&absent, STALLED).is_some());

    source(&place, Some("false"), "nothing").await;
    place
        .edit::<KiteVirtualMachine>("web", json!({"spec": {"cpu": 2}}))
        .await;
    let hidden = place
        .until("web", LONG, |m: &KiteVirtualMachine| {
            let accepted = condition_of(m, ACCEPTED).unwrap();
            accepted.observed_generation == m.metadata.generation
        })
        .await;
    assert_eq!(words(&hidden), words(&absent));

    source(&place, Some("true"), "nothing").await;
    let waiting = place.says("web", ACCEPTED, "ImageNotReady").await;
    assert!(
        condition_of(&waiting, STALLED).is_none(),
        "it comes by itself"
    );
    source(&place, Some("true"), IMAGE).await;
    place.applied("web").await;
}

// V-11: the class is chosen once, recorded, and another default later changes nothing
#[tokio::test]
async fn a_storage_class_is_chosen_once_and_stays_when_the_default_changes() {
    let place = Place::new("classes").await;
    place.machine("web", json!({"powerState": "Off"})).await;
    let class = |m: &KiteVirtualMachine| m.status.as_ref().unwrap().storage_class_name.clone();
    let machine = place.applied("web").await;
    assert_eq!(class(&machine).as_deref(), Some(STORAGE_CLASS));

    let newer = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": "newer", "annotations": {"storageclass.kubevirt.io/is-default-virt-class": "true"}},
        "provisioner": PROVISIONER,
    });
    install::apply(&place.client, &newer.to_string())
        .await
        .unwrap();
    let old: Api<StorageClass> = Api::all(place.client.clone());
    let demoted = json!({"metadata": {"annotations": {"storageclass.kubevirt.io/is-default-virt-class": "false"}}});
    old.patch(
        STORAGE_CLASS,
        &PatchParams::default(),
        &Patch::Merge(&demoted),
    )
    .await
    .unwrap();
    place.machine("next", json!({"powerState": "Off"})).await;
    let next = place.applied("next").await;
    assert_eq!(class(&next).as_deref(), Some("newer"));
    place
        .machine(
            "own",
            json!({"powerState": "Off", "storageClassName": STORAGE_CLASS}),
        )
        .await;
    let own = place.applied("own").await;
    assert_eq!(class(&own).as_deref(), Some(STORAGE_CLASS));

    place
        .edit::<KiteVirtualMachine>("web", json!({"spec": {"cpu": 2}}))
        .await;
    let machine = place.applied("web").await;
    assert_eq!(class(&machine).as_deref(), Some(STORAGE_CLASS));
    let claim = place
        .until("web", LONG, |_: &PersistentVolumeClaim| true)
        .await;
    assert_eq!(
        claim.spec.unwrap().storage_class_name.as_deref(),
        Some(STORAGE_CLASS)
    );
}

async fn password(place: &Place, salt: &str) -> String {
    let hash = format!("$6${salt}${}", "a".repeat(86));
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": place.namespace},
        "stringData": {"passwordHash": hash},
    });
    install::apply(&place.client, &secret.to_string())
        .await
        .unwrap();
    hash
}

async fn user_data(place: &Place) -> Value {
    let secret = place.api::<Secret>().get("web-cloud-init").await.unwrap();
    let text = String::from_utf8(secret.data.unwrap()["userdata"].0.clone()).unwrap();
    let json = text.strip_prefix("#cloud-config\n").unwrap();
    serde_json::from_str(json).unwrap()
}

// V-12, C-20, C-18: keys and password of the specification, read again before each start
#[tokio::test]
async fn a_login_is_what_the_specification_says_and_is_read_again_before_each_start() {
    let place = Place::new("logins").await;
    let first = password(&place, "first").await;
    let key =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIK0wmN/Cr3JXqmLW7u+g9pTh+wyqDHpSQEIQczXkVx9q alice";
    let login = json!({
        "loginUser": "alice", "sshAuthorizedKeys": [key], "passwordSecretRef": {"name": "login"},
    });
    place.machine("web", login).await;
    place.applied("web").await;
    place.guest("web").await;
    let data = user_data(&place).await.to_string();
    assert!(
        data.contains(&first) && data.contains(key) && data.contains("\"alice\""),
        "{data}"
    );
    let machine = place.api::<KiteVirtualMachine>().get("web").await.unwrap();
    let disk = place.until("web", LONG, |_: &DataVolume| true).await;
    let told = serde_json::to_string(&(&machine, &disk, place.events("web").await)).unwrap();
    assert!(!told.contains(&first), "a password hash is told");

    let second = password(&place, "second").await;
    let before = place.api::<Secret>().get("web-cloud-init").await.unwrap();
    place.switch("web", "Off").await;
    place.off("web").await;
    place.switch("web", "On").await;
    place.guest("web").await;
    let data = user_data(&place).await.to_string();
    assert!(data.contains(&second) && !data.contains(&first), "{data}");
    let after = place.api::<Secret>().get("web-cloud-init").await.unwrap();
    assert_eq!(uid(&after), uid(&before), "it is changed, not made again");
}
