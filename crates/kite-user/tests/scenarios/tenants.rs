//! What the people may do who work in a user's namespace, and that what they
//! made there is theirs.

use k8s_openapi::api::core::v1::{LimitRange, ResourceQuota};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::support::*;

// U-3, NS14, NS16, #41, #43, F-17, F-22: nobody who works in a namespace may loosen what holds it, take
// another, or read what is not theirs.
#[tokio::test]
async fn a_tenant_may_use_machines_and_change_nothing_that_holds_them() {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    admin.ready_user("rights", full_spec("rights-space")).await;
    let tenant = "--as=rights-space@example.org";
    let controller = "--as=system:serviceaccount:kite-system:kite-user";
    let may = async |who: &str, verb: &str, what: &str, space: &str| {
        let mut command = vec!["auth", "can-i", verb, what, who];
        if space.is_empty() {
            command.push("--all-namespaces");
        } else {
            command.extend(["-n", space]);
        }
        world.plane.kubectl(&command).await.unwrap().success
    };
    let (own, other) = ("rights-space", "kube-system");
    assert!(may(tenant, "create", "kitevirtualmachines.kite.dev", own).await);
    assert!(!may(tenant, "create", "kitevirtualmachines.kite.dev", other).await);
    for kind in [
        "networkpolicies.networking.k8s.io",
        "resourcequotas",
        "limitranges",
        "rolebindings.rbac.authorization.k8s.io",
        "pods",
        "services",
        "persistentvolumeclaims",
    ] {
        for verb in ["create", "patch", "update", "delete"] {
            assert!(!may(tenant, verb, kind, own).await, "{verb} {kind}");
        }
    }
    for verb in ["get", "create", "patch", "delete"] {
        for kind in ["kiteusers.kite.dev", "namespaces", "kiteplatforms.kite.dev"] {
            assert!(!may(tenant, verb, kind, own).await, "{verb} {kind}");
        }
        assert!(!may(controller, verb, "secrets", "").await, "{verb}");
        assert!(!may(controller, verb, "secrets", own).await, "{verb}");
    }
    assert!(!may(controller, "delete", "namespaces", "").await);
}

// U-7, #45: labels like Kite's on what a tenant or an administrator made are no claim to it, whatever becomes of the user.
#[tokio::test]
async fn what_others_made_in_the_namespace_is_never_touched() {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    let (name, space) = ("others", "others-space");
    admin.ready_user(name, full_spec(space)).await;
    let meta = |name: &str| {
        json!({"name": name, "namespace": space, "labels": {
            "kite.dev/managed-by": "kite-controller", "kite.dev/user": "others",
            "app.kubernetes.io/managed-by": "kite",
        }})
    };
    let theirs = [
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": meta("theirs"),
            "spec": {"podSelector": {}}}),
        json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta("theirs"), "spec": {"hard": {"configmaps": "9"}}}),
        json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": meta("theirs"),
            "spec": {"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "1Ti"}}]}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": meta("kite-tenant-theirs"),
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}}),
    ];
    for object in &theirs {
        admin.apply(object).await;
    }
    let ranges: Api<LimitRange> = Api::namespaced(admin.client.clone(), space);
    // The quota controller counts in every quota; that is not ours.
    let uncounted = |mut quota: ResourceQuota| {
        quota.status = None;
        quota.metadata.resource_version = None;
        quota.metadata.managed_fields = None;
        quota
    };
    let now = async || {
        let quota = admin.quotas(space).get("theirs").await.unwrap();
        [
            bytes(&admin.policies(space).get("theirs").await.unwrap()),
            bytes(&uncounted(quota)),
            bytes(&ranges.get("theirs").await.unwrap()),
            bytes(
                &admin
                    .bindings(space)
                    .get("kite-tenant-theirs")
                    .await
                    .unwrap(),
            ),
        ]
    };
    let before = now().await;
    let less = json!({"spec": {"quota": null, "subjects": []}});
    admin.merge(&admin.users(), name, less).await;
    admin.ready(name).await;
    assert_eq!(now().await, before);
    admin.delete_user(name).await;
    admin.user_gone(name).await;
    assert_eq!(now().await, before);
}

// U-7, #46: what stood in the spec and left it is gone from what was made of it.
#[tokio::test]
async fn what_left_the_spec_left_the_policies_and_the_quota() {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    let (name, space) = ("leaner", "leaner-space");
    let mut spec = full_spec(space);
    spec["quota"]["hard"] = json!({"services.loadbalancers": "0"});
    spec["network"] =
        json!({"allowFromNamespaces": ["monitoring"], "extraEgress": [{"cidr": "10.9.0.0/16"}]});
    admin.ready_user(name, spec).await;
    let said = async || {
        let policy: NetworkPolicy = admin.policies(space).get("kite-isolation").await.unwrap();
        let quota = admin.quotas(space).get("kite-quota").await.unwrap();
        let hard = quota.spec.unwrap().hard.unwrap();
        (json!(policy.spec).to_string(), json!(hard).to_string())
    };
    let (policy, hard) = said().await;
    assert!(policy.contains("monitoring") && policy.contains("10.9.0.0/16"));
    assert!(hard.contains("services.loadbalancers"));
    let uid = admin.quotas(space).get("kite-quota").await.unwrap().uid();

    let less = json!({"spec": {"network": null, "quota": {"hard": null, "cpu": null}}});
    admin.merge(&admin.users(), name, less).await;
    admin.ready(name).await;
    let (policy, hard) = said().await;
    assert!(!policy.contains("monitoring") && !policy.contains("10.9.0.0/16"));
    assert!(!hard.contains("services.loadbalancers") && !hard.contains("requests.cpu"));
    assert!(hard.contains("requests.memory"), "the rest stays: {hard}");
    let after = admin.quotas(space).get("kite-quota").await.unwrap().uid();
    assert_eq!(uid, after, "changed in place");
}
