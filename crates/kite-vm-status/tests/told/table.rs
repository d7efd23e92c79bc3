//! The phase table of rule S-2, row by row.

use std::sync::Arc;

use crate::common::{guest, machine, say, vm};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kite_api::condition::{POWER_IN_SYNC, READY, find};
use kite_api::machine::OnGuestShutdown;
use kite_api::{KiteVirtualMachine, KiteVirtualMachineStatus};
use kite_kubevirt::{VirtualMachine, VirtualMachineInstance};
use kite_vm_status::observe::reading::{Found, read};
use kite_vm_status::status::stop::judged;
use kite_vm_status::status::{Elapsed, standing, takes_over, tell};
use serde_json::json;

const STOOD: Elapsed = Elapsed {
    error: true,
    transition: false,
    behind: false,
    service: false,
};

fn told(
    machine: &KiteVirtualMachine,
    vm: VirtualMachine,
    instance: Option<&VirtualMachineInstance>,
    elapsed: Elapsed,
) -> KiteVirtualMachineStatus {
    let now = Time(Timestamp::UNIX_EPOCH);
    let reading = read(machine, &Found::Ours(Arc::new(vm)), instance);
    let reading = judged(reading, &standing(machine), &now);
    tell(machine, &reading, elapsed, &now).status
}

/// `phase power ready-status ready-reason`, with `-` for nothing.
fn line(status: &KiteVirtualMachineStatus) -> String {
    let ready = find(&status.conditions, READY).unwrap();
    let phase = status
        .phase
        .map_or_else(|| "-".to_owned(), |p| format!("{p:?}"));
    let power = status
        .current_power_state
        .map_or_else(|| "-".to_owned(), |p| format!("{p:?}"));
    format!("{phase} {power} {} {}", ready.status, ready.reason)
}

/// KubeVirt's word, what is said when On is wanted, and when Off is.
const TABLE: [(&str, &str, &str); 19] = [
    (
        "Running",
        "Running On True Running",
        "Running On False StopPending",
    ),
    (
        "Stopped",
        "Stopped Off False StartPending",
        "Stopped Off True Stopped",
    ),
    (
        "Starting",
        "Starting On False Starting",
        "Starting On False Starting",
    ),
    (
        "Stopping",
        "Stopping On False Stopping",
        "Stopping On False Stopping",
    ),
    (
        "Terminating",
        "Stopping On False Stopping",
        "Stopping On False Stopping",
    ),
    (
        "Paused",
        "Paused On False Paused",
        "Paused On False StopPending",
    ),
    (
        "Migrating",
        "Migrating On True Migrating",
        "Migrating On False StopPending",
    ),
    (
        "Provisioning",
        "Provisioning Off False Provisioning",
        "Provisioning Off True Stopped",
    ),
    (
        "WaitingForVolumeBinding",
        "Provisioning Off False Provisioning",
        "Provisioning Off True Stopped",
    ),
    (
        "WaitingForReceiver",
        "Provisioning Off False Provisioning",
        "Provisioning Off True Stopped",
    ),
    (
        "CrashLoopBackOff",
        "Failed Off False CrashLoopBackOff",
        "Failed Off False CrashLoopBackOff",
    ),
    (
        "ErrorUnschedulable",
        "Failed Off False ErrorUnschedulable",
        "Failed Off False ErrorUnschedulable",
    ),
    (
        "ErrImagePull",
        "Failed Off False ErrImagePull",
        "Failed Off False ErrImagePull",
    ),
    (
        "ImagePullBackOff",
        "Failed Off False ImagePullBackOff",
        "Failed Off False ImagePullBackOff",
    ),
    (
        "ErrorPvcNotFound",
        "Failed Off False ErrorPvcNotFound",
        "Failed Off False ErrorPvcNotFound",
    ),
    (
        "DataVolumeError",
        "Failed Off False DataVolumeError",
        "Failed Off False DataVolumeError",
    ),
    (
        "Unknown",
        "Unknown - Unknown Unknown",
        "Unknown - Unknown Unknown",
    ),
    ("", "Unknown - Unknown Unknown", "Unknown - Unknown Unknown"),
    (
        "Levitating",
        "Unknown - Unknown Unknown",
        "Unknown - Unknown Unknown",
    ),
];

/// What stands in a row besides KubeVirt's word.
#[allow(clippy::struct_excessive_bools)] // Each is independent of the others.
#[derive(Clone, Copy, Debug)]
struct Beside {
    on: bool,
    seen: bool,
    /// The reason of `DiskReady`, which is True for `Succeeded`.
    disk: Option<&'static str>,
    stay_off: bool,
    /// The last guest has shut itself down.
    clean: bool,
}

