//! What a pass may have seen, built up from a fresh machine.
#![allow(dead_code, clippy::unwrap_used, missing_docs, unreachable_pub)]

use std::sync::Arc;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::api::storage::v1::StorageClass;
use kite_api::{KiteVirtualMachine, KiteVirtualMachineStatus};
use kite_kubevirt::read::{DataSource, DataVolume, VirtualMachine};
use kite_render::validate::{MachineOwner, ValidPlatform};
use kite_runtime::Key;
use kite_vm::observe::{NamespaceView, Observed, UsersView};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub fn read<K: DeserializeOwned>(value: Value) -> Arc<K> {
    Arc::new(serde_json::from_value(value).unwrap())
}

/// A machine in a prepared namespace, with a published image and nothing made yet.
pub fn fresh() -> Observed {
    let machine: Arc<KiteVirtualMachine> = read(json!({
        "apiVersion": "kite.dev/v1alpha1", "kind": "KiteVirtualMachine",
        "metadata": {"name": "web", "namespace": "alice", "uid": "u-1", "generation": 1},
        "spec": {"cpu": 1, "memory": "1Gi", "disk": "2Gi", "image": "ubuntu"},
    }));
    Observed {
        key: Key::new("alice", "web"),
        owner: MachineOwner::of(&machine).unwrap(),
        machine,
        platform: Arc::new(ValidPlatform::default()),
        namespace: NamespaceView {
            terminating: false,
            orphaned: false,
            bound_to: None,
            users: UsersView::Ready,
        },
        image: Some(image("True")),
        vm: None,
        vmi: None,
        disk: None,
        claim: None,
        unseen: None,
        service: None,
        ingress: None,
        hosts: Vec::new(),
        classes: Vec::new(),
        end: None,
        kubevirt: true,
        cdi: true,
    }
}

pub fn image(ready: &str) -> Arc<DataSource> {
    read(
        json!({"metadata": {"name": "ubuntu"}, "status": {"conditions": [{"type": "Ready", "status": ready}]}}),
    )
}

pub fn edited(mut seen: Observed, edit: impl FnOnce(&mut KiteVirtualMachine)) -> Observed {
    edit(Arc::make_mut(&mut seen.machine));
    seen
}

pub fn recorded(seen: Observed, claim: &str) -> Observed {
    let status = KiteVirtualMachineStatus {
        claim_uid: Some(claim.into()),
        ..KiteVirtualMachineStatus::default()
    };
    edited(seen, |m| m.status = Some(status))
}

pub fn annotated(seen: Observed, key: &str, value: &str) -> Observed {
    edited(seen, |m| {
        let annotations = m.metadata.annotations.get_or_insert_default();
        annotations.insert(key.into(), value.into());
    })
}

pub fn disk(owner: &str, phase: &str) -> Arc<DataVolume> {
    read(json!({
        "metadata": {"name": "web", "uid": "d-1", "annotations": {"kite.dev/vm-uid": owner}},
        "spec": {"storage": {"resources": {"requests": {"storage": "2Gi"}}}},
        "status": {"phase": phase},
    }))
}

/// A claim of the DataVolume of [`disk`].
pub fn claim(owner: &str, uid: &str, request: &str) -> Arc<PersistentVolumeClaim> {
    read(json!({
        "metadata": {
            "name": "web", "uid": uid, "annotations": {"kite.dev/vm-uid": owner},
            "ownerReferences": [{
                "apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "name": "web",
                "uid": "d-1", "controller": true,
            }],
        },
        "spec": {"storageClassName": "fast", "resources": {"requests": {"storage": request}}},
        "status": {"phase": "Bound"},
    }))
}

pub fn vm() -> Arc<VirtualMachine> {
    read(
        json!({"metadata": {"name": "web", "uid": "v-1", "ownerReferences": [
            {"apiVersion": "kite.dev/v1alpha1", "kind": "KiteVirtualMachine", "name": "web", "uid": "u-1", "controller": true}
        ]}}),
    )
}

pub fn class(name: &str, annotations: &Value) -> Arc<StorageClass> {
    read(
        json!({"metadata": {"name": name, "annotations": annotations}, "provisioner": "p", "allowVolumeExpansion": true}),
    )
}
