//! The pure steps about what is left: of an earlier machine, of a deletion, of a disk
//! that waits to grow, of somebody else's under a machine's name.
#![allow(clippy::unwrap_used, missing_docs)]

mod seen;

use std::sync::Arc;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kite_api::machine::KiteVirtualMachine;
use kite_kubevirt::read::DataVolume;
use kite_render::validate::ValidMachine;
use kite_vm::apply::delete::blocked::{blockers, message};
use kite_vm::apply::delete::left_behind::judge;
use kite_vm::apply::previous::in_the_way;
use kite_vm::observe::Observed;
use kite_vm::plan::{self, Disk, Growth};
use seen::{annotated, claim, class, disk, edited, fresh, read, recorded, vm};
use serde_json::{Value, json};

/// A child of a machine of this UID, with more metadata.
fn child<K: serde::de::DeserializeOwned>(owner: &str, more: &Value) -> Arc<K> {
    let mut meta = json!({"name": "web", "uid": "x-1", "annotations": {"kite.dev/vm-uid": owner}});
    let more = more.as_object().unwrap().clone();
    meta.as_object_mut().unwrap().extend(more);
    read(json!({"metadata": meta}))
}

// V-22: each kind of child of an earlier machine is waited for; what is ours, kept or others' is not
#[test]
fn what_an_earlier_machine_has_left_is_told_from_what_is_kept_and_what_is_others() {
    let old = || json!({});
    let labelled = |uid: &str| json!({"labels": {"kite.dev/vm-uid": uid}});
    for (seen, kind) in [
        (fresh(), None),
        (
            Observed {
                vmi: Some(child("u-0", &labelled("u-0"))),
                ..fresh()
            },
            Some("VirtualMachineInstance"),
        ),
        (
            Observed {
                vmi: Some(child("u-1", &labelled("u-1"))),
                ..fresh()
            },
            None,
        ),
        (
            Observed {
                vm: Some(child("u-0", &old())),
                ..fresh()
            },
            Some("VirtualMachine"),
        ),
        (
            Observed {
                vm: Some(vm()),
                ..fresh()
            },
            None,
        ),
        (
            Observed {
                disk: Some(disk("u-0", "Succeeded")),
                ..fresh()
            },
            Some("DataVolume"),
        ),
        (
            Observed {
                disk: Some(disk("u-1", "Succeeded")),
                ..fresh()
            },
            None,
        ),
        (
            Observed {
                claim: Some(claim("u-0", "c-0", "2Gi")),
                ..fresh()
            },
            Some("PersistentVolumeClaim"),
        ),
        (
            Observed {
                service: Some(child("u-0", &old())),
                ..fresh()
            },
            Some("Service"),
        ),
        (
            Observed {
                ingress: Some(child("u-0", &old())),
                ..fresh()
            },
            Some("Ingress"),
        ),
    ] {
        assert_eq!(in_the_way(&seen), kind);
    }
    let kept = json!({"labels": {"kite.dev/retained": "true"}});
    let retained = Observed {
        disk: Some(child("u-0", &kept)),
        claim: Some(child("u-0", &kept)),
        ..fresh()
    };
    assert_eq!(
        in_the_way(&retained),
        None,
        "it is adopted by name, or stays"
    );
    let foreign = Observed {
        service: Some(read(json!({"metadata": {"name": "web"}}))),
        ..fresh()
    };
    assert_eq!(in_the_way(&foreign), None, "it is a conflict of names");
    let orphaned = json!({"annotations": {}, "ownerReferences": [
        {"apiVersion": "kite.dev/v1alpha1", "kind": "KiteVirtualMachine", "name": "web", "uid": "u-0", "controller": true}
    ]});
    let owned = Observed {
        service: Some(child("u-0", &orphaned)),
        ..fresh()
    };
    assert_eq!(in_the_way(&owned), Some("Service"));
}

