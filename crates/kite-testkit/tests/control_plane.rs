//! The control plane does what tests and demo rely on.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kite_testkit::wait::{wait_gone, wait_until};
use kite_testkit::{ControlPlane, Options, shared};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_mins(1);

fn object<K: serde::de::DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

async fn namespace(cp: &ControlPlane, name: &str) -> Api<ConfigMap> {
    let client = cp.admin_client().await.unwrap();
    let spaces: Api<Namespace> = Api::all(client.clone());
    let space = object(json!({"metadata": {"name": name}}));
    spaces.create(&PostParams::default(), &space).await.unwrap();
    Api::namespaced(client, name)
}

fn config_map(name: &str) -> ConfigMap {
    object(json!({"metadata": {"name": name}, "data": {"key": "value"}}))
}

#[tokio::test]
async fn a_control_plane_starts_and_says_how_long_it_took() {
    let cp = shared().await;
    let times = cp.start_times();
    let memory = |process: &kite_testkit::process::Process| {
        process.memory().map(|memory| memory.resident >> 20)
    };
    eprintln!("{times:?}");
    eprintln!(
        "MB: etcd {:?}, apiserver {:?}, controller-manager {:?}",
        memory(cp.etcd()),
        memory(&cp.apiserver().unwrap()),
        memory(&cp.controller_manager().unwrap()),
    );
    let client = cp.admin_client().await.unwrap();
    let version = client.apiserver_version().await.unwrap();
    assert_eq!(version.minor, "37");
    let said = cp.kubectl(&["get", "namespaces", "-o", "name"]).await;
    assert!(said.unwrap().ok().unwrap().contains("namespace/default"));
}

#[tokio::test]
async fn a_deleted_namespace_goes_with_what_is_in_it() {
    let cp = shared().await;
    let maps = namespace(cp, "goes").await;
    let map = config_map("inside");
    maps.create(&PostParams::default(), &map).await.unwrap();
    let spaces: Api<Namespace> = Api::all(cp.admin_client().await.unwrap());
    let began = Instant::now();
    let gone = spaces.delete("goes", &DeleteParams::default()).await;
    gone.unwrap();
    wait_gone(&spaces, "goes", SOON).await.unwrap();
    eprintln!("a namespace went in {:?}", began.elapsed());
}

#[tokio::test]
async fn an_identity_has_only_the_rights_that_rbac_gives_it() {
    let cp = shared().await;
    let maps = namespace(cp, "limited").await;
    let map = config_map("mine");
    maps.create(&PostParams::default(), &map).await.unwrap();
    let identity = cp.identity("limited", "reader").await.unwrap();
    let own: Api<ConfigMap> = Api::namespaced(identity.client().await.unwrap(), "limited");
    let refused = own.get("mine").await.unwrap_err();
    assert!(refused.to_string().contains("forbidden"), "{refused}");
    let rights = [
        &[
            "create",
            "role",
            "reads",
            "--verb=get",
            "--resource=configmaps",
            "-n",
            "limited",
        ][..],
        &[
            "create",
            "rolebinding",
            "reads",
            "--role=reads",
            "-n",
            "limited",
            "--serviceaccount=limited:reader",
        ],
    ];
    for right in rights {
        cp.kubectl(right).await.unwrap().ok().unwrap();
    }
    kite_testkit::wait::eventually("the right", SOON, async || own.get("mine").await.ok())
        .await
        .unwrap();
    let refused = own.delete("mine", &DeleteParams::default()).await;
    assert!(refused.unwrap_err().to_string().contains("forbidden"));
    let said = cp.kubectl_as(
        identity.kubeconfig(),
        &["get", "cm", "mine", "-n", "limited"],
        "",
    );
    assert!(said.await.unwrap().success);
}

#[tokio::test]
async fn the_audit_log_counts_every_request_once() {
    let cp = shared().await;
    let maps = namespace(cp, "counted").await;
    let admin = cp.admin_client().await.unwrap();
    let identity = cp.identity("counted", "counter").await.unwrap();
    let bind = [
        "create",
        "clusterrolebinding",
        "counter",
        "--clusterrole=cluster-admin",
        "--serviceaccount=counted:counter",
    ];
    cp.kubectl(&bind).await.unwrap().ok().unwrap();
    let own: Api<ConfigMap> = Api::namespaced(identity.client().await.unwrap(), "counted");
    kite_testkit::wait::eventually("the right", SOON, async || own.get_opt("x").await.ok())
        .await
        .unwrap();
    let audit = cp.audit().unwrap();
    let mark = audit.settled_mark(&admin).await.unwrap();

    let apply = PatchParams::apply("counter").force();
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "b"}});
    own.patch("x", &apply, &Patch::Apply(&map)).await.unwrap();
    own.patch("x", &apply, &Patch::Apply(&map)).await.unwrap();
    for _ in 0..3 {
        own.get("x").await.unwrap();
    }
    wait_until(&own, "x", SOON, |map| map.data.is_some())
        .await
        .unwrap();
    own.delete("x", &DeleteParams::default()).await.unwrap();
    maps.get_opt("x").await.unwrap();

    audit.settled_mark(&admin).await.unwrap();
    let requests: Vec<_> = audit.since(mark).unwrap();
    let requests: Vec<_> = requests
        .into_iter()
        .filter(|request| request.user == identity.username)
        .collect();
    let table = kite_testkit::audit::Table::of(&requests);
    eprintln!("{table}");
    let rows: Vec<_> = table.rows().map(|row| (row.1, row.2, row.3)).collect();
    let expected = [
        ("create", "configmaps", 1),
        ("delete", "configmaps", 1),
        ("get", "configmaps", 3),
        // The watcher's first list.
        ("list", "configmaps", 1),
        ("patch", "configmaps", 1),
    ];
    assert_eq!(rows, expected);
    assert!(requests.iter().all(|request| request.is_by("counter")));
}

#[tokio::test]
async fn a_restarted_api_server_keeps_address_data_and_tokens() {
    let options = Options {
        controller_manager: false,
        ..Options::default()
    };
    let cp = ControlPlane::start(options).await.unwrap();
    let maps = namespace(&cp, "kept").await;
    let map = config_map("stays");
    maps.create(&PostParams::default(), &map).await.unwrap();
    let identity = cp.identity("kept", "reader").await.unwrap();
    let before = cp.url();
    let began = Instant::now();
    cp.restart_apiserver().await.unwrap();
    eprintln!("the API server restarted in {:?}", began.elapsed());
    assert_eq!(cp.url(), before);
    assert_eq!(maps.get("stays").await.unwrap().data, map.data);
    let own: Api<ConfigMap> = Api::namespaced(identity.client().await.unwrap(), "kept");
    let refused = own.get("stays").await.unwrap_err().to_string();
    assert!(
        refused.contains("forbidden"),
        "known, but without rights: {refused}"
    );
    let folder = cp.folder().to_owned();
    let began = Instant::now();
    cp.shutdown().await;
    eprintln!("shut down in {:?}", began.elapsed());
    assert!(!folder.exists());
}
