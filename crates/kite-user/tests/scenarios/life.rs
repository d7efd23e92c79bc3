//! A user's life from creation to the end, with the requests it costs.

use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Namespace;
use kite_api::KiteUser;
use kite_api::condition::{
    ISOLATION_READY, NAMESPACE_READY, QUOTA_READY, READY, RECONCILING, STALLED,
};
use kite_api::user::UserPhase;
use kite_testkit::wait::{wait_gone, wait_until};
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::support::*;

// U-1, U-4, U-6, U-9, U-10, C-5: what is made, what it costs, and that it is quiet afterwards.
#[tokio::test]
async fn a_user_is_made_and_taken_away_within_its_budget() {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    let audit = world.plane.audit().unwrap();
    let (name, space) = ("life", "life-space");

    let mark = audit.settled_mark(&admin.client).await.unwrap();
    let user = admin.ready_user(name, full_spec(space)).await;
    audit.settled_mark(&admin.client).await.unwrap();
    let made = counted("create a user", &requests(&audit, mark, name, space));
    assert!(made <= 9, "{made} requests");

    assert!(
        user.finalizers()
            .iter()
            .any(|f| f == "kite.dev/user-cleanup")
    );
    for type_ in [NAMESPACE_READY, ISOLATION_READY, QUOTA_READY] {
        assert!(is(&user, type_, "True"), "{type_}");
    }
    let status = user.status.clone().unwrap();
    assert_eq!(status.phase, Some(UserPhase::Ready));
    assert_eq!(status.observed_namespace.as_deref(), Some(space));
    let hard = status.quota.unwrap().hard;
    assert_eq!(hard["count/kitevirtualmachines.kite.dev"].0, "4");

    let namespace = admin.namespaces().get(space).await.unwrap();
    let uid = user.uid().unwrap();
    assert_eq!(namespace.annotations()["kite.dev/user-uid"], uid);
    assert_eq!(
        namespace.labels()["pod-security.kubernetes.io/enforce"],
        "privileged"
    );
    unowned(&namespace);
    let all = ListParams::default();
    let policies = admin.policies(space).list(&all).await.unwrap();
    assert_eq!(policies.items.len(), 2);
    policies.iter().for_each(unowned);
    let quota = admin.quotas(space).get("kite-quota").await.unwrap();
    unowned(&quota);
    assert_eq!(quota.spec.unwrap().hard, quota.status.unwrap().hard);
    let bindings = admin.bindings(space).list(&all).await.unwrap();
    bindings.iter().for_each(unowned);
    let mut roles: Vec<_> = bindings.iter().map(|b| b.role_ref.name.clone()).collect();
    roles.sort();
    assert_eq!(roles, ["kite-tenant", "kite-vm-secrets"]);

    let mark = audit.settled_mark(&admin.client).await.unwrap();
    admin.delete_user(name).await;
    admin.user_gone(name).await;
    audit.settled_mark(&admin.client).await.unwrap();
    let gone = counted("delete a user", &requests(&audit, mark, name, space));
    assert!(gone <= 10, "{gone} requests");
    assert!(
        admin
            .policies(space)
            .list(&all)
            .await
            .unwrap()
            .items
            .is_empty()
    );
    assert!(
        admin
            .quotas(space)
            .list(&all)
            .await
            .unwrap()
            .items
            .is_empty()
    );
    assert!(
        admin
            .bindings(space)
            .list(&all)
            .await
            .unwrap()
            .items
            .is_empty()
    );
    let namespace = admin.namespaces().get(space).await.unwrap();
    assert!(
        namespace.metadata.deletion_timestamp.is_none(),
        "the namespace is kite-namespace's"
    );
}

// C-11: kstatus at every event of a life never says Current too early, nor that a user is in progress for ever.
#[tokio::test]
async fn every_tool_reads_the_right_thing_at_every_step_of_a_life() {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    let name = "watched";
    let params = WatchParams::default().fields(&format!("metadata.name={name}"));
    let users = admin.users();
    let mut events = Box::pin(users.watch(&params, "0").await.unwrap());
    admin.apply(&user(name, full_spec("watched-space"))).await;
    let mut seen = Vec::new();
    let mut deleting = false;
    loop {
        let event = tokio::time::timeout(LIMIT, events.next()).await;
        let event = event.expect("an event").unwrap().unwrap();
        let object = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => object,
            WatchEvent::Deleted(_) => break,
            _ => continue,
        };
        let judged = world.judge.status_of(&object).unwrap().status;
        assert!(!(is(&object, RECONCILING, "True") && is(&object, STALLED, "True")));
        if judged == "Current" {
            let quota = admin
                .quotas("watched-space")
                .get("kite-quota")
                .await
                .unwrap();
            assert!(
                quota.status.is_some_and(|s| s.hard.is_some()),
                "ready too early"
            );
        }
        if seen.last() != Some(&judged) {
            seen.push(judged.clone());
        }
        if judged == "Current" && !deleting {
            deleting = true;
            admin.delete_user(name).await;
        }
    }
    assert_eq!(seen, ["InProgress", "Current", "Terminating"]);
}

