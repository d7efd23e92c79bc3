//! kite-datavolume alone on a real API server; CDI and kite-vm are played by hand.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::Duration;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kite_api::KiteVirtualMachine;
use kite_api::condition::DISK_READY;
use kite_kubevirt::DataVolume;
use kite_testkit::audit::{Mark, Request};
use kite_testkit::by_hand::{ByHand, condition};
use kite_testkit::cluster::CONTROLLERS;
use kite_testkit::{Cluster, ClusterOptions, Options, install};
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use tokio::sync::{OnceCell, RwLock};

/// The controller under test.
const NAME: &str = "kite-datavolume";
/// Longer than anything here takes on two busy cores.
const LONG: Duration = Duration::from_secs(40);
/// Long enough for a write that must not come.
const QUIET: Duration = Duration::from_secs(4);

/// Held for writing while a second copy of the controller runs, whose requests would be counted too.
static ALONE: RwLock<()> = RwLock::const_new(());

/// One cluster for all tests; errors are held for 2.5 s, progress is told every 2.5 s.
async fn cluster() -> &'static Cluster {
    static CLUSTER: OnceCell<Cluster> = OnceCell::const_new();
    CLUSTER
        .get_or_init(|| async {
            let others = CONTROLLERS.into_iter().filter(|c| *c != NAME);
            let control_plane = Options {
                controller_manager: false,
                ..Options::default()
            };
            let options = ClusterOptions {
                speed: 4.0,
                stand_ins: false,
                without: others.collect(),
                args: vec![(NAME, "--stuck-after=6s".to_owned())],
                control_plane,
            };
            let cluster = Cluster::start(options).await.unwrap();
            let hand = ByHand::new(cluster.client().await, "early").await.unwrap();
            hand.machine("web", &json!({})).await.unwrap();
            hand.until("web", LONG, |m| {
                condition(m, DISK_READY) == "Unknown DependencyMissing"
            })
            .await
            .unwrap();
            install::upstream_crds(&cluster.control_plane)
                .await
                .unwrap();
            let began = std::time::Instant::now();
            let machine: KiteVirtualMachine = hand.api().get("web").await.unwrap();
            disk(&hand, &machine).await;
            cdi(&hand, "web", "Succeeded", "100.0%", &json!([])).await;
            // C-14: picked up within 30 s.
            hand.until("web", LONG, |m| {
                condition(m, DISK_READY) == "True Succeeded"
            })
            .await
            .unwrap();
            assert!(
                began.elapsed() < Duration::from_secs(30),
                "{:?}",
                began.elapsed()
            );
            cluster
        })
        .await
}

async fn by_hand(namespace: &str) -> ByHand {
    ByHand::new(cluster().await.client().await, namespace)
        .await
        .unwrap()
}

async fn disk(hand: &ByHand, machine: &KiteVirtualMachine) -> DataVolume {
    let object = json!({
        "apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume",
        "spec": {"sourceRef": {"kind": "DataSource", "name": "ubuntu", "namespace": "kite-images"},
            "storage": {"resources": {"requests": {"storage": "2Gi"}}}},
    });
    hand.child(machine, false, object).await.unwrap()
}

/// The claim as CDI makes it: with the DataVolume's labels, owned by it.
async fn claim(
    hand: &ByHand,
    machine: &KiteVirtualMachine,
    disk: &DataVolume,
) -> PersistentVolumeClaim {
    let object = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}},
    });
    hand.child::<PersistentVolumeClaim>(machine, false, object)
        .await
        .unwrap();
    let owner = json!({"metadata": {"ownerReferences": [{
        "apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "name": disk.name_any(),
        "uid": disk.uid().unwrap(), "controller": true,
    }]}});
    hand.edit(&machine.name_any(), &owner).await.unwrap()
}

/// CDI says something of a disk.
async fn cdi(hand: &ByHand, name: &str, phase: &str, progress: &str, conditions: &Value) {
    let status = json!({"phase": phase, "progress": progress, "conditions": conditions});
    hand.status::<DataVolume>(name, &status).await.unwrap();
}

async fn mark(hand: &ByHand) -> Mark {
    cluster()
        .await
        .control_plane
        .audit()
        .unwrap()
        .settled_mark(&hand.client)
        .await
        .unwrap()
}

