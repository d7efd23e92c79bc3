//! Whose namespace is it: each case of rule U-3.

use kite_api::KiteUser;
use kite_api::condition::{NAMESPACE_READY, STALLED};
use kite_testkit::wait::{wait_gone, wait_until};
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams};
use serde_json::json;

use crate::support::*;

// U-3 (b), C-7 (d), NS1, NS2: a foreign namespace, with and without Kite's label, stays as it is, byte for byte.
#[tokio::test]
async fn a_foreign_namespace_is_never_touched_and_the_user_heals_when_it_is_gone() {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    let bare =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "foreign-bare"}});
    let labelled = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "foreign-labelled",
        "labels": {"kite.dev/managed-by": "kite-controller", "kite.dev/user": "foreign-labelled"}}});
    for namespace in [bare, labelled] {
        admin.apply(&namespace).await;
        let name = namespace["metadata"]["name"].as_str().unwrap();
        let before = admin.namespaces().get(name).await.unwrap();
        admin.apply(&user(name, full_spec(name))).await;
        let refused = admin.reason(name, "NamespaceNotManaged").await;
        assert!(is(&refused, STALLED, "True") && is(&refused, NAMESPACE_READY, "False"));
        assert!(message(&refused, STALLED).contains("make a KiteUser with another namespace"));
        assert_eq!(world.judge.status_of(&refused).unwrap().status, "Failed");
        let after = admin.namespaces().get(name).await.unwrap();
        assert_eq!(bytes(&before), bytes(&after));
        let quotas = admin
            .quotas(name)
            .list(&ListParams::default())
            .await
            .unwrap();
        assert!(quotas.items.is_empty());

        admin
            .namespaces()
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
        admin.ready(name).await;
        assert_ne!(
            admin.namespaces().get(name).await.unwrap().uid(),
            before.uid()
        );
    }
}

// U-3 (b): a user whose namespace is foreign leaves it untouched on its way out, too.
#[tokio::test]
async fn a_refused_user_goes_without_a_trace() {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    let name = "foreign-going";
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    admin.apply(&namespace).await;
    let before = admin.namespaces().get(name).await.unwrap();
    admin.apply(&user(name, full_spec(name))).await;
    admin.reason(name, "NamespaceNotManaged").await;
    admin.delete_user(name).await;
    admin.user_gone(name).await;
    assert_eq!(
        bytes(&before),
        bytes(&admin.namespaces().get(name).await.unwrap())
    );
}

// U-3 (d), U-10, NS3, NS4: two users, one namespace; the first rules it and hands it over when it goes.
#[tokio::test]
async fn a_shared_namespace_is_ruled_by_one_and_handed_over() {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    let space = "shared-space";
    let first = admin.ready_user("shared-a", full_spec(space)).await;
    let mut spec = full_spec(space);
    spec["quota"]["virtualMachines"] = json!(9);
    let second = admin.ready_user("shared-b", spec).await;
    let third = admin.ready_user("shared-c", plain_spec(space)).await;
    for sharing in [&second, &third] {
        assert_eq!(message_reason(sharing), "SharedNamespace");
        assert!(message(sharing, NAMESPACE_READY).contains("shared-a"));
    }
    let count = "count/kitevirtualmachines.kite.dev";
    let told = second.status.as_ref().unwrap().quota.clone().unwrap();
    assert_eq!(told.hard[count].0, "4", "the bound user's quota rules");
    let bound = |uid: Option<String>| {
        let uid = uid.unwrap();
        move |ns: &k8s_openapi::api::core::v1::Namespace| {
            ns.annotations().get("kite.dev/user-uid") == Some(&uid)
        }
    };
    let policies = admin.policies(space);
    let before = policies.get("kite-isolation").await.unwrap().uid();
    assert!(
        admin
            .bindings(space)
            .get("kite-tenant-shared-b")
            .await
            .is_ok()
    );

    // The first goes: the oldest of the others gets it, and isolation never went.
    assert!(bound(first.uid())(
        &admin.namespaces().get(space).await.unwrap()
    ));
    admin.delete_user("shared-a").await;
    admin.user_gone("shared-a").await;
    wait_until(&admin.namespaces(), space, LIMIT, bound(second.uid()))
        .await
        .unwrap();
    admin.event("shared-a", "HandedOver").await;
    let ruling = |user: &KiteUser| {
        let hard = user.status.as_ref().and_then(|s| s.quota.as_ref());
        message_reason(user) == "Ready" && hard.is_some_and(|q| q.hard[count].0 == "9")
    };
    wait_until(&admin.users(), "shared-b", LIMIT, ruling)
        .await
        .unwrap();
    wait_gone(&admin.bindings(space), "kite-tenant-shared-a", LIMIT)
        .await
        .unwrap();
    assert_eq!(policies.get("kite-isolation").await.unwrap().uid(), before);
    let follows = |user: &KiteUser| message(user, NAMESPACE_READY).contains("shared-b");
    wait_until(&admin.users(), "shared-c", LIMIT, follows)
        .await
        .unwrap();

    // One that only shares takes nothing but its own rights with it.
    admin.delete_user("shared-c").await;
    admin.user_gone("shared-c").await;
    assert_eq!(policies.get("kite-isolation").await.unwrap().uid(), before);
    admin.ready("shared-b").await;
}

