//! What is edited or deleted by hand comes back within seconds (rule U-8), and
//! what is foreign stays as it is (rule C-7).

use std::fmt::Debug;

use k8s_openapi::api::core::v1::{LimitRange, ResourceQuota};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kite_api::condition::{ISOLATION_READY, STALLED};
use kite_testkit::wait::{wait_for, wait_until};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::support::*;

trait Child:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + 'static
{
}
impl<K> Child for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + 'static
{
}

/// What a child says, without what the server keeps about it.
fn said(object: &impl Serialize) -> Value {
    let mut value = serde_json::to_value(object).unwrap();
    value.as_object_mut().unwrap().remove("status");
    let meta = &value["metadata"];
    let kept = json!({"labels": meta["labels"], "annotations": meta["annotations"]});
    value["metadata"] = kept;
    value
}

/// Deletes a child, then changes it by each of the patches; each time it is as before within 5 s.
async fn mended<K: Child>(admin: &Admin, space: &str, name: &str, edits: &[Value]) {
    let api: Api<K> = Api::namespaced(admin.client.clone(), space);
    let good = api.get(name).await.unwrap();
    let kind = K::kind(&());
    let as_before = |wanted: &K| {
        let wanted = said(wanted);
        move |found: &Option<K>| found.as_ref().is_some_and(|f| said(f) == wanted)
    };
    api.delete(name, &DeleteParams::default()).await.unwrap();
    let uid = good.uid();
    let anew = wait_for(&api, name, REPAIR, |found| {
        found.as_ref().is_some_and(|f| f.uid() != uid) && as_before(&good)(found)
    });
    anew.await
        .unwrap_or_else(|e| panic!("{kind} {name} deleted: {e:#}"));
    for edit in edits {
        let changed = api
            .patch(name, &PatchParams::default(), &Patch::Merge(edit))
            .await
            .unwrap();
        assert_ne!(said(&changed), said(&good), "{edit} changed nothing");
        let mended = wait_for(&api, name, REPAIR, as_before(&good)).await;
        mended.unwrap_or_else(|e| panic!("{kind} {name} after {edit}: {e:#}"));
    }
}

// U-8, C-7 (e), NS13, NS16
#[tokio::test]
async fn each_child_that_is_deleted_or_edited_by_hand_is_restored_within_five_seconds() {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    let (name, space) = ("repair", "repair-space");
    let mut spec = full_spec(space);
    spec["quota"]["hard"] = json!({"requests.ephemeral-storage": "10Gi"});
    admin.ready_user(name, spec).await;
    let unlabel = json!({"metadata": {"labels": {"kite.dev/managed-by": null}}});
    let everybody = json!([{"from": []}]);
    mended::<NetworkPolicy>(
        &admin,
        space,
        "kite-isolation",
        &[
            unlabel.clone(),
            json!({"spec": {"ingress": everybody}}),
            json!({"spec": {"egress": [{}]}}),
            json!({"spec": {"podSelector": {"matchLabels": {"app": "none"}}}}),
            json!({"spec": {"policyTypes": ["Ingress"]}}),
        ],
    )
    .await;
    mended::<NetworkPolicy>(
        &admin,
        space,
        "kite-clone",
        &[
            unlabel.clone(),
            json!({"spec": {"ingress": everybody}}),
            json!({"spec": {"egress": [{}], "policyTypes": ["Ingress", "Egress"]}}),
            json!({"spec": {"egress": [{}]}}),
        ],
    )
    .await;
    mended::<ResourceQuota>(
        &admin,
        space,
        "kite-quota",
        &[
            unlabel.clone(),
            json!({"spec": {"hard": {"count/kitevirtualmachines.kite.dev": "99"}}}),
            json!({"spec": {"hard": {"requests.cpu": null}}}),
            json!({"spec": {"hard": {"pods": "0", "count/jobs.batch": "1"}}}),
        ],
    )
    .await;
    mended::<LimitRange>(
        &admin,
        space,
        "kite-defaults",
        &[
            unlabel.clone(),
            json!({"spec": {"limits": [{"type": "Container", "max": {"cpu": "1m"}}]}}),
        ],
    )
    .await;
    let intruder =
        json!([{"kind": "User", "name": "mallory", "apiGroup": "rbac.authorization.k8s.io"}]);
    mended::<RoleBinding>(
        &admin,
        space,
        "kite-tenant-repair",
        &[
            unlabel.clone(),
            json!({"subjects": intruder}),
            json!({"metadata": {"labels": {"kite.dev/user": "mallory"}}}),
        ],
    )
    .await;
    mended::<RoleBinding>(
        &admin,
        space,
        "kite-vm-secrets",
        &[unlabel, json!({"subjects": intruder})],
    )
    .await;
    admin.ready(name).await;
    admin.event(name, "Restored").await;
}

// U-8: a binding of Kite's that gives another role is made anew, since a role cannot be edited.
#[tokio::test]
async fn a_binding_that_was_given_another_role_is_made_anew() {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    let (name, space) = ("other-role", "other-role-space");
    let namespace = left_namespace(space, name);
    admin.apply(&namespace).await;
    let mut meta = namespace["metadata"].clone();
    meta["name"] = json!("kite-tenant-other-role");
    meta["namespace"] = json!(space);
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": meta,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}});
    admin.apply(&binding).await;
    // The watch has shown the binding before the user is there to look at it.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    admin.ready_user(name, full_spec(space)).await;
    let made = admin
        .bindings(space)
        .get("kite-tenant-other-role")
        .await
        .unwrap();
    assert_eq!(made.role_ref.name, "kite-tenant");
}

