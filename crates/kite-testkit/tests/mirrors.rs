//! Disks that grow, claims and Services that somebody meddles with, with all six
//! controllers at work.

use std::time::Instant;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Service};
use kite_api::KiteVirtualMachine;
use kite_api::condition::{DISK_READY, RESOURCES_APPLIED};
use kite_kubevirt::{DataVolume, VirtualMachine};
use kite_testkit::cluster::shared_cluster;
use kite_testkit::tenant::{LONG, REPAIR, Tenant, condition_of, is_ready, message_of};
use kube::ResourceExt;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};

async fn tenant(name: &str) -> Tenant<'static> {
    let tenant = Tenant::new(shared_cluster().await, name).await;
    tenant.create().await;
    tenant
}

fn reason<'a>(machine: &'a KiteVirtualMachine, type_: &str) -> &'a str {
    condition_of(machine, type_).map_or("", |c| c.reason.as_str())
}

// D-6, V-13, C-16
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_grows_under_a_running_machine_and_says_what_is_left_to_do_in_the_guest() {
    let tenant = tenant("grows").await;
    tenant.machine("web", json!({"disk": "2Gi"})).await;
    tenant.ready("web").await;
    tenant.fault("web", Some("resize-waits")).await;
    tenant.machine("web", json!({"disk": "4Gi"})).await;
    let hinted = |m: &KiteVirtualMachine| {
        reason(m, DISK_READY) == "Expanding"
            && message_of(m, DISK_READY).contains("the guest's own partition")
    };
    let growing: KiteVirtualMachine = tenant.until("web", LONG, hinted).await;
    assert_eq!(condition_of(&growing, DISK_READY).unwrap().status, "True");
    let claim: PersistentVolumeClaim = tenant.api().get("web").await.unwrap();
    let asked = claim.spec.unwrap().resources.unwrap().requests.unwrap();
    let told = message_of(&growing, DISK_READY);
    assert!(told.contains(&asked["storage"].0), "{told}");
    tenant.ready("web").await;
    tenant.fault("web", None).await;
    let grown = tenant.says("web", DISK_READY, "Succeeded").await;
    assert!(is_ready(&grown));
    let note = tenant.event("web", "Expanded").await;
    assert!(note.contains("growpart"), "{note}");
}

