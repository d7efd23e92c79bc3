//! Users that come back: from a backup, after their kind was removed by mistake,
//! and after a kite-user that was away while they or their namespaces went.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kite_api::KiteUser;
use kite_testkit::wait::wait_until;
use kite_testkit::{KiteOptions, KiteProcess, install};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::Scene;
use crate::support::*;

fn bound_to(user: &KiteUser) -> impl Fn(&Namespace) -> bool + use<> {
    let uid = user.uid();
    move |ns| ns.annotations().get("kite.dev/user-uid") == uid.as_ref()
}

// U-3 (d), (e), U-10, NS3, NS7, #50: everything that can happen to users and namespaces while nobody looks.
pub async fn what_went_on_while_kite_user_was_away_is_caught_up_with(scene: &Scene) {
    let admin = &scene.admin;
    let process = scene.start(&[]).await;
    for (name, space) in [
        ("backup", "backup"),
        ("leaves", "leaves"),
        ("hands-a", "hands"),
        ("hands-b", "hands"),
        ("half-a", "halfway"),
        ("half-b", "halfway"),
        ("goes", "goes"),
    ] {
        admin.ready_user(name, full_spec(space)).await;
    }
    process.kill();
    let users = admin.users();
    let policy = async |space: &str| {
        let policy = admin.policies(space).get("kite-isolation").await;
        policy.unwrap().uid()
    };
    let (backup, hands) = (policy("backup").await, policy("hands").await);

    // A backup is restored: the same user under another UID, and what was made for it.
    let free = json!({"metadata": {"finalizers": null}});
    admin.merge(&users, "backup", free).await;
    admin.delete_user("backup").await;
    admin.user_gone("backup").await;
    admin.apply(&user("backup", full_spec("backup"))).await;
    // One that goes is held by the finalizer.
    for name in ["leaves", "hands-a", "half-a"] {
        admin.delete_user(name).await;
    }
    // Here the hand-over was written and kite-user died before it let the user go.
    let heir = users.get("half-b").await.unwrap();
    let bind = json!({"metadata": {
        "annotations": {"kite.dev/user-uid": heir.uid()}, "labels": {"kite.dev/user": "half-b"}}});
    admin.merge(&admin.namespaces(), "halfway", bind).await;
    // A namespace is being deleted and cannot go yet.
    let anchor = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "anchor", "namespace": "goes", "finalizers": ["example.org/anchor"]}});
    admin.apply(&anchor).await;
    let namespaces = admin.namespaces();
    namespaces
        .delete("goes", &DeleteParams::default())
        .await
        .unwrap();
    assert!(
        users
            .get("leaves")
            .await
            .unwrap()
            .metadata
            .deletion_timestamp
            .is_some()
    );

    let mark = scene.mark().await;
    let process = scene.start(&[]).await;
    for name in ["leaves", "hands-a", "half-a"] {
        admin.user_gone(name).await;
    }
    for (name, space) in [
        ("backup", "backup"),
        ("hands-b", "hands"),
        ("half-b", "halfway"),
    ] {
        let user = admin.ready(name).await;
        wait_until(&namespaces, space, LIMIT, bound_to(&user))
            .await
            .unwrap();
    }
    admin.event("backup", "Readopted").await;
    assert_eq!(policy("backup").await, backup, "nothing was made anew");
    assert_eq!(policy("hands").await, hands, "isolated at every moment");
    let left = admin.policies("leaves").list(&ListParams::default()).await;
    assert!(left.unwrap().items.is_empty());
    admin.reason("goes", "NamespaceTerminating").await;
    let sent = scene.sent(mark).await;
    let made: Vec<_> = sent
        .iter()
        .filter(|r| r.namespace == "goes" || (r.name == "goes" && r.verb == "create"))
        .collect();
    assert!(made.is_empty(), "in a namespace that goes: {made:?}");
    let maps: Api<ConfigMap> = Api::namespaced(admin.client.clone(), "goes");
    let free = json!({"metadata": {"finalizers": null}});
    admin.merge(&maps, "anchor", free).await;
    admin.ready("goes").await;
    for name in ["backup", "hands-b", "half-b", "goes"] {
        admin.delete_user(name).await;
        admin.user_gone(name).await;
    }
    process.kill();
}

/// The users and their namespaces before their kind is removed, and a kite-namespace that deletes
/// at once what nobody needs.
pub struct Before {
    keeper: KiteProcess,
    users: Vec<KiteUser>,
    spaces: Vec<Option<String>>,
}

/// The namespaces' UIDs; one that goes has none.
async fn spaces(admin: &Admin, users: &[KiteUser]) -> Vec<Option<String>> {
    let mut uids = Vec::new();
    for user in users {
        let space = admin.namespaces().get(&user.spec.namespace).await.unwrap();
        let stays = space.metadata.deletion_timestamp.is_none();
        uids.push(space.uid().filter(|_| stays));
    }
    uids
}

pub async fn before_the_kind_is_removed(scene: &Scene) -> Before {
    let admin = &scene.admin;
    let account = install::controller(scene.plane, "kite-namespace").await;
    let options = KiteOptions::new("kite-namespace", account.unwrap().kubeconfig());
    let options = options.args(["--grace-period", "2s"]);
    let keeper = KiteProcess::start(scene.plane, options).await.unwrap();
    let users = admin.users().list(&ListParams::default()).await;
    let users = users.unwrap().items;
    assert!(users.len() >= 3, "{users:?}");
    let spaces = spaces(admin, &users).await;
    assert!(spaces.iter().all(Option::is_some), "{spaces:?}");
    let machine = json!({"apiVersion": "kite.dev/v1alpha1", "kind": "KiteVirtualMachine",
        "metadata": {"name": "web", "namespace": "pair-a"},
        "spec": {"cpu": 1, "memory": "1Gi", "disk": "10Gi", "image": "ubuntu"}});
    admin.apply(&machine).await;
    Before {
        keeper,
        users,
        spaces,
    }
}

// U-3 (e), N-2, N-6, DE10, #40: the kind is gone and is installed again, and its users are made again. Not one namespace
// goes.
pub async fn users_made_again_after_their_kind_have_their_namespaces_again(
    scene: &Scene,
    before: Before,
) {
    let admin = &scene.admin;
    let isolated = admin.policies("pair-a").get("kite-isolation").await;
    let isolated = isolated.unwrap().uid();
    install::kite_crds(scene.plane).await.unwrap();
    // The kind is believed again after the grace period; by then only the brake is in the way.
    let held = |ns: &Namespace| ns.annotations().contains_key("kite.dev/deletion-held");
    let namespaces = admin.namespaces();
    wait_until(&namespaces, "pair-a", LIMIT, held)
        .await
        .unwrap();
    for user in &before.users {
        let anew = KiteUser::new(&user.name_any(), user.spec.clone());
        admin.apply(&json!(anew)).await;
    }
    for user in &before.users {
        let name = user.name_any();
        let anew = admin.ready(&name).await;
        assert_ne!(anew.uid(), user.uid());
        let space = &user.spec.namespace;
        wait_until(&namespaces, space, LIMIT, |ns| {
            bound_to(&anew)(ns) && !held(ns)
        })
        .await
        .unwrap();
        admin.event(&name, "Readopted").await;
    }
    assert_eq!(spaces(admin, &before.users).await, before.spaces);
    let machine = admin.policies("pair-a").get("kite-isolation").await;
    assert_eq!(machine.unwrap().uid(), isolated, "isolated at every moment");
    before.keeper.kill();
}