// U-8, NS16: what stands on the namespace itself.
#[tokio::test]
async fn the_labels_of_the_namespace_are_restored() {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    let space = "labels-space";
    admin.ready_user("labels", plain_spec(space)).await;
    let good = admin.namespaces().get(space).await.unwrap();
    for label in [
        "pod-security.kubernetes.io/enforce",
        "kite.dev/user",
        "kite.dev/managed-by",
    ] {
        for value in [json!(null), json!("restricted")] {
            let edit = json!({"metadata": {"labels": {label: value}}});
            admin.merge(&admin.namespaces(), space, edit).await;
            let as_before =
                |ns: &k8s_openapi::api::core::v1::Namespace| ns.labels() == good.labels();
            let mended = wait_until(&admin.namespaces(), space, REPAIR, as_before).await;
            mended.unwrap_or_else(|e| panic!("{label} {value}: {e:#}"));
        }
    }
    // Policies of others select on this one, and the server itself does not let it lie.
    let spoof = json!({"metadata": {"labels": {"kubernetes.io/metadata.name": "kube-system"}}});
    let params = PatchParams::default();
    let namespaces = admin.namespaces();
    // Refused or set right: both will do.
    let _ = namespaces.patch(space, &params, &Patch::Merge(spoof)).await;
    let now = namespaces.get(space).await.unwrap();
    assert_eq!(now.labels()["kubernetes.io/metadata.name"], space);
}

// C-7 (d): a foreign object of each child kind under our name stays as it is, byte for byte; it is
// named, and everything heals when it is gone.
#[tokio::test]
async fn foreign_objects_under_our_names_are_named_and_never_touched() {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    let (name, space) = ("conflict", "conflict-space");
    admin.apply(&left_namespace(space, name)).await;
    let meta = |name: &str| json!({"name": name, "namespace": space});
    let role =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"});
    let (rbac, net) = ("rbac.authorization.k8s.io/v1", "networking.k8s.io/v1");
    let foreign = [
        json!({"apiVersion": net, "kind": "NetworkPolicy", "metadata": meta("kite-isolation"), "spec": {"podSelector": {}}}),
        json!({"apiVersion": net, "kind": "NetworkPolicy", "metadata": meta("kite-clone"), "spec": {"podSelector": {}}}),
        json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta("kite-quota"), "spec": {"hard": {"pods": "1"}}}),
        json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": meta("kite-defaults"),
            "spec": {"limits": [{"type": "Pod", "max": {"cpu": "1"}}]}}),
        json!({"apiVersion": rbac, "kind": "RoleBinding", "metadata": meta("kite-tenant-conflict"), "roleRef": role}),
        json!({"apiVersion": rbac, "kind": "RoleBinding", "metadata": meta("kite-vm-secrets"), "roleRef": role}),
    ];
    let mut before = Vec::new();
    for object in &foreign {
        admin.apply(object).await;
        before.push(read(&admin, object).await);
    }
    let mut spec = full_spec(space);
    spec["quota"]["hard"] = json!({"requests.ephemeral-storage": "10Gi"});
    admin.apply(&user(name, spec)).await;
    let refused = admin.reason(name, "NameConflict").await;
    assert!(is(&refused, STALLED, "True") && is(&refused, ISOLATION_READY, "False"));
    assert!(message(&refused, ISOLATION_READY).contains("NetworkPolicy kite-isolation"));
    assert!(
        message(&refused, kite_api::condition::QUOTA_READY).contains("ResourceQuota kite-quota")
    );
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    for (object, before) in foreign.iter().zip(&before) {
        assert_eq!(&read(&admin, object).await, before);
    }
    for object in &foreign {
        let (kind, name) = (
            object["kind"].as_str().unwrap(),
            object["metadata"]["name"].as_str().unwrap(),
        );
        let delete = ["delete", kind, name, "-n", space, "--wait=false"];
        admin.plane.kubectl(&delete).await.unwrap().ok().unwrap();
    }
    admin.ready(name).await;
}

async fn read(admin: &Admin, object: &Value) -> String {
    let (kind, meta) = (object["kind"].as_str().unwrap(), &object["metadata"]);
    let (name, space) = (
        meta["name"].as_str().unwrap(),
        meta["namespace"].as_str().unwrap(),
    );
    let get = [
        "get",
        kind,
        name,
        "-n",
        space,
        "-o",
        "json",
        "--show-managed-fields",
    ];
    let text = admin.plane.kubectl(&get).await.unwrap().ok().unwrap();
    // The quota controller counts in every quota; that is not ours.
    let mut value: Value = serde_json::from_str(&text).unwrap();
    if kind == "ResourceQuota" {
        value = said(&value);
    }
    value.to_string()
}

// U-9: a status that was edited by hand says again what is.
#[tokio::test]
async fn a_status_edited_by_hand_is_mended() {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    let name = "edited";
    let before = admin.ready_user(name, plain_spec("edited-space")).await;
    let lie = json!({"status": {"phase": "Deleting", "observedNamespace": "elsewhere", "conditions": []}});
    let params = PatchParams::default();
    admin
        .users()
        .patch_status(name, &params, &Patch::Merge(lie))
        .await
        .unwrap();
    let truth = |user: &kite_api::KiteUser| {
        let status = user.status.as_ref();
        status.map(|s| (s.phase, &s.observed_namespace))
            == before
                .status
                .as_ref()
                .map(|s| (s.phase, &s.observed_namespace))
    };
    wait_until(&admin.users(), name, REPAIR, truth)
        .await
        .unwrap();
    admin.ready(name).await;
}
