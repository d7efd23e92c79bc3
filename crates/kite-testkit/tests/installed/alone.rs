//! Each controller's chart as a release of its own, and each controller left out
//! of the whole.

use std::collections::BTreeMap;

use kite_api::KiteVirtualMachine;
use kite_api::condition::{DISK_READY, READY, SERVICE_READY};
use kite_testkit::helm::{Helm, PARTS};
use kite_testkit::installed::Installed;
use kite_testkit::tenant::{LONG, Tenant, conditions, is_true};
use kite_testkit::wait::eventually;

use crate::release::{helm, kubectl, of_release, uninstall};

/// A Deployment with its ReplicaSet and pod, a Service with its endpoints, an account, and two
/// roles with their bindings.
const OF_EACH: usize = 10;

/// What a controller makes for itself has no label of a release and outlives it.
const LEASES: [&str; 5] = ["get", "leases", "-n", "kite-system", "-oname"];

// C-1, S-1, E-5, D-5
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_controller_can_be_the_only_one_and_each_can_be_left_out() {
    let _turn = crate::TURN.read().await;
    let ground = Installed::ground().await.unwrap();
    ground.install(Helm::Four, "kite-crds", &[]).await.unwrap();

    let tenant = Tenant::new(&ground.cluster, "alice").await;
    let lonely = Tenant::new(&ground.cluster, "lonely").await;
    alone(&ground, "kite-user", &[], async || {
        tenant.create().await;
        lonely.create().await;
        lonely.delete_user().await;
    })
    .await;
    alone(
        &ground,
        "kite-namespace",
        &["--set=gracePeriod=1s"],
        async || {
            lonely.namespace_gone().await;
        },
    )
    .await;
    alone(&ground, "kite-vm", &[], async || {
        tenant.machine("web", serde_json::json!({})).await;
        tenant.applied("web").await;
    })
    .await;
    let fast = "--set=errorHold=1s";
    for (mirror, values, tells) in [
        ("kite-service", &[][..], SERVICE_READY),
        (
            "kite-datavolume",
            &[fast, "--set=tickInterval=1s"],
            DISK_READY,
        ),
        ("kite-vm-status", &[fast], READY),
    ] {
        let before: KiteVirtualMachine = tenant.api().get("web").await.unwrap();
        assert!(!is_true(conditions(&before), tells), "{before:?}");
        alone(&ground, mirror, values, async || {
            let told = |m: &KiteVirtualMachine| is_true(conditions(m), tells);
            tenant.until("web", LONG, told).await;
        })
        .await;
    }
    tenant.ready("web").await;

    ground
        .install_all(Helm::Four, &["crds.enabled=false"])
        .await
        .unwrap();
    each_can_be_left_out(&ground).await;
    tenant.ready("web").await;
}

/// Installs one chart, sees it work, removes it, and sees that nothing of it is left.
async fn alone(on: &Installed, chart: &str, values: &[&str], works: impl AsyncFnOnce()) {
    let path = on.charts.path(chart);
    let install = ["install", chart, &path, "--wait"];
    helm(on, Helm::Four, &[&install[..], values].concat()).await;
    let there = of_release(on, chart).await;
    assert!(there.len() >= OF_EACH, "{chart}: {there:?}");
    works().await;
    uninstall(on, Helm::Four, chart).await;
    let leases = kubectl(on, &LEASES).await;
    assert!(
        leases
            .lines()
            .any(|lease| lease.ends_with(&format!("/{chart}")))
    );
}

/// Leaves one after the other out of a release of all.
async fn each_can_be_left_out(on: &Installed) {
    let path = on.charts.path("kite");
    let mut before = of_release(on, "kite").await;
    for (part, name) in PARTS {
        let off = format!("--set={part}.enabled=false");
        let line = ["upgrade", "kite", &path, "--reuse-values", "--wait", &off];
        helm(on, Helm::Four, &line).await;

        // Nothing of it is there any more, and nothing else was so much as replaced.
        let own = format!("{name} ");
        let mut rest = before.clone();
        rest.retain(|object, _| !object.starts_with(&own));
        assert!(before.len() - rest.len() >= OF_EACH, "{name}: {before:?}");
        let seen = eventually(name, LONG, async || {
            let now = of_release(on, "kite").await;
            let gone = !now.keys().any(|object| object.starts_with(&own));
            gone.then_some(now)
        })
        .await
        .unwrap();
        assert_eq!(seen, rest, "without {name}");
        before = seen;
    }
    assert_eq!(before, BTreeMap::new(), "nothing is on");
}
