//! What a recorded claim that no watch shows comes to, and when a machine is held for it, as tables.
#![allow(clippy::unwrap_used, missing_docs)]

mod seen;

use std::time::Duration;

use kite_api::KiteVirtualMachineStatus;
use kite_api::machine::{OnGuestShutdown, PowerState};
use kite_kubevirt::read::VirtualMachine;
use kite_kubevirt::write::RunStrategy;
use kite_runtime::Class;
use kite_vm::apply::{Applied, Trouble, disk as disks};
use kite_vm::observe::Observed;
use kite_vm::observe::looks::{Unseen, doubted};
use kite_vm::plan::power::{Decision, Down, Guest, Situation, Why, starts_without_disk};
use kite_vm::plan::{self, Disk};
use seen::{annotated, claim, disk, fresh, recorded};
use serde_json::json;

fn with_claim(owner: &str, uid: &str) -> Observed {
    Observed {
        claim: Some(claim(owner, uid, "2Gi")),
        ..recorded(fresh(), "c-1")
    }
}

// V-15, C-7: only the server's word makes a claim gone
#[test]
fn a_recorded_claim_is_asked_for_where_the_watch_does_not_show_it_as_the_machines() {
    assert_eq!(doubted(&fresh()), None, "none was recorded");
    assert_eq!(doubted(&with_claim("u-1", "c-1")), None);
    assert_eq!(
        doubted(&with_claim("u-1", "c-2")),
        None,
        "its name is taken"
    );
    let doubt = Some("c-1".to_owned());
    assert_eq!(doubted(&recorded(fresh(), "c-1")), doubt);
    assert_eq!(doubted(&with_claim("", "c-1")), doubt);
    let unserved = Observed {
        cdi: false,
        ..recorded(fresh(), "c-1")
    };
    assert_eq!(doubted(&unserved), None);
}

// V-15
#[test]
fn a_claim_is_lost_when_the_server_said_so_and_confirming_a_doubt_destroys_nothing() {
    let present = Disk::Present {
        claim: "c-1".into(),
    };
    assert_eq!(plan::disk(&with_claim("", "c-1")), present);
    let trouble = Trouble::waiting("Forbidden", "no");
    let asked = |gone: bool| Observed {
        disk: Some(disk("u-1", "Succeeded")),
        unseen: Some(Unseen {
            gone,
            trouble: Some(trouble.clone()),
            again: Some(Duration::from_secs(3)),
        }),
        ..recorded(fresh(), "c-1")
    };
    let confirmed = |gone| annotated(asked(gone), "kite.dev/confirm-new-disk", "c-1");
    assert_eq!(plan::disk(&asked(true)), Disk::Lost("c-1".into()));
    assert_eq!(plan::disk(&confirmed(true)), Disk::Replace);
    assert_eq!(plan::disk(&asked(false)), Disk::Unsure);
    assert_eq!(plan::disk(&confirmed(false)), Disk::Unsure);

    let mut applied = Applied::default();
    let told = disks::known(&asked(false), &Disk::Unsure, &mut applied);
    assert_eq!(told, Err(trouble.clone()));
    assert_eq!(applied.again, Some(Duration::from_secs(3)));
    let told = disks::known(&asked(true), &Disk::Lost("c-1".into()), &mut applied).unwrap_err();
    assert_eq!((told.reason, told.class), ("DiskLost", Class::Invalid));
}

// V-15, D-7
#[test]
fn a_machine_is_held_only_before_a_start_and_never_while_it_has_a_guest() {
    let lost = || Disk::Lost("c-1".into());
    let adopted = |adopt| Disk::Retained {
        claim: "c-0".into(),
        adopt,
    };
    let present = Disk::Present {
        claim: "c-1".into(),
    };
    let (always, halted, rerun) = (
        Decision::Run(RunStrategy::Always),
        Decision::Run(RunStrategy::Halted),
        Decision::Run(RunStrategy::RerunOnFailure),
    );
    let (there, going) = (Some(Guest::There), Some(Guest::Going));
    // Run strategy, whether KubeVirt knows of a guest, the guest that is seen, decision, disk, held.
    for (stands, created, guest, decision, disk, held) in [
        ("Halted", false, None, always, lost(), true),
        ("Halted", false, None, rerun, lost(), true),
        (
            "Halted",
            false,
            None,
            always,
            Disk::Foreign("DataVolume"),
            true,
        ),
        ("Halted", false, None, always, Disk::Create, true),
        ("Halted", false, None, always, Disk::Replace, true),
        ("Halted", false, None, always, Disk::Filling, true),
        ("Halted", false, None, always, adopted(false), true),
        ("Halted", false, None, always, Disk::Unsure, true),
        ("Halted", false, None, always, present, false),
        ("Halted", false, None, always, adopted(true), false),
        ("Halted", false, None, always, Disk::Unknown, false),
        // It goes down anyway, and is not to come back.
        ("Halted", true, going, always, lost(), true),
        ("Halted", true, None, always, lost(), true),
        // Somebody halted it from outside; that is set back.
        ("Halted", true, there, always, lost(), false),
        ("Always", false, None, always, lost(), true),
        ("Always", false, None, always, Disk::Unsure, false),
        ("Always", true, None, always, lost(), false),
        ("Always", true, there, always, lost(), false),
        ("Always", true, going, always, lost(), false),
        // Off works always, and what stays down needs no holding.
        ("Always", true, there, halted, lost(), false),
        ("Halted", false, None, halted, lost(), false),
        (
            "RerunOnFailure",
            false,
            None,
            Decision::Start(Why::Ended),
            lost(),
            true,
        ),
        (
            "RerunOnFailure",
            false,
            None,
            Decision::StaysDown(Down::ShutDown),
            lost(),
            false,
        ),
        ("Halted", false, None, Decision::AwaitHalted, lost(), false),
    ] {
        let vm: VirtualMachine = serde_json::from_value(json!({
            "metadata": {"name": "web"}, "spec": {"runStrategy": stands}, "status": {"created": created},
        }))
        .unwrap();
        let at = Situation {
            power: PowerState::On,
            on_guest_shutdown: OnGuestShutdown::Restart,
            vm: Some(&vm),
            guest,
            status: &KiteVirtualMachineStatus::default(),
            seen: None,
        };
        let words = format!("{stands} {created} {guest:?} {decision:?} {disk:?}");
        assert_eq!(starts_without_disk(&at, decision, &disk), held, "{words}");
        let none = Situation { vm: None, ..at };
        assert!(!starts_without_disk(&none, decision, &disk), "{words}");
    }
}