// U-6, U-7, #48: a changed quota changes in place; what left the spec is removed; what others made stays.
#[tokio::test]
async fn a_changed_user_is_brought_up_to_date_and_others_things_are_left_alone() {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    let (name, space) = ("changing", "changing-space");
    admin.ready_user(name, full_spec(space)).await;
    let theirs = json!({"apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "theirs", "namespace": space}, "spec": {"hard": {"configmaps": "9"}}});
    admin.apply(&theirs).await;
    let before = admin.quotas(space).get("kite-quota").await.unwrap();
    let one = WatchParams::default().fields("metadata.name=kite-quota");
    let quotas = admin.quotas(space);
    let mut seen = Box::pin(quotas.watch(&one, "0").await.unwrap());

    let smaller = json!({"spec": {"quota": {"virtualMachines": 2}}});
    admin.merge(&admin.users(), name, smaller).await;
    let user = admin.ready(name).await;
    let after = admin.quotas(space).get("kite-quota").await.unwrap();
    assert_eq!(before.uid(), after.uid());
    loop {
        let event = tokio::time::timeout(LIMIT, seen.next()).await;
        match event.expect("an event").unwrap().unwrap() {
            WatchEvent::Added(quota) | WatchEvent::Modified(quota)
                if quota.metadata.resource_version == after.metadata.resource_version =>
            {
                break;
            }
            WatchEvent::Added(_) | WatchEvent::Modified(_) | WatchEvent::Bookmark(_) => {}
            other => panic!("the quota was absent for a moment: {other:?}"),
        }
    }
    let count = "count/kitevirtualmachines.kite.dev";
    assert_eq!(user.status.unwrap().quota.unwrap().hard[count].0, "2");

    let less = json!({"spec": {"quota": null, "subjects": []}});
    admin.merge(&admin.users(), name, less).await;
    let user = admin.ready(name).await;
    assert_eq!(user.status.unwrap().quota, None);
    wait_gone(&admin.quotas(space), "kite-quota", LIMIT)
        .await
        .unwrap();
    wait_gone(&admin.bindings(space), "kite-tenant-changing", LIMIT)
        .await
        .unwrap();
    let kept = admin.quotas(space).get("theirs").await.unwrap();
    assert!(kept.metadata.deletion_timestamp.is_none());

    // A quota on what launcher pods leave open brings the limit range that they need.
    let open = json!({"spec": {"quota": {"hard": {"requests.ephemeral-storage": "10Gi"}}}});
    admin.merge(&admin.users(), name, open).await;
    let ranges: Api<k8s_openapi::api::core::v1::LimitRange> =
        Api::namespaced(admin.client.clone(), space);
    let range = wait_until(&ranges, "kite-defaults", LIMIT, |_| true)
        .await
        .unwrap();
    unowned(&range);
    admin.ready(name).await;
    admin
        .merge(&admin.users(), name, json!({"spec": {"quota": null}}))
        .await;
    wait_gone(&ranges, "kite-defaults", LIMIT).await.unwrap();
}

// C-16: a person reads of what was done.
#[tokio::test]
async fn a_person_is_told_by_events() {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    admin.ready_user("told", plain_spec("told-space")).await;
    admin.event("told", "Ready").await;
    let reasons = admin.event_reasons("told").await;
    assert_eq!(reasons.len(), 1, "{reasons:?}");
}

// A label of others on a KiteUser is nobody's business.
#[tokio::test]
async fn a_touched_label_writes_nothing() {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    let (name, space) = ("touched", "touched-space");
    admin.ready_user(name, full_spec(space)).await;
    let audit = world.plane.audit().unwrap();
    let mark = audit.settled_mark(&admin.client).await.unwrap();
    let label = json!({"metadata": {"labels": {"team": "blue"}, "annotations": {"note": "x"}}});
    let user: KiteUser = admin.merge(&admin.users(), name, label.clone()).await;
    let _: Namespace = admin.merge(&admin.namespaces(), space, label).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    audit.settled_mark(&admin.client).await.unwrap();
    let sent = requests(&audit, mark, name, space);
    assert!(sent.is_empty(), "{sent:?}");
    assert!(is(&user, READY, "True"));
}