// NS3: both at once.
#[tokio::test]
async fn two_users_of_one_namespace_may_go_at_the_same_time() {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    let space = "both-space";
    admin.ready_user("both-a", full_spec(space)).await;
    admin.ready_user("both-b", full_spec(space)).await;
    tokio::join!(admin.delete_user("both-a"), admin.delete_user("both-b"));
    admin.user_gone("both-a").await;
    admin.user_gone("both-b").await;
    let left = admin
        .bindings(space)
        .list(&ListParams::default())
        .await
        .unwrap();
    assert!(
        left.iter()
            .all(|b| !b.name_any().starts_with("kite-tenant")),
        "{left:?}"
    );
}

// U-3 (e): a restored backup brings the user under a new UID.
#[tokio::test]
async fn a_namespace_of_an_earlier_user_of_the_same_name_is_taken_up_again() {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    admin
        .apply(&left_namespace("restored-space", "restored"))
        .await;
    let user = admin
        .ready_user("restored", full_spec("restored-space"))
        .await;
    let namespace = admin.namespaces().get("restored-space").await.unwrap();
    assert_eq!(
        namespace.annotations().get("kite.dev/user-uid"),
        user.uid().as_ref()
    );
    unowned(&namespace);
    admin.event("restored", "Readopted").await;
}

// NS8: deleted and made again at once.
#[tokio::test]
async fn a_user_that_is_made_again_at_once_has_everything_again() {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    let (name, space) = ("again", "again-space");
    let before = admin.ready_user(name, full_spec(space)).await;
    admin.delete_user(name).await;
    admin.user_gone(name).await;
    let after = admin.ready_user(name, full_spec(space)).await;
    assert_ne!(before.uid(), after.uid());
    let namespace = admin.namespaces().get(space).await.unwrap();
    assert_eq!(
        namespace.annotations().get("kite.dev/user-uid"),
        after.uid().as_ref()
    );
    for child in ["kite-isolation", "kite-clone"] {
        let policy = admin.policies(space).get(child).await.unwrap();
        assert_eq!(
            policy.annotations().get("kite.dev/user-uid"),
            after.uid().as_ref()
        );
    }
}

// U-3 (f), NS9: nothing is made in a namespace that goes; it is made anew afterwards.
#[tokio::test]
async fn a_namespace_that_goes_is_waited_for_and_made_anew() {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    let (name, space) = ("waiting", "waiting-space");
    let before = admin.ready_user(name, full_spec(space)).await;
    let anchor = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "anchor", "namespace": space, "finalizers": ["example.org/anchor"]}});
    admin.apply(&anchor).await;
    let old = admin.namespaces().get(space).await.unwrap().uid();
    admin
        .namespaces()
        .delete(space, &DeleteParams::default())
        .await
        .unwrap();
    let waiting = admin.reason(name, "NamespaceTerminating").await;
    assert_eq!(
        world.judge.status_of(&waiting).unwrap().status,
        "InProgress"
    );
    let audit = world.plane.audit().unwrap();
    let mark = audit.settled_mark(&admin.client).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    audit.settled_mark(&admin.client).await.unwrap();
    let sent = requests(&audit, mark, name, space);
    assert!(sent.is_empty(), "{sent:?}");

    let maps =
        kube::Api::<k8s_openapi::api::core::v1::ConfigMap>::namespaced(admin.client.clone(), space);
    admin
        .merge(&maps, "anchor", json!({"metadata": {"finalizers": null}}))
        .await;
    let anew = |ns: &k8s_openapi::api::core::v1::Namespace| ns.uid() != old;
    wait_until(&admin.namespaces(), space, LIMIT, anew)
        .await
        .unwrap();
    let after = admin.ready(name).await;
    assert_eq!(before.uid(), after.uid());
    assert!(admin.policies(space).get("kite-isolation").await.is_ok());
}

