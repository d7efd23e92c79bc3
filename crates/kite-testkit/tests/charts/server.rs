//! A real API server takes all that the charts render, and the restricted level
//! of Pod Security takes the pods.

use kite_testkit::helm::Helm;
use kite_testkit::{ControlPlane, install, shared};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::{charts, everything, object, render, words};

/// The kinds of the Prometheus operator, as loosely as can be: only that they are known counts.
const MONITORS: [(&str, &str); 3] = [
    ("ServiceMonitor", "servicemonitors"),
    ("PodMonitor", "podmonitors"),
    ("PrometheusRule", "prometheusrules"),
];

fn monitor(kind: &str, plural: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.monitoring.coreos.com")},
        "spec": {
            "group": "monitoring.coreos.com", "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        }
    })
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {
        "pod-security.kubernetes.io/enforce": "restricted",
        "pod-security.kubernetes.io/enforce-version": "latest",
    }}})
}

/// The control plane with the kinds and namespaces that the renderings need.
async fn server() -> &'static ControlPlane {
    static READY: OnceCell<()> = OnceCell::const_new();
    let cp = shared().await;
    READY
        .get_or_init(async || {
            let client = cp.admin_client().await.unwrap();
            for (kind, plural) in MONITORS {
                let crd = monitor(kind, plural).to_string();
                install::apply(&client, &crd).await.unwrap();
            }
            install::kite_crds(cp).await.unwrap();
            for name in ["restricted", "kite-images"] {
                let text = namespace(name).to_string();
                install::apply(&client, &text).await.unwrap();
            }
        })
        .await;
    cp
}

/// Has the server judge each object as if it were written, without writing it.
async fn accepted(cp: &ControlPlane, objects: &[Value]) {
    let documents: Vec<_> = objects.iter().map(Value::to_string).collect();
    let text = documents.join("\n---\n");
    let line = [
        "apply",
        "--server-side",
        "--force-conflicts",
        "--dry-run=server",
        "--validate=strict",
        "-f",
        "-",
    ];
    let said = cp.kubectl_stdin(&line, &text).await.unwrap();
    assert!(said.success, "{}", said.stderr);
    // What the Pod Security level objects to in a Deployment is only a warning.
    assert!(!said.stderr.contains("Warning"), "{}", said.stderr);
}

/// Creates the pod of a Deployment, as its ReplicaSet would.
async fn pod_accepted(cp: &ControlPlane, deployment: &Value) {
    let mut pod = deployment["spec"]["template"].clone();
    pod["apiVersion"] = "v1".into();
    pod["kind"] = "Pod".into();
    pod["metadata"]["name"] = deployment["metadata"]["name"].clone();
    pod["metadata"]["namespace"] = deployment["metadata"]["namespace"].clone();
    // Priority classes of a user's own are not there.
    let line = ["create", "--dry-run=server", "-f", "-"];
    let said = cp.kubectl_stdin(&line, &pod.to_string()).await.unwrap();
    assert!(said.success, "{}", said.stderr);
}

#[tokio::test]
async fn the_server_and_the_restricted_level_take_what_any_values_render() {
    let cp = server().await;
    let ha = charts().await.path("kite") + "/values-ha.yaml";
    let mut pod_monitors = everything();
    for part in ["user", "vm"] {
        for (monitor, on) in [("serviceMonitor", false), ("podMonitor", true)] {
            pod_monitors.push(format!("--set={part}.metrics.{monitor}.enabled={on}"));
        }
    }
    let matrix = [
        vec![],
        vec!["--values".to_owned(), ha],
        everything(),
        pod_monitors,
        words(&["--set=user.replicas=0,vm.leaderElection.enabled=false"]),
        words(&["--set=crds.crds.keep=false,crds.crds.annotations.a=b,crds.crds.labels.c=d"]),
        words(&["--set=datavolume.mirrorEveryTick=true,vm.strategy=null"]),
    ];
    for mut arguments in matrix {
        arguments.push("--namespace=restricted".to_owned());
        arguments.push("--api-versions=kite.dev/v1alpha1/KitePlatform".to_owned());
        let objects = render(Helm::Four, "kite", &arguments).await.unwrap();
        accepted(cp, &objects).await;
        let client = cp.admin_client().await.unwrap();
        for (_, name) in crate::PARTS {
            let account = object(&objects, "ServiceAccount", name).to_string();
            install::apply(&client, &account).await.unwrap();
            pod_accepted(cp, object(&objects, "Deployment", name)).await;
        }
    }
}

// The level is really enforced: a pod that may become root is refused.
#[tokio::test]
async fn a_pod_whose_security_context_was_loosened_is_refused() {
    let cp = server().await;
    let loose = words(&[
        "--namespace=restricted",
        "--set=securityContext.allowPrivilegeEscalation=true",
    ]);
    let objects = render(Helm::Four, "kite-vm", &loose).await.unwrap();
    let client = cp.admin_client().await.unwrap();
    let account = object(&objects, "ServiceAccount", "kite-vm").to_string();
    install::apply(&client, &account).await.unwrap();
    let deployment = object(&objects, "Deployment", "kite-vm").to_string();
    let line = ["apply", "--server-side", "--dry-run=server", "-f", "-"];
    let said = cp.kubectl_stdin(&line, &deployment).await.unwrap();
    assert!(
        said.stderr.contains("allowPrivilegeEscalation"),
        "{}",
        said.stderr
    );
}
