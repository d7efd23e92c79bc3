//! A real Prometheus beside an installation: it finds the pods through the API
//! server as the charts' monitors say, scrapes them, judges the charts' rules and
//! answers the dashboard's queries.
//!
//! The Prometheus operator is not here: what it would make of a PodMonitor is made
//! by the test, and a ServiceMonitor is held against the Services that are there,
//! since no endpoint can have the loopback address of these pods. How long an alert
//! waits and when it ends is told by promtool's stories.

mod prometheus;
mod rendered;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Pod, Service};
use kite_testkit::cluster::CONTROLLERS;
use kite_testkit::helm::Helm;
use kite_testkit::install::SYSTEM_NAMESPACE;
use kite_testkit::installed::Installed;
use kite_testkit::queries::{OF_OTHERS, metrics_in};
use kite_testkit::tenant::{LONG, Tenant};
use kite_testkit::wait::eventually;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use prometheus::Prometheus;
use rendered::{Rendered, selector};

/// What there is only while something is wrong or goes, each with what that is.
const RARE: [(&str, &str); 3] = [
    ("kite_deletions_blocked", "a machine cannot be deleted"),
    (
        "kite_namespaces_deletion_blocked",
        "a namespace cannot be deleted",
    ),
    (
        "kite_namespace_deletions_suppressed_total",
        "a namespace is due and kept",
    ),
];

/// Panels that are empty in a life without trouble, by a part of their query.
const EMPTY: [(&str, &str); 6] = [
    ("ALERTS{", "no alert fires"),
    ("kite_watch_failing_seconds{", "no watch fails"),
    ("kite_deletions_blocked{", "no deletion stands still"),
    (
        "kite_namespaces_deletion_blocked{",
        "no deletion stands still",
    ),
    ("kite_namespace_deletions_suppressed_total{", "none was due"),
    (
        "condition=~\"Accepted|ResourcesApplied\"",
        "nothing is in the way",
    ),
];

