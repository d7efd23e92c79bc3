//! A running machine's surroundings, and failures on request.

use std::collections::BTreeMap;

use kite_testkit::stand_ins::Fault;
use kube::ResourceExt;
use kube::api::{DynamicObject, ListParams};
use serde_json::{Value, json};

use crate::harness::{Stage, conditions, text, until};

pub(crate) fn printable(machine: &DynamicObject) -> &str {
    text(machine, "/status/printableStatus")
}

pub(crate) fn on_claim() -> Value {
    json!({"name": "root", "persistentVolumeClaim": {"claimName": "d"}})
}

async fn running(stage: &Stage) {
    stage.claim("d").await;
    stage
        .make("VirtualMachine", Stage::machine("m", "Always", &on_claim()))
        .await;
    stage
        .wait("VirtualMachine", "m", |vm| {
            conditions(vm)
                .get("Ready")
                .is_some_and(|ready| ready == "True:")
        })
        .await;
}

#[tokio::test]
async fn a_running_machine_has_a_node_addresses_a_launcher_and_endpoints() {
    let stage = Stage::new("endpoints").await;
    stage.make("Service", json!({
        "metadata": {"name": "m"},
        "spec": {"selector": {"kite.dev/vm-uid": "abc"}, "ports": [{"name": "ssh", "port": 22, "protocol": "TCP"}]},
    }))
    .await;
    running(&stage).await;
    let vmi = stage.api("VirtualMachineInstance").get("m").await.unwrap();
    let address = text(&vmi, "/status/interfaces/0/ipAddress").to_owned();
    assert_eq!(text(&vmi, "/status/nodeName"), "stand-in-node-0");
    assert!(address.starts_with("10."), "{address}");
    let pods = stage.api("Pod").list(&ListParams::default()).await.unwrap();
    let requests = &pods.items[0].data["spec"]["containers"][0]["resources"]["requests"];
    assert_eq!(requests["cpu"], "200m");
    let slices = stage.api("EndpointSlice");
    crate::harness::until(|| async {
        let found = slices.list(&ListParams::default()).await.unwrap();
        let ready = found.items.iter().any(|slice| {
            let endpoint = &slice.data["endpoints"][0];
            endpoint["addresses"][0] == json!(address) && endpoint["conditions"]["ready"] == true
        });
        ready.then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_annotation_on_the_namespace_asks_for_a_failure_from_outside() {
    let stage = Stage::new("asked").await;
    running(&stage).await;
    let note = |value: &str| {
        let notes = BTreeMap::from([("stand-in.kite.dev/m".to_owned(), value.to_owned())]);
        json!({"metadata": {"annotations": notes}})
    };
    stage.merge("Namespace", "asked", note("paused")).await;
    stage
        .wait("VirtualMachine", "m", |vm| printable(vm) == "Paused")
        .await;
    stage
        .merge("Namespace", "asked", note("printable-status=Nonsense"))
        .await;
    stage
        .wait("VirtualMachine", "m", |vm| printable(vm) == "Nonsense")
        .await;
    let notes = note("agent-connected");
    stage.merge("Namespace", "asked", notes).await;
    let agent = |vm: &DynamicObject| conditions(vm).contains_key("AgentConnected");
    stage.wait("VirtualMachine", "m", agent).await;
    stage
        .merge("Namespace", "asked", note("agent-connected,virtctl-stop"))
        .await;
    let machine = stage
        .wait("VirtualMachine", "m", |vm| printable(vm) == "Stopped")
        .await;
    assert_eq!(text(&machine, "/spec/runStrategy"), "Halted");
}

#[tokio::test]
async fn a_migration_moves_the_guest_to_the_other_node() {
    let stage = Stage::new("migrates").await;
    running(&stage).await;
    let machines = stage.record("VirtualMachine").await;
    stage.behaviour.set("migrates", "m", Fault::Migrate);
    stage
        .wait("VirtualMachineInstance", "m", |vmi| {
            text(vmi, "/status/nodeName") == "stand-in-node-1"
        })
        .await;
    // The recorder may be behind the wait above.
    until(|| async {
        let words = machines.since(0, "m", |vm| Some(printable(vm).to_owned()));
        words
            .ends_with(&["Migrating".to_owned(), "Running".to_owned()])
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_lost_node_holds_a_machine_until_it_is_back() {
    let stage = Stage::new("lost").await;
    running(&stage).await;
    stage.behaviour.set("lost", "m", Fault::NodeLost);
    stage
        .wait("VirtualMachine", "m", |vm| printable(vm) == "Unknown")
        .await;
    stage.delete("VirtualMachine", "m").await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    stage
        .wait("VirtualMachine", "m", |vm| printable(vm) == "Terminating")
        .await;
    stage.behaviour.clear("lost", "m", &Fault::NodeLost);
    stage.wait_gone("VirtualMachine", "m").await;
}

#[tokio::test]
async fn a_machine_that_is_not_seen_has_nothing_but_the_default() {
    let stage = Stage::new("unseen").await;
    stage.behaviour.set("unseen", "m", Fault::Unseen);
    stage
        .make("VirtualMachine", Stage::machine("m", "Always", &on_claim()))
        .await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let machine = stage.api("VirtualMachine").get("m").await.unwrap();
    assert!(machine.finalizers().is_empty());
    assert!(conditions(&machine).is_empty());
}

#[tokio::test]
async fn a_namespace_with_a_running_machine_goes() {
    let stage = Stage::new("goes").await;
    running(&stage).await;
    stage.delete("Namespace", "goes").await;
    stage.wait_gone("Namespace", "goes").await;
}

#[tokio::test]
async fn a_clone_can_hang_restart_and_fail_and_goes_on_when_it_may() {
    let stage = Stage::new("clones").await;
    let phase = |disk: &DynamicObject| text(disk, "/status/phase").to_owned();
    stage.behaviour.set("clones", "m", Fault::CloneRestarts);
    stage.make("DataVolume", Stage::disk("m", "golden")).await;
    let restarted = |disk: &DynamicObject| disk.data["status"]["restartCount"].as_i64() >= Some(3);
    let disk = stage.wait("DataVolume", "m", restarted).await;
    assert_eq!(conditions(&disk)["Running"], "False:Error");
    stage.behaviour.set("clones", "m", Fault::CloneFailed);
    stage
        .wait("DataVolume", "m", |disk| phase(disk) == "Failed")
        .await;
    stage.behaviour.set("clones", "m", Fault::CloneStuck);
    stage.behaviour.clear("clones", "m", &Fault::CloneFailed);
    stage.behaviour.clear("clones", "m", &Fault::CloneRestarts);
    let disk = stage
        .wait("DataVolume", "m", |disk| phase(disk) == "CloneInProgress")
        .await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let later = stage.api("DataVolume").get("m").await.unwrap();
    assert_eq!(
        later.metadata.resource_version,
        disk.metadata.resource_version
    );
    stage.behaviour.clear("clones", "m", &Fault::CloneStuck);
    stage
        .wait("DataVolume", "m", |disk| phase(disk) == "Succeeded")
        .await;
}

#[tokio::test]
async fn a_finalizer_that_stays_holds_a_machine_until_it_may_go() {
    let stage = Stage::new("stays").await;
    stage.behaviour.set("stays", "m", Fault::VmFinalizerStays);
    stage.behaviour.set("stays", "m", Fault::VmiFinalizerStays);
    running(&stage).await;
    stage.delete("VirtualMachine", "m").await;
    let off = |vmi: &DynamicObject| text(vmi, "/status/phase") == "Succeeded";
    stage.wait("VirtualMachineInstance", "m", off).await;
    stage
        .behaviour
        .clear("stays", "m", &Fault::VmiFinalizerStays);
    stage.wait_gone("VirtualMachineInstance", "m").await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    stage.wait("VirtualMachine", "m", |_| true).await;
    stage.behaviour.clear_all("stays", "m");
    stage.wait_gone("VirtualMachine", "m").await;
}

/// Every word of KubeVirt's, and one that it does not have yet.
const PRINTABLE: [&str; 18] = [
    "Terminating",
    "Stopping",
    "Migrating",
    "Paused",
    "Running",
    "ErrorPvcNotFound",
    "DataVolumeError",
    "ErrorUnschedulable",
    "Provisioning",
    "WaitingForVolumeBinding",
    "ErrImagePull",
    "ImagePullBackOff",
    "Starting",
    "CrashLoopBackOff",
    "Stopped",
    "WaitingForReceiver",
    "Unknown",
    "Levitating",
];

/// Phases of CDI's on the way of every kind of import, clone and upload, and one that it does not have yet.
const PHASES: [&str; 23] = [
    "Pending",
    "PVCBound",
    "ImportScheduled",
    "ImportInProgress",
    "CloneScheduled",
    "CloneInProgress",
    "SnapshotForSmartCloneInProgress",
    "CloneFromSnapshotSourceInProgress",
    "SmartClonePVCInProgress",
    "CSICloneInProgress",
    "ExpansionInProgress",
    "NamespaceTransferInProgress",
    "PrepClaimInProgress",
    "RebindInProgress",
    "UploadScheduled",
    "UploadReady",
    "WaitForFirstConsumer",
    "PendingPopulation",
    "Succeeded",
    "Failed",
    "Unknown",
    "Paused",
    "Teleporting",
];

#[tokio::test]
async fn every_word_of_a_machine_and_every_phase_of_a_disk_can_be_had() {
    let stage = Stage::new("words").await;
    stage
        .make("VirtualMachine", Stage::machine("m", "Halted", &on_claim()))
        .await;
    stage.make("DataVolume", Stage::disk("d", "golden")).await;
    for word in PRINTABLE {
        let fault = Fault::PrintableStatus(word.to_owned());
        stage.behaviour.set("words", "m", fault.clone());
        stage
            .wait("VirtualMachine", "m", |vm| printable(vm) == word)
            .await;
        stage.behaviour.clear("words", "m", &fault);
    }
    for phase in PHASES {
        let fault = Fault::DiskPhase(phase.to_owned());
        stage.behaviour.set("words", "d", fault.clone());
        let is = |disk: &DynamicObject| text(disk, "/status/phase") == phase;
        stage.wait("DataVolume", "d", is).await;
        stage.behaviour.clear("words", "d", &fault);
    }
    stage
        .wait("DataVolume", "d", |disk| {
            text(disk, "/status/phase") == "Succeeded"
        })
        .await;
}

#[tokio::test]
async fn a_finalizer_that_stays_holds_a_disk_until_it_may_go() {
    let stage = Stage::new("disk-stays").await;
    stage
        .behaviour
        .set("disk-stays", "d", Fault::DiskFinalizerStays);
    stage.make("DataVolume", Stage::disk("d", "golden")).await;
    stage
        .wait("DataVolume", "d", |disk| !disk.finalizers().is_empty())
        .await;
    stage.delete("DataVolume", "d").await;
    stage
        .wait("DataVolume", "d", |disk| {
            disk.metadata.deletion_timestamp.is_some()
        })
        .await;
    stage.behaviour.clear_all("disk-stays", "d");
    stage.wait_gone("DataVolume", "d").await;
}

#[tokio::test]
async fn a_webhook_that_fills_in_more_leaves_what_was_asked_for() {
    let stage = Stage::new("newer").await;
    let made = stage
        .make("VirtualMachine", Stage::machine("m", "Halted", &on_claim()))
        .await;
    let strategy = "/spec/template/spec/evictionStrategy";
    assert_eq!(text(&made, strategy), "");
    stage.behaviour.set("newer", "m", Fault::WebhookAdds);
    let patch = json!({"metadata": {"labels": {"touched": "yes"}}});
    stage.merge("VirtualMachine", "m", patch).await;
    let found = stage
        .wait("VirtualMachine", "m", |vm| {
            text(vm, strategy) == "LiveMigrate"
        })
        .await;
    let domain = |vm: &DynamicObject| vm.data["spec"]["template"]["spec"]["domain"].clone();
    assert_eq!(
        domain(&found)["cpu"]["sockets"],
        domain(&made)["cpu"]["sockets"]
    );
    assert_eq!(domain(&found)["cpu"]["model"], "host-model");
}
