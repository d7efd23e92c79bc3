//! Two copies: one leads and the other takes over, or both work at the same time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use kite_testkit::audit::Request;
use kite_testkit::wait::wait_until;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use serde_json::json;

use crate::support::*;
use crate::{LEASE, RETRY, Scene};

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

// C-1, LE11: one leads, the other takes over.
pub async fn a_killed_leader_is_followed_within_lease_and_retry(scene: &Scene) {
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
    // The standby asks every RETRY; the rest is for the work itself on busy cores, and still less
    // than the lease that stands when nobody sets one.
    assert!(took <= LEASE + RETRY + Duration::from_secs(8), "{took:?}");
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

// C-7, LE8: every write is safe with two leaders.
pub async fn two_that_both_work_do_no_harm(scene: &Scene) {
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
