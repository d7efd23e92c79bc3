//! What the charts bring for monitoring, rendered by Helm for the release that is
//! installed.

use kite_testkit::cluster::CONTROLLERS;
use kite_testkit::helm::{Helm, PARTS, chart};
use kite_testkit::installed::Installed;
use serde_json::Value;

/// Where the alerts' pages are said to be.
pub(super) const RUNBOOKS: &str = "https://kite.example.org/runbooks";

/// The objects of the Prometheus operator.
pub(super) struct Rendered {
    pub(super) pod_monitors: Vec<Value>,
    pub(super) service_monitors: Vec<Value>,
    pub(super) prometheus_rules: Vec<Value>,
}

impl Rendered {
    /// Those of all six charts. What else they render is not looked at.
    pub(super) async fn new(installed: &Installed) -> Self {
        Self {
            pod_monitors: objects(installed, "PodMonitor", "podMonitor").await,
            service_monitors: objects(installed, "ServiceMonitor", "serviceMonitor").await,
            prometheus_rules: objects(installed, "PrometheusRule", "prometheusRule").await,
        }
    }

    /// All rules.
    pub(super) fn rules(&self) -> Vec<&Value> {
        let groups = self.prometheus_rules.iter().map(|o| &o["spec"]["groups"]);
        groups
            .flat_map(|groups| groups.as_array().unwrap())
            .flat_map(|group| group["rules"].as_array().unwrap())
            .collect()
    }
}

/// The objects of a kind, for the release `kite`, as the umbrella renders them.
async fn objects(installed: &Installed, kind: &str, value: &str) -> Vec<Value> {
    let path = installed.charts.path("kite");
    let mut line = vec!["--set=crds.enabled=false".to_owned()];
    for (part, _) in PARTS {
        line.push(format!("--set={part}.metrics.{value}.enabled=true"));
        line.push(format!(
            "--set={part}.metrics.prometheusRule.runbookBaseUrl={RUNBOOKS}"
        ));
    }
    let objects = Helm::Four.rendered(&path, &line).await.unwrap();
    let found: Vec<_> = objects.into_iter().filter(|o| o["kind"] == kind).collect();
    assert_eq!(found.len(), CONTROLLERS.len(), "{kind}");
    found
}

/// Labels as they are asked for.
pub(super) fn selector(labels: &Value) -> String {
    let labels = labels.as_object().unwrap();
    assert!(!labels.is_empty());
    let pairs = labels
        .iter()
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap()));
    pairs.collect::<Vec<_>>().join(",")
}

/// Every query of the dashboard.
pub(super) fn queries() -> impl Iterator<Item = String> {
    let path = chart("kite").join("files/dashboards/kite.json");
    let dashboard = std::fs::read_to_string(path).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().clone();
    let targets = panels
        .into_iter()
        .filter_map(|panel| panel["targets"].as_array().cloned())
        .flatten();
    targets.map(|target| target["expr"].as_str().unwrap().to_owned())
}
