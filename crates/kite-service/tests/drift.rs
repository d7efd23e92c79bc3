//! What is told of a Service, and when.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kite_api::condition::{SERVICE_READY, find};
use kite_api::machine::PowerState;
use kite_api::{KiteVirtualMachine, KiteVirtualMachineStatus};
use kite_render::validate::MachineOwner;
use kite_service::status::clocks::{Clocks, Decision};
use kite_service::status::{standing, tell};
use serde_json::{Value, json};
use tokio::time::Instant;

fn machine() -> KiteVirtualMachine {
    serde_json::from_value(json!({
        "apiVersion": "kite.dev/v1alpha1", "kind": "KiteVirtualMachine",
        "metadata": {"name": "web", "namespace": "alice", "uid": "5e0f3a8e-0000-4000-8000-000000000001", "generation": 1},
        "spec": {"cpu": 1, "memory": "1Gi", "disk": "2Gi", "image": "ubuntu"}
    }))
    .unwrap()
}

fn wanted() -> Service {
    kite_render::machine::service(&MachineOwner::of(&machine()).unwrap())
}

/// The Service as the server keeps it, with fields of its own, and edited by somebody.
fn live(edits: &[(&str, Value)]) -> Service {
    let mut value = serde_json::to_value(wanted()).unwrap();
    value["spec"]["clusterIP"] = json!("10.96.0.7");
    value["spec"]["sessionAffinity"] = json!("None");
    for (pointer, edit) in edits {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = value.pointer_mut(parent).unwrap();
        match parent {
            Value::Array(items) => items.push(edit.clone()),
            parent => parent[key] = edit.clone(),
        }
    }
    serde_json::from_value(value).unwrap()
}

fn told(
    machine: &KiteVirtualMachine,
    live: Option<&Service>,
    answers: bool,
) -> KiteVirtualMachineStatus {
    tell(
        machine,
        &wanted(),
        live,
        answers,
        &Time(Timestamp::UNIX_EPOCH),
    )
}

fn ready(status: &KiteVirtualMachineStatus) -> String {
    let ready = find(&status.conditions, SERVICE_READY).unwrap();
    format!("{} {}", ready.status, ready.reason)
}

// E-1, E-2
#[test]
fn each_drift_that_matters_is_named_in_words_that_do_not_change() {
    let extra = json!({"name": "telnet", "port": 23, "protocol": "TCP"});
    let edits = [
        ("/spec/type", json!("NodePort"), "spec.type"),
        ("/spec/ports/-", extra, "telnet"),
        ("/spec/selector", json!({"app": "mine"}), "spec.selector"),
        ("/metadata/labels", json!({}), "metadata.labels"),
        ("/spec/externalIPs", json!(["192.0.2.1"]), "externalIPs"),
        (
            "/metadata/ownerReferences",
            json!([]),
            "metadata.ownerReferences",
        ),
    ];
    for (pointer, edit, named) in edits {
        let service = live(&[(pointer, edit)]);
        let status = told(&machine(), Some(&service), true);
        assert_eq!(ready(&status), "False Drifted", "{pointer}");
        let message = &find(&status.conditions, SERVICE_READY).unwrap().message;
        assert!(message.contains(named), "{message}");
        assert_eq!(status, told(&machine(), Some(&service), true));
    }
}

// E-1
#[test]
fn what_the_server_and_others_add_is_no_drift() {
    let edits = [
        ("/metadata/labels/team", json!("blue")),
        ("/metadata/annotations/note", json!("mine")),
        ("/spec/ipFamilies", json!(["IPv4"])),
    ];
    assert_eq!(
        ready(&told(&machine(), Some(&live(&edits)), true)),
        "True Reachable"
    );
}

