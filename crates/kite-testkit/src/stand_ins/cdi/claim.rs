//! The claims that CDI makes for a DataVolume, as objects.
//!
//! Pure; sizes, labels and annotations as the recordings show them.

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::stand_ins::names::{
    CREATED_FOR, FILLS, OWNED_BY_UID, POPULATOR_FINALIZER, PROVISIONER, Res, SOURCE_FINALIZER,
    STORAGE_CLASS, USE_POPULATOR,
};
use crate::stand_ins::value::{bytes, text, whole};
use crate::stand_ins::world::{owner, uid};

/// What the claim controller says while a provisioner is at work.
pub(super) const PROVISIONER_WAITS: &str = "Waiting for a volume to be created either by the external provisioner 'stand-in.kite.dev' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.";
/// What CDI adds to a size for the file system.
const FILE_SYSTEM_OVERHEAD: f64 = 0.06;

/// Name of the claim that fills another one.
pub(in crate::stand_ins) fn temporary_name(claim: &DynamicObject) -> String {
    format!("tmp-pvc-{}", uid(claim))
}

/// The size to ask for, in bytes: what the DataVolume wants, or what the source
/// has, with room for the file system where CDI is free to choose.
pub(super) fn size(data_volume: &DynamicObject, source: Option<&DynamicObject>) -> Option<u64> {
    let literal = text(&data_volume.data, "/spec/pvc/resources/requests/storage");
    if !literal.is_empty() {
        return bytes(literal);
    }
    let asked = text(
        &data_volume.data,
        "/spec/storage/resources/requests/storage",
    );
    if let Some(asked) = bytes(asked) {
        if text(&data_volume.data, "/spec/storage/volumeMode") == "Block" {
            return Some(asked);
        }
        return inflated(asked);
    }
    source.and_then(|source| bytes(text(&source.data, "/spec/resources/requests/storage")))
}

#[allow(clippy::cast_precision_loss)]
fn inflated(asked: u64) -> Option<u64> {
    whole(asked as f64 * (1.0 + FILE_SYSTEM_OVERHEAD))
}

/// The claim of a DataVolume.
pub(super) fn claim(data_volume: &DynamicObject, size: u64, populator: bool) -> Value {
    let mut claim = base(data_volume, size);
    claim["metadata"]["name"] = json!(data_volume.name_any());
    claim["metadata"]["ownerReferences"] = json!([owner(Res::DataVolume, data_volume)]);
    if populator {
        claim["metadata"]["finalizers"] = json!([POPULATOR_FINALIZER]);
        claim["spec"]["dataSourceRef"] = json!({
            "apiGroup": "cdi.kubevirt.io",
            "kind": "VolumeCloneSource",
            "name": format!("volume-clone-source-{}", uid(data_volume)),
        });
    }
    claim
}

/// The temporary claim: the same labels, and no owner.
pub(super) fn temporary(data_volume: &DynamicObject, claim: &DynamicObject) -> Value {
    let asked = text(&claim.data, "/spec/resources/requests/storage");
    let mut temporary = base(data_volume, bytes(asked).unwrap_or_default());
    let metadata = &mut temporary["metadata"];
    metadata["name"] = json!(temporary_name(claim));
    metadata["finalizers"] = json!([SOURCE_FINALIZER]);
    metadata["labels"][OWNED_BY_UID] = json!(uid(claim));
    metadata["annotations"][FILLS] = json!(claim.name_any());
    metadata["annotations"]["cdi.kubevirt.io/ownerUID"] = json!(uid(claim));
    metadata["annotations"]["cdi.kubevirt.io/storage.populator.kind"] = json!("VolumeCloneSource");
    temporary
}

fn base(data_volume: &DynamicObject, size: u64) -> Value {
    let mut labels = json!(data_volume.labels());
    labels["app"] = json!("containerized-data-importer");
    labels["app.kubernetes.io/component"] = json!("storage");
    labels["app.kubernetes.io/managed-by"] = json!("cdi-controller");
    let mut annotations = json!(data_volume.annotations());
    annotations[CREATED_FOR] = json!(uid(data_volume));
    let storage = data_volume
        .data
        .pointer("/spec/storage")
        .or_else(|| data_volume.data.pointer("/spec/pvc"));
    let asked = |field: &str| storage.and_then(|storage| storage.get(field)).cloned();
    let mut spec = json!({
        "accessModes": asked("accessModes").unwrap_or_else(|| json!(["ReadWriteOnce"])),
        "storageClassName": asked("storageClassName").unwrap_or_else(|| json!(STORAGE_CLASS)),
        "resources": {"requests": {"storage": size.to_string()}},
    });
    if let Some(mode) = asked("volumeMode") {
        spec["volumeMode"] = mode;
    }
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "namespace": data_volume.namespace(),
            "labels": labels,
            "annotations": annotations,
        },
        "spec": spec,
    })
}

/// The volume for a claim. Its owner-to-be is named in it, so that the server's
/// own controller binds the two.
pub(super) fn volume(claim: &DynamicObject) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": format!("pvc-{}", uid(claim)),
            "labels": {crate::stand_ins::names::STAND_IN_LABEL: "true"},
            "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER},
        },
        "spec": {
            "capacity": {"storage": claim.data.pointer("/spec/resources/requests/storage")},
            "accessModes": claim.data.pointer("/spec/accessModes"),
            "volumeMode": claim.data.pointer("/spec/volumeMode"),
            "storageClassName": claim.data.pointer("/spec/storageClassName"),
            "persistentVolumeReclaimPolicy": "Delete",
            "claimRef": claim_ref(claim),
            "csi": {"driver": PROVISIONER, "volumeHandle": uid(claim)},
        },
    })
}

/// How a volume names its claim.
pub(super) fn claim_ref(claim: &DynamicObject) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": claim.namespace(),
        "name": claim.name_any(),
        "uid": claim.metadata.uid,
    })
}

/// Whether a populator fills this DataVolume's claim, as noted on it.
pub(super) fn populated(data_volume: &DynamicObject) -> Option<bool> {
    let note = data_volume.annotations().get(USE_POPULATOR)?;
    Some(note == "true")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_gibibytes_become_the_recorded_number_of_bytes() {
        assert_eq!(inflated(2 * 1024 * 1024 * 1024), Some(2_276_332_667));
    }
}
