//! The pure steps: what is accepted, what becomes of the disk, what the status says.
#![allow(clippy::unwrap_used, missing_docs)]

mod seen;

use std::sync::Arc;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kite_api::condition::{self, ACCEPTED, DOMAIN_READY, RECONCILING, RESOURCES_APPLIED, STALLED};
use kite_api::machine::Phase;
use kite_api::{KitePlatformSpec, KiteVirtualMachineStatus};
use kite_kubevirt::read::DataVolume;
use kite_render::validate::{ValidMachine, ValidPlatform};
use kite_runtime::{Class, clock};
use kite_vm::apply::{Applied, Trouble};
use kite_vm::observe::{NamespaceView, Observed, UsersView};
use kite_vm::plan::{self, Disk, Growth};
use kite_vm::status::{self, Outcome};
use kite_vm::validate::accept;
use seen::{annotated, claim, class, disk, edited, fresh, image, recorded, vm};
use serde_json::json;

// V-13, V-15, V-19, F-5
#[test]
fn the_disk_is_made_once_and_never_silently_again() {
    let with =
        |disk: Option<Arc<DataVolume>>, claim: Option<Arc<PersistentVolumeClaim>>| Observed {
            disk,
            claim,
            ..fresh()
        };
    let present = |uid: &str| Disk::Present { claim: uid.into() };
    assert_eq!(plan::disk(&fresh()), Disk::Create);
    assert_eq!(
        plan::disk(&with(Some(disk("u-1", "")), None)),
        Disk::Filling
    );
    assert_eq!(
        plan::disk(&with(
            Some(disk("u-1", "")),
            Some(claim("u-1", "c-1", "2Gi"))
        )),
        present("c-1")
    );
    // CDI's garbage collection took the DataVolume.
    assert_eq!(
        plan::disk(&recorded(
            with(None, Some(claim("u-1", "c-1", "2Gi"))),
            "c-1"
        )),
        present("c-1")
    );
    // The claim is gone, with the DataVolume or without it.
    assert_eq!(
        plan::disk(&recorded(fresh(), "c-1")),
        Disk::Lost("c-1".into())
    );
    let alone = recorded(with(Some(disk("u-1", "Succeeded")), None), "c-1");
    assert_eq!(plan::disk(&alone), Disk::Lost("c-1".into()));
    // Another claim under the same name holds other data.
    let other = || recorded(with(None, Some(claim("u-1", "c-2", "2Gi"))), "c-1");
    assert_eq!(plan::disk(&other()), Disk::Lost("c-1".into()));
    // A person accepted an empty disk, in place of this one and no other.
    let confirm = "kite.dev/confirm-new-disk";
    assert_eq!(
        plan::disk(&annotated(recorded(fresh(), "c-1"), confirm, "c-1")),
        Disk::Create
    );
    assert_eq!(
        plan::disk(&annotated(recorded(fresh(), "c-1"), confirm, "c-0")),
        Disk::Lost("c-1".into())
    );
    assert_eq!(plan::disk(&annotated(alone, confirm, "c-1")), Disk::Replace);
    let mut replaced = other();
    replaced.disk = Some(disk("u-1", "Succeeded"));
    assert_eq!(
        plan::disk(&annotated(replaced, confirm, "c-1")),
        present("c-2")
    );
}

// C-7, C-14, V-19
#[test]
fn a_disk_of_others_is_never_taken_and_an_unknown_kind_decides_nothing() {
    let foreign = Observed {
        disk: Some(disk("u-2", "Succeeded")),
        ..fresh()
    };
    assert_eq!(plan::disk(&foreign), Disk::Foreign("DataVolume"));
    assert_eq!(
        plan::disk(&Observed {
            cdi: false,
            ..recorded(fresh(), "c-1")
        }),
        Disk::Unknown
    );
    let mut kept = claim("u-0", "c-0", "2Gi");
    Arc::make_mut(&mut kept).metadata.labels =
        Some([("kite.dev/retained".to_owned(), "true".to_owned())].into());
    let retained = || Observed {
        claim: Some(kept.clone()),
        ..fresh()
    };
    assert_eq!(
        plan::disk(&retained()),
        Disk::Retained {
            claim: "c-0".into(),
            adopt: false
        }
    );
    let adopted = annotated(retained(), "kite.dev/adopt-retained-disk", "c-0");
    assert_eq!(
        plan::disk(&adopted),
        Disk::Retained {
            claim: "c-0".into(),
            adopt: true
        }
    );
}