// E-3
#[test]
fn nothing_behind_a_service_is_fine_while_the_machine_is_off() {
    let mut machine = machine();
    assert_eq!(
        ready(&told(&machine, Some(&live(&[])), false)),
        "True NoEndpoints"
    );
    machine.spec.power_state = PowerState::Off;
    assert_eq!(
        ready(&told(&machine, Some(&live(&[])), false)),
        "True NoEndpointsStopped"
    );
    assert_eq!(
        ready(&told(&machine, Some(&live(&[])), true)),
        "True Reachable"
    );
}

// E-4
#[test]
fn endpoints_name_each_port_with_the_addresses_that_lead_there() {
    let status = told(&machine(), Some(&live(&[])), true);
    let ports: Vec<_> = status
        .endpoints
        .iter()
        .map(|e| (e.name.as_str(), e.port))
        .collect();
    assert_eq!(ports, [("ssh", 22), ("http", 80)]);
    let first = &status.endpoints[0];
    assert_eq!(first.address.as_deref(), Some("10.96.0.7"));
    assert_eq!(first.dns_name, "web.alice.svc");
    assert_eq!(first.external_address, None);
    let balancer = json!({"loadBalancer": {"ingress": [{"hostname": "lb.example"}]}});
    let mut value = serde_json::to_value(live(&[])).unwrap();
    value["status"] = balancer;
    let service: Service = serde_json::from_value(value).unwrap();
    let status = told(&machine(), Some(&service), true);
    assert_eq!(
        status.endpoints[1].external_address.as_deref(),
        Some("lb.example")
    );
    assert!(told(&machine(), None, false).endpoints.is_empty());
}

/// Whether it is written after so many seconds, having been seen at none.
fn written_after(
    stands: &KiteVirtualMachineStatus,
    machine: &KiteVirtualMachine,
    told: &KiteVirtualMachineStatus,
    seconds: u64,
) -> bool {
    let (mut clocks, start) = (Clocks::default(), Instant::now());
    let at = |clocks: &mut Clocks, now| clocks.decide(machine, told.clone(), stands, now);
    let first = at(&mut clocks, start);
    matches!(first, Decision::Write(_))
        || matches!(
            at(&mut clocks, start + Duration::from_secs(seconds)),
            Decision::Write(_)
        )
}

// C-5: performance.md counts two writes from creation to running, and one each way after.
#[test]
fn what_is_over_in_a_moment_is_not_told() {
    let (mut machine, nothing) = (machine(), KiteVirtualMachineStatus::default());
    let missing = told(&machine, None, false);
    assert!(
        !written_after(&nothing, &machine, &missing, 9),
        "kite-vm makes it first"
    );
    assert!(written_after(&nothing, &machine, &missing, 10));
    let fresh = told(&machine, Some(&live(&[])), false);
    assert!(written_after(&nothing, &machine, &fresh, 0));
    let reachable = told(&machine, Some(&live(&[])), true);
    assert!(written_after(&fresh, &machine, &reachable, 0));
    machine.status = Some(reachable.clone());
    let drifted = told(
        &machine,
        Some(&live(&[("/spec/type", json!("NodePort"))])),
        true,
    );
    assert!(
        !written_after(&reachable, &machine, &drifted, 1),
        "kite-vm repairs it first"
    );
    assert!(written_after(&reachable, &machine, &drifted, 2));
    machine.spec.power_state = PowerState::Off;
    let stopped = told(&machine, Some(&live(&[])), false);
    assert!(written_after(&reachable, &machine, &stopped, 0));
    machine.spec.power_state = PowerState::On;
    let booting = told(&machine, Some(&live(&[])), false);
    assert!(
        !written_after(&stopped, &machine, &booting, 29),
        "it takes a while to answer"
    );
    assert!(written_after(&stopped, &machine, &booting, 30));
}

// C-5
#[test]
fn a_new_generation_that_changes_nothing_here_is_not_told() {
    let mut machine = machine();
    let reachable = told(&machine, Some(&live(&[])), true);
    machine.status = Some(reachable.clone());
    machine.metadata.generation = Some(2);
    let again = told(&machine, Some(&live(&[])), true);
    assert!(!written_after(&standing(&machine), &machine, &again, 3600));
}