/// Somebody makes a claim of a machine's name, with these marks.
async fn plant(tenant: &Tenant<'_>, name: &str, marks: &Value) {
    let mut claim = json!({
        "metadata": marks,
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    claim["metadata"]["name"] = json!(name);
    let claim: PersistentVolumeClaim = serde_json::from_value(claim).unwrap();
    tenant
        .api()
        .create(&PostParams::default(), &claim)
        .await
        .unwrap();
}

/// Removes it; nobody here takes off the mark that protects a claim in use.
async fn unplant(tenant: &Tenant<'_>, name: &str) {
    let free = json!({"metadata": {"finalizers": null}});
    let _: PersistentVolumeClaim = tenant.edit(name, free).await;
    tenant
        .api::<PersistentVolumeClaim>()
        .delete(name, &DeleteParams::default())
        .await
        .unwrap();
}

// D-7, VM6, C-7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_does_not_boot_a_claim_that_somebody_planted_before_its_disk_or_during() {
    let tenant = tenant("planted").await;
    // Before: CDI itself refuses the disk.
    plant(&tenant, "early", &json!({})).await;
    tenant.machine("early", json!({})).await;
    // During: the DataVolume is there and CDI has not looked at it yet.
    tenant.fault("late", Some("disk-unseen")).await;
    let machine = tenant.machine("late", json!({})).await;
    tenant
        .until("late", LONG, |d: &DataVolume| d.metadata.uid.is_some())
        .await;
    let marks = json!({
        "labels": {"kite.dev/managed-by": "kite-controller", "kite.dev/vm-name": "late", "kite.dev/vm-uid": machine.uid()},
        "annotations": {"kite.dev/vm-uid": machine.uid()},
    });
    plant(&tenant, "late", &marks).await;
    for name in ["early", "late"] {
        tenant.says(name, RESOURCES_APPLIED, "NameConflict").await;
        let told = tenant.says(name, DISK_READY, "NameConflict").await;
        let words = message_of(&told, DISK_READY);
        assert!(
            words.contains(&format!("PersistentVolumeClaim {name}")),
            "{words}"
        );
        let status = told.status.unwrap();
        assert_eq!(status.claim_uid, None, "{name}");
        let vm = tenant.api::<VirtualMachine>().get_opt(name).await.unwrap();
        assert!(vm.is_none(), "{name} boots what is not its own");
        unplant(&tenant, name).await;
    }
    tenant.fault("late", None).await;
    for name in ["early", "late"] {
        tenant.ready(name).await;
        let claim: PersistentVolumeClaim = tenant.api().get(name).await.unwrap();
        let owners = claim.owner_references();
        assert!(owners.iter().any(|o| o.kind == "DataVolume"), "{name}");
    }
}

// E-1, E-2, F-1, F-26, C-9, TS4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_drift_of_a_running_machines_service_is_repaired_and_no_condition_goes_to_and_fro() {
    let tenant = tenant("drifts").await;
    tenant.machine("web", json!({})).await;
    tenant.ready("web").await;
    let wanted: Service = tenant.api().get("web").await.unwrap();
    let ports = json!(wanted.spec.as_ref().unwrap().ports);
    let (mut moved, mut more) = (ports.clone(), ports.clone());
    moved[0]["targetPort"] = json!(2222);
    let extra = json!({"name": "telnet", "port": 23, "targetPort": 23, "protocol": "TCP"});
    more.as_array_mut().unwrap().push(extra);
    let before = tenant.ready("web").await;
    for edit in [
        json!({"spec": {"type": "NodePort"}}),
        json!({"spec": {"ports": moved}}),
        json!({"spec": {"ports": [ports[0]]}}),
        json!({"spec": {"ports": more}}),
        json!({"spec": {"selector": {"kite.dev/vm-uid": "other"}}}),
        json!({"spec": {"selector": {"app": "mine"}}}),
        json!({"spec": {"externalIPs": ["192.0.2.1"]}}),
        json!({"metadata": {"labels": {"kite.dev/vm-name": null}}}),
    ] {
        let began = Instant::now();
        let _: Service = tenant.edit("web", edit.clone()).await;
        let as_wanted = |s: &Service| {
            let (one, other) = (s.spec.as_ref().unwrap(), wanted.spec.as_ref().unwrap());
            let port = |s: &k8s_openapi::api::core::v1::ServiceSpec| {
                let ports = s.ports.iter().flatten();
                ports
                    .map(|p| (p.port, p.name.clone(), p.target_port.clone()))
                    .collect::<Vec<_>>()
            };
            one.type_ == other.type_
                && port(one) == port(other)
                && one.selector == other.selector
                && one.external_ips == other.external_ips
                && s.metadata.labels == wanted.metadata.labels
        };
        tenant.until("web", LONG, as_wanted).await;
        assert!(began.elapsed() < REPAIR, "{edit}: {:?}", began.elapsed());
    }
    // Repaired before it was worth telling: what was told stands as it stood.
    let after = tenant.ready("web").await;
    let said = |m: &KiteVirtualMachine| {
        let conditions = m.status.clone().unwrap().conditions;
        let mut said: Vec<_> = conditions
            .into_iter()
            .map(|c| {
                (
                    c.type_,
                    c.status,
                    c.reason,
                    c.message,
                    c.last_transition_time,
                )
            })
            .collect();
        said.sort();
        said
    };
    assert_eq!(said(&before), said(&after));
    one_writer_each(&after);
}

/// Each condition of a machine has one field manager.
fn one_writer_each(machine: &KiteVirtualMachine) {
    let mut owners = std::collections::BTreeMap::<String, Vec<String>>::new();
    for entry in machine.managed_fields() {
        let fields = serde_json::to_value(&entry.fields_v1).unwrap();
        let conditions = fields["f:status"]["f:conditions"].as_object();
        for (key, _) in conditions.into_iter().flatten() {
            if key.starts_with("k:") {
                let manager = entry.manager.clone().unwrap();
                owners.entry(key.clone()).or_default().push(manager);
            }
        }
    }
    assert!(owners.len() >= 6, "{owners:?}");
    for (condition, managers) in owners {
        assert_eq!(managers.len(), 1, "{condition}: {managers:?}");
    }
}