// V-11
#[test]
fn the_storage_class_is_the_users_then_the_platforms_then_the_clusters_and_stays() {
    let virt = class(
        "virt",
        &json!({"storageclass.kubevirt.io/is-default-virt-class": "true"}),
    );
    let plain = class(
        "plain",
        &json!({"storageclass.kubernetes.io/is-default-class": "true"}),
    );
    let chosen = |seen: &Observed| {
        let valid = ValidMachine::parse(&seen.machine, &seen.platform).unwrap();
        plan::storage_class(seen, &valid).map(|c| c.to_string())
    };
    assert_eq!(chosen(&fresh()), None);
    let cluster = || Observed {
        classes: vec![plain.clone(), virt.clone()],
        ..fresh()
    };
    assert_eq!(chosen(&cluster()).as_deref(), Some("virt"));
    assert_eq!(
        chosen(&Observed {
            classes: vec![plain.clone()],
            ..fresh()
        })
        .as_deref(),
        Some("plain")
    );
    let spec = KitePlatformSpec {
        storage_class_name: Some("platform".into()),
        ..KitePlatformSpec::default()
    };
    let platform = || Observed {
        platform: Arc::new(ValidPlatform::parse(&spec).unwrap()),
        ..cluster()
    };
    assert_eq!(chosen(&platform()).as_deref(), Some("platform"));
    let users = edited(platform(), |m| {
        m.spec.storage_class_name = Some("mine".into());
    });
    assert_eq!(chosen(&users).as_deref(), Some("mine"));
    let status = KiteVirtualMachineStatus {
        storage_class_name: Some("first".into()),
        ..KiteVirtualMachineStatus::default()
    };
    assert_eq!(
        chosen(&edited(users, |m| m.status = Some(status))).as_deref(),
        Some("first")
    );
}

// V-13
#[test]
fn a_claim_grows_in_proportion_and_never_shrinks() {
    // 2 GiB with 6 % for the file system, as CDI asks for it.
    let inflated = claim("u-1", "c-1", "2276332667");
    let growth = |size: &str, claim: &PersistentVolumeClaim, classes| {
        let seen = Observed {
            disk: Some(disk("u-1", "Succeeded")),
            classes,
            ..fresh()
        };
        let seen = edited(seen, |m| m.spec.disk = size.into());
        let valid = ValidMachine::parse(&seen.machine, &seen.platform).unwrap();
        plan::growth(&seen, &valid, claim)
    };
    let fast = || vec![class("fast", &json!({}))];
    assert_eq!(growth("2Gi", &inflated, fast()), Growth::None);
    assert_eq!(growth("1Gi", &inflated, fast()), Growth::None);
    assert_eq!(
        growth("3Gi", &inflated, fast()),
        Growth::To {
            request: 3_414_499_001,
            size: 3 << 30
        }
    );
    assert!(
        matches!(growth("3Gi", &inflated, Vec::new()), Growth::Refused(words) if words.contains("\"fast\""))
    );
    let mut grown = claim("u-1", "c-1", "3414499001");
    Arc::make_mut(&mut grown)
        .metadata
        .annotations
        .as_mut()
        .unwrap()
        .insert("kite.dev/disk-size".into(), (3_i64 << 30).to_string());
    assert_eq!(growth("3Gi", &grown, fast()), Growth::None);
}

// V-5, V-6, V-10, P-2
#[test]
fn what_stands_in_the_way_is_named_and_a_machine_that_exists_goes_on() {
    let reason = |seen: &Observed| accept(seen).map(|_| ()).map_err(|r| (r.reason, r.stalled));
    assert_eq!(reason(&fresh()), Ok(()));
    assert_eq!(
        reason(&Observed {
            image: None,
            ..fresh()
        }),
        Err(("ImageNotFound", true))
    );
    assert_eq!(
        reason(&Observed {
            image: Some(image("False")),
            ..fresh()
        }),
        Err(("ImageNotReady", false))
    );
    assert_eq!(
        reason(&Observed {
            cdi: false,
            ..fresh()
        }),
        Err(("DependencyMissing", false))
    );
    let namespace = |users, bound_to: Option<&str>, orphaned| NamespaceView {
        terminating: false,
        orphaned,
        bound_to: bound_to.map(str::to_owned),
        users,
    };
    for (view, expected) in [
        (
            namespace(UsersView::NotReady("alice".into()), Some("x"), false),
            Err(("NamespaceNotReady", false)),
        ),
        (
            namespace(UsersView::None, Some("x"), false),
            Err(("NamespaceOrphaned", true)),
        ),
        (
            namespace(UsersView::None, None, true),
            Err(("NamespaceOrphaned", true)),
        ),
        (namespace(UsersView::None, None, false), Ok(())),
    ] {
        assert_eq!(
            reason(&Observed {
                namespace: view.clone(),
                ..fresh()
            }),
            expected,
            "{view:?}"
        );
        assert_eq!(
            reason(&Observed {
                namespace: view,
                vm: Some(vm()),
                ..fresh()
            }),
            Ok(()),
            "it exists"
        );
    }
    let spec = KitePlatformSpec {
        require_user: true,
        ..KitePlatformSpec::default()
    };
    let strict = Observed {
        platform: Arc::new(ValidPlatform::parse(&spec).unwrap()),
        namespace: namespace(UsersView::None, None, false),
        ..fresh()
    };
    assert_eq!(reason(&strict), Err(("UserRequired", true)));
    assert_eq!(
        reason(&edited(fresh(), |m| m.spec.cpu = 0)),
        Err(("InvalidSpec", true))
    );
    let begun = Observed {
        image: None,
        claim: Some(claim("u-1", "c-1", "2Gi")),
        ..fresh()
    };
    assert_eq!(
        reason(&begun),
        Ok(()),
        "an image that was withdrawn matters to new machines only"
    );
}

