//! Scenarios that need kite-user and its cluster for themselves, one after the
//! other: failover, silence, restarts, the platform, missing rights, and the
//! removal of the kind itself.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout
)]
#![allow(missing_docs, unreachable_pub, reason = "a test binary has no users")]

mod support;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kite_api::condition::{ISOLATION_READY, STALLED};
use kite_testkit::audit::{Mark, Request};
use kite_testkit::wait::{eventually, wait_until};
use kite_testkit::{ControlPlane, Identity, KiteOptions, KiteProcess};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use support::*;

/// Short times, in the relation that the flags demand.
const LEASE: Duration = Duration::from_secs(5);
const RETRY: Duration = Duration::from_secs(1);
const TIMES: [&str; 8] = [
    "--lease-duration",
    "5s",
    "--renew-interval",
    "1s",
    "--renew-deadline",
    "3s",
    "--retry-interval",
    "1s",
];

struct Scene {
    plane: &'static ControlPlane,
    identity: Identity,
    admin: Admin,
}

impl Scene {
    async fn start(&self, args: &[&str]) -> KiteProcess {
        let options = KiteOptions::new("kite-user", self.identity.kubeconfig());
        let args = TIMES.iter().chain(args).copied();
        KiteProcess::start(self.plane, options.args(args))
            .await
            .unwrap()
    }

    async fn mark(&self) -> Mark {
        self.plane
            .audit()
            .unwrap()
            .settled_mark(&self.admin.client)
            .await
            .unwrap()
    }

    /// All that kite-user asked since a mark, but leases, watches and events.
    async fn sent(&self, since: Mark) -> Vec<Request> {
        self.mark().await;
        let mut sent = self.plane.audit().unwrap().since(since).unwrap();
        sent.retain(|r| r.is_by("kite-user") && !r.is_lease() && !r.is_watch() && !r.is_event());
        sent
    }
}

#[tokio::test]
async fn kite_user_alone_in_its_cluster() {
    let (plane, identity) = prepared().await;
    let admin = Admin::new(plane).await;
    let scene = Scene {
        plane,
        identity,
        admin,
    };
    a_killed_leader_is_followed_within_lease_and_retry(&scene).await;
    two_that_both_work_do_no_harm(&scene).await;
    let process = a_restart_and_a_quiet_time_send_nothing(&scene).await;
    a_changed_platform_reaches_each_user_once_and_a_wrong_one_none(&scene).await;
    without_the_right_to_bind_nothing_is_handed_out(&scene).await;
    a_removed_kind_takes_nobody_away_until_it_is_acknowledged(&scene).await;
    let status = process.terminate(Duration::from_secs(10)).await.unwrap();
    assert!(status.success(), "{status}: {}", process.log());
    let leases: Api<Lease> = Api::namespaced(scene.admin.client.clone(), "kite-system");
    let lease = leases.get("kite-user").await.unwrap();
    assert_eq!(
        lease.spec.unwrap().holder_identity.as_deref(),
        Some(""),
        "released at the end"
    );
}

/// How often each object was created, by path.
fn creations(requests: &[Request]) -> BTreeMap<String, usize> {
    let mut made = BTreeMap::new();
    for request in requests
        .iter()
        .filter(|r| r.verb == "create" && r.code < 300)
    {
        let what = format!(
            "{} {}/{}",
            request.target(),
            request.namespace,
            request.name
        );
        *made.entry(what).or_default() += 1;
    }
    made
}

// design.md, 2.5; LE: one leads, the other takes over.
async fn a_killed_leader_is_followed_within_lease_and_retry(scene: &Scene) {
    let mark = scene.mark().await;
    let first = scene.start(&[]).await;
    let leases: Api<Lease> = Api::namespaced(scene.admin.client.clone(), "kite-system");
    let holder = |lease: &Lease| lease.spec.as_ref().and_then(|s| s.holder_identity.clone());
    let leads = |lease: &Lease| holder(lease).as_deref() == Some(first.identity());
    wait_until(&leases, "kite-user", LIMIT, leads)
        .await
        .unwrap();
    let second = scene.start(&[]).await;
    scene.admin.ready_user("over-a", full_spec("over-a")).await;
    first.kill();
    let began = Instant::now();
    scene.admin.ready_user("over-b", full_spec("over-b")).await;
    let took = began.elapsed();
    println!("the other took over and had a user ready {took:?} after SIGKILL");
    // The standby asks every RETRY; a second for the work itself, a second for two busy cores.
    assert!(took <= LEASE + RETRY + Duration::from_secs(2), "{took:?}");
    let lease = leases.get("kite-user").await.unwrap();
    assert_eq!(holder(&lease).as_deref(), Some(second.identity()));
    let sent = scene.sent(mark).await;
    let twice: Vec<_> = creations(&sent)
        .into_iter()
        .filter(|(_, n)| *n > 1)
        .collect();
    assert!(twice.is_empty(), "{twice:?}");
    second.kill();
}

