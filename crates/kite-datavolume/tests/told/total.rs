//! Whatever CDI, the storage and people write: what is told fits the schema, claims no success
//! that CDI does not claim, and is told once.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kite_api::KiteVirtualMachine;
use kite_api::condition::{DISK_READY, find};
use kite_datavolume::observe::Found;
use kite_datavolume::status::Disk;
use kite_kubevirt::DataVolume;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::player::Player;

/// A word that CDI or Kubernetes knows, or any text.
fn word(known: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop_oneof![select(known).prop_map(str::to_owned), ".{0,90}"]
}

const PHASES: &[&str] = &[
    "",
    "Pending",
    "CloneScheduled",
    "CloneInProgress",
    "WaitForFirstConsumer",
    "PendingPopulation",
    "Succeeded",
    "Failed",
    "Unknown",
    "Foo",
];
const REASONS: &[&str] = &[
    "",
    "Pending",
    "Completed",
    "Error",
    "ErrExceededQuota",
    "CloneWithoutSource",
    "ImagePullFailed",
];
const MESSAGES: &[&str] = &["", "exceeded quota: q", "no volume"];
const AMOUNTS: &[&str] = &["0", "1Gi", "2Gi", "2276332667", "-1", "1e99", "much", ""];
const UIDS: &[&str] = &["k1", "d1", "c1", "x"];

fn conditions(types: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let one = (word(types), word(&["True", "False", "Unknown"]), option::of(word(REASONS)), option::of(word(MESSAGES)))
        .prop_map(|(type_, status, reason, message)| {
            json!({"type": type_, "status": status, "reason": reason, "message": message})
        });
    vec(one, 0..5).prop_map(Value::from)
}

fn meta() -> impl Strategy<Value = Value> {
    let labels: BoxedStrategy<BTreeMap<String, String>> =
        btree_map(word(&["kite.dev/retained"]), "[a-z]{0,5}", 0..2).boxed();
    let owner = (select(&["DataVolume", "StatefulSet"][..]), select(UIDS), option::of(any::<bool>()))
        .prop_map(|(kind, uid, controller)| {
            json!({"apiVersion": "v1", "kind": kind, "name": "web", "uid": uid, "controller": controller})
        });
    (
        option::of(select(UIDS)),
        option::of(select(UIDS)),
        option::of(labels),
        vec(owner, 0..3),
    )
        .prop_map(|(uid, bound_to, labels, owners)| {
            json!({
                "name": "web", "uid": uid, "labels": labels, "ownerReferences": owners,
                "annotations": bound_to.map(|uid| json!({"kite.dev/vm-uid": uid})),
            })
        })
}

fn disk() -> impl Strategy<Value = DataVolume> {
    let progress = word(&["", "N/A", "0.00%", "45.30%", "100.0%", "101%"]);
    let status = (
        option::of(word(PHASES)),
        option::of(progress),
        option::of(any::<i64>()),
        option::of(conditions(&["Bound", "Running", "Ready"])),
    )
        .prop_map(|(phase, progress, restarts, conditions)| {
            json!({"phase": phase, "progress": progress, "restartCount": restarts, "conditions": conditions})
        });
    (meta(), option::of(status)).prop_map(|(meta, status)| {
        serde_json::from_value(json!({"metadata": meta, "status": status})).unwrap()
    })
}

fn claim() -> impl Strategy<Value = PersistentVolumeClaim> {
    let resizing = conditions(&[
        "Resizing",
        "FileSystemResizePending",
        "ControllerResizeError",
    ]);
    let status = (
        option::of(word(&["Bound", "Pending", "Lost"])),
        option::of(word(AMOUNTS)),
        option::of(resizing),
        option::of(word(&["NodeResizePending", "ControllerResizeInfeasible"])),
    )
        .prop_map(|(phase, capacity, conditions, resize)| {
            json!({
                "phase": phase, "conditions": conditions,
                "capacity": capacity.map(|c| json!({"storage": c})),
                "allocatedResourceStatuses": resize.map(|r| json!({"storage": r})),
            })
        });
    (meta(), option::of(word(AMOUNTS)), option::of(status)).prop_map(|(meta, asked, status)| {
        let asked = asked.map(|a| json!({"resources": {"requests": {"storage": a}}}));
        serde_json::from_value(json!({"metadata": meta, "spec": asked, "status": status})).unwrap()
    })
}

