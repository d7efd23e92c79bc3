//! The charts as an administrator meets them: rendered by both Helms, refused
//! where a value is wrong, accepted by a real API server.
//!
//! No pod runs here; what the pods do once they are scheduled is told elsewhere.

mod left_out;
mod platform;
mod refused;
mod rendered;
mod server;
mod values;

use kite_testkit::helm::{Charts, Helm, PARTS};
use serde_json::Value;
use tokio::sync::OnceCell;

/// Everything that can be turned on, for one controller.
const ALL_OF_ONE: &str = r#"{
  "replicas": 3,
  "imagePullSecrets": ["pull"],
  "extraArgs": ["--log-level={{ .Release.Name }}=debug"],
  "extraEnv": [{"name": "A", "value": "b"}],
  "extraEnvFrom": [{"configMapRef": {"name": "c", "optional": true}}],
  "extraVolumes": [{"name": "v", "emptyDir": {}}],
  "extraVolumeMounts": [{"name": "v", "mountPath": "/v"}],
  "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
  "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
    {"weight": 1, "preference": {"matchExpressions": [{"key": "k", "operator": "Exists"}]}}]}},
  "nodeSelector": {"kubernetes.io/os": "linux"},
  "tolerations": [{"key": "t", "operator": "Exists"}],
  "networkPolicy": {"enabled": true, "scrapeFrom": [{"namespaceSelector": {}}],
    "apiServer": {"cidrs": ["10.0.0.1/32"]}, "extraEgress": [{"ports": [{"port": 4317}]}]},
  "metrics": {
    "serviceMonitor": {"enabled": true, "interval": "30s", "scrapeTimeout": "5s",
      "relabelings": [{"action": "labeldrop", "regex": "pod"}],
      "metricRelabelings": [{"action": "drop", "regex": "x"}]},
    "prometheusRule": {"enabled": true, "labels": {"release": "prometheus"}}},
  "flowSchema": {"enabled": true},
  "rbac": {"extraRules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}]},
  "commonLabels": {"team": "a"}, "commonAnnotations": {"note": "b"},
  "podLabels": {"pod": "c"}, "podAnnotations": {"pod": "d"}, "deploymentAnnotations": {"e": "f"},
  "serviceAccount": {"annotations": {"g": "h"}, "labels": {"i": "j"}}
}"#;

/// The charts with their parts, made once for all tests of this program.
async fn charts() -> &'static Charts {
    static CHARTS: OnceCell<Charts> = OnceCell::const_new();
    CHARTS
        .get_or_init(async || Charts::gathered().await.unwrap())
        .await
}

/// Arguments that turn everything on in the whole of Kite.
fn everything() -> Vec<String> {
    let mut arguments = vec![
        "--set=platform.create=true".to_owned(),
        // As on a cluster that has the kinds; elsewhere Helm 4 is told to make it last.
        "--api-versions=kite.dev/v1alpha1/KitePlatform".to_owned(),
        "--set=platform.spec.baseDomain=vms.example.org".to_owned(),
        "--set=dashboards.enabled=true".to_owned(),
    ];
    for (part, _) in PARTS {
        arguments.push("--set-json".to_owned());
        arguments.push(format!("{part}={ALL_OF_ONE}"));
    }
    arguments
}

/// The objects that a chart renders to, with Helm's words when it refuses.
async fn render(helm: Helm, chart: &str, arguments: &[String]) -> Result<Vec<Value>, String> {
    let path = charts().await.path(chart);
    let line = [&["--kube-version=1.34.0".to_owned()], arguments].concat();
    let objects = helm.rendered(&path, &line).await;
    objects.map_err(|error| format!("{error:#}"))
}

/// An object's kind and name, for messages.
fn called(object: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!(
        "{} {}",
        word(&object["kind"]),
        word(&object["metadata"]["name"])
    )
}

/// The one object of this kind and name.
fn object<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let wanted = format!("{kind} {name}");
    let mut found = objects.iter().filter(|object| called(object) == wanted);
    let one = found.next().unwrap_or_else(|| panic!("no {wanted}"));
    assert!(found.next().is_none(), "two of {wanted}");
    one
}

fn words(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|&word| word.to_owned()).collect()
}
