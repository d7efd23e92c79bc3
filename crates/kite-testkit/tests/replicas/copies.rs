//! Several copies of each controller, and which of them leads.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::future::join_all;
use k8s_openapi::api::coordination::v1::Lease;
use kite_testkit::cluster::CONTROLLERS;
use kite_testkit::http_get::get;
use kite_testkit::install::SYSTEM_NAMESPACE;
use kite_testkit::kite_process::Metrics;
use kite_testkit::{Cluster, KiteProcess, wait};
use kube::Api;

use kite_testkit::tenant::LONG;

/// How a copy is called, in the cluster and in its Lease.
pub(crate) fn copy(controller: &str, letter: char) -> String {
    format!("{controller}-{letter}")
}

/// Starts a copy of every controller.
pub(crate) async fn run_all(
    cluster: &Cluster,
    letter: char,
    flags: impl Fn(&str) -> Vec<&'static str>,
) {
    for name in CONTROLLERS {
        cluster
            .run(name, &copy(name, letter), &flags(name))
            .await
            .unwrap();
    }
}

/// Metrics of a copy.
pub(crate) async fn metrics(cluster: &Cluster, called: &str) -> Metrics {
    let address = cluster.with(called, KiteProcess::address);
    let (_, text) = get(address, "/metrics").await.unwrap();
    Metrics::parse(&text).unwrap()
}

pub(crate) async fn leads(cluster: &Cluster, called: &str) -> bool {
    let metrics = metrics(cluster, called).await;
    metrics.sum("leader_election_master_status", &[]) > 0.5
}

/// Waits until a copy holds the Lease, and says how long after `since` that was.
pub(crate) async fn led_after(
    cluster: &Cluster,
    controller: &str,
    letter: char,
    since: Instant,
) -> Duration {
    let leases: Api<Lease> = Api::namespaced(cluster.client().await, SYSTEM_NAMESPACE);
    let holder = Some(copy(controller, letter));
    let held = |lease: &Lease| {
        let spec = lease.spec.as_ref();
        spec.is_some_and(|s| s.holder_identity == holder)
    };
    wait::wait_until(&leases, controller, LONG, held)
        .await
        .unwrap();
    since.elapsed()
}

/// Waits until the copies of this letter lead, and asserts that no other does.
pub(crate) async fn only_these_lead(cluster: &Cluster, letter: char) {
    for name in CONTROLLERS {
        let called = copy(name, letter);
        let leading = async || leads(cluster, &called).await.then_some(());
        wait::eventually("a copy to lead", LONG, leading)
            .await
            .unwrap();
    }
    for called in cluster.names() {
        let should = called.ends_with(letter);
        assert_eq!(leads(cluster, &called).await, should, "{called}");
    }
    for (name, holder) in holders(cluster).await {
        assert_eq!(holder, copy(&name, letter), "the Lease of {name}");
    }
}

/// Who holds each Lease.
pub(crate) async fn holders(cluster: &Cluster) -> BTreeMap<String, String> {
    let leases: Api<Lease> = Api::namespaced(cluster.client().await, SYSTEM_NAMESPACE);
    let mut holders = BTreeMap::new();
    for name in CONTROLLERS {
        let lease = leases.get(name).await.unwrap();
        let holder = lease.spec.and_then(|s| s.holder_identity);
        holders.insert(name.to_owned(), holder.unwrap_or_default());
    }
    holders
}

/// Ends all copies gently.
pub(crate) async fn stop_all(cluster: &Cluster) {
    let processes: Vec<_> = cluster.names().iter().map(|n| cluster.take(n)).collect();
    join_all(
        processes
            .iter()
            .map(|p| p.terminate(Duration::from_secs(25))),
    )
    .await;
}
