//! kite-service alone on a real API server, with the server's own endpoints;
//! kite-vm and the guest are played by hand.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, Service};
use kite_api::KiteVirtualMachine;
use kite_api::condition::{SERVICE_READY, find};
use kite_render::validate::MachineOwner;
use kite_testkit::audit::{Mark, Request};
use kite_testkit::by_hand::{ByHand, condition};
use kite_testkit::cluster::CONTROLLERS;
use kite_testkit::{Cluster, ClusterOptions, install};
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use tokio::sync::{OnceCell, RwLock};

/// The controller under test.
const NAME: &str = "kite-service";
/// Longer than anything here takes on two busy cores.
const LONG: Duration = Duration::from_secs(60);
/// Long enough for a write that must not come.
const QUIET: Duration = Duration::from_secs(3);

/// Held for writing while a second copy of the controller runs, whose requests would be counted too.
static ALONE: RwLock<()> = RwLock::const_new(());

async fn cluster() -> &'static Cluster {
    static CLUSTER: OnceCell<Cluster> = OnceCell::const_new();
    CLUSTER
        .get_or_init(|| async {
            let others = CONTROLLERS.into_iter().filter(|c| *c != NAME);
            let options = ClusterOptions {
                stand_ins: false,
                without: others.collect(),
                ..ClusterOptions::default()
            };
            let cluster = Cluster::start(options).await.unwrap();
            // Pods on a node that is not there have no endpoints.
            let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}});
            install::apply(&cluster.client().await, &node.to_string())
                .await
                .unwrap();
            cluster
        })
        .await
}

async fn by_hand(namespace: &str) -> ByHand {
    ByHand::new(cluster().await.client().await, namespace)
        .await
        .unwrap()
}

/// The Service as kite-vm makes it.
async fn service(hand: &ByHand, machine: &KiteVirtualMachine) -> Service {
    let wanted = kite_render::machine::service(&MachineOwner::of(machine).unwrap());
    let mut object = serde_json::to_value(wanted).unwrap();
    object["apiVersion"] = json!("v1");
    object["kind"] = json!("Service");
    hand.apply("kite-vm", &machine.name_any(), &object)
        .await
        .unwrap()
}

/// A launcher pod that is ready, as a kubelet would say it.
async fn launcher(hand: &ByHand, machine: &KiteVirtualMachine) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "launcher", "labels": {"kite.dev/vm-uid": machine.uid()}},
        "spec": {"nodeName": "n1", "containers": [{"name": "compute", "image": "none"}],
            "automountServiceAccountToken": false},
    });
    hand.apply::<Pod>("virt-controller", "launcher", &pod)
        .await
        .unwrap();
    let status = json!({"phase": "Running", "podIP": "10.0.0.9", "podIPs": [{"ip": "10.0.0.9"}],
        "conditions": [{"type": "Ready", "status": "True"}]});
    hand.status::<Pod>("launcher", &status).await.unwrap();
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

async fn until(hand: &ByHand, ready: &str) -> KiteVirtualMachine {
    hand.until("web", LONG, |m| condition(m, SERVICE_READY) == ready)
        .await
        .unwrap()
}

// E-3, E-4, C-5
#[tokio::test]
async fn a_service_is_told_with_what_answers_behind_it_in_two_writes_and_one_each_way() {
    let _alone = ALONE.read().await;
    let hand = by_hand("life").await;
    let began = mark(&hand).await;
    let machine = hand.machine("web", &json!({})).await.unwrap();
    let service = service(&hand, &machine).await;
    until(&hand, "True NoEndpoints").await;
    launcher(&hand, &machine).await;
    let told = until(&hand, "True Reachable").await;
    assert_eq!(requests(&hand, began).await.len(), 2, "create → reachable");
    let endpoints = told.status.unwrap().endpoints;
    let ports: Vec<_> = endpoints
        .iter()
        .map(|e| (e.name.as_str(), e.port))
        .collect();
    assert_eq!(ports, [("ssh", 22), ("http", 80)]);
    assert_eq!(endpoints[0].address, service.spec.unwrap().cluster_ip);
    assert_eq!(endpoints[0].dns_name, "web.life.svc");

    let began = mark(&hand).await;
    hand.machine("web", &json!({"powerState": "Off"}))
        .await
        .unwrap();
    hand.api::<Pod>()
        .delete("launcher", &DeleteParams::default().grace_period(0))
        .await
        .unwrap();
    until(&hand, "True NoEndpointsStopped").await;
    assert_eq!(requests(&hand, began).await.len(), 1, "power off");
    let began = mark(&hand).await;
    hand.machine("web", &json!({"powerState": "On"}))
        .await
        .unwrap();
    tokio::time::sleep(QUIET).await;
    launcher(&hand, &machine).await;
    until(&hand, "True Reachable").await;
    assert_eq!(requests(&hand, began).await.len(), 1, "power on");
    let owned = hand.owned("web", NAME).await.unwrap();
    assert_eq!(
        owned,
        ["condition {\"type\":\"ServiceReady\"}", "endpoints"]
    );
}