fn every_beside() -> Vec<Beside> {
    let disks = [
        None,
        Some("Succeeded"),
        Some("CloneInProgress"),
        Some("CloneFailed"),
    ];
    let mut all = Vec::new();
    for disk in disks {
        for bits in 0..16 {
            let [on, seen, stay_off, clean] = [1, 2, 4, 8].map(|bit| bits & bit != 0);
            all.push(Beside {
                on,
                seen,
                disk,
                stay_off,
                clean,
            });
        }
    }
    all
}

/// What rule S-2 says.
fn expected((word, on, off): (&str, &'static str, &'static str), beside: Beside) -> &'static str {
    match beside.disk {
        Some("CloneInProgress") => return "Provisioning Off False Provisioning",
        Some("CloneFailed") => return "Failed Off False CloneFailed",
        _ if !beside.seen => return "Provisioning Off False WaitingForKubeVirt",
        _ => {}
    }
    let waits = off == "Provisioning Off True Stopped";
    match (beside.on, word) {
        (true, "Stopped") if beside.stay_off && beside.clean => "Stopped Off False GuestShutDown",
        (true, _) => on,
        // The disk is there only when somebody says so.
        (false, _) if waits && beside.disk.is_none() => "Provisioning Off False Provisioning",
        (false, _) => off,
    }
}

// S-2, C-15, F-7, F-8: the seventeen words, none and an unknown one, by all that stands beside them.
#[test]
fn each_of_kubevirts_words_has_its_row_whatever_stands_beside_it() {
    for row in TABLE {
        for beside in every_beside() {
            let mut machine = machine(if beside.on { "On" } else { "Off" });
            if beside.stay_off {
                machine.spec.on_guest_shutdown = OnGuestShutdown::StayOff;
            }
            if let Some(reason) = beside.disk {
                let status = if reason == "Succeeded" {
                    "True"
                } else {
                    "False"
                };
                say(&mut machine, "DiskReady", status, reason);
            }
            let reason = if beside.clean {
                "GuestShutDown"
            } else {
                "GuestStopped"
            };
            let stop = json!({"instanceUID": "i1", "reason": reason});
            machine.status.as_mut().unwrap().last_stop = serde_json::from_value(stop).unwrap();
            let ready = json!([{"type": "Ready", "status": "True"}]);
            let conditions = if beside.seen { ready } else { json!([]) };
            let mut vm = vm(row.0, &json!({"conditions": conditions}));
            if !beside.seen {
                vm.metadata.finalizers = None;
            }
            let status = told(&machine, vm, None, STOOD);
            assert_eq!(line(&status), expected(row, beside), "{} {beside:?}", row.0);
            assert_eq!(status.observed_generation, Some(1));
        }
    }
}

// S-2, F-7
#[test]
fn a_running_machine_is_ready_only_when_kubevirt_says_so() {
    let status = told(
        &machine("On"),
        vm("Running", &json!({})),
        Some(&guest()),
        STOOD,
    );
    assert_eq!(line(&status), "Running On False GuestNotRunning");
}

// S-2
#[test]
fn the_default_of_a_machine_that_kubevirt_has_not_seen_says_nothing() {
    for power in ["On", "Off"] {
        let mut unseen = vm("Stopped", &json!({"conditions": [], "runStrategy": null}));
        unseen.metadata.finalizers = None;
        let status = told(&machine(power), unseen, None, STOOD);
        assert_eq!(line(&status), "Provisioning Off False WaitingForKubeVirt");
    }
}

// S-2
#[test]
fn a_machine_made_off_is_ready_though_it_never_had_a_generation_observed() {
    let fresh = json!({"runStrategy": null, "conditions": [{"type": "Ready", "status": "False", "reason": "VMINotExists"}]});
    let status = told(&machine("Off"), vm("Stopped", &fresh), None, STOOD);
    assert_eq!(line(&status), "Stopped Off True Stopped");
    let status = told(&machine("On"), vm("Stopped", &fresh), None, STOOD);
    assert_eq!(line(&status), "Provisioning Off False StartPending");
}

// S-2
#[test]
fn off_is_reached_when_the_instance_is_gone_and_not_when_stopped_is_first_read() {
    let created = json!({"created": true, "conditions": [{"type": "Ready", "status": "True"}]});
    let status = told(&machine("Off"), vm("Stopped", &created), None, STOOD);
    assert_eq!(line(&status), "Stopping On False Stopping");
}

// S-2
#[test]
fn a_disk_error_is_a_failure_in_the_words_of_the_disk() {
    for reason in ["CloneFailed", "QuotaExceeded", "Stuck", "DiskLost"] {
        let mut machine = machine("On");
        say(&mut machine, "DiskReady", "False", reason);
        let status = told(&machine, vm("Provisioning", &json!({})), None, STOOD);
        assert_eq!(line(&status), format!("Failed Off False {reason}"));
    }
}

