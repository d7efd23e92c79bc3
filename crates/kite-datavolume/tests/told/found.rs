//! What a machine's disk is taken for, from whatever stands under its name.

use std::sync::Arc;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kite_api::KiteVirtualMachine;
use kite_datavolume::observe::{Doubt, Found};
use kite_datavolume::status::Disk;
use serde_json::{Value, json};

fn machine(status: &Value) -> KiteVirtualMachine {
    serde_json::from_value(json!({
        "apiVersion": "kite.dev/v1alpha1", "kind": "KiteVirtualMachine",
        "metadata": {"name": "web", "namespace": "alice", "uid": "k1", "generation": 1},
        "spec": {"cpu": 1, "memory": "1Gi", "disk": "2Gi", "image": "ubuntu"}, "status": status,
    }))
    .unwrap()
}

/// A claim of the machine's name: its UID, the machine that its annotation names, its owner.
fn claim(uid: &str, bound_to: Option<&str>, owner: Option<(&str, &str)>) -> PersistentVolumeClaim {
    let owners = owner.map(|(kind, uid)| {
        json!([{"apiVersion": "v1", "kind": kind, "name": "web", "uid": uid, "controller": true}])
    });
    serde_json::from_value(json!({
        "metadata": {
            "name": "web", "uid": uid, "ownerReferences": owners,
            "annotations": bound_to.map(|uid| json!({"kite.dev/vm-uid": uid})),
        },
        "spec": {"resources": {"requests": {"storage": "2Gi"}}},
        "status": {"phase": "Bound", "capacity": {"storage": "2Gi"}},
    }))
    .unwrap()
}

fn found(disk: Option<(&str, &str)>, claim: Option<PersistentVolumeClaim>) -> Found {
    let disk = disk.map(|(bound_to, phase)| {
        Arc::new(
            serde_json::from_value(json!({
                "metadata": {"name": "web", "uid": "d1", "annotations": {"kite.dev/vm-uid": bound_to}},
                "status": {"phase": phase},
            }))
            .unwrap(),
        )
    });
    Found {
        served: true,
        disk,
        claim: claim.map(Arc::new),
        ..Found::default()
    }
}

fn kind(disk: &Disk) -> &'static str {
    match disk {
        Disk::DataVolume(..) => "DataVolume",
        Disk::ClaimOnly(_) => "ClaimOnly",
        Disk::Lost => "Lost",
        Disk::Unsure => "Unsure",
        Disk::Planted => "Planted",
        Disk::Missing => "Missing",
        Disk::KindMissing => "KindMissing",
        Disk::Unreadable => "Unreadable",
        Disk::None => "None",
    }
}

const OURS: Option<(&str, &str)> = Some(("DataVolume", "d1"));

// D-4, D-7, C-7: the annotation can be copied by anybody; what CDI fills it owns.
#[test]
fn a_claim_is_the_disk_when_the_machines_datavolume_owns_it() {
    let fresh = machine(&json!({}));
    let filling = Some(("k1", "CloneInProgress"));
    for (owner, taken_for) in [
        (OURS, "DataVolume"),
        (None, "Planted"),
        (Some(("DataVolume", "another")), "Planted"),
        (Some(("StatefulSet", "s1")), "Planted"),
    ] {
        for bound_to in [Some("k1"), None, Some("another")] {
            let found = found(filling, Some(claim("c1", bound_to, owner)));
            assert_eq!(
                kind(&found.disk(&fresh)),
                taken_for,
                "{owner:?} {bound_to:?}"
            );
        }
    }
    // Once it was recorded it is known by its UID, whatever becomes of its owner.
    let recorded = machine(&json!({"claimUID": "c1"}));
    let orphan = found(filling, Some(claim("c1", None, None)));
    assert_eq!(kind(&orphan.disk(&recorded)), "DataVolume");
}