// design.md, 2.5: every write is safe with two leaders.
async fn two_that_both_work_do_no_harm(scene: &Scene) {
    let admin = &scene.admin;
    let foreign =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "both-foreign"}});
    admin.apply(&foreign).await;
    let before = admin.namespaces().get("both-foreign").await.unwrap();
    let mark = scene.mark().await;
    let unelected = ["--leader-election", "false"];
    let pair = [scene.start(&unelected).await, scene.start(&unelected).await];
    admin
        .apply(&user("foreign-user", plain_spec("both-foreign")))
        .await;
    for name in ["pair-a", "pair-b", "pair-c"] {
        admin.apply(&user(name, full_spec(name))).await;
    }
    for name in ["pair-a", "pair-b", "pair-c"] {
        admin.ready(name).await;
    }
    admin
        .merge(
            &admin.users(),
            "pair-a",
            json!({"spec": {"quota": {"cpu": 2}}}),
        )
        .await;
    admin.ready("pair-a").await;
    admin
        .policies("pair-b")
        .delete("kite-isolation", &DeleteParams::default())
        .await
        .unwrap();
    wait_until(&admin.policies("pair-b"), "kite-isolation", REPAIR, |p| {
        p.metadata.deletion_timestamp.is_none()
    })
    .await
    .unwrap();
    admin.delete_user("pair-c").await;
    admin.user_gone("pair-c").await;
    admin.reason("foreign-user", "NamespaceNotManaged").await;

    let made = creations(&scene.sent(mark).await);
    for (what, times) in &made {
        // The policy was deleted once by hand.
        let expected = if what.ends_with("pair-b/kite-isolation") {
            2
        } else {
            1
        };
        assert!(*times <= expected, "{what} was made {times} times");
    }
    assert_eq!(
        bytes(&before),
        bytes(&admin.namespaces().get("both-foreign").await.unwrap())
    );
    for name in ["pair-a", "pair-b"] {
        assert_eq!(
            admin
                .policies(name)
                .list(&ListParams::default())
                .await
                .unwrap()
                .items
                .len(),
            2
        );
    }
    assert!(
        admin
            .policies("pair-c")
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
    admin.delete_user("foreign-user").await;
    admin.user_gone("foreign-user").await;
    for process in pair {
        process.kill();
    }
}

// C-5: 0 requests but leases and watches when nothing changes, and after a restart.
async fn a_restart_and_a_quiet_time_send_nothing(scene: &Scene) -> KiteProcess {
    let mark = scene.mark().await;
    let process = scene.start(&[]).await;
    tokio::time::sleep(Duration::from_secs(25)).await;
    let sent = scene.sent(mark).await;
    let (lists, others): (Vec<_>, Vec<_>) = sent.into_iter().partition(|r| r.verb == "list");
    println!("after a restart: {} lists", lists.len());
    assert!(others.is_empty(), "{others:?}");
    assert_eq!(lists.len(), 8, "one for each watch: {lists:?}");
    process
}

/// Settings of the platform.
fn platform(spec: &serde_json::Value) -> serde_json::Value {
    json!({"apiVersion": "kite.dev/v1alpha1", "kind": "KitePlatform", "metadata": {"name": "default"}, "spec": spec})
}

