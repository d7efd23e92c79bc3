//! The brake, and every doubt about an empty list (rules N-2, N-6). It needs a
//! cluster for itself, so its scenarios run one after the other.

#![allow(clippy::unwrap_used, clippy::panic)]
#![allow(missing_docs, unreachable_pub, reason = "a test binary has no users")]

mod support;

use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kite_api::KiteVirtualMachine;
use kite_testkit::wait::{eventually, wait_for, wait_gone};
use kite_testkit::{KiteProcess, install};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use support::*;

const HELD: &str = "kite.dev/deletion-held";
const RECORD: &str = "kite.dev/recent-deletions";
const SINCE: &str = "kite.dev/orphaned-since";
/// By then an orphan would be marked, due and gone.
const LONG: Duration = Duration::from_secs(6);

// N-2, N-4, N-6, NS11, #47: each part says which it shows.
#[tokio::test]
async fn a_mistake_takes_no_namespace_with_it() {
    let admin = Admin::new().await;
    install::kite_crds(admin.plane).await.unwrap();
    a_restart_makes_the_brake_forget_nothing(&admin).await;
    without_a_grace_period_one_goes_at_once_and_the_last_one_does_not(&admin).await;
    let process = admin.start(&["--grace-period", "2s"]).await;
    the_only_namespace_is_held_until_it_is_acknowledged(&admin, &process).await;
    too_many_at_once_are_held_one_by_one(&admin, &process).await;
    a_list_that_fails_takes_nothing(&admin).await;
    while_another_kind_is_being_removed_nothing_goes_until_that_is_acknowledged(&admin).await;
    a_removed_kind_takes_nothing(&admin).await;
}

/// Waits until it is deleted; how long the server takes to empty it is not Kite's.
async fn gone(admin: &Admin, name: &str) {
    let going = |ns: &Option<Namespace>| {
        ns.as_ref()
            .is_none_or(|ns| ns.metadata.deletion_timestamp.is_some())
    };
    wait_for(&admin.namespaces(), name, LIMIT, going)
        .await
        .unwrap();
}

