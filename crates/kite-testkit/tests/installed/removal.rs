//! Kite goes, in both orders, and comes back; what users have stays.

use std::time::Instant;

use kite_api::KiteVirtualMachine;
use kite_api::machine::PowerState;
use kite_testkit::counted::quiet;
use kite_testkit::helm::Helm;
use kite_testkit::installed::Installed;
use kite_testkit::snapshot::assert_same;
use kite_testkit::tenant::Tenant;
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::json;

use crate::release::{helm, kubectl, of_user, refused, uninstall};

/// Kite's kinds, which people's objects hang on.
const KINDS: [&str; 5] = [
    "get",
    "crd",
    "-lapp.kubernetes.io/part-of=kite",
    "--ignore-not-found",
    "-oname",
];

/// What users may do goes with the chart that says it.
const MAY_LIST: [&str; 6] = [
    "auth",
    "can-i",
    "list",
    "kitevirtualmachines",
    "--namespace=alice",
    "--as=alice@example.org",
];

const PACE: &str = "--set=crds.enabled=false,datavolume.tickInterval=1s,datavolume.errorHold=1s,vmStatus.errorHold=1s";

// C-5
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_user_is_lost_when_kite_goes_in_either_order_and_comes_back() {
    let _turn = crate::TURN.read().await;
    let ground = Installed::ground().await.unwrap();
    let [kinds, kite] = ["kite-crds", "kite"].map(|name| ground.charts.path(name));
    ground.install(Helm::Four, "kite-crds", &[]).await.unwrap();
    let all = ["install", "kite", &kite, "--wait", PACE];
    helm(&ground, Helm::Four, &all).await;
    let alice = Tenant::new(&ground.cluster, "alice").await;
    let bob = Tenant::new(&ground.cluster, "bob").await;
    for tenant in [&alice, &bob] {
        tenant.create().await;
        tenant.machine("web", json!({})).await;
    }
    alice.ready("web").await;
    bob.ready("web").await;
    quiet(&ground.cluster).await;
    let before = of_user(&alice.client, "alice").await;
    let unchanged = async |what: &str| {
        let now = of_user(&alice.client, "alice").await;
        assert_same(what, &before, &now);
    };
    assert!(may_list(&ground).await);

    // The controllers first: only what is deleted meanwhile waits, for those who clean up after it.
    uninstall(&ground, Helm::Four, "kite").await;
    bob.api::<KiteVirtualMachine>()
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    unchanged("without the controllers").await;
    uninstall(&ground, Helm::Four, "kite-crds").await;
    assert_eq!(kubectl(&ground, &KINDS).await.lines().count(), 4);
    unchanged("without anything").await;
    let held: KiteVirtualMachine = bob.api().get("web").await.unwrap();
    assert_eq!(held.finalizers(), [kite_api::labels::VM_FINALIZER]);
    assert!(!may_list(&ground).await);

    // It comes back under other names. The kinds are another release's until Helm is told otherwise.
    for which in Helm::ALL {
        let said = refused(&ground, which, &["install", "kinds", &kinds]).await;
        assert!(said.contains("meta.helm.sh/release-name"), "{said}");
    }
    let over = ["install", "kinds", &kinds, "--wait", "--take-ownership"];
    helm(&ground, Helm::Four, &over).await;
    let start = Instant::now();
    helm(
        &ground,
        Helm::Four,
        &["install", "machines", &kite, "--wait", PACE],
    )
    .await;
    bob.machine_gone("web").await;
    println!(
        "{:5.1} s  until what was deleted is gone",
        start.elapsed().as_secs_f32()
    );
    assert!(may_list(&ground).await);
    quiet(&ground.cluster).await;
    unchanged("after the controllers came back").await;

    // The kinds first: they stay, and who works goes on.
    uninstall(&ground, Helm::Four, "kinds").await;
    assert_eq!(kubectl(&ground, &KINDS).await.lines().count(), 4);
    unchanged("without the chart of the kinds").await;
    uninstall(&ground, Helm::Four, "machines").await;
    unchanged("without anything, again").await;

    // It comes back under the names that it had, and works.
    helm(
        &ground,
        Helm::Three,
        &["install", "kinds", &kinds, "--wait"],
    )
    .await;
    helm(
        &ground,
        Helm::Three,
        &["install", "machines", &kite, "--wait", PACE],
    )
    .await;
    quiet(&ground.cluster).await;
    unchanged("after all came back").await;
    alice.switch("web", PowerState::Off).await;

    // In the end all goes: people's objects while there is somebody to clean up, then the releases,
    // then the kinds.
    for kind in ["kitevirtualmachines", "kiteusers"] {
        let line = ["delete", kind, "--all", "--all-namespaces", "--timeout=2m"];
        kubectl(&ground, &line).await;
    }
    for release in ["machines", "kinds"] {
        uninstall(&ground, Helm::Three, release).await;
    }
    let end = [
        "delete",
        "crd",
        "-lapp.kubernetes.io/part-of=kite",
        "--timeout=2m",
    ];
    kubectl(&ground, &end).await;
    assert_eq!(kubectl(&ground, &KINDS).await, "");
}

/// Whether a user may see what is in the namespace that is theirs.
async fn may_list(on: &Installed) -> bool {
    let asked = on.cluster.control_plane.kubectl(&MAY_LIST).await.unwrap();
    asked.stdout.trim() == "yes"
}
