//! Installing and removing CRDs, the garbage collector's view of them, and the
//! judge of readiness.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use kite_testkit::cluster::CONTROLLERS;
use kite_testkit::kstatus::Judge;
use kite_testkit::wait::wait_gone;
use kite_testkit::{install, shared};
use kube::Api;
use serde_json::json;

const LIMIT: Duration = Duration::from_mins(2);

#[tokio::test]
async fn upstream_crds_come_and_go_and_owner_references_to_them_count() {
    let cp = shared().await;
    let began = Instant::now();
    install::upstream_crds(cp).await.unwrap();
    eprintln!("CRDs served after {:?}", began.elapsed());
    let began = Instant::now();
    cp.restart_controller_manager().await.unwrap();
    eprintln!("controller-manager restarted in {:?}", began.elapsed());

    let client = cp.admin_client().await.unwrap();
    let vm = json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
        "metadata": {"name": "owner", "namespace": "default"},
        "spec": {"runStrategy": "Halted", "template": {"spec": {"domain": {"devices": {}}}}},
    });
    install::apply(&client, &vm.to_string()).await.unwrap();
    let uid = ["get", "vm", "owner", "-o", "jsonpath={.metadata.uid}"];
    let uid = cp.kubectl(&uid).await.unwrap().ok().unwrap();
    let child = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "child", "namespace": "default", "ownerReferences": [{
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "owner", "uid": uid,
        }]},
    });
    install::apply(&client, &child.to_string()).await.unwrap();
    let began = Instant::now();
    cp.kubectl(&["delete", "vm", "owner"])
        .await
        .unwrap()
        .ok()
        .unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    wait_gone(&maps, "child", LIMIT).await.unwrap();
    eprintln!("the child went {:?} after its owner", began.elapsed());

    let began = Instant::now();
    install::remove_upstream_crds(cp).await.unwrap();
    eprintln!("CRDs gone after {:?}", began.elapsed());
    let said = cp.kubectl(&["get", "vm"]).await.unwrap();
    assert!(!said.success, "{}", said.stdout);
}

#[tokio::test]
async fn an_unknown_field_in_a_manifest_is_refused() {
    let client = shared().await.admin_client().await.unwrap();
    let typo = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "typo"}, "dataa": {},
    });
    let refused = install::apply(&client, &typo.to_string())
        .await
        .unwrap_err();
    assert!(format!("{refused:#}").contains("dataa"), "{refused:#}");
}

#[tokio::test]
async fn kstatus_judges_known_kinds_and_conditions_of_others() {
    let judge = Judge::start().await.unwrap();
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "d", "generation": 1}, "spec": {"replicas": 1}, "status": {},
    });
    assert_eq!(judge.status_of(&deployment).unwrap().status, "InProgress");
    let custom = |observed: i64, kind: &str, status: &str| {
        json!({
            "apiVersion": "kite.dev/v1", "kind": "KiteVirtualMachine",
            "metadata": {"name": "m", "generation": 2},
            "status": {"observedGeneration": observed, "conditions": [
                {"type": kind, "status": status, "reason": "R", "message": "words"},
            ]},
        })
    };
    let judged = |object| judge.status_of(&object).unwrap().status;
    assert_eq!(judged(custom(1, "Ready", "True")), "InProgress");
    assert_eq!(judged(custom(2, "Ready", "True")), "Current");
    assert_eq!(judged(custom(2, "Reconciling", "True")), "InProgress");
    let stalled = judge.status_of(&custom(2, "Stalled", "True")).unwrap();
    assert_eq!((&*stalled.status, &*stalled.message), ("Failed", "words"));
    let began = Instant::now();
    for _ in 0..100 {
        judged(custom(2, "Ready", "True"));
    }
    eprintln!("100 answers in {:?}", began.elapsed());
    judge.status_of(&json!("no object")).unwrap_err();
    assert_eq!(judged(custom(2, "Ready", "True")), "Current");
}

#[tokio::test]
async fn the_generated_crds_and_roles_are_accepted_and_a_second_time_change_nothing() {
    let cp = shared().await;
    install::kite_crds(cp).await.unwrap();
    for name in CONTROLLERS {
        let identity = install::controller(cp, name).await.unwrap();
        assert_eq!(
            identity.username,
            format!("system:serviceaccount:kite-system:{name}")
        );
    }
    let before = versions(cp).await;
    assert!(before.len() > CONTROLLERS.len(), "{before:?}");
    install::kite_crds(cp).await.unwrap();
    for name in CONTROLLERS {
        install::rbac(cp, name).await.unwrap();
    }
    assert_eq!(before, versions(cp).await);
}

/// Name and resourceVersion of everything of Kite's that is cluster-wide.
async fn versions(cp: &kite_testkit::ControlPlane) -> Vec<String> {
    let columns = "custom-columns=N:.metadata.name,V:.metadata.resourceVersion";
    let kinds = "clusterroles,clusterrolebindings,customresourcedefinitions";
    let ask = ["get", kinds, "--no-headers", "-o", columns];
    let said = cp.kubectl(&ask).await.unwrap().ok().unwrap();
    let ours = |line: &&str| line.starts_with("kite") && !line.contains(".kubevirt.io");
    said.lines().filter(ours).map(str::to_owned).collect()
}
