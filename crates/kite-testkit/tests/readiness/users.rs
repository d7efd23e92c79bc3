//! Users in every state, and the verdict of each.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kite_api::KiteUser;
use kite_api::condition::{READY, STALLED};
use kite_testkit::install;
use kite_testkit::kstatus::Judge;
use kite_testkit::tenant::{Tenant, is_true, user_conditions};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::scene::{Seen, cluster, reached, says};

const LIMIT: Duration = Duration::from_mins(2);

fn user(name: &str, spec: &Value) -> String {
    json!({"apiVersion": "kite.dev/v1alpha1", "kind": "KiteUser", "metadata": {"name": name}, "spec": spec}).to_string()
}

/// A tenant whose machines no quota counts.
pub(crate) async fn without_quota(tenant: &Tenant<'_>) {
    let object = user(&tenant.name, &json!({"namespace": tenant.name}));
    install::apply(&tenant.client, &object).await.unwrap();
    tenant
        .user_until(|u| is_true(user_conditions(u), READY))
        .await;
}

// C-11, U-2, U-3, U-6
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_is_failed_exactly_when_a_person_must_act() {
    let cluster = cluster().await;
    let client = cluster.client().await;
    let judge = Arc::new(Judge::start().await.unwrap());
    let seen = Seen::<KiteUser>::start(Api::all(client.clone()), judge).await;
    let foreign = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "foreign"}});
    install::apply(&client, &foreign.to_string()).await.unwrap();
    let cases = [
        (
            "ku-fine",
            json!({"namespace": "ku-fine"}),
            "Current",
            (READY, "True Ready"),
        ),
        (
            "ku-shares",
            json!({"namespace": "ku-fine"}),
            "Current",
            (READY, "True SharedNamespace"),
        ),
        (
            "ku-platform",
            json!({"namespace": "kubevirt"}),
            "Failed",
            (STALLED, "True InvalidSpec"),
        ),
        (
            "ku-range",
            json!({"namespace": "ku-range", "subjects": [{"kind": "User", "name": "system:anonymous"}]}),
            "Failed",
            (STALLED, "True InvalidSpec"),
        ),
        (
            "ku-foreign",
            json!({"namespace": "foreign"}),
            "Failed",
            (STALLED, "True NamespaceNotManaged"),
        ),
        (
            "ku-quota",
            json!({"namespace": "ku-quota", "quota": {"hard": {"services.loadbalancers": "1.5"}}}),
            "Failed",
            (STALLED, "True Rejected"),
        ),
    ];
    for (name, spec, ..) in &cases {
        install::apply(&client, &user(name, spec)).await.unwrap();
        if *name == "ku-fine" {
            reached(&seen, name, "Current", LIMIT, |_, verdict| {
                verdict == "Current"
            })
            .await;
        }
    }
    for (name, _, verdict, (type_, words)) in &cases {
        let what = format!("{verdict} with {type_}={words}");
        let holds = |user: &KiteUser, found: &str| {
            found == *verdict && says(user, type_).as_deref() == Some(words)
        };
        reached(&seen, name, &what, LIMIT, holds).await;
        let never = if *verdict == "Current" {
            "Failed"
        } else {
            "Current"
        };
        let verdicts = seen.verdicts(name);
        assert!(!seen.ever(name, never), "{name}: {verdicts:?}");
    }
    seen.was_right_at_every_event();
}

// C-11, U-3 (f), (g): a namespace on its way out is waited for; one that somebody else has left is handed over by a person.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_whose_namespace_goes_waits_and_the_heir_of_another_needs_a_person() {
    let client = cluster().await.client().await;
    let judge = Arc::new(Judge::start().await.unwrap());
    let seen = Seen::<KiteUser>::start(Api::all(client.clone()), judge).await;
    let comes_to = async |name: &str, verdict: &str, type_: &str, words: &str| {
        let holds = |user: &KiteUser, found: &str| {
            found == verdict && says(user, type_).as_deref() == Some(words)
        };
        let what = format!("{verdict} with {type_}={words}");
        reached(&seen, name, &what, LIMIT, holds).await;
    };
    let left = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": "ku-left",
        "labels": {"kite.dev/managed-by": "kite-controller", "kite.dev/user": "somebody-else"},
        "annotations": {"kite.dev/user-uid": "00000000-0000-0000-0000-000000000000"},
    }});
    install::apply(&client, &left.to_string()).await.unwrap();
    for (name, space) in [("ku-heir", "ku-left"), ("ku-goes", "ku-goes")] {
        let object = user(name, &json!({"namespace": space}));
        install::apply(&client, &object).await.unwrap();
    }
    comes_to("ku-heir", "Failed", STALLED, "True NamespaceOrphaned").await;
    comes_to("ku-goes", "Current", READY, "True Ready").await;
    let anchor = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "anchor", "namespace": "ku-goes", "finalizers": ["example.org/anchor"],
    }});
    install::apply(&client, &anchor.to_string()).await.unwrap();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let params = DeleteParams::default();
    namespaces.delete("ku-goes", &params).await.unwrap();
    comes_to("ku-goes", "InProgress", READY, "False NamespaceTerminating").await;

    let let_go = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    let maps = Api::<ConfigMap>::namespaced(client.clone(), "ku-goes");
    let by_hand = PatchParams::default();
    maps.patch("anchor", &by_hand, &let_go).await.unwrap();
    let users: Api<KiteUser> = Api::all(client.clone());
    let heir = users.get("ku-heir").await.unwrap().metadata.uid;
    let hand_over = Patch::Merge(json!({"metadata": {"annotations": {"kite.dev/user-uid": heir}}}));
    namespaces
        .patch("ku-left", &by_hand, &hand_over)
        .await
        .unwrap();
    for name in ["ku-goes", "ku-heir"] {
        comes_to(name, "Current", READY, "True Ready").await;
    }
    let (goes, heir) = (seen.verdicts("ku-goes"), seen.verdicts("ku-heir"));
    assert!(!seen.ever("ku-goes", "Failed"), "{goes:?}");
    assert_eq!(heir.last().map(String::as_str), Some("Current"));
    seen.was_right_at_every_event();
}