/// What the controller asked of the server about a namespace since a mark, events apart.
async fn requests(hand: &ByHand, since: Mark) -> Vec<Request> {
    mark(hand).await;
    let all = cluster()
        .await
        .control_plane
        .audit()
        .unwrap()
        .since(since)
        .unwrap();
    let own = |r: &Request| {
        r.is_by(NAME) && !r.is_watch() && !r.is_event() && r.namespace == hand.namespace
    };
    all.into_iter().filter(own).collect()
}

fn told(machine: &KiteVirtualMachine) -> (Option<&str>, Option<&str>) {
    let status = machine.status.as_ref();
    let phase = status.and_then(|s| s.data_volume_phase.as_deref());
    (
        phase,
        status.and_then(|s| s.data_volume_progress.as_deref()),
    )
}

// D-1, D-2, C-5
#[tokio::test]
async fn a_clone_is_told_in_few_writes_the_first_number_and_the_end_at_once() {
    let _alone = ALONE.read().await;
    let hand = by_hand("clone").await;
    let machine = hand.machine("web", &json!({})).await.unwrap();
    let began = mark(&hand).await;
    let disk = disk(&hand, &machine).await;
    cdi(&hand, "web", "Pending", "N/A", &json!([])).await;
    claim(&hand, &machine, &disk).await;
    cdi(&hand, "web", "CloneScheduled", "N/A", &json!([])).await;
    hand.until("web", LONG, |m| told(m).0 == Some("CloneScheduled"))
        .await
        .unwrap();
    cdi(&hand, "web", "CloneInProgress", "N/A", &json!([])).await;
    // Twenty ticks a quarter of a second apart: two intervals of 2.75 s are over within them.
    for tick in 1..=20 {
        cdi(
            &hand,
            "web",
            "CloneInProgress",
            &format!("{}.5%", tick * 5 - 1),
            &json!([]),
        )
        .await;
        if tick == 1 {
            hand.until("web", Duration::from_secs(2), |m| {
                told(m) == (Some("CloneInProgress"), Some("4%"))
            })
            .await
            .unwrap();
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    cdi(&hand, "web", "Succeeded", "100.0%", &json!([])).await;
    let done = hand
        .until("web", Duration::from_secs(2), |m| {
            condition(m, DISK_READY) == "True Succeeded"
        })
        .await
        .unwrap();
    assert_eq!(told(&done), (Some("Succeeded"), Some("100%")));
    let sent = requests(&hand, began).await.len();
    assert!((4..=6).contains(&sent), "{sent} writes");
    let owned = hand.owned("web", NAME).await.unwrap();
    assert_eq!(
        owned,
        [
            "condition {\"type\":\"DiskReady\"}",
            "dataVolumePhase",
            "dataVolumeProgress"
        ]
    );
}

// C-5: nothing changes → nothing is sent, a restart and a new generation included.
#[tokio::test]
async fn a_settled_disk_costs_nothing_at_a_restart_or_when_the_specification_changes() {
    let _alone = ALONE.write().await;
    let hand = by_hand("settled").await;
    let machine = hand.machine("web", &json!({})).await.unwrap();
    disk(&hand, &machine).await;
    cdi(&hand, "web", "Succeeded", "100.0%", &json!([])).await;
    hand.until("web", LONG, |m| {
        condition(m, DISK_READY) == "True Succeeded"
    })
    .await
    .unwrap();
    let began = mark(&hand).await;
    cluster()
        .await
        .run(NAME, "second", &["--leader-election", "false"])
        .await
        .unwrap();
    hand.machine("web", &json!({"powerState": "Off"}))
        .await
        .unwrap();
    hand.edit::<DataVolume>("web", &json!({"metadata": {"labels": {"touched": "yes"}}}))
        .await
        .unwrap();
    tokio::time::sleep(QUIET).await;
    drop(cluster().await.take("second"));
    let sent = requests(&hand, began).await;
    assert!(sent.is_empty(), "{sent:?}");
}

// D-3, D-4, C-16
#[tokio::test]
async fn a_quota_in_the_way_is_named_when_it_has_stood_and_forgotten_when_it_is_lifted() {
    let hand = by_hand("quota").await;
    let machine = hand.machine("web", &json!({})).await.unwrap();
    disk(&hand, &machine).await;
    let full = json!([{"type": "Running", "status": "False", "reason": "Error", "message": "exceeded quota: q"}]);
    cdi(&hand, "web", "CloneScheduled", "N/A", &full).await;
    hand.until("web", LONG, |m| {
        condition(m, DISK_READY) == "False InProgress"
    })
    .await
    .unwrap();
    let told = hand
        .until("web", LONG, |m| {
            condition(m, DISK_READY) == "False QuotaExceeded"
        })
        .await
        .unwrap();
    assert_eq!(
        told.status.unwrap().data_volume_message.as_deref(),
        Some("exceeded quota: q")
    );
    let events = kite_testkit::wait::eventually("an event", LONG, async || {
        let all = hand
            .api::<k8s_openapi::api::events::v1::Event>()
            .list(&kube::api::ListParams::default())
            .await
            .ok()?;
        all.items
            .into_iter()
            .find(|e| e.reason.as_deref() == Some("QuotaExceeded"))
    });
    assert_eq!(
        events.await.unwrap().reporting_controller.as_deref(),
        Some(NAME)
    );
    cdi(&hand, "web", "CloneInProgress", "N/A", &json!([])).await;
    hand.until("web", LONG, |m| {
        condition(m, DISK_READY) == "False InProgress"
    })
    .await
    .unwrap();
}

// D-4
#[tokio::test]
async fn a_clone_that_does_not_move_is_stuck() {
    let hand = by_hand("stuck").await;
    let machine = hand.machine("web", &json!({})).await.unwrap();
    disk(&hand, &machine).await;
    // The DataSource is absent: CDI never says anything.
    hand.until("web", LONG, |m| told(m).0 == Some("Pending"))
        .await
        .unwrap();
    hand.until("web", LONG, |m| condition(m, DISK_READY) == "False Stuck")
        .await
        .unwrap();
}

// D-4, D-5: CDI copies our labels to a temporary claim as well.
#[tokio::test]
async fn a_lost_datavolume_is_no_lost_disk_and_a_lost_claim_is() {
    let hand = by_hand("lost").await;
    let machine = hand.machine("web", &json!({})).await.unwrap();
    let disk = disk(&hand, &machine).await;
    let claim = claim(&hand, &machine, &disk).await;
    let mut temporary = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}},
    });
    temporary["metadata"] =
        json!({"name": "tmp-pvc-1", "labels": claim.labels(), "annotations": claim.annotations()});
    hand.apply::<PersistentVolumeClaim>("cdi", "tmp-pvc-1", &temporary)
        .await
        .unwrap();
    cdi(&hand, "web", "Succeeded", "100.0%", &json!([])).await;
    let recorded = json!({"claimUID": claim.uid(), "dataVolumeName": "web"});
    hand.say("web", &recorded, &[("ResourcesApplied", "True", "Applied")])
        .await
        .unwrap();
    hand.until("web", LONG, |m| {
        condition(m, DISK_READY) == "True Succeeded"
    })
    .await
    .unwrap();

    hand.api::<DataVolume>()
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    hand.until("web", LONG, |m| {
        condition(m, DISK_READY) == "True ClaimOnly"
    })
    .await
    .unwrap();
    // There is no controller here that would let a protected claim go.
    hand.edit::<PersistentVolumeClaim>("web", &json!({"metadata": {"finalizers": null}}))
        .await
        .unwrap();
    hand.api::<PersistentVolumeClaim>()
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    let told = hand
        .until("web", LONG, |m| {
            condition(m, DISK_READY) == "False DiskLost"
        })
        .await
        .unwrap();
    assert_eq!(told.status.unwrap().data_volume_phase, None);
    assert!(
        hand.api::<DataVolume>()
            .get_opt("web")
            .await
            .unwrap()
            .is_none(),
        "it re-creates nothing"
    );
}

// C-7, C-10
#[tokio::test]
async fn a_disk_of_another_machine_is_not_told_and_after_a_deletion_nothing_is() {
    let hand = by_hand("others").await;
    let machine = hand.machine("web", &json!({})).await.unwrap();
    disk(&hand, &machine).await;
    let other = json!({"metadata": {"annotations": {"kite.dev/vm-uid": "somebody-else"}}});
    hand.edit::<DataVolume>("web", &other).await.unwrap();
    cdi(&hand, "web", "Succeeded", "100.0%", &json!([])).await;
    tokio::time::sleep(QUIET).await;
    let now: KiteVirtualMachine = hand.api().get("web").await.unwrap();
    assert_ne!(told(&now).0, Some("Succeeded"));

    let gone = by_hand("gone").await;
    let machine = gone.machine("web", &json!({"delete": true})).await.unwrap();
    let began = mark(&gone).await;
    disk(&gone, &machine).await;
    cdi(&gone, "web", "Succeeded", "100.0%", &json!([])).await;
    tokio::time::sleep(QUIET).await;
    assert!(requests(&gone, began).await.is_empty());
}
