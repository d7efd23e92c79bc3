//! One Prometheus as a plain process, under an account of its own that may look at
//! pods and at nothing else.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use kite_testkit::control_plane::free_port;
use kite_testkit::http_get;
use kite_testkit::install;
use kite_testkit::installed::Installed;
use kite_testkit::process::Process;
use kite_testkit::programs::{Program, find_all};
use kite_testkit::wait::eventually;
use serde_json::{Value, json};

use super::rendered::Rendered;

/// It reads its rules and opens its store.
const START: Duration = Duration::from_mins(1);

const RIGHTS: &str = r"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: prometheus}
rules:
- {apiGroups: [''], resources: [pods], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: prometheus}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: prometheus}
subjects: [{kind: ServiceAccount, name: prometheus, namespace: monitoring}]
";

/// A running Prometheus. It ends when this is dropped.
pub(super) struct Prometheus {
    address: SocketAddr,
    process: Process,
}

impl Prometheus {
    /// Starts it with what the charts bring.
    pub(super) async fn start(installed: &Installed, rendered: &Rendered) -> Self {
        let cluster = &installed.cluster;
        let account = cluster.control_plane.identity("monitoring", "prometheus");
        let account = account.await.unwrap();
        install::apply(&cluster.client().await, RIGHTS)
            .await
            .unwrap();
        let folder = cluster.control_plane.folder().join("prometheus");
        std::fs::create_dir_all(&folder).unwrap();
        let groups = rendered.prometheus_rules.iter();
        let groups = groups.flat_map(|o| o["spec"]["groups"].as_array().unwrap());
        let rules = json!({"groups": groups.collect::<Vec<_>>()});
        std::fs::write(folder.join("rules.yaml"), rules.to_string()).unwrap();
        let jobs = rendered.pod_monitors.iter();
        let every = format!("{}s", super::INTERVAL.as_secs());
        let config = json!({
            "global": {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every},
            "rule_files": ["rules.yaml"],
            "scrape_configs": jobs.map(|monitor| job(monitor, account.kubeconfig())).collect::<Vec<_>>(),
        });
        std::fs::write(folder.join("prometheus.yaml"), config.to_string()).unwrap();

        let program = find_all(&[Program::Prometheus]).await.unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], free_port().unwrap()));
        let mut command = Command::new(&program[0]);
        command
            .arg(format!(
                "--config.file={}",
                folder.join("prometheus.yaml").display()
            ))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.join("data").display()
            ))
            .arg(format!("--web.listen-address={address}"));
        let process = Process::start("prometheus", command, &cluster.log("prometheus")).unwrap();
        let prometheus = Self { address, process };
        let ready = async || {
            let answer = http_get::get(address, "/-/ready").await;
            answer.is_ok_and(|(status, _)| status == 200).then_some(())
        };
        let ready = eventually("Prometheus", START, ready).await;
        assert!(ready.is_ok(), "{}", prometheus.process.log_tail(20));
        prometheus
    }

    async fn ask(&self, path: &str) -> Value {
        let (status, text) = http_get::get(self.address, path).await.unwrap();
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(status, 200, "{path}: {text}");
        assert_eq!(answer["status"], "success", "{path}: {text}");
        assert!(answer.get("warnings").is_none(), "{path}: {text}");
        answer["data"].clone()
    }

    /// The series that a query gives now.
    pub(super) async fn query(&self, query: &str) -> Vec<Value> {
        let path = format!("/api/v1/query?query={}", encoded(query));
        let data = self.ask(&path).await;
        data["result"].as_array().unwrap().clone()
    }

    /// The names of all metrics that have data now.
    pub(super) async fn names(&self) -> BTreeSet<String> {
        let found = self.query("count by (__name__) ({__name__!=\"\"})").await;
        let name = |series: Value| series["metric"]["__name__"].as_str().map(str::to_owned);
        found.into_iter().filter_map(name).collect()
    }

    /// What is scraped: each target's job and health.
    pub(super) async fn targets(&self) -> Vec<(String, String)> {
        let data = self.ask("/api/v1/targets?state=active").await;
        let targets = data["activeTargets"].as_array().unwrap().iter();
        let word = |value: &Value| value.as_str().unwrap().to_owned();
        targets
            .map(|target| (word(&target["labels"]["job"]), word(&target["health"])))
            .collect()
    }

    /// All rules that are in force.
    pub(super) async fn rules(&self) -> Vec<Value> {
        let data = self.ask("/api/v1/rules").await;
        let groups = data["groups"].as_array().unwrap().iter();
        groups
            .flat_map(|group| group["rules"].as_array().unwrap().clone())
            .collect()
    }

    /// The alerts that fire or count, with their controllers.
    pub(super) async fn alerts(&self) -> Vec<(String, String)> {
        let data = self.ask("/api/v1/alerts").await;
        let alerts = data["alerts"].as_array().unwrap().iter();
        let word = |value: &Value| value.as_str().unwrap().to_owned();
        let label = |alert: &Value, name: &str| word(&alert["labels"][name]);
        alerts
            .map(|alert| (label(alert, "alertname"), label(alert, "controller")))
            .collect()
    }
}

/// The scrape job that the Prometheus operator makes of a PodMonitor.
fn job(monitor: &Value, kubeconfig: &std::path::Path) -> Value {
    let endpoint = &monitor["spec"]["podMetricsEndpoints"][0];
    let of = |name: &str| format!("__meta_kubernetes_pod_{name}");
    let keep = |label: String, value: &Value| json!({"action": "keep", "source_labels": [label], "regex": value});
    let copy = |label: String, to: &str| json!({"source_labels": [label], "target_label": to});
    let labels = monitor["spec"]["selector"]["matchLabels"].as_object();
    let mut relabel: Vec<_> = labels
        .unwrap()
        .iter()
        .map(|(name, value)| keep(of(&format!("label_{}", sanitized(name))), value))
        .collect();
    assert_eq!(relabel.len(), 2);
    relabel.push(keep(of("container_port_name"), &endpoint["port"]));
    relabel.push(copy("__meta_kubernetes_namespace".to_owned(), "namespace"));
    relabel.push(copy(of("container_name"), "container"));
    relabel.push(copy(of("name"), "pod"));
    let metadata = &monitor["metadata"];
    let job = format!(
        "{}/{}",
        metadata["namespace"].as_str().unwrap(),
        metadata["name"].as_str().unwrap()
    );
    relabel.push(json!({"target_label": "job", "replacement": job}));
    json!({
        "job_name": format!("podMonitor/{job}/0"),
        "metrics_path": endpoint["path"],
        "kubernetes_sd_configs": [{
            "role": "pod",
            "kubeconfig_file": kubeconfig,
            "namespaces": {"names": monitor["spec"]["namespaceSelector"]["matchNames"]},
        }],
        "relabel_configs": relabel,
    })
}

/// A label's name as Prometheus' discovery has it.
fn sanitized(name: &str) -> String {
    name.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
}

/// A query as a part of a URL.
fn encoded(query: &str) -> String {
    let bytes: Vec<_> = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
    bytes.concat()
}
