//! The rights that no audit log can show, because a server or a webhook only asks
//! about them: each is taken away, what it was for stops and is told, and heals
//! when it is given back.

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role};
use kite_api::condition::{self, READY, RESOURCES_APPLIED};
use kite_api::{KiteUser, KiteVirtualMachine};
use kite_testkit::tenant::{LONG, Tenant, conditions, is_true, user_conditions};
use kite_testkit::{Cluster, ClusterOptions, Options, install};
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

/// A cluster whose server asks for the right to block an owner's deletion, which is off by default.
async fn strict() -> Cluster {
    let control_plane = Options {
        apiserver_args: vec![
            "--enable-admission-plugins=OwnerReferencesPermissionEnforcement".into(),
        ],
        ..Options::default()
    };
    Cluster::start(ClusterOptions {
        control_plane,
        ..ClusterOptions::default()
    })
    .await
    .unwrap()
}

// C-20, V-12, V-17, #9: a clone needs a right in the image namespace
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rights_that_are_only_asked_about_are_needed_and_their_lack_is_told() {
    let cluster = strict().await;
    without_the_right_to_bind(&cluster).await;
    let tenant = Tenant::new(&cluster, "rights").await;
    tenant.create().await;
    without_the_right_to_clone(&cluster, &tenant).await;
    without_the_right_to_block_deletion(&cluster, &tenant).await;
}

async fn without_the_right_to_bind(cluster: &Cluster) {
    let tenant = Tenant::new(cluster, "unbound").await;
    let roles: Api<ClusterRole> = Api::all(tenant.client.clone());
    take(&roles, "kite-user", "bind").await;
    let user = json!({
        "apiVersion": "kite.dev/v1alpha1", "kind": "KiteUser",
        "metadata": {"name": "unbound"}, "spec": {"namespace": "unbound"},
    });
    install::apply(&tenant.client, &user.to_string())
        .await
        .unwrap();
    let told = |u: &KiteUser| {
        let mut all = user_conditions(u).iter();
        all.any(|c| c.status == "False" && c.message.contains("RoleBinding"))
    };
    tenant.user_until(told).await;
    install::rbac(&cluster.control_plane, "kite-user")
        .await
        .unwrap();
    tenant
        .user_until(|u| is_true(user_conditions(u), READY))
        .await;
}

async fn without_the_right_to_clone(cluster: &Cluster, tenant: &Tenant<'_>) {
    let roles: Api<Role> = Api::namespaced(tenant.client.clone(), "kite-images");
    let mut role = roles.get("kite-vm").await.unwrap();
    role.rules = Some(Vec::new());
    roles
        .replace("kite-vm", &PostParams::default(), &role)
        .await
        .unwrap();
    tenant.machine("web", json!({})).await;
    let refused = |m: &KiteVirtualMachine| {
        let applied = condition::find(conditions(m), RESOURCES_APPLIED);
        applied.is_some_and(|c| c.reason == "CloneForbidden")
    };
    tenant.until("web", LONG, refused).await;
    install::rbac(&cluster.control_plane, "kite-vm")
        .await
        .unwrap();
    tenant.ready("web").await;
}

async fn without_the_right_to_block_deletion(cluster: &Cluster, tenant: &Tenant<'_>) {
    let roles: Api<ClusterRole> = Api::all(tenant.client.clone());
    let mut role = roles.get("kite-vm").await.unwrap();
    let finalizers = |r: &PolicyRule| {
        r.resources
            .iter()
            .flatten()
            .any(|r| r == "kitevirtualmachines/finalizers")
    };
    role.rules.as_mut().unwrap().retain(|r| !finalizers(r));
    roles
        .replace("kite-vm", &PostParams::default(), &role)
        .await
        .unwrap();
    tenant.machine("blocked", json!({})).await;
    let refused = |m: &KiteVirtualMachine| {
        let applied = condition::find(conditions(m), RESOURCES_APPLIED);
        applied.is_some_and(|c| c.status == "False" && c.message.contains("blockOwnerDeletion"))
    };
    tenant.until("blocked", LONG, refused).await;
    install::rbac(&cluster.control_plane, "kite-vm")
        .await
        .unwrap();
    tenant.ready("blocked").await;
}

/// Takes a verb out of a controller's ClusterRole.
async fn take(roles: &Api<ClusterRole>, name: &str, verb: &str) {
    let mut role = roles.get(name).await.unwrap();
    role.rules
        .as_mut()
        .unwrap()
        .retain(|r| r.verbs.iter().all(|v| v != verb));
    roles
        .replace(name, &PostParams::default(), &role)
        .await
        .unwrap();
}
