//! What an administrator changes for the whole cluster: the platform, the rights,
//! and whether the kind is there at all.

use std::time::Duration;

use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kite_api::condition::{ISOLATION_READY, STALLED};
use kite_testkit::wait::{eventually, wait_gone};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::Scene;
use crate::support::*;

/// Settings of the platform.
fn platform(spec: &serde_json::Value) -> serde_json::Value {
    json!({"apiVersion": "kite.dev/v1alpha1", "kind": "KitePlatform", "metadata": {"name": "default"}, "spec": spec})
}

// P-1, P-3: a change reaches the objects concerned once; a wrong one leaves the last good one in force.
pub async fn a_changed_platform_reaches_each_user_once_and_a_wrong_one_none(scene: &Scene) {
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
pub async fn without_the_right_to_bind_nothing_is_handed_out(scene: &Scene) {
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
pub async fn a_removed_kind_takes_nobody_away_until_it_is_acknowledged(scene: &Scene) {
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
    wait_gone(&crds, "kiteusers.kite.dev", LIMIT).await.unwrap();
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
