//! Whatever KubeVirt's objects hold, something true is said of them, and it fits the schema.

use std::sync::{Arc, LazyLock};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kite_api::condition::{READY, find};
use kite_api::machine::{OnGuestShutdown, PowerState};
use kite_api::{KiteVirtualMachine, KiteVirtualMachineStatus};
use kite_kubevirt::{VirtualMachine, VirtualMachineInstance};
use kite_vm_status::observe::reading::{Found, read};
use kite_vm_status::status::stop::judged;
use kite_vm_status::status::vigil::Vigil;
use kite_vm_status::status::{Elapsed, Told, standing, tell};
use kube::CustomResourceExt;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::common::{machine, say};

const WORDS: [&str; 18] = [
    "Running",
    "Stopped",
    "Starting",
    "Stopping",
    "Terminating",
    "Paused",
    "Migrating",
    "Provisioning",
    "WaitingForVolumeBinding",
    "WaitingForReceiver",
    "CrashLoopBackOff",
    "ErrorUnschedulable",
    "ErrImagePull",
    "ImagePullBackOff",
    "ErrorPvcNotFound",
    "DataVolumeError",
    "Unknown",
    "",
];

/// A word that upstream uses, or one that it may invent.
fn one_of(known: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop_oneof![
        6 => proptest::sample::select(known).prop_map(ToOwned::to_owned),
        1 => "[ -~é]{0,12}",
        1 => (250..400_usize).prop_map(|length| "é".repeat(length)),
    ]
}

fn conditions() -> impl Strategy<Value = Value> {
    let types = &[
        "Ready",
        "Paused",
        "RestartRequired",
        "LiveMigratable",
        "AgentConnected",
        "Failure",
        "Synchronized",
        "EvictionRequested",
    ];
    let reasons = &["", "GuestNotRunning", "FailedCreate", "PodTerminating"];
    let messages = &["", "exceeded quota: kite, requested", "exceeded quota"];
    let one = (
        one_of(types),
        one_of(&["True", "False", "Unknown"]),
        one_of(reasons),
        one_of(messages),
    )
        .prop_map(|(type_, status, reason, message)| {
            json!({"type": type_, "status": status, "reason": reason, "message": message})
        });
    proptest::collection::vec(one, 0..6).prop_map(Value::Array)
}

fn vms() -> impl Strategy<Value = VirtualMachine> {
    let strategy = one_of(&["Always", "Halted", "RerunOnFailure"]);
    (
        one_of(&WORDS),
        any::<Option<bool>>(),
        proptest::option::of(strategy),
        conditions(),
        any::<[bool; 3]>(),
    )
        .prop_map(|(word, created, strategy, conditions, [seen, queued, told])| {
            let finalizers = if seen { json!(["kubevirt.io/virtualMachineControllerFinalize"]) } else { json!([]) };
            let requests = if queued { json!([{"action": "Start"}]) } else { json!(null) };
            let status = json!({
                "printableStatus": word, "created": created, "runStrategy": strategy,
                "conditions": conditions, "stateChangeRequests": requests,
            });
            serde_json::from_value(json!({
                "metadata": {"name": "web", "namespace": "alice", "uid": "v1", "finalizers": finalizers},
                "status": told.then_some(status),
            }))
            .unwrap()
        })
}