// N-6: what a process deleted still counts when the next one decides.
async fn a_restart_makes_the_brake_forget_nothing(admin: &Admin) {
    let names = ["r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9"];
    for name in names {
        admin.user_with_namespace(name).await;
    }
    let first = admin.start(&["--grace-period", "0s"]).await;
    for name in &names[..3] {
        admin.delete_user(name).await;
        gone(admin, name).await;
    }
    first.kill();
    let own = admin.namespaces().get("kite-system").await.unwrap();
    let record = &own.annotations()[RECORD];
    assert!(
        names[..3]
            .iter()
            .all(|name| record.contains(&format!("{name}="))),
        "{record}"
    );
    let second = admin.start(&["--grace-period", "0s"]).await;
    admin.delete_user("r3").await;
    assert_eq!(admin.annotated("r3", HELD).await, "Brake");
    let note = admin.event("r3", "Brake").await;
    assert!(note.contains("4 of 10 managed namespaces"), "{note}");
    second.terminate(Duration::from_secs(10)).await;

    // The scenarios that follow begin in an empty cluster that has forgotten this one.
    for name in &names[4..] {
        admin.delete_user(name).await;
    }
    for name in &names[3..] {
        let namespaces = admin.namespaces();
        namespaces
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
    }
    admin.annotate("kite-system", json!({RECORD: null})).await;
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

// N-6: every managed namespace is orphaned, although it is but one, and one that went before.
async fn the_only_namespace_is_held_until_it_is_acknowledged(admin: &Admin, process: &KiteProcess) {
    admin.delete_user("only").await;
    assert_eq!(admin.annotated("only", HELD).await, "Brake");
    let note = admin.event("only", "Brake").await;
    assert!(note.contains("all 2 managed namespaces"), "{note}");
    assert!(
        note.contains("kubectl annotate namespace only --overwrite kite.dev/acknowledge-deletion="),
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
            .annotate("only", json!({"kite.dev/acknowledge-deletion": not_a_time}))
            .await;
        admin.stays(&["only"], Duration::from_secs(1)).await;
    }
    // The words of the event, pasted, are enough; the server's own log tells who did it.
    let audit = admin.plane.audit().unwrap();
    let mark = audit.settled_mark(&admin.client).await.unwrap();
    admin.paste(&note).await;
    gone(admin, "only").await;
    let told = admin.event("only", "Deleted").await;
    assert!(told.contains("an administrator acknowledged"), "{told}");
    audit.settled_mark(&admin.client).await.unwrap();
    let sent = audit.since(mark).unwrap();
    let by_hand = sent.iter().find(|r| {
        let said = r.user_agent.starts_with("kubectl") && r.verb == "patch";
        said && r.resource == "namespaces" && r.name == "only"
    });
    assert!(by_hand.is_some_and(|r| !r.user.is_empty()), "{sent:?}");
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

// N-2, NS11, #47: nobody can be seen to need anything, which is no proof that nobody does; and the process says so.
async fn a_list_that_fails_takes_nothing(admin: &Admin) {
    let roles: Api<ClusterRole> = Api::all(admin.client.clone());
    let mut options = admin.options(&["--grace-period", "0s"]).await;
    let whole = roles.get("kite-namespace").await.unwrap();
    let mut less = whole.rules.clone().unwrap();
    less.retain(|rule| !rule.resources.iter().flatten().any(|r| r == "kiteusers"));
    let with = |rules: &Vec<PolicyRule>| Patch::Merge(json!({ "rules": rules }));
    let merge = PatchParams::default();
    roles
        .patch("kite-namespace", &merge, &with(&less))
        .await
        .unwrap();
    options.wait_ready = false;
    let mut process = KiteProcess::start(admin.plane, options).await.unwrap();
    let said = async || {
        let (_, said) = process.get("/readyz?verbose").await.ok()?;
        said.contains("KiteUser").then_some(said)
    };
    let said = eventually("the process to say what it cannot see", LIMIT, said)
        .await
        .unwrap();
    admin.stays(&["n1", "n3", "n4", "n5"], LONG).await;
    assert!(!process.is_ready().await, "{said}");
    assert!(process.log().contains("KiteUser"), "{}", process.log());
    let metrics = process.metrics().await.unwrap();
    let down = metrics.sum("kite_watch_up", &["kind=\"KiteUser\""]);
    assert!(down < 1.0, "{metrics:?}");
    roles
        .patch("kite-namespace", &merge, &with(&whole.rules.unwrap()))
        .await
        .unwrap();
    process.wait_ready(LIMIT).await.unwrap();
    process.terminate(Duration::from_secs(10)).await;
}

// N-6: a kind of Kite's that cannot go yet holds every deletion, until an administrator says that it is meant.
async fn while_another_kind_is_being_removed_nothing_goes_until_that_is_acknowledged(
    admin: &Admin,
) {
    let machine = json!({"apiVersion": "kite.dev/v1alpha1", "kind": "KiteVirtualMachine",
        "metadata": {"name": "web", "namespace": "n9", "finalizers": ["example.org/anchor"]},
        "spec": {"cpu": 1, "memory": "1Gi", "disk": "10Gi", "image": "ubuntu"}});
    admin.apply(&machine).await;
    let crds: Api<CustomResourceDefinition> = Api::all(admin.client.clone());
    let (kind, merge) = ("kitevirtualmachines.kite.dev", PatchParams::default());
    crds.delete(kind, &DeleteParams::default()).await.unwrap();
    let process = admin.start(&["--grace-period", "0s"]).await;
    admin.delete_user("n8").await;
    let suppressed = async || {
        let metrics = process.metrics().await.ok()?;
        let label = "reason=\"removal_held\"";
        let times = metrics.sum("kite_namespace_deletions_suppressed_total", &[label]);
        (times > 0.0).then_some(())
    };
    eventually("the deletion to be suppressed", LIMIT, suppressed)
        .await
        .unwrap();
    admin.stays(&["n8"], Duration::ZERO).await;
    let now = k8s_openapi::jiff::Timestamp::now().to_string();
    let meant = json!({"metadata": {"annotations": {"kite.dev/acknowledge-deletion": now}}});
    crds.patch(kind, &merge, &Patch::Merge(meant))
        .await
        .unwrap();
    process.terminate(Duration::from_secs(10)).await;
    // Believed again, the list of users meets the brake next: too many went within this window.
    let process = admin.start(&["--grace-period", "0s"]).await;
    assert_eq!(admin.annotated("n8", HELD).await, "Brake");
    process.terminate(Duration::from_secs(10)).await;
    let free = json!({"metadata": {"finalizers": null}});
    let machines: Api<KiteVirtualMachine> = Api::namespaced(admin.client.clone(), "n9");
    machines
        .patch("web", &merge, &Patch::Merge(free))
        .await
        .unwrap();
    wait_gone(&crds, kind, LIMIT).await.unwrap();
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
