//! Who may talk to whom: the NetworkPolicies that kite-user keeps on a real API
//! server, evaluated by a judge that is none of Kite's; and what a tenant may
//! not do about them.

mod rows;
mod scene;

use k8s_openapi::api::core::v1::{Namespace, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kite_testkit::tenant::LONG;
use kite_testkit::wait;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt};
use scene::{OTHER_PODS, PRIVATE_PODS, PUBLIC_PODS, Scene, full_platform, other_cluster};
use serde_json::json;

// SE19, U-5, #66, #67, #72: the same questions to four clusters, by the policies that live in each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_probe_is_answered_as_the_tables_say_whatever_the_platform_sets() {
    let scene = Scene::new().await;
    // Without a KitePlatform nobody comes in, and private networks are closed.
    scene.holds(PRIVATE_PODS, rows::ALWAYS).await;
    scene.holds(PRIVATE_PODS, rows::NOTHING_SET).await;

    scene.platform(full_platform()).await;
    scene.holds(PUBLIC_PODS, rows::ALWAYS).await;
    scene.holds(PUBLIC_PODS, rows::ALL_SET).await;

    scene.platform(other_cluster()).await;
    scene.holds(OTHER_PODS, rows::ALWAYS).await;
    scene.holds(OTHER_PODS, rows::ANOTHER_CLUSTER).await;
    no_address_of_the_api_server(&scene).await;

    // What a user no longer asks for is closed again (U-7).
    scene.user("carol", None).await;
    scene.holds(OTHER_PODS, rows::NOTHING_EXTRA).await;
}

/// U-5, #67: its address differs from cluster to cluster, and no rule needs it.
async fn no_address_of_the_api_server(scene: &Scene) {
    let services: Api<Service> = Api::namespaced(scene.client.clone(), "default");
    let service = services.get("kubernetes").await.unwrap();
    let address = service.spec.unwrap().cluster_ip.unwrap();
    for policy in scene.policies().await {
        let text = serde_json::to_string(&policy).unwrap();
        assert!(!text.contains(&address), "{address} stands in {text}");
    }
}

// NS14, NS16, SE16: policies only add up, so a tenant must not write any, nor change what selects its namespace.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_sees_its_isolation_and_cannot_write_it() {
    let scene = Scene::new().await;
    let open = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": "open", "namespace": "alice"},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "ingress": [{}], "egress": [{}]},
    });
    let label = r#"{"metadata":{"labels":{"kubernetes.io/metadata.name":"bastion"}}}"#;
    let hole = r#"{"spec":{"ingress":[{}]}}"#;
    let attempts: [(&[&str], bool); 11] = [
        (&["get", "networkpolicies", "-n", "alice"], true),
        (&["get", "kitevirtualmachines", "-n", "alice"], true),
        (&["create", "-f", "-"], false),
        (&["apply", "--server-side", "-f", "-"], false),
        (
            &["delete", "networkpolicy", "kite-isolation", "-n", "alice"],
            false,
        ),
        (&["delete", "networkpolicy", "--all", "-n", "alice"], false),
        (
            &[
                "patch",
                "networkpolicy",
                "kite-isolation",
                "-n",
                "alice",
                "--type=merge",
                "-p",
                hole,
            ],
            false,
        ),
        (&["patch", "namespace", "alice", "-p", label], false),
        (&["get", "networkpolicies", "-n", "bob"], false),
        (&["get", "secrets", "-n", "bob"], false),
        (&["get", "kiteusers"], false),
    ];
    let before = scene.policies().await;
    for (attempt, allowed) in attempts {
        let who = ["--as=alice@example.org", "--as-group=system:authenticated"];
        let args: Vec<&str> = attempt.iter().copied().chain(who).collect();
        let plane = &scene.cluster.control_plane;
        let told = plane.kubectl_stdin(&args, &open.to_string()).await.unwrap();
        assert_eq!(told.success, allowed, "{attempt:?}: {told:?}");
        let forbidden = told.stderr.contains("Forbidden") || told.stderr.contains("forbidden");
        assert_eq!(forbidden, !allowed, "{attempt:?}: {told:?}");
    }
    assert_eq!(versions(&scene.policies().await), versions(&before));

    // What an administrator adds opens the namespace, and it is the administrator's (U-7): Kite leaves it.
    kite_testkit::install::apply(&scene.client, &open.to_string())
        .await
        .unwrap();
    scene.holds(PRIVATE_PODS, rows::OPENED).await;
    let policies: Api<NetworkPolicy> = Api::namespaced(scene.client.clone(), "alice");
    policies
        .delete("open", &DeleteParams::default())
        .await
        .unwrap();
    wait::wait_gone(&policies, "open", LONG).await.unwrap();
    scene.holds(PRIVATE_PODS, rows::ALWAYS).await;
}

fn versions(policies: &[NetworkPolicy]) -> Vec<(String, Option<String>)> {
    let version = |p: &NetworkPolicy| (p.namespace().unwrap_or_default(), p.resource_version());
    policies.iter().map(version).collect()
}

// U-5: a pod that no policy selects is open to all, so every namespace of a user has one that selects each pod.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_namespace_of_a_user_has_a_policy_that_selects_all_its_pods_both_ways() {
    let scene = Scene::new().await;
    let namespaces: Api<Namespace> = Api::all(scene.client.clone());
    let own = ListParams::default().labels("kite.dev/user");
    let found = namespaces.list(&own).await.unwrap();
    assert_eq!(found.items.len(), scene::USERS.len());
    let policies = scene.policies().await;
    for namespace in found {
        let closes = policies.iter().any(|policy| {
            let spec = policy.spec.as_ref().unwrap();
            let all = spec.pod_selector.clone().unwrap_or_default() == LabelSelector::default();
            let ways = spec.policy_types.clone().unwrap_or_default();
            all && ways == ["Ingress", "Egress"] && policy.namespace() == namespace.metadata.name
        });
        assert!(closes, "{} is open", namespace.name_any());
    }
}