fn guests() -> impl Strategy<Value = Option<VirtualMachineInstance>> {
    let phases = &[
        "",
        "Pending",
        "Scheduling",
        "Scheduled",
        "Running",
        "Succeeded",
        "Failed",
        "WaitingForSync",
        "Unknown",
    ];
    let address = prop_oneof![
        8 => (0..99).prop_map(|host| format!("10.0.0.{host}")),
        1 => one_of(&["fd00::1", ""]),
    ];
    let addresses = proptest::collection::vec(address, 0..80);
    let guest = (
        one_of(phases),
        proptest::option::of(one_of(&["n1", "n2"])),
        proptest::option::of(one_of(&["NodeUnresponsive"])),
        addresses,
        conditions(),
        any::<bool>(),
    )
        .prop_map(|(phase, node, reason, addresses, conditions, going)| {
            let deletion = going.then_some("2026-01-01T00:00:00Z");
            serde_json::from_value(json!({
                "metadata": {"name": "web", "uid": "i1", "deletionTimestamp": deletion, "ownerReferences": [
                    {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web", "uid": "v1", "controller": true},
                ]},
                "status": {
                    "phase": phase, "nodeName": node, "reason": reason, "conditions": conditions,
                    "interfaces": [{"ipAddresses": addresses}],
                },
            }))
            .unwrap()
        });
    proptest::option::of(guest)
}

fn machines() -> impl Strategy<Value = KiteVirtualMachine> {
    let reasons = &["QuotaExceeded", "Stuck", "InProgress", "NameConflict"];
    let told = (one_of(&["True", "False", "Unknown"]), one_of(reasons));
    let told = proptest::collection::vec(told, 5);
    (any::<[bool; 3]>(), told).prop_map(|([on, stay_off, behind], told)| {
        let mut machine = machine(if on { "On" } else { "Off" });
        let policy = if stay_off {
            OnGuestShutdown::StayOff
        } else {
            OnGuestShutdown::Restart
        };
        machine.spec.on_guest_shutdown = policy;
        let types = [
            "ResourcesApplied",
            "Accepted",
            "Stalled",
            "DiskReady",
            "ServiceReady",
        ];
        for (type_, (status, reason)) in types.into_iter().zip(told) {
            say(&mut machine, type_, &status, &reason);
        }
        if behind {
            machine.metadata.generation = Some(2);
        }
        machine
    })
}

fn elapsed() -> impl Strategy<Value = Elapsed> {
    any::<[bool; 4]>().prop_map(|[error, transition, behind, service]| Elapsed {
        error,
        transition,
        behind,
        service,
    })
}

fn told(
    machine: &KiteVirtualMachine,
    vm: &VirtualMachine,
    guest: Option<&VirtualMachineInstance>,
    elapsed: Elapsed,
) -> Told {
    let now = Time(Timestamp::UNIX_EPOCH);
    let mut vigil = Vigil::default();
    if let Some(guest) = guest {
        vigil.look(guest);
    }
    let mut reading = read(machine, &Found::Ours(Arc::new(vm.clone())), guest);
    reading.ended = vigil.last_end(Some("v1"), guest.map(|_| "i1"));
    tell(
        machine,
        &judged(reading, &standing(machine), &now),
        elapsed,
        &now,
    )
}

/// The server takes what was said.
fn takes(machine: &mut KiteVirtualMachine, told: &KiteVirtualMachineStatus) {
    let own = kite_api::ownership::conditions_of(kite_api::labels::Controller::VmStatus);
    let mut conditions = machine.status.take().unwrap_or_default().conditions;
    conditions.retain(|c| !own.contains(&c.type_.as_str()));
    conditions.extend(told.conditions.clone());
    machine.status = Some(KiteVirtualMachineStatus {
        conditions,
        ..told.clone()
    });
}

/// Where a value breaks the bounds of its schema.
fn beyond(schema: &Value, value: &Value, at: &str) -> Option<String> {
    let limit = |name: &str| schema[name].as_u64().and_then(|n| usize::try_from(n).ok());
    let is_over = |length: usize, name: &str| limit(name).is_some_and(|most| length > most);
    match value {
        Value::String(text) if is_over(text.chars().count(), "maxLength") => {
            Some(format!("{at}: {text}"))
        }
        Value::Array(items) if is_over(items.len(), "maxItems") => {
            Some(format!("{at}: {} items", items.len()))
        }
        Value::Array(items) => items
            .iter()
            .find_map(|item| beyond(&schema["items"], item, at)),
        Value::Object(fields) => fields
            .iter()
            .find_map(|(name, value)| beyond(&schema["properties"][name], value, name)),
        _ => None,
    }
}

/// The schema of a machine's status.
static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let crd = serde_json::to_value(KiteVirtualMachine::crd()).unwrap();
    crd.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/status")
        .unwrap()
        .clone()
});

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    // S-2, C-15, F-8: never Ready by mistake, whatever is not known.
    #[test]
    fn ready_is_said_only_of_what_is_as_wanted(machine in machines(), vm in vms(), guest in guests(), elapsed in elapsed()) {
        let status = told(&machine, &vm, guest.as_ref(), elapsed).status;
        let ready = find(&status.conditions, READY).is_some_and(|c| c.status == "True");
        let word = vm.printable_status();
        prop_assert!(!ready || vm.is_seen());
        prop_assert!(!ready || WORDS[..17].contains(&word) && word != "Unknown");
        if ready && machine.spec.power_state == PowerState::On {
            let reads_ready = vm.condition("Ready").is_some_and(|c| c.status == "True");
            prop_assert!(word == "Migrating" || word == "Running" && reads_ready);
            prop_assert_eq!(status.current_power_state, Some(PowerState::On));
        } else if ready {
            let runs = guest.as_ref().is_some_and(|g| g.phase() == "Running");
            prop_assert!(!runs || word != "Stopped");
            prop_assert!(matches!(word, "Stopped" | "Provisioning" | "WaitingForVolumeBinding" | "WaitingForReceiver"));
        }
        let observed = status.observed_generation;
        prop_assert!(observed.is_none() || observed == machine.metadata.generation);
    }

    // C-17, S-4: a status that the schema refuses would be refused as a whole, for ever.
    #[test]
    fn what_is_said_fits_the_schema(machine in machines(), vm in vms(), guest in guests(), elapsed in elapsed()) {
        let status = told(&machine, &vm, guest.as_ref(), elapsed).status;
        let schema = &*SCHEMA;
        prop_assert!(schema["properties"]["blockedBy"]["maxLength"].is_u64());
        let status = serde_json::to_value(&status).unwrap();
        prop_assert_eq!(beyond(schema, &status, "status"), None);
        for condition in status["conditions"].as_array().into_iter().flatten() {
            let reason = condition["reason"].as_str().unwrap();
            let is_word = reason.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            // Those of the other controllers are theirs to get right.
            let theirs = machine.status.as_ref().unwrap().conditions.iter().any(|c| c.reason == reason);
            prop_assert!(theirs || is_word && !reason.is_empty(), "{}", reason);
        }
    }

    // C-5: what was said once stands, for as long as nothing changes.
    #[test]
    fn what_was_said_is_said_again(machine in machines(), vm in vms(), guest in guests(), elapsed in elapsed()) {
        let mut machine = machine;
        let first = told(&machine, &vm, guest.as_ref(), elapsed).status;
        takes(&mut machine, &first);
        let second = told(&machine, &vm, guest.as_ref(), elapsed).status;
        prop_assert_eq!(&second, &standing(&machine));
        // A restart of the process has forgotten how long things have stood.
        let forgetful = told(&machine, &vm, guest.as_ref(), Elapsed { behind: elapsed.behind, ..Elapsed::default() });
        prop_assert_eq!(&forgetful.status, &second);
    }
}