// D-5, D-7
#[test]
fn without_a_datavolume_a_claim_is_the_recorded_one_or_somebody_elses() {
    let fresh = machine(&json!({}));
    let recorded = machine(&json!({"claimUID": "c1", "dataVolumeName": "web"}));
    let planted = found(None, Some(claim("c9", None, None)));
    assert_eq!(kind(&planted.disk(&fresh)), "Planted");
    assert_eq!(kind(&planted.disk(&recorded)), "Lost");
    let forged = found(None, Some(claim("c9", Some("k1"), None)));
    assert_eq!(kind(&forged.disk(&fresh)), "Planted");
    // Two watches may not be in step: this one is on its way in, or out.
    let filled = found(None, Some(claim("c1", Some("k1"), OURS)));
    assert_eq!(kind(&filled.disk(&fresh)), "None");
    assert_eq!(kind(&filled.disk(&recorded)), "ClaimOnly");
    let mut retained = claim("c1", Some("earlier"), None);
    retained.metadata.labels = Some([("kite.dev/retained".into(), "true".into())].into());
    assert_eq!(kind(&found(None, Some(retained)).disk(&fresh)), "None");
    let mut lost = claim("c1", Some("k1"), OURS);
    lost.status.as_mut().unwrap().phase = Some("Lost".into());
    assert_eq!(kind(&found(None, Some(lost)).disk(&recorded)), "Lost");
    let named = machine(&json!({"dataVolumeName": "web"}));
    assert_eq!(kind(&found(None, None).disk(&named)), "Missing");
    assert_eq!(
        kind(&found(Some(("another", "Succeeded")), None).disk(&fresh)),
        "None"
    );
}

// C-7 (d), D-5: the watch shows claims with Kite's labels, and somebody may have taken those away.
#[test]
fn a_recorded_claim_that_no_watch_shows_is_looked_for_before_it_is_called_lost() {
    let recorded = machine(&json!({"claimUID": "c1", "dataVolumeName": "web"}));
    for disk in [None, Some(("k1", "Succeeded"))] {
        let unseen = found(disk, None);
        assert_eq!(unseen.doubt(&recorded), Some(Doubt::Recorded("c1".into())));
        assert_eq!(kind(&unseen.disk(&recorded)), "Unsure");
        assert_eq!(kind(&unseen.clone().asked(None).disk(&recorded)), "Lost");
        let there = Some(Arc::new(claim("c1", None, None)));
        let there = kind(&unseen.clone().asked(there).disk(&recorded));
        assert!(["ClaimOnly", "DataVolume"].contains(&there), "{there}");
        let successor = Some(Arc::new(claim("c2", None, None)));
        assert_eq!(kind(&unseen.asked(successor).disk(&recorded)), "Lost");
    }
}

// D-7
#[test]
fn a_claim_that_no_watch_shows_is_looked_for_when_one_may_be_in_the_way() {
    let fresh = machine(&json!({}));
    let doubt = |disk, machine: &KiteVirtualMachine| found(disk, None).doubt(machine);
    assert_eq!(doubt(Some(("k1", "")), &fresh), Some(Doubt::Planted));
    assert_eq!(doubt(Some(("k1", "WaitForFirstConsumer")), &fresh), None);
    assert_eq!(doubt(Some(("k1", "Succeeded")), &fresh), None);
    assert_eq!(doubt(None, &fresh), None);
    let refused = |status: &str, reason: &str| {
        machine(&json!({"conditions": [{
            "type": "ResourcesApplied", "status": status, "reason": reason, "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]}))
    };
    assert_eq!(
        doubt(None, &refused("False", "NameConflict")),
        Some(Doubt::Planted)
    );
    assert_eq!(doubt(None, &refused("False", "QuotaExceeded")), None);
    let there = found(Some(("k1", "")), Some(claim("c1", Some("k1"), OURS)));
    assert_eq!(there.doubt(&fresh), None);
    let unknown = Found::default();
    assert_eq!(unknown.doubt(&fresh), None, "CDI is not installed");
    assert_eq!(kind(&unknown.disk(&fresh)), "KindMissing");
}
