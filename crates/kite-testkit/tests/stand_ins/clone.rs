//! Clones against the recording of the real cdi-controller.

use std::collections::BTreeSet;

use kite_testkit::stand_ins::{self, Fault};
use kube::ResourceExt;
use kube::api::{DynamicObject, PostParams};
use serde_json::json;

use crate::harness::{IMAGES, Stage, conditions, text};
use crate::recorded::Recording;

fn phase(disk: &DynamicObject) -> &str {
    text(disk, "/status/phase")
}

/// The phases that a step of the recording went through.
fn recorded_phases(step: &str) -> Vec<String> {
    let recording = Recording::read("clone.jsonl");
    let lines = recording
        .of("DV")
        .filter(|line| line["step"].as_str().unwrap().starts_with(step));
    let mut phases: Vec<String> = lines
        .map(|line| line["status"]["phase"].as_str().unwrap_or("").to_owned())
        .collect();
    phases.dedup();
    phases
}

/// Every condition that a DataVolume had in the recording.
fn recorded_conditions() -> BTreeSet<String> {
    let recording = Recording::read("clone.jsonl");
    let all = recording.of("DV").flat_map(|line| {
        line["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten()
    });
    all.map(|condition| {
        let field = |name: &str| condition[name].as_str().unwrap_or("");
        format!("{}={}:{}", field("type"), field("status"), field("reason"))
    })
    .collect()
}

fn said(disk: &DynamicObject) -> Vec<String> {
    conditions(disk)
        .iter()
        .map(|(kind, said)| format!("{kind}={said}"))
        .collect()
}

#[tokio::test]
async fn a_clone_goes_through_the_recorded_phases_and_conditions() {
    let stage = Stage::new("clone").await;
    let disks = stage.record("DataVolume").await;
    let claims = stage.record("PersistentVolumeClaim").await;
    stage.make("DataVolume", Stage::disk("m", "golden")).await;
    disks
        .wait("m", |disk| {
            phase(disk) == "Succeeded" && conditions(disk)["Bound"] == "True:Bound"
        })
        .await;

    let mut phases = disks.since(0, "m", |disk| Some(phase(disk).to_owned()));
    // Kite's own script waits in Pending; the recorded populator passes it by.
    phases.retain(|phase| phase != "Pending");
    let mut recorded = recorded_phases("7 ");
    recorded.extend(recorded_phases("8 "));
    recorded.dedup();
    assert_eq!(phases, recorded);
    let known = recorded_conditions();
    for states in disks.since(0, "m", |disk| Some(said(disk))) {
        assert!(
            states.iter().all(|said| known.contains(said)),
            "never recorded: {states:?}"
        );
    }
    let progress = disks.since(0, "m", |disk| {
        Some(text(disk, "/status/progress").to_owned())
    });
    assert_eq!(progress[..3], ["", "N/A", "5.00%"].map(ToOwned::to_owned));
    assert_eq!(progress.len(), 22, "twenty ticks: {progress:?}");
    assert_eq!(progress.last().unwrap(), "100.0%");
    claims_are_as_recorded(&stage, &claims).await;
}

async fn claims_are_as_recorded(stage: &Stage, claims: &crate::harness::Recorder) {
    let disk = stage.api("DataVolume").get("m").await.unwrap();
    let claim = stage.api("PersistentVolumeClaim").get("m").await.unwrap();
    let owner = &claim.owner_references()[0];
    assert_eq!(
        (owner.uid.as_str(), owner.controller),
        (disk.metadata.uid.as_deref().unwrap(), Some(true))
    );
    assert_eq!(
        text(&claim, "/spec/resources/requests/storage"),
        "2276332667"
    );
    assert_eq!(claim.labels()["kite.dev/vm-uid"], "abc");
    assert_eq!(claim.annotations()["kite.dev/vm-uid"], "abc");
    assert_eq!(text(&claim, "/status/phase"), "Bound");

    let temporary = format!("tmp-pvc-{}", claim.metadata.uid.clone().unwrap());
    let lost = |claim: &DynamicObject| text(claim, "/status/phase") == "Lost";
    claims.wait(&temporary, lost).await;
    let labels = claims.since(0, &temporary, |claim| {
        assert!(claim.owner_references().is_empty());
        Some((
            claim.labels()["kite.dev/vm-uid"].clone(),
            text(claim, "/spec/resources/requests/storage").to_owned(),
        ))
    });
    assert_eq!(labels, [("abc".to_owned(), "2276332667".to_owned())]);
    let phases = claims.since(0, &temporary, |claim| {
        Some(text(claim, "/status/phase").to_owned())
    });
    assert_eq!(phases, ["Pending", "Bound", "Lost"].map(ToOwned::to_owned));
    stage.wait_gone("PersistentVolumeClaim", &temporary).await;
}

#[tokio::test]
async fn a_data_source_that_is_absent_leaves_the_status_empty_until_it_appears() {
    let stage = Stage::new("absent-source").await;
    stage.make("DataVolume", Stage::disk("m", "late")).await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let disk = stage.api("DataVolume").get("m").await.unwrap();
    assert!(
        disk.data
            .get("status")
            .is_none_or(|status| status == &json!({})),
        "{:?}",
        disk.data
    );
    stand_ins::publish_image(&stage.client, IMAGES, "late", "1Gi")
        .await
        .unwrap();
    stage
        .wait("DataVolume", "m", |disk| phase(disk) == "CloneInProgress")
        .await;
}

#[tokio::test]
async fn a_source_claim_that_is_absent_is_told_in_the_recorded_words() {
    let stage = Stage::new("absent-claim").await;
    let source = stage.api_in("DataSource", IMAGES);
    let spec = json!({"source": {"pvc": {"name": "absent", "namespace": IMAGES}}});
    let hollow = json!({"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataSource",
        "metadata": {"name": "hollow"}, "spec": spec});
    let hollow = serde_json::from_value(hollow).unwrap();
    source
        .create(&PostParams::default(), &hollow)
        .await
        .unwrap();
    stage.make("DataVolume", Stage::disk("m", "hollow")).await;
    let disk = stage
        .wait("DataVolume", "m", |disk| !conditions(disk).is_empty())
        .await;
    assert_eq!(phase(&disk), "");
    assert_eq!(
        said(&disk),
        [
            "Bound=False:CloneWithoutSource",
            "Ready=False:CloneWithoutSource",
            "Running=False:"
        ]
    );
    assert!(
        disk.data["status"]
            .to_string()
            .contains("The source pvc absent doesn't exist")
    );
    let source = source.get("hollow").await.unwrap();
    assert_eq!(conditions(&source)["Ready"], "False:NotFound");
}

#[tokio::test]
async fn a_quota_stops_a_clone_in_the_recorded_words_and_lifting_it_heals() {
    let stage = Stage::new("clone-quota").await;
    stage.quota(json!({"persistentvolumeclaims": "0"})).await;
    stage.make("DataVolume", Stage::disk("m", "golden")).await;
    let disk = stage
        .wait("DataVolume", "m", |disk| phase(disk) == "Pending")
        .await;
    assert_eq!(conditions(&disk)["Bound"], "False:ErrExceededQuota");
    assert_eq!(conditions(&disk)["Ready"], "False:ErrExceededQuota");
    assert!(disk.data["status"].to_string().contains("exceeded quota"));

    stage
        .merge(
            "ResourceQuota",
            "q",
            json!({"spec": {"hard": {"persistentvolumeclaims": "1"}}}),
        )
        .await;
    let disk = stage
        .wait("DataVolume", "m", |disk| {
            conditions(disk)
                .get("Running")
                .is_some_and(|said| said == "False:Error")
        })
        .await;
    assert_eq!(phase(&disk), "CloneScheduled");
    assert!(disk.data["status"].to_string().contains("exceeded quota"));

    stage
        .merge(
            "ResourceQuota",
            "q",
            json!({"spec": {"hard": {"persistentvolumeclaims": "2"}}}),
        )
        .await;
    stage
        .wait("DataVolume", "m", |disk| phase(disk) == "Succeeded")
        .await;
}

#[tokio::test]
async fn a_volume_that_never_binds_reads_as_recorded_for_ever() {
    let stage = Stage::new("never-bound").await;
    stage.behaviour.set("never-bound", "m", Fault::NeverBound);
    stage.make("DataVolume", Stage::disk("m", "golden")).await;
    let failed = |disk: &DynamicObject| {
        conditions(disk)
            .get("Running")
            .is_some_and(|said| said == "False:Error")
    };
    let disk = stage.wait("DataVolume", "m", failed).await;
    assert_eq!(phase(&disk), "CloneInProgress");
    stage
        .behaviour
        .clear("never-bound", "m", &Fault::NeverBound);
    stage
        .wait("DataVolume", "m", |disk| phase(disk) == "Succeeded")
        .await;
}

#[tokio::test]
async fn a_data_volume_deleted_midway_takes_both_claims_with_it() {
    let stage = Stage::new("midway").await;
    stage.make("DataVolume", Stage::disk("m", "golden")).await;
    stage
        .wait("DataVolume", "m", |disk| phase(disk) == "CloneInProgress")
        .await;
    let claim = stage.api("PersistentVolumeClaim").get("m").await.unwrap();
    stage.delete("DataVolume", "m").await;
    // The server's collector learns of new kinds every half minute only.
    stage.wait_gone("PersistentVolumeClaim", "m").await;
    let temporary = format!("tmp-pvc-{}", claim.metadata.uid.unwrap());
    stage.wait_gone("PersistentVolumeClaim", &temporary).await;
}

#[tokio::test]
async fn a_claim_grows_some_time_after_it_is_asked_to() {
    let stage = Stage::new("grows").await;
    stage.claim("m").await;
    stage
        .wait("PersistentVolumeClaim", "m", |claim| {
            text(claim, "/status/phase") == "Bound"
        })
        .await;
    let larger = json!({"spec": {"resources": {"requests": {"storage": "3Gi"}}}});
    stage.merge("PersistentVolumeClaim", "m", larger).await;
    stage
        .wait("PersistentVolumeClaim", "m", |claim| {
            text(claim, "/status/capacity/storage") == "3Gi"
        })
        .await;
}

#[tokio::test]
async fn storage_that_waits_for_a_consumer_is_filled_once_a_machine_stands_on_it() {
    let stage = Stage::new("consumer").await;
    stage
        .behaviour
        .set("consumer", "m", Fault::WaitForFirstConsumer);
    let mut disk = Stage::disk("m", "golden");
    disk["metadata"]["annotations"] = json!({});
    stage.make("DataVolume", disk).await;
    stage
        .wait("DataVolume", "m", |disk| phase(disk) == "PendingPopulation")
        .await;
    let volume = json!({"name": "root", "dataVolume": {"name": "m"}});
    stage
        .make("VirtualMachine", Stage::machine("m", "Always", &volume))
        .await;
    stage
        .wait("DataVolume", "m", |disk| phase(disk) == "Succeeded")
        .await;
    stage
        .wait("VirtualMachine", "m", |vm| {
            text(vm, "/status/printableStatus") == "Running"
        })
        .await;
}