/// How often everything is scraped and judged.
const INTERVAL: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prometheus_finds_all_six_and_has_all_that_the_rules_and_the_dashboard_ask_for() {
    let _turn = crate::TURN.write().await;
    let installed = Installed::ground().await.unwrap();
    installed.install_all(Helm::Four, &[]).await.unwrap();
    let rendered = Rendered::new(&installed).await;
    the_service_monitors_select_services_in_front_of_the_pods(&installed, &rendered).await;

    let began = Instant::now();
    let prometheus = Prometheus::start(&installed, &rendered).await;
    all_six_are_up(&prometheus).await;
    let alice = Tenant::new(&installed.cluster, "alice").await;
    alice.create().await;
    alice.machine("web", json!({})).await;
    alice.ready("web").await;

    every_metric_has_data(&prometheus, &rendered).await;
    every_panel_is_answered(&prometheus).await;
    every_rule_is_in_force_and_silent(&prometheus, &rendered).await;
    one_that_hangs_is_noticed_and_one_that_is_paused_is_not(&installed, &prometheus).await;
    println!("watched for {:?}", began.elapsed());
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A ServiceMonitor leads to Services, those to pods, and the port's name is the same all the way.
async fn the_service_monitors_select_services_in_front_of_the_pods(
    installed: &Installed,
    rendered: &Rendered,
) {
    let client = installed.cluster.client().await;
    let services: Api<Service> = Api::namespaced(client.clone(), SYSTEM_NAMESPACE);
    let pods: Api<Pod> = Api::namespaced(client, SYSTEM_NAMESPACE);
    assert_eq!(rendered.service_monitors.len(), CONTROLLERS.len());
    for monitor in &rendered.service_monitors {
        let spec = &monitor["spec"];
        let name = text(&monitor["metadata"]["name"]);
        assert_eq!(
            spec["namespaceSelector"]["matchNames"],
            json!([SYSTEM_NAMESPACE])
        );
        let of = ListParams::default().labels(&selector(&spec["selector"]["matchLabels"]));
        let found = services.list(&of).await.unwrap().items;
        let found_names: Vec<_> = found.iter().map(ResourceExt::name_any).collect();
        assert_eq!(found_names, [name]);
        let service = serde_json::to_value(&found[0].spec).unwrap();
        let port = &service["ports"][0];
        assert_eq!(port["name"], spec["endpoints"][0]["port"], "{name}");
        let of = ListParams::default().labels(&selector(&service["selector"]));
        let behind = pods.list(&of).await.unwrap().items;
        assert!(!behind.is_empty(), "{name}");
        for pod in behind {
            assert!(pod.name_any().starts_with(&format!("{name}-")));
            let ports = &serde_json::to_value(&pod.spec).unwrap()["containers"][0]["ports"];
            assert_eq!(ports[0]["name"], port["targetPort"], "{name}");
            assert_eq!(ports[0]["containerPort"], port["port"], "{name}");
        }
    }
}

async fn all_six_are_up(prometheus: &Prometheus) {
    let wanted: BTreeSet<_> = CONTROLLERS
        .iter()
        .map(|name| (format!("{SYSTEM_NAMESPACE}/{name}"), "up".to_owned()))
        .collect();
    let mut seen = Vec::new();
    let all = eventually("all six to be scraped", LONG, async || {
        seen = prometheus.targets().await;
        let targets: BTreeSet<_> = seen.iter().cloned().collect();
        (seen.len() == wanted.len() && targets == wanted).then_some(())
    })
    .await;
    assert!(all.is_ok(), "{seen:#?}");
    println!("{} targets are up", seen.len());
}

async fn every_metric_has_data(prometheus: &Prometheus, rendered: &Rendered) {
    let rules = rendered.rules();
    let recorded = rules.iter().filter_map(|r| r["record"].as_str());
    let asked: BTreeSet<String> = rules
        .iter()
        .map(|rule| text(&rule["expr"]).to_owned())
        .chain(rendered::queries())
        .flat_map(|expr| metrics_in(&expr))
        .chain(recorded.map(str::to_owned))
        .filter(|name| !OF_OTHERS.contains(&name.as_str()))
        .collect();
    assert!(asked.len() > 30, "only {asked:?}");
    let mut missing = Vec::new();
    let complete = eventually("all metrics to have data", LONG, async || {
        let there = prometheus.names().await;
        missing = asked.difference(&there).cloned().collect();
        let excused = |name: &String| RARE.iter().any(|(rare, _)| rare == name);
        missing.iter().all(excused).then_some(())
    })
    .await;
    let found = asked.len() - missing.len();
    println!(
        "{found} of {} metrics have data; not {missing:?}",
        asked.len()
    );
    assert!(complete.is_ok(), "without data: {missing:?}");
}

async fn every_panel_is_answered(prometheus: &Prometheus) {
    let queries: Vec<_> = rendered::queries().collect();
    let mut empty = Vec::new();
    for query in &queries {
        // As Grafana fills in what stands for all and for four scrapes at least.
        let mut asked = query.replace("$__rate_interval", "5m");
        for variable in ["$controller", "$namespace", "$pod"] {
            asked = asked.replace(variable, ".*");
        }
        assert!(!asked.contains('$'), "{asked}");
        if prometheus.query(&asked).await.is_empty() {
            empty.push(query);
        }
    }
    println!(
        "{} queries of panels, {} without data",
        queries.len(),
        empty.len()
    );
    let excused = |query: &&&String| EMPTY.iter().any(|(part, _)| query.contains(part));
    let unexplained: Vec<_> = empty.iter().filter(|query| !excused(query)).collect();
    assert!(unexplained.is_empty(), "without data: {unexplained:#?}");
}

async fn every_rule_is_in_force_and_silent(prometheus: &Prometheus, rendered: &Rendered) {
    let loaded = prometheus.rules().await;
    assert_eq!(loaded.len(), rendered.rules().len());
    let alerts: Vec<_> = loaded.iter().filter(|r| r["type"] == "alerting").collect();
    for rule in &loaded {
        assert_eq!(rule["health"], "ok", "{rule:#}");
    }
    for alert in &alerts {
        let page = text(&alert["annotations"]["runbook_url"]);
        let name = text(&alert["name"]);
        assert_eq!(page, format!("{}/{name}.md", rendered::RUNBOOKS));
    }
    println!(
        "{} rules in force, {} of them alerts",
        loaded.len(),
        alerts.len()
    );
    // What the beginning looked like to them is over.
    let mut active = Vec::new();
    let silent = eventually("no alert", LONG, async || {
        active = prometheus.alerts().await;
        active.is_empty().then_some(())
    })
    .await;
    assert!(silent.is_ok(), "{active:#?}");
}

async fn one_that_hangs_is_noticed_and_one_that_is_paused_is_not(
    installed: &Installed,
    prometheus: &Prometheus,
) {
    let down = ("KiteDown".to_owned(), "kite-vm".to_owned());
    // When its process hangs, the alert begins to count,
    let pods = installed.agent.pods(SYSTEM_NAMESPACE);
    let is_vm = |pod: &&String| pod.starts_with("kite-vm-") && !pod.starts_with("kite-vm-status-");
    let pod = pods.iter().find(is_vm).unwrap();
    let process = installed.agent.process(SYSTEM_NAMESPACE, pod).unwrap();
    process.pause().unwrap();
    let began = Instant::now();
    let counts = async || prometheus.alerts().await.contains(&down).then_some(());
    eventually("KiteDown to count", LONG, counts).await.unwrap();
    println!("KiteDown counts {:?} after kite-vm hangs", began.elapsed());
    // when it goes on, the alert is taken back,
    process.resume().unwrap();
    let quiet = async || prometheus.alerts().await.is_empty().then_some(());
    eventually("no alert", LONG, quiet).await.unwrap();

    // and when it is scaled to zero on purpose, nobody is woken.
    let scale = [
        "-n",
        SYSTEM_NAMESPACE,
        "scale",
        "deployment/kite-vm",
        "--replicas=0",
    ];
    let said = installed.cluster.control_plane.kubectl(&scale).await;
    said.unwrap().ok().unwrap();
    let five = async || (prometheus.targets().await.len() == CONTROLLERS.len() - 1).then_some(());
    eventually("five targets", LONG, five).await.unwrap();
    eventually("no alert", LONG, quiet).await.unwrap();
    tokio::time::sleep(3 * INTERVAL).await;
    assert_eq!(prometheus.alerts().await, []);
}