// P-1, P-3: a change reaches the objects concerned once; a wrong one leaves the last good one in force.
async fn a_changed_platform_reaches_each_user_once_and_a_wrong_one_none(scene: &Scene) {
    let admin = &scene.admin;
    let users = admin
        .users()
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .len();
    let mark = scene.mark().await;
    let ranges = json!({"network": {"clusterRanges": ["203.0.113.0/24"]}});
    admin.apply(&platform(&ranges)).await;
    let closed = async |space: &str| {
        let policy = admin.policies(space).get("kite-isolation").await.unwrap();
        bytes(&policy).contains("203.0.113.0/24")
    };
    for space in ["over-a", "pair-a"] {
        eventually("the closed range", LIMIT, async || {
            closed(space).await.then_some(())
        })
        .await
        .unwrap();
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let sent = scene.sent(mark).await;
    assert_eq!(sent.len(), users, "one policy of each user: {sent:?}");

    let mark = scene.mark().await;
    admin
        .apply(&platform(
            &json!({"network": {"clusterRanges": ["nonsense"]}}),
        ))
        .await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(scene.sent(mark).await.is_empty());
    assert!(closed("over-a").await);

    // A reserved namespace refuses even a user that was there before, and touches nothing of it.
    admin
        .apply(&platform(&json!({"reservedNamespaces": ["over-b"]})))
        .await;
    let refused = admin.reason("over-b", "InvalidSpec").await;
    assert!(is(&refused, STALLED, "True") && is(&refused, ISOLATION_READY, "False"));
    assert!(admin.policies("over-b").get("kite-isolation").await.is_ok());
    admin
        .plane
        .kubectl(&["delete", "kiteplatform", "default"])
        .await
        .unwrap()
        .ok()
        .unwrap();
    admin.ready("over-b").await;
}

// U-4, C-20: `bind` on exactly two roles is what lets kite-user hand them out.
async fn without_the_right_to_bind_nothing_is_handed_out(scene: &Scene) {
    let admin = &scene.admin;
    let roles: Api<ClusterRole> = Api::all(admin.client.clone());
    let whole = roles.get("kite-user").await.unwrap();
    let mut less = whole.rules.clone().unwrap();
    less.retain(|rule| !rule.verbs.iter().any(|verb| verb == "bind"));
    assert_eq!(less.len() + 1, whole.rules.as_ref().unwrap().len());
    admin
        .merge(&roles, "kite-user", json!({"rules": less}))
        .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    admin.apply(&user("unbound", full_spec("unbound"))).await;
    let refused = admin.reason("unbound", "Forbidden").await;
    assert!(
        is(&refused, ISOLATION_READY, "True"),
        "one refusal does not stop the rest"
    );
    assert!(
        message(&refused, STALLED).contains("RoleBinding"),
        "{}",
        message(&refused, STALLED)
    );
    assert!(
        admin
            .bindings("unbound")
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
    admin
        .merge(&roles, "kite-user", json!({"rules": whole.rules}))
        .await;
    admin.ready("unbound").await;
}

// N-6: while Kite's own kind is being removed nothing is destroyed until that is acknowledged.
async fn a_removed_kind_takes_nobody_away_until_it_is_acknowledged(scene: &Scene) {
    let admin = &scene.admin;
    let crds: Api<CustomResourceDefinition> = Api::all(admin.client.clone());
    crds.delete("kiteusers.kite.dev", &DeleteParams::default())
        .await
        .unwrap();
    let held = admin.reason("over-a", "RemovalHeld").await;
    assert!(message(&held, STALLED).contains("kubectl annotate crd kiteusers.kite.dev"));
    tokio::time::sleep(Duration::from_secs(2)).await;
    let all = ListParams::default();
    assert!(!admin.users().list(&all).await.unwrap().items.is_empty());
    for space in ["over-a", "pair-a", "unbound"] {
        assert_eq!(
            admin.policies(space).list(&all).await.unwrap().items.len(),
            2
        );
        assert!(
            !admin
                .bindings(space)
                .list(&all)
                .await
                .unwrap()
                .items
                .is_empty()
        );
    }
    let now = k8s_openapi::jiff::Timestamp::now();
    let meant =
        json!({"metadata": {"annotations": {"kite.dev/acknowledge-deletion": now.to_string()}}});
    admin.merge(&crds, "kiteusers.kite.dev", meant).await;
    kite_testkit::wait::wait_gone(&crds, "kiteusers.kite.dev", LIMIT)
        .await
        .unwrap();
    assert!(
        admin
            .policies("over-a")
            .list(&all)
            .await
            .unwrap()
            .items
            .is_empty()
    );
    let left = admin.namespaces().get("over-a").await.unwrap();
    assert!(
        left.metadata.deletion_timestamp.is_none(),
        "{}",
        left.name_any()
    );
}
