//! What keeps a machine or a disk out: webhooks, rights, quotas, a missing Secret.

use kite_testkit::stand_ins::Fault;
use kube::ResourceExt;
use kube::api::{DynamicObject, PatchParams};
use serde_json::json;

use crate::faults::{on_claim, printable};
use crate::harness::{IMAGES, Stage, conditions, plane, text};

#[tokio::test]
async fn the_webhooks_fill_in_and_refuse_with_the_real_words() {
    let stage = Stage::new("admission").await;
    let made = stage
        .make("VirtualMachine", Stage::machine("m", "Halted", &on_claim()))
        .await;
    assert_eq!(text(&made, "/spec/template/spec/architecture"), "amd64");
    assert!(!text(&made, "/spec/template/spec/domain/firmware/uuid").is_empty());
    let mut both = Stage::machine("both", "Always", &on_claim());
    both["spec"]["running"] = json!(true);
    let refused = stage
        .try_make("VirtualMachine", both)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("virtualmachine-validator.kubevirt.io"),
        "{refused}"
    );
    assert!(refused.contains("mutually exclusive"), "{refused}");

    stage.make("DataVolume", Stage::disk("m", "golden")).await;
    let edit = json!({"spec": {"storage": {"resources": {"requests": {"storage": "4Gi"}}}}});
    let api = stage.api("DataVolume");
    let patch = kube::api::Patch::Merge(&edit);
    let refused = api
        .patch("m", &PatchParams::default(), &patch)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("Cannot update DataVolume Spec"),
        "{refused}"
    );
    stage.claim("planted").await;
    let refused = stage
        .try_make("DataVolume", Stage::disk("planted", "golden"))
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("already exists"), "{refused}");
    stage.behaviour.set(
        "admission",
        "unwanted",
        Fault::Refuse("not today".to_owned()),
    );
    let refused = stage
        .try_make(
            "VirtualMachine",
            Stage::machine("unwanted", "Always", &on_claim()),
        )
        .await;
    assert!(refused.unwrap_err().to_string().contains("not today"));
}

#[tokio::test]
async fn cloning_needs_a_right_in_the_namespace_of_the_source() {
    let stage = Stage::new("rights").await;
    let (plane, _) = plane().await;
    let identity = plane.identity("rights", "cloner").await.unwrap();
    let role = [
        "-n",
        "rights",
        "create",
        "role",
        "disks",
        "--verb=create",
        "--resource=datavolumes.cdi.kubevirt.io",
    ];
    let bind = [
        "-n",
        "rights",
        "create",
        "rolebinding",
        "disks",
        "--role=disks",
        "--serviceaccount=rights:cloner",
    ];
    for line in [&role[..], &bind[..]] {
        plane.kubectl(line).await.unwrap().ok().unwrap();
    }
    let limited = Stage {
        client: identity.client().await.unwrap(),
        ..stage
    };
    let refused = limited
        .try_make("DataVolume", Stage::disk("m", "golden"))
        .await
        .unwrap_err()
        .to_string();
    let words = "Authorization failed, message is: User system:serviceaccount:rights:cloner has insufficient permissions in clone source namespace kite-images";
    assert!(refused.contains(words), "{refused}");
    let role = [
        "-n",
        IMAGES,
        "create",
        "role",
        "clone",
        "--verb=create",
        "--resource=datavolumes.cdi.kubevirt.io/source",
    ];
    let bind = [
        "-n",
        IMAGES,
        "create",
        "rolebinding",
        "clone",
        "--role=clone",
        "--serviceaccount=rights:cloner",
    ];
    for line in [&role[..], &bind[..]] {
        plane.kubectl(line).await.unwrap().ok().unwrap();
    }
    let disk = limited.make("DataVolume", Stage::disk("m", "golden")).await;
    assert!(
        disk.annotations()
            .contains_key("cdi.kubevirt.io/storage.clone.token")
    );
}

#[tokio::test]
async fn a_webhook_without_an_answer_closes_the_door() {
    let stage = Stage::new("silent").await;
    stage.behaviour.set("silent", "m", Fault::NoAnswer);
    let machine = Stage::machine("m", "Always", &on_claim());
    let refused = stage
        .try_make("VirtualMachine", machine.clone())
        .await
        .unwrap_err();
    assert!(
        refused.to_string().contains("failed calling webhook"),
        "{refused}"
    );
    stage.behaviour.clear("silent", "m", &Fault::NoAnswer);
    stage.make("VirtualMachine", machine).await;
}

#[tokio::test]
async fn a_quota_on_memory_keeps_the_launcher_out_and_heals() {
    let stage = Stage::new("launcher-quota").await;
    stage.quota(json!({"requests.memory": "1Gi"})).await;
    stage.claim("d").await;
    stage
        .make("VirtualMachine", Stage::machine("m", "Always", &on_claim()))
        .await;
    let refused = |vm: &DynamicObject| {
        conditions(vm)
            .get("Synchronized")
            .is_some_and(|said| said == "False:FailedCreate")
    };
    let machine = stage.wait("VirtualMachine", "m", refused).await;
    assert!(
        machine.data["status"]
            .to_string()
            .contains("exceeded quota: q"),
        "{:?}",
        machine.data["status"]
    );
    assert_eq!(printable(&machine), "Starting");
    stage
        .merge(
            "ResourceQuota",
            "q",
            json!({"spec": {"hard": {"requests.memory": "2Gi"}}}),
        )
        .await;
    stage
        .wait("VirtualMachine", "m", |vm| printable(vm) == "Running")
        .await;
}

#[tokio::test]
async fn a_missing_secret_keeps_a_machine_from_starting() {
    let stage = Stage::new("secrets").await;
    stage.claim("d").await;
    let mut machine = Stage::machine("m", "Always", &on_claim());
    let spec = &mut machine["spec"]["template"]["spec"];
    let init = json!({"name": "init", "cloudInitNoCloud": {"secretRef": {"name": "m-cloud-init"}}});
    spec["volumes"].as_array_mut().unwrap().push(init);
    let devices = &mut spec["domain"]["devices"];
    devices["disks"]
        .as_array_mut()
        .unwrap()
        .push(json!({"name": "init"}));
    stage.make("VirtualMachine", machine).await;
    stage
        .wait("VirtualMachine", "m", |vm| printable(vm) == "Starting")
        .await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let machine = stage.api("VirtualMachine").get("m").await.unwrap();
    assert_eq!(printable(&machine), "Starting");
    stage
        .make("Secret", json!({"metadata": {"name": "m-cloud-init"}}))
        .await;
    stage
        .wait("VirtualMachine", "m", |vm| printable(vm) == "Running")
        .await;
}
