//! The end of a user while something may still run (rules U-10, U-11).

use kite_testkit::wait::wait_until;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::support::*;

/// What stands in a namespace: policies, quotas, bindings, by name.
async fn standing(admin: &Admin, space: &str) -> Vec<String> {
    use kube::ResourceExt;
    let all = kube::api::ListParams::default();
    let mut names: Vec<String> = Vec::new();
    names.extend(
        admin
            .policies(space)
            .list(&all)
            .await
            .unwrap()
            .iter()
            .map(ResourceExt::name_any),
    );
    names.extend(
        admin
            .quotas(space)
            .list(&all)
            .await
            .unwrap()
            .iter()
            .map(ResourceExt::name_any),
    );
    names.extend(
        admin
            .bindings(space)
            .list(&all)
            .await
            .unwrap()
            .iter()
            .map(ResourceExt::name_any),
    );
    names
}

async fn ends_with(name: &str, object: Value) -> Vec<String> {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    let space = format!("{name}-space");
    admin.ready_user(name, full_spec(&space)).await;
    admin.apply(&object).await;
    let policies = async || {
        let all = kube::api::ListParams::default();
        let list = admin.policies(&space).list(&all).await.unwrap();
        list.items
            .into_iter()
            .map(|p| p.metadata.uid)
            .collect::<Vec<_>>()
    };
    let before = policies().await;
    admin.delete_user(name).await;
    admin.user_gone(name).await;
    assert_eq!(policies().await, before, "isolated at every moment");
    admin.event(name, "IsolationKept").await;
    let quota = admin.quotas(&space).get("kite-quota").await.unwrap();
    let hard = quota.spec.unwrap().hard.unwrap();
    assert_eq!(
        hard["count/kitevirtualmachines.kite.dev"].0, "0",
        "no machine may come"
    );
    standing(&admin, &space).await
}

const KEPT: [&str; 4] = [
    "kite-clone",
    "kite-isolation",
    "kite-quota",
    "kite-vm-secrets",
];

// U-10, NS6, F-15: a machine is left, so its isolation is; the tenants lose their rights, and the user goes all the same.
#[tokio::test]
async fn a_machine_that_is_left_keeps_its_isolation() {
    let machine = json!({"apiVersion": "kite.dev/v1alpha1", "kind": "KiteVirtualMachine",
        "metadata": {"name": "web", "namespace": "owner-space"},
        "spec": {"cpu": 1, "memory": "1Gi", "disk": "10Gi", "image": "ubuntu"}});
    assert_eq!(ends_with("owner", machine).await, KEPT);
}

// U-10: so does a guest of which only the launcher pod is left.
#[tokio::test]
async fn a_launcher_pod_that_is_left_keeps_its_isolation() {
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "virt-launcher-web", "namespace": "launcher-space", "labels": {"kubevirt.io": "virt-launcher"}},
        "spec": {"containers": [{"name": "compute", "image": "none",
            "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}}}]}});
    wait_for_account("launcher").await;
    assert_eq!(ends_with("launcher", pod).await, KEPT);
}

/// Pods need the namespace's default account, which comes a moment after the namespace.
async fn wait_for_account(name: &str) {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    let space = format!("{name}-space");
    admin.ready_user(name, full_spec(&space)).await;
    let accounts: Api<k8s_openapi::api::core::v1::ServiceAccount> =
        Api::namespaced(admin.client.clone(), &space);
    wait_until(&accounts, "default", LIMIT, |_| true)
        .await
        .unwrap();
}

// U-10: a user without a quota gets one for its end, so that no machine comes while it is looked.
#[tokio::test]
async fn a_user_without_a_quota_goes_too() {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    admin
        .ready_user("unlimited", plain_spec("unlimited-space"))
        .await;
    admin.delete_user("unlimited").await;
    admin.user_gone("unlimited").await;
    assert!(standing(&admin, "unlimited-space").await.is_empty());
}

// U-11: the user goes although its namespace cannot.
#[tokio::test]
async fn a_user_does_not_wait_for_its_namespace() {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    let space = "stuck-space";
    admin.ready_user("stuck", full_spec(space)).await;
    let anchor = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "anchor", "namespace": space, "finalizers": ["example.org/anchor"]}});
    admin.apply(&anchor).await;
    admin
        .namespaces()
        .delete(space, &DeleteParams::default())
        .await
        .unwrap();
    admin.reason("stuck", "NamespaceTerminating").await;
    admin.delete_user("stuck").await;
    admin.user_gone("stuck").await;
    assert!(admin.namespaces().get_opt(space).await.unwrap().is_some());
}

// F-13: a finalizer of others is never removed (CR9), and Kite's own is not missed.
#[tokio::test]
async fn finalizers_of_others_stay() {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    let name = "finalizers";
    admin.ready_user(name, plain_spec("finalizers-space")).await;
    let both = json!({"metadata": {"finalizers": ["example.org/first", "kite.dev/user-cleanup", "example.org/last"]}});
    admin.merge(&admin.users(), name, both).await;
    admin.delete_user(name).await;
    let left = |user: &kite_api::KiteUser| {
        let left = user.metadata.finalizers.clone().unwrap_or_default();
        left == ["example.org/first", "example.org/last"]
    };
    wait_until(&admin.users(), name, LIMIT, left).await.unwrap();
    admin
        .merge(
            &admin.users(),
            name,
            json!({"metadata": {"finalizers": null}}),
        )
        .await;
    admin.user_gone(name).await;
}