// U-3 (g): the namespace of another user that is gone needs an administrator.
#[tokio::test]
async fn an_orphan_of_another_user_is_refused_until_an_administrator_binds_it() {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    let (name, space) = ("heir", "heir-space");
    admin.apply(&left_namespace(space, "somebody-else")).await;
    let before = admin.namespaces().get(space).await.unwrap();
    admin.apply(&user(name, plain_spec(space))).await;
    let refused = admin.reason(name, "NamespaceOrphaned").await;
    admin.event(name, "NamespaceOrphaned").await;
    assert_eq!(
        bytes(&before),
        bytes(&admin.namespaces().get(space).await.unwrap())
    );
    // The words say how to hand it over; pasted, they are enough.
    let words = message(&refused, STALLED);
    let (_, command) = words.split_once("kubectl ").unwrap();
    let command: Vec<&str> = command.split_whitespace().collect();
    admin.plane.kubectl(&command).await.unwrap().ok().unwrap();
    admin.ready(name).await;
    let namespace = admin.namespaces().get(space).await.unwrap();
    assert_eq!(namespace.labels()["kite.dev/user"], name);
}

// U-3 (b), #44: a namespace that carries the labels and no binding, as if its maker had died half way, is nobody's
// until an administrator says whose it is.
#[tokio::test]
async fn a_namespace_that_is_half_a_users_becomes_whole_when_an_administrator_binds_it() {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    let name = "half";
    let mut half = left_namespace(name, name);
    half["metadata"]["annotations"] = json!({});
    admin.apply(&half).await;
    admin.apply(&user(name, full_spec(name))).await;
    let refused = admin.reason(name, "NamespaceNotManaged").await;
    let bind = json!({"metadata": {"annotations": {"kite.dev/user-uid": refused.uid()}}});
    admin.merge(&admin.namespaces(), name, bind).await;
    admin.ready(name).await;
    assert!(admin.policies(name).get("kite-isolation").await.is_ok());
}

// U-3 (b), U-8, #43: what Kite does for a user follows from the user, not from labels on its namespace; and one whose
// binding was taken away is nobody's again, with its isolation as it was.
#[tokio::test]
async fn a_namespace_without_its_labels_is_kept_isolated_all_the_same() {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    let name = "unlabelled";
    let made = admin.ready_user(name, full_spec(name)).await;
    let strip =
        json!({"metadata": {"labels": {"kite.dev/managed-by": null, "kite.dev/user": null}}});
    admin.merge(&admin.namespaces(), name, strip).await;
    let policies = admin.policies(name);
    let before = policies.get("kite-isolation").await.unwrap().uid();
    let delete = DeleteParams::default();
    policies.delete("kite-isolation", &delete).await.unwrap();
    let anew = |policy: &k8s_openapi::api::networking::v1::NetworkPolicy| policy.uid() != before;
    wait_until(&policies, "kite-isolation", LIMIT, anew)
        .await
        .unwrap();
    admin.ready(name).await;

    let unbind = json!({"metadata": {"annotations": {"kite.dev/user-uid": null}}});
    admin.merge(&admin.namespaces(), name, unbind).await;
    admin.reason(name, "NamespaceNotManaged").await;
    assert!(policies.get("kite-isolation").await.is_ok());
    let bind = json!({"metadata": {"annotations": {"kite.dev/user-uid": made.uid()}}});
    admin.merge(&admin.namespaces(), name, bind).await;
    admin.ready(name).await;
}

// #42: Kite's labels on a namespace of the cluster's own change nothing about it.
#[tokio::test]
async fn a_label_on_a_namespace_of_the_clusters_own_has_no_effect() {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    let label = json!({"metadata": {"labels": {"kite.dev/managed-by": "kite-controller", "kite.dev/user": "mallory"}}});
    admin.merge(&admin.namespaces(), "kube-public", label).await;
    let before = admin.namespaces().get("kube-public").await.unwrap();
    admin.apply(&user("mallory", plain_spec("mallory"))).await;
    admin.ready("mallory").await;
    let after = admin.namespaces().get("kube-public").await.unwrap();
    assert_eq!(bytes(&before), bytes(&after));
    let policies = admin.policies("kube-public");
    let policies = policies.list(&ListParams::default()).await.unwrap();
    assert!(policies.items.is_empty());
}

fn message_reason(user: &KiteUser) -> String {
    let conditions = &user.status.as_ref().unwrap().conditions;
    kite_api::condition::find(conditions, kite_api::condition::READY)
        .unwrap()
        .reason
        .clone()
}