// V-19
#[test]
fn a_disk_that_was_left_behind_goes_by_the_word_on_it_and_stays_in_doubt() {
    let with = |more: Value| child::<DataVolume>("u-0", &more);
    let policy = |word: &str| json!({"annotations": {"kite.dev/vm-uid": "u-0", "kite.dev/deletion-policy": word}});
    let claim = |more: Value| child::<PersistentVolumeClaim>("u-0", &more);
    let kept = || json!({"labels": {"kite.dev/retained": "true"}});
    let going = || json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    let owned = || json!({"ownerReferences": [{"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "name": "web", "uid": "d-1"}]});
    let (goes, stays) = (Some(("u-0", true)), Some(("u-0", false)));
    for (disk, claim, verdict) in [
        (None, None, None),
        (Some(with(policy("Delete"))), Some(claim(owned())), goes),
        (Some(with(policy("Retain"))), Some(claim(owned())), stays),
        (Some(with(json!({}))), None, stays),
        // Going already: the claim goes with the DataVolume, also when that is gone first.
        (Some(with(going())), Some(claim(owned())), None),
        (None, Some(claim(owned())), None),
        (None, Some(claim(going())), None),
        // Only a claim, or one that was missed when the DataVolume was marked.
        (None, Some(claim(json!({}))), stays),
        (Some(with(kept())), Some(claim(owned())), stays),
        (Some(with(kept())), Some(claim(kept())), None),
        (None, Some(claim(kept())), None),
    ] {
        let found = judge(disk.as_deref(), claim.as_deref());
        assert_eq!(found, verdict, "{disk:?} {claim:?}");
    }
}

// V-21
#[test]
fn what_holds_a_deletion_up_is_named_with_its_finalizers_the_cause_first() {
    let going = |finalizers: Value| json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": finalizers});
    assert!(
        blockers(&Observed {
            vm: Some(vm()),
            ..fresh()
        })
        .is_empty(),
        "it is not going yet"
    );
    let foreign = Observed {
        service: Some(child("u-2", &going(json!(["a/b"])))),
        ..fresh()
    };
    assert!(
        blockers(&foreign).is_empty(),
        "what is not ours is not our obstacle"
    );
    let mut guest = going(json!(["k/guest", "k/node"]));
    guest["labels"] = json!({"kite.dev/vm-uid": "u-1"});
    let held = Observed {
        vmi: Some(child("u-1", &guest)),
        vm: Some(child("u-1", &going(json!(["k/vm"])))),
        claim: Some(child("u-1", &going(json!([])))),
        ..fresh()
    };
    let kinds: Vec<_> = blockers(&held).iter().map(|b| b.kind).collect();
    assert_eq!(
        kinds,
        [
            "VirtualMachineInstance",
            "VirtualMachine",
            "PersistentVolumeClaim"
        ]
    );
    let words = message(&blockers(&held));
    for part in [
        "VirtualMachineInstance web is held by the finalizers k/guest, k/node; ",
        "VirtualMachine web is held by the finalizer k/vm; ",
        "PersistentVolumeClaim web is still there; ",
    ] {
        assert!(words.contains(part), "{words}");
    }
}

// V-13: the server grows bound claims only, and a disk that is being filled is left to CDI
#[test]
fn a_disk_grows_when_its_claim_is_bound_and_filled() {
    let growth = |phase: &str, bound: bool| {
        let mut claim = claim("u-1", "c-1", "2Gi");
        if !bound {
            Arc::make_mut(&mut claim).status = None;
        }
        let seen = Observed {
            disk: Some(disk("u-1", phase)),
            classes: vec![class("fast", &json!({}))],
            ..fresh()
        };
        let seen = edited(seen, |m: &mut KiteVirtualMachine| {
            m.spec.disk = "3Gi".into();
        });
        let valid = ValidMachine::parse(&seen.machine, &seen.platform).unwrap();
        plan::growth(&seen, &valid, &claim)
    };
    assert_eq!(growth("CloneInProgress", true), Growth::None);
    assert_eq!(growth("Succeeded", false), Growth::None);
    assert!(matches!(growth("Succeeded", true), Growth::To { .. }));
}

// D-7, C-7: the annotation can be copied by anybody.
#[test]
fn a_claim_with_our_annotation_is_the_disk_only_if_our_datavolume_owns_it() {
    let mut forged = claim("u-1", "c-9", "2Gi");
    Arc::make_mut(&mut forged).metadata.owner_references = None;
    let with = |disk| Observed {
        disk,
        claim: Some(forged.clone()),
        ..fresh()
    };
    let planted = Disk::Foreign("PersistentVolumeClaim");
    assert_eq!(plan::disk(&with(None)), planted);
    assert_eq!(plan::disk(&with(Some(disk("u-1", "")))), planted);
    let present = Disk::Present {
        claim: "c-9".into(),
    };
    assert_eq!(plan::disk(&recorded(with(None), "c-9")), present);
    // A disk that was taken over and could not be recorded yet.
    let adopted = annotated(with(None), "kite.dev/adopt-retained-disk", "c-9");
    assert_eq!(plan::disk(&adopted), present);
}
