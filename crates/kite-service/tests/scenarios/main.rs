//! kite-service alone on a real API server, with the server's own endpoints;
//! kite-vm and the guest are played by hand.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, Service};
use kite_api::KiteVirtualMachine;
use kite_api::condition::{SERVICE_READY, find};
use kite_render::validate::MachineOwner;
use kite_testkit::by_hand::{ByHand, condition};
use kite_testkit::mirror_scene::Scene;
use kite_testkit::{ClusterOptions, Options, install};
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// The controller under test.
const NAME: &str = "kite-service";
/// Longer than anything here takes on two busy cores.
const LONG: Duration = Duration::from_mins(1);
/// Long enough for a write that must not come.
const QUIET: Duration = Duration::from_secs(3);

/// One scene for all tests, in a cluster of both address families.
async fn scene() -> &'static Scene {
    static SCENE: OnceCell<Scene> = OnceCell::const_new();
    SCENE
        .get_or_init(|| async {
            let options = ClusterOptions {
                control_plane: Options {
                    apiserver_args: vec![
                        "--service-cluster-ip-range=10.0.0.0/16,fd00:96::/112".into(),
                    ],
                    ..Options::default()
                },
                ..ClusterOptions::default()
            };
            let scene = Scene::start(NAME, options).await.unwrap();
            // Pods on a node that is not there have no endpoints.
            let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}});
            install::apply(&scene.cluster.client().await, &node.to_string())
                .await
                .unwrap();
            scene
        })
        .await
}

async fn by_hand(namespace: &str) -> ByHand {
    scene().await.by_hand(namespace).await.unwrap()
}

/// The Service that kite-vm makes, as an object to apply.
fn wanted(machine: &KiteVirtualMachine) -> Value {
    let wanted = kite_render::machine::service(&MachineOwner::of(machine).unwrap());
    let mut object = serde_json::to_value(wanted).unwrap();
    object["apiVersion"] = json!("v1");
    object["kind"] = json!("Service");
    object
}

