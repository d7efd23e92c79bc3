//! What the charts render to.

use kite_testkit::helm::Helm;
use serde_json::{Value, json};

use crate::{PARTS, called, charts, everything, object, render, words};

fn sorted(mut objects: Vec<Value>) -> Vec<Value> {
    objects.sort_by_key(|object| (called(object), object.to_string()));
    objects
}

#[tokio::test]
async fn both_helms_render_the_same_objects() {
    let ha = charts().await.path("kite") + "/values-ha.yaml";
    for arguments in [vec![], vec!["--values".to_owned(), ha], everything()] {
        let three = render(Helm::Three, "kite", &arguments).await.unwrap();
        let four = render(Helm::Four, "kite", &arguments).await.unwrap();
        assert_eq!(sorted(three), sorted(four));
    }
}

fn image(objects: &[Value], name: &str) -> Value {
    let deployment = object(objects, "Deployment", name);
    deployment["spec"]["template"]["spec"]["containers"][0]["image"].clone()
}

#[tokio::test]
async fn an_image_follows_the_registry_of_all_its_own_its_tag_and_its_digest() {
    let digest = format!("sha256:{}", "0".repeat(64));
    let mut arguments = words(&[
        "--set=global.imageRegistry=mirror.example.org/kite-mirror/",
        "--set=user.image.registry=own.example.org",
        "--set-string=namespace.image.tag=1.2.3",
        "--set-string=vm.image.tag=1.2.3",
        "--set=service.image.repository=other",
    ]);
    arguments.push(format!("--set=vm.image.digest={digest}"));
    let objects = render(Helm::Four, "kite", &arguments).await.unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let mirror = "mirror.example.org/kite-mirror";
    for (name, wanted) in [
        (
            "kite-user",
            format!("own.example.org/kite/kite-user:{version}"),
        ),
        (
            "kite-namespace",
            format!("{mirror}/kite/kite-namespace:1.2.3"),
        ),
        ("kite-vm", format!("{mirror}/kite/kite-vm@{digest}")),
        ("kite-service", format!("{mirror}/other:{version}")),
    ] {
        assert_eq!(image(&objects, name), wanted);
    }
    let plain = render(Helm::Four, "kite-vm", &[]).await.unwrap();
    assert_eq!(image(&plain, "kite-vm"), format!("kite/kite-vm:{version}"));
}

// The names are the same whatever the release is called: two of one controller never run.
#[tokio::test]
async fn a_name_that_is_overridden_changes_a_label_and_no_name() {
    let other = words(&["--set=nameOverride=other"]);
    let objects = render(Helm::Four, "kite-vm", &other).await.unwrap();
    let plain = render(Helm::Four, "kite-vm", &[]).await.unwrap();
    let names = |objects: &[Value]| objects.iter().map(called).collect::<Vec<_>>();
    assert_eq!(names(&objects), names(&plain));
    let labels = |objects: &[Value]| {
        object(objects, "Deployment", "kite-vm")["metadata"]["labels"]["app.kubernetes.io/name"]
            .clone()
    };
    assert_eq!(
        (labels(&plain), labels(&objects)),
        (json!("kite-vm"), json!("other"))
    );
}

// C-20: each controller has an account of its own, and the rights are bound to that one.
#[tokio::test]
async fn rights_follow_the_release_and_are_bound_to_the_controllers_own_account() {
    let arguments = words(&[
        "--namespace=elsewhere",
        "--set=vm.imageNamespace.name=pictures",
    ]);
    let objects = render(Helm::Four, "kite", &arguments).await.unwrap();
    let mut bound = 0;
    for binding in objects
        .iter()
        .filter(|o| o["kind"] == "ClusterRoleBinding" || o["kind"] == "RoleBinding")
    {
        let name = &binding["metadata"]["name"];
        let account = json!([{"kind": "ServiceAccount", "name": name, "namespace": "elsewhere"}]);
        assert_eq!(binding["subjects"], account, "{}", called(binding));
        if let Some(place) = binding["metadata"]["namespace"].as_str() {
            assert!(
                ["elsewhere", "pictures"].contains(&place),
                "{}",
                called(binding)
            );
        }
        bound += 1;
    }
    assert!(bound > 2 * PARTS.len(), "{bound}");
    let user = object(&objects, "Deployment", "kite-user");
    let arguments = &user["spec"]["template"]["spec"]["containers"][0]["args"];
    let given = |flag: &str| arguments.as_array().unwrap().contains(&json!(flag));
    assert!(
        given("--vm-service-account=elsewhere/kite-vm"),
        "{arguments}"
    );
    assert!(
        given("--reserved-namespaces=elsewhere,kubevirt,cdi"),
        "{arguments}"
    );
}

#[tokio::test]
async fn two_pods_have_a_budget_and_are_spread_and_one_has_neither() {
    for (replicas, wanted) in [(1, false), (2, true)] {
        let arguments = [format!("--set=replicas={replicas}")];
        let objects = render(Helm::Four, "kite-vm", &arguments).await.unwrap();
        let budget = objects.iter().any(|o| o["kind"] == "PodDisruptionBudget");
        let pod = &object(&objects, "Deployment", "kite-vm")["spec"]["template"]["spec"];
        let spread = pod["topologySpreadConstraints"].is_array();
        assert_eq!((budget, spread), (wanted, wanted), "{replicas}");
    }
}
