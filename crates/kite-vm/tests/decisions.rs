//! The pure steps: what is accepted, of machines and of the platform's settings, and what becomes of the disk.
#![allow(clippy::unwrap_used, missing_docs)]

mod seen;

use std::sync::Arc;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kite_api::condition::{self, ACCEPTED};
use kite_api::{KitePlatform, KitePlatformSpec, KiteVirtualMachineStatus};
use kite_kubevirt::read::DataVolume;
use kite_render::validate::{ValidMachine, ValidPlatform};
use kite_runtime::clock;
use kite_vm::observe::{NamespaceView, Observed, UsersView};
use kite_vm::plan::{self, Disk, Growth};
use kite_vm::status;
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
    assert_eq!(plan::disk(&replaced), Disk::Lost("c-1".into()));
    assert_eq!(
        plan::disk(&annotated(replaced, confirm, "c-1")),
        present("c-2")
    );
}

// D-7, C-7
#[test]
fn a_claim_is_the_disk_when_its_datavolume_controls_it() {
    let owned = |edit: fn(&mut OwnerReference)| {
        let mut claim = claim("u-1", "c-1", "2Gi");
        let owners = &mut Arc::make_mut(&mut claim).metadata.owner_references;
        edit(&mut owners.as_mut().unwrap()[0]);
        plan::disk(&Observed {
            disk: Some(disk("u-1", "")),
            claim: Some(claim),
            ..fresh()
        })
    };
    let foreign = Disk::Foreign("PersistentVolumeClaim");
    assert!(matches!(owned(|_| {}), Disk::Present { .. }));
    assert_eq!(owned(|owner| owner.uid = "d-2".into()), foreign);
    assert_eq!(owned(|owner| owner.controller = None), foreign);
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
    // What comes out even is not rounded up.
    assert_eq!(
        growth("3Gi", &claim("u-1", "c-1", "2Gi"), fast()),
        Growth::To {
            request: 3 << 30,
            size: 3 << 30
        }
    );
    // It is the claim's own class that counts.
    let mut rigid = class("fast", &json!({}));
    Arc::make_mut(&mut rigid).allow_volume_expansion = Some(false);
    let classes = vec![rigid, class("other", &json!({}))];
    let refused = growth("3Gi", &inflated, classes);
    assert!(matches!(refused, Growth::Refused(_)), "{refused:?}");
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

// P-3
#[test]
fn the_platforms_status_says_whether_its_settings_are_in_force() {
    let spec = |domain: &str| KitePlatformSpec {
        base_domain: Some(domain.to_owned()),
        ..KitePlatformSpec::default()
    };
    for (domain, said, words) in [
        ("vms.example.org", "True Valid", "in force"),
        ("no domain", "False InvalidSpec", "stay in force"),
    ] {
        let mut platform = KitePlatform::new("default", spec(domain));
        platform.metadata.generation = Some(3);
        let problems = ValidPlatform::parse(&platform.spec).err();
        let status = status::platform(&platform, problems.as_ref(), &clock::now());
        assert_eq!(status.observed_generation, Some(3));
        let accepted = condition::find(&status.conditions, ACCEPTED).unwrap();
        assert_eq!(format!("{} {}", accepted.status, accepted.reason), said);
        assert!(accepted.message.contains(words), "{}", accepted.message);
    }
}