fn told(seen: &Observed, outcome: &Outcome) -> KiteVirtualMachineStatus {
    status::part(seen, outcome, &clock::now())
}

fn whole() -> Applied {
    Applied {
        claim_uid: Some("c-1".into()),
        disk: true,
        login: true,
        machine: true,
        service: true,
        ..Applied::default()
    }
}

// C-9, C-10, C-11
#[test]
fn the_status_is_complete_and_never_says_reconciling_and_stalled_at_once() {
    let outcomes = |trouble: Trouble| Applied {
        troubles: vec![trouble],
        ..whole()
    };
    let done = told(&fresh(), &Outcome::Applied(&whole()));
    assert!(
        condition::is_true(&done.conditions, RESOURCES_APPLIED)
            && condition::is_true(&done.conditions, ACCEPTED)
    );
    assert!(
        condition::find(&done.conditions, STALLED).is_none()
            && condition::find(&done.conditions, RECONCILING).is_none()
    );
    assert_eq!(
        (done.phase, done.observed_generation),
        (Some(Phase::Provisioning), None)
    );
    for (trouble, stalled) in [
        (Trouble::stalled("Rejected", "no"), true),
        (Trouble::waiting("QuotaExceeded", "later"), false),
        (
            Trouble {
                class: Class::DependencyMissing,
                ..Trouble::waiting("DependencyMissing", "kind")
            },
            false,
        ),
    ] {
        let part = told(&fresh(), &Outcome::Applied(&outcomes(trouble)));
        assert_eq!(condition::is_true(&part.conditions, STALLED), stalled);
        assert_eq!(condition::is_true(&part.conditions, RECONCILING), !stalled);
        let applied = condition::find(&part.conditions, RESOURCES_APPLIED).unwrap();
        assert_eq!(
            (applied.status.as_str(), applied.observed_generation),
            ("False", Some(1))
        );
        assert_eq!(
            part.phase,
            Some(if stalled {
                Phase::Failed
            } else {
                Phase::Provisioning
            })
        );
    }
    assert_eq!(
        told(&fresh(), &Outcome::Deleting(None)).phase,
        Some(Phase::Deleting)
    );
}

// C-3, C-10, F-7
#[test]
fn the_phase_is_left_to_its_owner_and_names_stay_recorded() {
    let running = KiteVirtualMachineStatus {
        virtual_machine_uid: Some("v-1".into()),
        ..told(&fresh(), &Outcome::Applied(&whole()))
    };
    let seen = edited(fresh(), |m| m.status = Some(running));
    let lost = Applied {
        disk: false,
        claim_uid: None,
        troubles: vec![Trouble::stalled("DiskLost", "gone")],
        ..whole()
    };
    let part = told(&seen, &Outcome::Applied(&lost));
    assert_eq!(
        part.phase, None,
        "a running machine is never Failed because one apply failed"
    );
    assert_eq!(part.claim_uid.as_deref(), Some("c-1"));
    assert_eq!(part.data_volume_name.as_deref(), Some("web"));
    assert!(condition::find(&part.conditions, DOMAIN_READY).is_some());
    // TS3: the same input gives the same bytes.
    let stands = KiteVirtualMachineStatus {
        virtual_machine_uid: Some("v-1".into()),
        ..part.clone()
    };
    let again = edited(seen, |m| m.status = Some(stands));
    assert_eq!(told(&again, &Outcome::Applied(&lost)), part);
}
