//! What scenarios about releases share: Helm and kubectl at a prompt, and the
//! objects that a release or a user has.

use std::collections::BTreeMap;
use std::time::Instant;

use kite_testkit::helm::{Helm, LIMIT};
use kite_testkit::install::SYSTEM_NAMESPACE;
use kite_testkit::installed::Installed;
use kite_testkit::snapshot;
use kite_testkit::tenant::LONG;
use kite_testkit::wait::eventually;
use kube::{Client, ResourceExt};
use serde_json::Value;

/// The columns of [`of_release`].
const COLUMNS: &str = r"jsonpath={range .items[*]}{.metadata.labels.app\.kubernetes\.io/component} {.kind} {.metadata.name} {.metadata.uid}{'\n'}{end}";

/// Runs Helm on a release in Kite's namespace, and prints how long it took.
pub(crate) async fn helm(on: &Installed, which: Helm, line: &[&str]) -> String {
    let start = Instant::now();
    let whole = [line, &["--namespace", SYSTEM_NAMESPACE, LIMIT]].concat();
    let said = on.helm(which, &whole).await.unwrap();
    let said = said
        .ok()
        .unwrap_or_else(|error| panic!("{line:?}: {error}"));
    let words: Vec<_> = line.iter().filter(|word| !word.contains('/')).collect();
    println!("{:5.1} s  helm {words:?}", start.elapsed().as_secs_f32());
    said
}

/// The same, where Helm is to refuse: its words.
pub(crate) async fn refused(on: &Installed, which: Helm, line: &[&str]) -> String {
    let whole = [line, &["--namespace", SYSTEM_NAMESPACE, LIMIT]].concat();
    on.helm(which, &whole).await.unwrap().refused().unwrap()
}

/// Removes a release, and sees that nothing of it is left.
pub(crate) async fn uninstall(on: &Installed, which: Helm, release: &str) {
    helm(on, which, &["uninstall", release, "--wait"]).await;
    let mut left = BTreeMap::new();
    // What goes with what Helm removed goes a moment later.
    let gone = eventually("an end", LONG, async || {
        left = of_release(on, release).await;
        left.is_empty().then_some(())
    })
    .await;
    assert!(gone.is_ok(), "{release} has left {left:#?}");
}

/// Runs kubectl as administrator.
pub(crate) async fn kubectl(on: &Installed, line: &[&str]) -> String {
    let said = on.cluster.control_plane.kubectl(line).await.unwrap();
    said.ok()
        .unwrap_or_else(|error| panic!("{line:?}: {error}"))
}

/// Every object of every kind the server has that carries a release's label, with its UID, by the
/// controller it is part of, its kind and its name.
pub(crate) async fn of_release(on: &Installed, release: &str) -> BTreeMap<String, String> {
    let kinds = ["api-resources", "--verbs=list", "--output=name"];
    let kinds = kubectl(on, &kinds).await;
    let kinds: Vec<_> = kinds
        .lines()
        .filter(|kind| !kind.starts_with("events"))
        .collect();
    let selector = format!("app.kubernetes.io/instance={release}");
    let line = [
        "get",
        &kinds.join(","),
        "-A",
        "-l",
        &selector,
        "-o",
        COLUMNS,
    ];
    let found = kubectl(on, &line).await;
    let pairs = found.lines().filter_map(|line| line.rsplit_once(' '));
    pairs
        .map(|(name, uid)| (name.to_owned(), uid.to_owned()))
        .collect()
}

/// Everything of a user whose namespace is called like it, byte for byte: the KiteUser, the
/// namespace, and all in it that is Kite's, KubeVirt's or CDI's.
pub(crate) async fn of_user(client: &Client, user: &str) -> BTreeMap<String, String> {
    let mut objects = snapshot::exact(client, user).await;
    for kind in &snapshot::CLUSTER_WIDE {
        for object in snapshot::list(client, kind, None).await {
            if object.name_any() == user {
                let name = format!("{} {user}", kind.2);
                objects.insert(name, serde_json::to_string_pretty(&object).unwrap());
            }
        }
    }
    // CDI takes its claim for a clone away when it comes to it, and then the quota counts anew.
    objects.retain(|name, _| !name.starts_with("PersistentVolumeClaim tmp-pvc-"));
    if let Some(quota) = objects.get_mut("ResourceQuota kite-quota") {
        *quota = without_status(quota);
    }
    assert!(objects.len() >= 10, "{:?}", objects.keys());
    objects
}

/// An object without its status and the marks that a write of it leaves.
fn without_status(object: &str) -> String {
    let mut object: Value = serde_json::from_str(object).unwrap();
    object.as_object_mut().unwrap().remove("status");
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.remove("resourceVersion");
    metadata.remove("managedFields");
    serde_json::to_string_pretty(&object).unwrap()
}

/// How often the containers of Kite's pods were started again, by pod.
pub(crate) async fn restarts(on: &Installed) -> BTreeMap<String, u64> {
    let line = ["get", "pods", "-n", SYSTEM_NAMESPACE, "-o", "json"];
    let pods: Value = serde_json::from_str(&kubectl(on, &line).await).unwrap();
    let pods = pods["items"].as_array().unwrap().iter();
    let row = |pod: &Value| {
        let name = pod["metadata"]["name"].as_str()?.to_owned();
        let restarts = &pod["status"]["containerStatuses"][0]["restartCount"];
        Some((name, restarts.as_u64()?))
    };
    pods.filter_map(row).collect()
}