// E-1, E-2, C-8, C-16
#[tokio::test]
async fn drift_that_nobody_repairs_is_named_once_and_forgotten_when_it_is_repaired() {
    let _alone = ALONE.read().await;
    let hand = by_hand("drift").await;
    let machine = hand.machine("web", &json!({})).await.unwrap();
    service(&hand, &machine).await;
    until(&hand, "True NoEndpoints").await;
    let edits: [Value; 3] = [
        json!({"spec": {"type": "NodePort"}}),
        json!({"spec": {"externalIPs": ["192.0.2.1"]}}),
        json!({"metadata": {"ownerReferences": null}}),
    ];
    for edit in edits {
        let began = mark(&hand).await;
        hand.edit::<Service>("web", &edit).await.unwrap();
        let told = until(&hand, "False Drifted").await;
        let message = find(&told.status.unwrap().conditions, SERVICE_READY)
            .unwrap()
            .message
            .clone();
        assert!(!message.is_empty());
        hand.edit::<Service>(
            "web",
            &json!({"metadata": {"annotations": {"touched": "yes"}}}),
        )
        .await
        .unwrap();
        tokio::time::sleep(QUIET).await;
        assert_eq!(requests(&hand, began).await.len(), 1, "{edit}: {message}");
        hand.edit::<Service>(
            "web",
            &json!({"spec": {"externalIPs": null}, "metadata": {"annotations": {"touched": null}}}),
        )
        .await
        .unwrap();
        service(&hand, &machine).await;
        until(&hand, "True NoEndpoints").await;
    }
    let events = hand
        .api::<k8s_openapi::api::events::v1::Event>()
        .list(&kube::api::ListParams::default())
        .await
        .unwrap();
    let drifted = events
        .items
        .iter()
        .find(|e| e.reason.as_deref() == Some("Drifted"))
        .unwrap();
    assert_eq!(drifted.reporting_controller.as_deref(), Some(NAME));
}

// E-2, E-5
#[tokio::test]
async fn a_missing_service_is_told_and_not_made_and_another_machines_is_ignored() {
    let _alone = ALONE.read().await;
    let hand = by_hand("missing").await;
    let machine = hand.machine("web", &json!({})).await.unwrap();
    service(&hand, &machine).await;
    hand.say(
        "web",
        &json!({"serviceName": "web"}),
        &[("ResourcesApplied", "True", "Applied")],
    )
    .await
    .unwrap();
    until(&hand, "True NoEndpoints").await;
    hand.api::<Service>()
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    let told = until(&hand, "False Missing").await;
    assert!(told.status.unwrap().endpoints.is_empty());
    let foreign = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "labels": {"kite.dev/managed-by": "kite-controller", "kite.dev/vm-name": "web"}},
        "spec": {"ports": [{"port": 22}], "selector": {"kite.dev/vm-uid": machine.uid()}},
    });
    let began = mark(&hand).await;
    hand.apply::<Service>("somebody", "web", &foreign)
        .await
        .unwrap();
    tokio::time::sleep(QUIET).await;
    assert!(requests(&hand, began).await.is_empty());
}

// C-5, C-10
#[tokio::test]
async fn a_settled_service_costs_nothing_at_a_restart_and_nothing_is_told_of_what_goes() {
    let _alone = ALONE.write().await;
    let hand = by_hand("settled").await;
    let machine = hand.machine("web", &json!({})).await.unwrap();
    service(&hand, &machine).await;
    until(&hand, "True NoEndpoints").await;
    let began = mark(&hand).await;
    cluster()
        .await
        .run(NAME, "second", &["--leader-election", "false"])
        .await
        .unwrap();
    hand.machine("web", &json!({"cpu": 2})).await.unwrap();
    hand.edit::<Service>("web", &json!({"metadata": {"labels": {"touched": "yes"}}}))
        .await
        .unwrap();
    tokio::time::sleep(QUIET).await;
    drop(cluster().await.take("second"));
    hand.machine("web", &json!({"cpu": 2, "delete": true}))
        .await
        .unwrap();
    hand.api::<Service>()
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    tokio::time::sleep(QUIET).await;
    let sent = requests(&hand, began).await;
    assert!(sent.is_empty(), "{sent:?}");
}
