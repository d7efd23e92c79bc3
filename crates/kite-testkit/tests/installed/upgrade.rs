//! A newer version of Kite comes, with a field that its machines did not have
//! before, goes again, and comes once more.
//!
//! The older version is packed here from an earlier commit's charts, with another
//! version in all of them and a kind of machines that lacks one optional field. In a
//! checkout without history the present charts stand for the earlier ones. What it
//! cannot show is a difference between two versions of the programs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use kite_api::KiteVirtualMachine;
use kite_kubevirt::read::DataVolume;
use kite_testkit::counted::quiet;
use kite_testkit::helm::{Charts, Helm};
use kite_testkit::installed::Installed;
use kite_testkit::tenant::{LONG, Tenant};
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::release::{helm, kubectl, of_user};

/// The field that only the present version has, and its line in the kind's schema.
const FIELD: &str = "deletionPolicy";
const LINE: &str = "              deletionPolicy:";

const OLDER: &str = "0.0.9";

/// The first commit whose charts are all there.
const EARLIER: &str = "8ed8194d6e3d0c93213563ffdc438cd79b9fb552";

const SCHEMA: [&str; 4] = [
    "get",
    "crd",
    "kitevirtualmachines.kite.dev",
    "-o=jsonpath={.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.deletionPolicy.default}",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_helm_4_nothing_of_a_user_changes_when_kite_is_upgraded_rolled_back_and_upgraded() {
    nothing_of_a_user_changes(Helm::Four).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_helm_3_nothing_of_a_user_changes_when_kite_is_upgraded_rolled_back_and_upgraded() {
    nothing_of_a_user_changes(Helm::Three).await;
}

// C-5
async fn nothing_of_a_user_changes(which: Helm) {
    let _turn = crate::TURN.read().await;
    let mut ground = Installed::ground().await.unwrap();
    let present = ground.charts.path("kite");
    let kept = std::mem::replace(&mut ground.charts, Charts::changed(older).await.unwrap());
    let upgrade = [
        "upgrade",
        "kite",
        &present,
        "--reset-then-reuse-values",
        "--wait",
    ];

    // Given a user and a machine of the older version,
    // Which asks for no namespace that is there already.
    let images_are_there = "vm.imageNamespace.create=false";
    ground
        .install_all(which, &[images_are_there])
        .await
        .unwrap();
    assert_eq!(images(&ground).await, [OLDER]);
    assert_eq!(kubectl(&ground, &SCHEMA).await, "");
    let alice = Tenant::new(&ground.cluster, "alice").await;
    alice.create().await;
    alice.machine("web", json!({})).await;
    alice.ready("web").await;
    quiet(&ground.cluster).await;
    let old = of_user(&alice.client, "alice").await;
    assert_eq!(policy(&old), None);

    // when the present one replaces it, then all is as it was, and the field is there with its default;
    helm(&ground, which, &upgrade).await;
    assert_eq!(kubectl(&ground, &SCHEMA).await, "Delete");
    assert_eq!(images(&ground).await, [env!("CARGO_PKG_VERSION")]);
    quiet(&ground.cluster).await;
    let new = of_user(&alice.client, "alice").await;
    assert_eq!(policy(&new).as_deref(), Some("Delete"));
    same("upgraded", &old, &new);

    // when it is used, then it works;
    let retain = json!({"spec": {FIELD: "Retain"}});
    alice.edit::<KiteVirtualMachine>("web", retain).await;
    disk_says(&alice, "Retain").await;
    alice.ready("web").await;
    quiet(&ground.cluster).await;
    let used = of_user(&alice.client, "alice").await;

    // when the older one comes back, then it knows nothing of the field, and nothing else differs;
    helm(&ground, which, &["rollback", "kite", "1", "--wait"]).await;
    assert_eq!(kubectl(&ground, &SCHEMA).await, "");
    assert_eq!(images(&ground).await, [OLDER]);
    disk_says(&alice, "Delete").await;
    quiet(&ground.cluster).await;
    let back = of_user(&alice.client, "alice").await;
    assert_eq!(policy(&back), None);
    assert_eq!(uids(&back), uids(&used));

    // and with the present one even that is as it was.
    helm(&ground, which, &upgrade).await;
    disk_says(&alice, "Retain").await;
    quiet(&ground.cluster).await;
    let again = of_user(&alice.client, "alice").await;
    assert_eq!(policy(&again).as_deref(), Some("Retain"));
    assert_eq!(uids(&again), uids(&used));
    alice.ready("web").await;
    drop(kept);
}

/// Turns a copy of the charts into those of the older version.
fn older(charts: &Path) -> Result<()> {
    match earlier(charts) {
        Ok(()) => println!("the older charts are those of {EARLIER}"),
        Err(error) => println!("the present charts stand for the older: {error:#}"),
    }
    for entry in fs::read_dir(charts)? {
        let path = entry?.path().join("Chart.yaml");
        let text = fs::read_to_string(&path)?;
        let present = concat!("ersion: ", env!("CARGO_PKG_VERSION"), "\n");
        ensure!(text.contains(present), "{}: {text}", path.display());
        fs::write(&path, text.replace(present, &format!("ersion: {OLDER}\n")))?;
    }
    let kind = charts.join("kite-crds/templates/kitevirtualmachines.yaml");
    let text = fs::read_to_string(&kind)?;
    let (before, rest) = text.split_once(&format!("{LINE}\n")).context(FIELD)?;
    let depth = |line: &str| line.len() - line.trim_start().len();
    let inside = rest
        .lines()
        .take_while(|line| depth(line) > depth(LINE))
        .count();
    let after: Vec<_> = rest.lines().skip(inside).collect();
    fs::write(&kind, format!("{before}{}\n", after.join("\n")))?;
    Ok(())
}

/// Replaces the charts by those of the earlier commit; without its files nothing is changed.
fn earlier(charts: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let archive = folder.path().join("charts.tar");
    let run = |command: &mut Command| -> Result<()> {
        let output = command.output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}", said.trim());
        Ok(())
    };
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let git = ["archive", "--format=tar", EARLIER, "charts", "--output"];
    run(Command::new("git")
        .current_dir(project)
        .args(git)
        .arg(&archive))?;
    fs::remove_dir_all(charts)?;
    fs::create_dir(charts)?;
    run(Command::new("tar")
        .args(["--extract", "--strip-components=1", "--file"])
        .arg(&archive)
        .arg("--directory")
        .arg(charts))
}

/// The tags of the images that Kite's pods have, each once.
async fn images(on: &Installed) -> Vec<String> {
    let line = [
        "get",
        "deployments",
        "-n=kite-system",
        "-o=jsonpath={range .items[*]}{.spec.template.spec.containers[0].image}{'\\n'}{end}",
    ];
    let images = kubectl(on, &line).await;
    let tags = images.lines().filter_map(|image| image.rsplit_once(':'));
    let mut tags: Vec<_> = tags.map(|(_, tag)| tag.to_owned()).collect();
    tags.dedup();
    tags
}

async fn disk_says(tenant: &Tenant<'_>, policy: &str) {
    let says = |disk: &DataVolume| {
        let said = disk.annotations().get(kite_api::labels::DELETION_POLICY);
        said.is_some_and(|said| said == policy)
    };
    tenant.until("web", LONG, says).await;
}

fn machine(objects: &BTreeMap<String, String>) -> Value {
    serde_json::from_str(&objects["KiteVirtualMachine web"]).unwrap()
}

/// The field as the machine shows it.
fn policy(objects: &BTreeMap<String, String>) -> Option<String> {
    let field = &machine(objects)["spec"][FIELD];
    field.as_str().map(str::to_owned)
}

/// The objects by kind and name, and that they are not new ones of the same names.
fn uids(objects: &BTreeMap<String, String>) -> BTreeMap<&str, String> {
    let uid = |text: &str| {
        let object: Value = serde_json::from_str(text).unwrap();
        object["metadata"]["uid"].to_string()
    };
    objects
        .iter()
        .map(|(name, text)| (name.as_str(), uid(text)))
        .collect()
}

/// Byte for byte, but for the field.
fn same(what: &str, one: &BTreeMap<String, String>, other: &BTreeMap<String, String>) {
    let without = |objects: &BTreeMap<String, String>| {
        let mut machine = machine(objects);
        machine["spec"].as_object_mut().unwrap().remove(FIELD);
        let mut objects = objects.clone();
        objects.insert(
            "KiteVirtualMachine web".into(),
            serde_json::to_string_pretty(&machine).unwrap(),
        );
        objects
    };
    kite_testkit::snapshot::assert_same(what, &without(one), &without(other));
}