// S-2: where to look is said with KubeVirt's word.
#[test]
fn each_error_word_is_told_with_what_it_means() {
    for (word, meaning) in [
        ("CrashLoopBackOff", "failed to start several times"),
        ("ErrorUnschedulable", "no node has room"),
        ("ErrImagePull", "the launcher's own image"),
        ("ImagePullBackOff", "the launcher's own image"),
        ("ErrorPvcNotFound", "disk is not there"),
        ("DataVolumeError", "could not be filled"),
    ] {
        let status = told(&machine("On"), vm(word, &json!({})), None, STOOD);
        let message = &find(&status.conditions, READY).unwrap().message;
        let begins = format!("KubeVirt says {word}: ");
        assert!(message.starts_with(&begins), "{message}");
        assert!(message.contains(meaning), "{message}");
    }
}

// S-3, S-4
#[test]
fn a_guest_that_runs_proves_its_disk_whatever_an_absent_controller_left_behind() {
    let mut machine = machine("On");
    say(&mut machine, "DiskReady", "False", "CloneInProgress");
    let ready = json!({"conditions": [{"type": "Ready", "status": "True"}]});
    let status = told(&machine, vm("Running", &ready), Some(&guest()), STOOD);
    assert_eq!(line(&status), "Running On True Running");
    assert_eq!(status.node_name.as_deref(), Some("n1"));
    assert_eq!(status.ip_addresses, ["10.0.0.10", "10.0.0.9"]);
}

// S-3
#[test]
fn power_comes_from_the_guest_that_runs_even_when_kubevirt_calls_it_an_error() {
    let status = told(
        &machine("On"),
        vm("ErrorUnschedulable", &json!({})),
        Some(&guest()),
        STOOD,
    );
    assert_eq!(line(&status), "Failed On False ErrorUnschedulable");
}

// C-9
#[test]
fn a_refused_specification_moves_the_generation_and_leaves_the_phase_to_kite_vm() {
    let mut machine = machine("On");
    say(&mut machine, "ResourcesApplied", "False", "NotAccepted");
    say(&mut machine, "Accepted", "False", "ImageNotFound");
    let none: Found<Arc<VirtualMachine>> = Found::Absent;
    let told = tell(
        &machine,
        &read(&machine, &none, None),
        Elapsed::default(),
        &Time(Timestamp::UNIX_EPOCH),
    );
    assert_eq!(line(&told.status), "- - False ImageNotFound");
    assert_eq!(told.status.observed_generation, Some(1));
}

// C-14
#[test]
fn a_kind_that_is_not_served_is_not_read_as_a_machine_that_is_gone() {
    let ready = json!({"conditions": [{"type": "Ready", "status": "True"}]});
    let mut machine = machine("On");
    let running = told(&machine, vm("Running", &ready), Some(&guest()), STOOD);
    machine.status = Some(KiteVirtualMachineStatus {
        conditions: [
            running.conditions.clone(),
            machine.status.unwrap().conditions,
        ]
        .concat(),
        ..running.clone()
    });
    let missing: Found<Arc<VirtualMachine>> = Found::KindMissing;
    let told = tell(
        &machine,
        &read(&machine, &missing, None),
        Elapsed::default(),
        &Time(Timestamp::UNIX_EPOCH),
    );
    assert_eq!(line(&told.status), "Unknown On Unknown DependencyMissing");
    let power = find(&told.status.conditions, POWER_IN_SYNC).unwrap();
    let said = (power.status.as_str(), power.reason.as_str());
    assert_eq!(said, ("Unknown", "DependencyMissing"));
    assert_eq!(told.status.virtual_machine_uid, running.virtual_machine_uid);
    assert_eq!(told.status.node_name, running.node_name);
}

// C-10
#[test]
fn a_phase_that_may_be_shared_with_kite_vm_is_taken_over_when_it_first_changes() {
    let status = |uid: Option<&str>, phase: &str| -> KiteVirtualMachineStatus {
        serde_json::from_value(json!({"virtualMachineUID": uid, "phase": phase})).unwrap()
    };
    let none = KiteVirtualMachineStatus::default();
    let taken = status(Some("v"), "Provisioning");
    assert!(takes_over(&none, &taken));
    assert!(!takes_over(&taken, &taken));
    assert!(takes_over(&taken, &status(Some("v"), "Starting")));
    let starting = status(Some("v"), "Starting");
    assert!(!takes_over(&starting, &status(Some("v"), "Running")));
    assert!(!takes_over(&taken, &none), "a farewell takes nothing");
}