fn machine() -> impl Strategy<Value = KiteVirtualMachine> {
    (option::of(select(UIDS)), any::<bool>(), select(&["Applied", "NameConflict"][..])).prop_map(
        |(recorded, named, reason)| {
            serde_json::from_value(json!({
                "apiVersion": "kite.dev/v1alpha1", "kind": "KiteVirtualMachine",
                "metadata": {"name": "web", "namespace": "alice", "uid": "k1", "generation": 1},
                "spec": {"cpu": 1, "memory": "1Gi", "disk": "2Gi", "image": "ubuntu"},
                "status": {
                    "claimUID": recorded, "dataVolumeName": named.then_some("web"),
                    "conditions": [{
                        "type": "ResourcesApplied", "status": "False", "reason": reason, "message": "m",
                        "lastTransitionTime": "2026-01-01T00:00:00Z",
                    }],
                },
            }))
            .unwrap()
        },
    )
}

fn found() -> impl Strategy<Value = Found> {
    (
        any::<bool>(),
        option::of(disk()),
        option::of(claim()),
        any::<bool>(),
    )
        .prop_map(|(served, disk, claim, looked)| Found {
            served,
            disk: disk.map(Arc::new),
            claim: claim.map(Arc::new),
            looked,
            unreadable: None,
        })
}

/// The bounds that the CRD sets to what is written.
fn fits(player: &Player) {
    for (_, status) in &player.writes {
        let within = |text: &Option<String>, limit: usize| {
            text.as_ref()
                .is_none_or(|t| !t.is_empty() && t.chars().count() <= limit)
        };
        assert!(within(&status.data_volume_phase, 64), "{status:?}");
        assert!(within(&status.data_volume_progress, 16), "{status:?}");
        assert!(within(&status.data_volume_message, 1024), "{status:?}");
        let ready = find(&status.conditions, DISK_READY).unwrap();
        assert!(ready.message.chars().count() <= 1024 && !ready.message.is_empty());
        let mut letters = ready.reason.chars();
        assert!(letters.all(|c| c.is_ascii_alphanumeric()) && !ready.reason.is_empty());
        assert!(["True", "False", "Unknown"].contains(&ready.status.as_str()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    // C-4, C-5, C-15, D-1 to D-7, TS3
    #[test]
    fn whatever_is_found_is_told_once_within_bounds_and_without_a_success_of_its_own(
        machine in machine(), found in found(),
    ) {
        let mut player = Player::new();
        player.machine = machine;
        player.disk = found.disk(&player.machine);
        prop_assert_eq!(&player.disk, &found.disk(&player.machine));
        player.until(5000.0);
        fits(&player);
        let cdi = found.disk.as_ref().map_or("", |d| d.phase());
        if player.ready().starts_with("True") {
            prop_assert!(matches!(player.disk, Disk::ClaimOnly(_)) || cdi == "Succeeded");
        }
        let told = player.writes.len();
        prop_assert!(told <= 4, "{} writes of one thing", told);
        player.restart();
        player.until(10_000.0);
        prop_assert!(player.writes.is_empty(), "{:?}", player.writes);
    }

    // VM18: the same end, in whatever order CDI's words arrived.
    #[test]
    fn what_is_told_in_the_end_does_not_depend_on_the_way_there(
        machine in machine(), one in found(), other in found(), last in found(),
    ) {
        let end = |way: [&Found; 2]| {
            let mut player = Player::new();
            player.machine = machine.clone();
            for (until, found) in [20.0, 40.0, 60.0].into_iter().zip(way.into_iter().chain([&last])) {
                player.disk = found.disk(&player.machine);
                player.until(until);
            }
            player.until(10_000.0);
            player.ready()
        };
        prop_assert_eq!(end([&one, &other]), end([&other, &one]));
    }
}
