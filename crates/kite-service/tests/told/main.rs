//! What is told of a Service, and when.

#![allow(clippy::unwrap_used, clippy::panic)]

mod drift;
mod reach;
mod times;
mod total;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kite_api::condition::{SERVICE_READY, find};
use kite_api::{KiteVirtualMachine, KiteVirtualMachineStatus};
use kite_render::validate::MachineOwner;
use kite_service::status::tell;
use serde_json::{Value, json};

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
