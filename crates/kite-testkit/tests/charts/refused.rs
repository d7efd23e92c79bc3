//! A wrong value is an error, and the error names it.

use kite_testkit::helm::{CHARTS, Helm};

use crate::{charts, render, words};

/// A value, and what Helm's error says of it.
const WRONG: [(&str, &str, &str); 20] = [
    ("kite-vm", "replicaCount=2", "replicaCount"),
    ("kite-vm", "replicas=two", "replicas"),
    ("kite-vm", "replicas=-1", "replicas"),
    ("kite-vm", "image.tga=v1", "tga"),
    ("kite-vm", "image.tag=latest", "tag"),
    ("kite-vm", "image.digest=sha256:abc", "digest"),
    ("kite-vm", "image.pullPolicy=always", "pullPolicy"),
    ("kite-vm", "deletionPatience=soon", "deletionPatience"),
    ("kite-vm", "concurrency=0", "concurrency"),
    ("kite-vm", "logFormat=xml", "logFormat"),
    (
        "kite-vm",
        "leaderElection.leaseDuration=11s",
        "leaderElection.leaseDuration",
    ),
    (
        "kite-vm",
        "leaderElection.renewInterval=9s",
        "leaderElection.renewInterval",
    ),
    (
        "kite-vm",
        "terminationGracePeriodSeconds=20",
        "terminationGracePeriodSeconds",
    ),
    (
        "kite-vm",
        "replicas=2,leaderElection.enabled=false",
        "leaderElection.enabled",
    ),
    (
        "kite-vm",
        "metrics.serviceMonitor.enabled=true,metrics.podMonitor.enabled=true",
        "metrics.podMonitor.enabled",
    ),
    ("kite-namespace", "brakeShare=101", "brakeShare"),
    ("kite-crds", "crd.keep=false", "crd"),
    ("kite", "vmstatus.enabled=false", "vmstatus"),
    ("kite", "datavolume.tickIntervall=1s", "tickIntervall"),
    (
        "kite",
        "platform.create=true,platform.spec.imageNamespace=x",
        "imageNamespace",
    ),
];

#[tokio::test]
async fn helms_error_names_the_wrong_value() {
    for helm in Helm::ALL {
        for (chart, set, named) in WRONG {
            let arguments = [format!("--set={set}")];
            let refused = render(helm, chart, &arguments).await;
            let said = refused.expect_err(set);
            assert!(said.contains(named), "{chart} {set}: {said}");
        }
    }
}

#[tokio::test]
async fn what_is_at_the_edge_is_taken() {
    let edge = words(&[
        "--set=replicas=0,terminationGracePeriodSeconds=21,concurrency=512",
        "--set=deletionPatience=1h30m,shutdownGrace=20s900ms",
        "--set=leaderElection.leaseDuration=12s1ms",
        "--set-string=image.tag=v1",
    ]);
    render(Helm::Four, "kite-vm", &edge).await.unwrap();
}

#[tokio::test]
async fn every_chart_passes_helms_own_check() {
    for helm in Helm::ALL {
        for name in CHARTS {
            let path = charts().await.path(name);
            let line = ["lint", "--strict", "--quiet", path.as_str()];
            helm.offline(&line).await.unwrap().ok().unwrap();
        }
    }
}
