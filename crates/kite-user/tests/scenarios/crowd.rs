//! Many users, some of whose namespaces are broken for ever: nobody else notices.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use kite_api::condition::{ISOLATION_READY, QUOTA_READY};
use kube::Api;
use kube::api::DeleteParams;
use serde_json::json;

use crate::support::*;

/// How many users there are beside the broken ones.
const SOUND: usize = 19;

/// Makes users at once, and tells how long it took until the last was ready.
async fn all_ready(admin: &Admin, crowd: &str) -> Duration {
    let began = Instant::now();
    let names: Vec<_> = (0..SOUND).map(|i| format!("{crowd}-{i:02}")).collect();
    for name in &names {
        admin.apply(&user(name, full_spec(name))).await;
    }
    for name in &names {
        admin.ready(name).await;
    }
    began.elapsed()
}

// U-12, NS10, C-15: one namespace that never goes, one of somebody else, one whose quota the server refuses, one
// that no user may have.
#[tokio::test]
async fn broken_namespaces_make_nobody_else_wait() {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    let usual = all_ready(&admin, "calm").await;

    let stuck = "broken-stuck";
    admin.apply(&left_namespace(stuck, stuck)).await;
    let anchor = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "anchor", "namespace": stuck, "finalizers": ["example.org/anchor"]}});
    admin.apply(&anchor).await;
    let namespaces = admin.namespaces();
    namespaces
        .delete(stuck, &DeleteParams::default())
        .await
        .unwrap();
    let foreign =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "broken-foreign"}});
    admin.apply(&foreign).await;
    let mut refused = full_spec("broken-quota");
    refused["quota"]["hard"] = json!({"nonsense": "1"});
    let broken = [
        (stuck, full_spec(stuck), "NamespaceTerminating"),
        (
            "broken-foreign",
            full_spec("broken-foreign"),
            "NamespaceNotManaged",
        ),
        ("broken-quota", refused, "Rejected"),
        ("broken-reserved", full_spec("cdi"), "InvalidSpec"),
    ];
    let audit = world.plane.audit().unwrap();
    let mark = audit.settled_mark(&admin.client).await.unwrap();
    for (name, spec, _) in &broken {
        admin.apply(&user(name, spec.clone())).await;
    }
    let beside_broken = all_ready(&admin, "crowd").await;
    println!(
        "{SOUND} users were ready in {usual:?}, and beside the broken ones in {beside_broken:?}"
    );
    assert!(beside_broken < usual * 3 + Duration::from_secs(5));

    for (name, _, reason) in &broken {
        let told = admin.reason(name, reason).await;
        // What does not depend on the broken part is there.
        let isolated = *reason == "Rejected";
        assert_eq!(is(&told, ISOLATION_READY, "True"), isolated, "{name}");
        assert!(is(&told, QUOTA_READY, "False"), "{name}");
    }
    let quota = admin.reason("broken-quota", "Rejected").await;
    let words = message(&quota, QUOTA_READY);
    assert!(
        words.contains("nonsense") && words.contains("kite-quota"),
        "{words}"
    );
    audit.settled_mark(&admin.client).await.unwrap();
    for (name, spec, _) in &broken {
        let space = spec["namespace"].as_str().unwrap();
        let asked = requests(&audit, mark, name, space);
        assert!(
            asked.len() < 30,
            "{name} is asked about all the time: {asked:?}"
        );
    }

    // Mended, they are as good as any other.
    let maps: Api<ConfigMap> = Api::namespaced(admin.client.clone(), stuck);
    let free = json!({"metadata": {"finalizers": null}});
    admin.merge(&maps, "anchor", free).await;
    let sense = json!({"spec": {"quota": {"hard": null}}});
    admin.merge(&admin.users(), "broken-quota", sense).await;
    for name in [stuck, "broken-quota"] {
        admin.ready(name).await;
    }
}