/// The Service as kite-vm makes it.
async fn service(hand: &ByHand, machine: &KiteVirtualMachine) -> Service {
    hand.apply("kite-vm", &machine.name_any(), &wanted(machine))
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

async fn until(hand: &ByHand, ready: &str) -> KiteVirtualMachine {
    until_of(hand, "web", ready).await
}

async fn until_of(hand: &ByHand, name: &str, ready: &str) -> KiteVirtualMachine {
    hand.until(name, LONG, |m| condition(m, SERVICE_READY) == ready)
        .await
        .unwrap()
}

/// The message of `ServiceReady`.
fn message(machine: &KiteVirtualMachine) -> String {
    let conditions = &machine.status.as_ref().unwrap().conditions;
    find(conditions, SERVICE_READY).unwrap().message.clone()
}

// E-3, E-4, C-5
#[tokio::test]
async fn a_service_is_told_with_what_answers_behind_it_in_two_writes_and_one_each_way() {
    let scene = scene().await;
    let _one = scene.one_copy().await;
    let hand = by_hand("life").await;
    let began = scene.mark(&hand).await.unwrap();
    let machine = hand.machine("web", &json!({})).await.unwrap();
    let service = service(&hand, &machine).await;
    until(&hand, "True NoEndpoints").await;
    launcher(&hand, &machine).await;
    let told = until(&hand, "True Reachable").await;
    assert_eq!(
        scene.requests(&hand, began).await.unwrap().len(),
        2,
        "create → reachable"
    );
    let endpoints = told.status.unwrap().endpoints;
    let ports: Vec<_> = endpoints
        .iter()
        .map(|e| (e.name.as_str(), e.port))
        .collect();
    assert_eq!(ports, [("ssh", 22), ("http", 80)]);
    assert_eq!(endpoints[0].address, service.spec.unwrap().cluster_ip);
    assert_eq!(endpoints[0].dns_name, "web.life.svc");

    let began = scene.mark(&hand).await.unwrap();
    hand.machine("web", &json!({"powerState": "Off"}))
        .await
        .unwrap();
    hand.api::<Pod>()
        .delete("launcher", &DeleteParams::default().grace_period(0))
        .await
        .unwrap();
    until(&hand, "True NoEndpointsStopped").await;
    assert_eq!(
        scene.requests(&hand, began).await.unwrap().len(),
        1,
        "power off"
    );
    let began = scene.mark(&hand).await.unwrap();
    hand.machine("web", &json!({"powerState": "On"}))
        .await
        .unwrap();
    tokio::time::sleep(QUIET).await;
    launcher(&hand, &machine).await;
    until(&hand, "True Reachable").await;
    assert_eq!(
        scene.requests(&hand, began).await.unwrap().len(),
        1,
        "power on"
    );
    let owned = hand.owned("web", NAME).await.unwrap();
    assert_eq!(
        owned,
        ["condition {\"type\":\"ServiceReady\"}", "endpoints"]
    );
}

/// What somebody does to a Service, and what names it.
fn edits() -> Vec<(&'static str, Value, &'static str)> {
    let ports = |extra: Value| {
        let ssh = json!({"name": "ssh", "port": 22, "targetPort": 22, "protocol": "TCP"});
        let http = json!({"name": "http", "port": 80, "targetPort": 80, "protocol": "TCP"});
        let all = [ssh, http, extra].into_iter().filter(|p| !p.is_null());
        json!({"spec": {"ports": all.collect::<Vec<_>>()}})
    };
    let extra = json!({"name": "telnet", "port": 23, "targetPort": 23, "protocol": "TCP"});
    let mut moved = ports(Value::Null);
    moved["spec"]["ports"][0]["targetPort"] = json!(2222);
    let mut fewer = ports(Value::Null);
    fewer["spec"]["ports"].as_array_mut().unwrap().pop();
    vec![
        ("type", json!({"spec": {"type": "NodePort"}}), "spec.type"),
        ("moved", moved, "spec.ports[22/TCP].targetPort"),
        ("fewer", fewer, "spec.ports[80/TCP] is missing"),
        ("extra", ports(extra), "telnet"),
        (
            "selector",
            json!({"spec": {"selector": {"kite.dev/vm-uid": "other"}}}),
            "spec.selector",
        ),
        (
            "narrower",
            json!({"spec": {"selector": {"app": "mine"}}}),
            "/spec/selector/app",
        ),
        (
            "labels",
            json!({"metadata": {"labels": {"kite.dev/vm-name": null}}}),
            "metadata.labels",
        ),
        (
            "outside",
            json!({"spec": {"externalIPs": ["192.0.2.1"]}}),
            "externalIPs",
        ),
        (
            "owner",
            json!({"metadata": {"ownerReferences": null}}),
            "metadata.ownerReferences",
        ),
    ]
}

// E-1, E-2, C-8, C-16
#[tokio::test]
async fn each_drift_that_nobody_repairs_is_named_once_and_forgotten_when_it_is_repaired() {
    let scene = scene().await;
    let _one = scene.one_copy().await;
    let hand = by_hand("drift").await;
    let edits = edits();
    let mut machines = Vec::new();
    for (name, ..) in &edits {
        let machine = hand.machine(name, &json!({})).await.unwrap();
        service(&hand, &machine).await;
        machines.push(machine);
    }
    for (name, ..) in &edits {
        until_of(&hand, name, "True NoEndpoints").await;
    }
    let began = scene.mark(&hand).await.unwrap();
    for (name, edit, _) in &edits {
        hand.edit::<Service>(name, edit).await.unwrap();
    }
    for (name, _, named) in &edits {
        let told = until_of(&hand, name, "False Drifted").await;
        assert!(message(&told).contains(named), "{name}: {}", message(&told));
    }
    // The same drift is the same text: a further event about the Service costs nothing.
    let touched = json!({"metadata": {"annotations": {"touched": "yes"}}});
    for (name, ..) in &edits {
        hand.edit::<Service>(name, &touched).await.unwrap();
    }
    tokio::time::sleep(QUIET).await;
    let sent = scene.requests(&hand, began).await.unwrap();
    assert_eq!(sent.len(), edits.len(), "{sent:?}");
    let event = scene.event(&hand, "Drifted", LONG).await.unwrap();
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    // A forced apply does not take away what others added; kite-vm does that apart.
    for (machine, (name, ..)) in machines.iter().zip(&edits) {
        if ["outside", "extra", "narrower"].contains(name) {
            hand.api::<Service>()
                .delete(name, &DeleteParams::default())
                .await
                .unwrap();
        }
        service(&hand, machine).await;
    }
    for (name, ..) in &edits {
        until_of(&hand, name, "True NoEndpoints").await;
    }
}

// E-4
#[tokio::test]
async fn the_addresses_of_a_service_are_told_in_the_family_and_from_the_balancer_that_it_has() {
    let hand = by_hand("addresses").await;
    let machine = hand.machine("web", &json!({})).await.unwrap();
    let mut six = wanted(&machine);
    six["spec"]["ipFamilies"] = json!(["IPv6"]);
    let six: Service = hand.apply("kite-vm", "web", &six).await.unwrap();
    let told = until(&hand, "True NoEndpoints").await;
    let address = six.spec.unwrap().cluster_ip.unwrap();
    assert!(address.starts_with("fd00:96::"), "{address}");
    let endpoints = told.status.unwrap().endpoints;
    assert_eq!(endpoints[0].address.as_deref(), Some(address.as_str()));
    assert_eq!(endpoints[0].external_address, None);
    // Not as declared, and while it stands that is where the machine is reached.
    let balanced = json!({"spec": {"type": "LoadBalancer"}});
    hand.edit::<Service>("web", &balanced).await.unwrap();
    let given = json!({"loadBalancer": {"ingress": [{"ip": "2001:db8::7"}]}});
    hand.status::<Service>("web", &given).await.unwrap();
    let outside = |m: &KiteVirtualMachine| {
        let endpoints = &m.status.as_ref().unwrap().endpoints;
        let given =
            |e: &kite_api::machine::Endpoint| e.external_address.as_deref() == Some("2001:db8::7");
        endpoints.len() == 2 && endpoints.iter().all(given)
    };
    let told = hand.until("web", LONG, outside).await.unwrap();
    assert_eq!(condition(&told, SERVICE_READY), "False Drifted");
}

// E-2, E-5, F-21: labels that say whose a Service is prove nothing
#[tokio::test]
async fn a_missing_service_is_told_and_not_made_and_another_machines_is_ignored() {
    let scene = scene().await;
    let _one = scene.one_copy().await;
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
    let began = scene.mark(&hand).await.unwrap();
    hand.apply::<Service>("somebody", "web", &foreign)
        .await
        .unwrap();
    tokio::time::sleep(QUIET).await;
    assert!(scene.requests(&hand, began).await.unwrap().is_empty());
}

// C-5, C-10
#[tokio::test]
async fn a_settled_service_costs_nothing_at_a_restart_and_nothing_is_told_of_what_goes() {
    let scene = scene().await;
    let _two = scene.two_copies().await;
    let hand = by_hand("settled").await;
    let machine = hand.machine("web", &json!({})).await.unwrap();
    service(&hand, &machine).await;
    until(&hand, "True NoEndpoints").await;
    let began = scene.mark(&hand).await.unwrap();
    scene.start_second().await.unwrap();
    hand.machine("web", &json!({"cpu": 2})).await.unwrap();
    hand.edit::<Service>("web", &json!({"metadata": {"labels": {"touched": "yes"}}}))
        .await
        .unwrap();
    tokio::time::sleep(QUIET).await;
    scene.end_second();
    hand.machine("web", &json!({"cpu": 2, "delete": true}))
        .await
        .unwrap();
    hand.api::<Service>()
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    tokio::time::sleep(QUIET).await;
    let sent = scene.requests(&hand, began).await.unwrap();
    assert!(sent.is_empty(), "{sent:?}");
}
