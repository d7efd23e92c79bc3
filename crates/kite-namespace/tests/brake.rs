//! The brake, and every doubt about an empty list (rules N-2, N-6). It needs a
//! cluster for itself, so its scenarios run one after the other.

#![allow(clippy::unwrap_used, clippy::panic)]
#![allow(missing_docs, unreachable_pub, reason = "a test binary has no users")]

mod support;

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kite_testkit::wait::wait_gone;
use kite_testkit::{KiteProcess, install};
use kube::Api;
use kube::api::DeleteParams;
use support::*;

const HELD: &str = "kite.dev/deletion-held";
const SINCE: &str = "kite.dev/orphaned-since";
/// By then an orphan would be marked, due and gone.
const LONG: Duration = Duration::from_secs(6);

#[tokio::test]
async fn a_mistake_takes_no_namespace_with_it() {
    let admin = Admin::new().await;
    install::kite_crds(admin.plane).await.unwrap();
    without_a_grace_period_one_goes_at_once_and_the_last_one_does_not(&admin).await;
    let process = admin.start(&["--grace-period", "2s"]).await;
    the_only_namespace_is_held_until_it_is_acknowledged(&admin, &process).await;
    too_many_at_once_are_held_one_by_one(&admin, &process).await;
    a_removed_kind_takes_nothing(&admin).await;
}

async fn gone(admin: &Admin, name: &str) {
    wait_gone(&admin.namespaces(), name, LIMIT).await.unwrap();
}

// N-4: a grace period of 0 is the literal sequence; the brake holds all the same.
async fn without_a_grace_period_one_goes_at_once_and_the_last_one_does_not(admin: &Admin) {
    let process = admin.start(&["--grace-period", "0s"]).await;
    admin.user_with_namespace("first").await;
    admin.user_with_namespace("only").await;
    admin.delete_user("first").await;
    gone(admin, "first").await;
    process.terminate(Duration::from_secs(10)).await;
}

// N-6: every managed namespace is orphaned, although it is but one.
async fn the_only_namespace_is_held_until_it_is_acknowledged(admin: &Admin, process: &KiteProcess) {
    admin.delete_user("only").await;
    assert_eq!(admin.annotated("only", HELD).await, "Brake");
    let note = admin.event("only", "Brake").await;
    assert!(note.contains("all 1 managed namespaces"), "{note}");
    assert!(
        note.contains("kubectl annotate namespace only kite.dev/acknowledge-deletion="),
        "{note}"
    );
    admin.stays(&["only"], LONG).await;
    let held = process
        .metrics()
        .await
        .unwrap()
        .sum("kite_namespaces_held", &[]);
    assert!((held - 1.0).abs() < f64::EPSILON, "{held}");
    // What was said before it was orphaned does not count, nor does a word that is no time.
    for not_a_time in ["true", "2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z"] {
        admin
            .annotate(
                "only",
                serde_json::json!({"kite.dev/acknowledge-deletion": not_a_time}),
            )
            .await;
        admin.stays(&["only"], Duration::from_secs(1)).await;
    }
    admin.acknowledge("only").await;
    gone(admin, "only").await;
}

// N-6: more than three and more than a fifth; each is acknowledged for itself.
async fn too_many_at_once_are_held_one_by_one(admin: &Admin, process: &KiteProcess) {
    let names = ["n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9"];
    for name in names {
        admin.user_with_namespace(name).await;
    }
    let lost = &names[..4];
    for name in lost {
        admin.delete_user(name).await;
    }
    for name in lost {
        assert_eq!(admin.annotated(name, HELD).await, "Brake");
    }
    admin.stays(lost, LONG).await;
    admin.acknowledge("n0").await;
    gone(admin, "n0").await;
    admin.user("n1", "n1").await;
    admin.unannotated("n1", HELD).await;
    admin.unannotated("n1", SINCE).await;
    // A restart does not forget that an administrator is awaited.
    process.terminate(Duration::from_secs(10)).await;
    let next = admin.start(&["--grace-period", "2s"]).await;
    admin.stays(&["n1", "n2", "n3"], LONG).await;
    admin.acknowledge("n2").await;
    gone(admin, "n2").await;
    admin.stays(&["n1", "n3"], Duration::from_secs(1)).await;
    next.terminate(Duration::from_secs(10)).await;
}

// N-2, N-6, NS11: the kind itself is removed, and every user with it.
async fn a_removed_kind_takes_nothing(admin: &Admin) {
    let process = admin.start(&["--grace-period", "2s"]).await;
    let crds: Api<CustomResourceDefinition> = Api::all(admin.client.clone());
    crds.delete("kiteusers.kite.dev", &DeleteParams::default())
        .await
        .unwrap();
    wait_gone(&crds, "kiteusers.kite.dev", LIMIT).await.unwrap();
    let kept = ["n1", "n3", "n4", "n5", "n6", "n7", "n8", "n9"];
    admin.stays(&kept, LONG).await;
    let metrics = process.metrics().await.unwrap();
    let suppressed = metrics.sum(
        "kite_namespace_deletions_suppressed_total",
        &["reason=\"kind_absent\""],
    );
    assert!(suppressed > 0.0, "{metrics:?}");
    // It comes back empty, as after a restore that went wrong.
    install::kite_crds(admin.plane).await.unwrap();
    assert_eq!(admin.annotated("n5", HELD).await, "Brake");
    admin.stays(&kept, LONG).await;
}
