//! What is refused, by whom, and in which words.

use kite_api::condition::STALLED;
use serde_json::json;

use crate::support::*;

// U-2, C-17, NS5, NS15, #41, F-16: the server itself refuses, with words that say what to do.
#[tokio::test]
async fn the_server_refuses_what_cannot_work_and_says_what_to_do() {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    let long = "a".repeat(64);
    let quota = |quota: serde_json::Value| json!({"namespace": "x", "quota": quota});
    let rows = [
        (
            user("bad", plain_spec("default")),
            "name a namespace of the user's own",
        ),
        (
            user("bad", plain_spec("kube-system")),
            "must not be default or kube-*",
        ),
        (user("bad", plain_spec(&long)), "spec.namespace"),
        (user("bad", plain_spec("Upper")), "spec.namespace"),
        (user("bad", plain_spec("../x")), "spec.namespace"),
        (user("bad", plain_spec("bücher")), "spec.namespace"),
        (user("bad", plain_spec("")), "spec.namespace"),
        (user("bad", json!({})), "namespace"),
        (user(&long, plain_spec("x")), "stands in labels"),
        (user("dotted.name", plain_spec("x")), "without dots"),
        (
            user("bad", quota(json!({"memory": "1Mi"}))),
            "between 32Mi and 1Pi",
        ),
        (
            user("bad", quota(json!({"hard": {"requests.cpu": "1"}}))),
            "set cpu, memory, storage",
        ),
        (user("bad", quota(json!({"cpu": 0}))), "spec.quota.cpu"),
        (
            user(
                "bad",
                json!({"namespace": "x", "network": {"extraEgress": [{"cidr": "10.0.0.0/99"}]}}),
            ),
            "spec.network.extraEgress[0].cidr",
        ),
    ];
    for (object, words) in rows {
        let told = admin.refused(&object).await;
        assert!(told.contains(words), "{object}: {told}");
    }
    // The longest names there are work all the same.
    let longest = "a".repeat(63);
    admin.ready_user(&longest, full_spec(&longest)).await;
    // The namespace never changes, also not by way of nothing.
    admin.ready_user("moving", plain_spec("moving-space")).await;
    let told = admin
        .refused(&user("moving", plain_spec("elsewhere")))
        .await;
    assert!(told.contains("make a second KiteUser"), "{told}");
}

// U-2, C-11: what only the controller can know is refused as plainly, and nothing is made.
#[tokio::test]
async fn a_reserved_namespace_is_refused_by_the_controller() {
    let world = world().await;
    let admin = Admin::new(world.plane).await;
    for space in ["kubevirt", "cdi", "kite-images", "kite-system"] {
        let name = format!("reserved-{space}");
        admin.apply(&user(&name, plain_spec(space))).await;
        let refused = admin.reason(&name, "InvalidSpec").await;
        assert!(is(&refused, STALLED, "True"));
        assert!(message(&refused, STALLED).contains("belongs to the platform"));
        assert_eq!(world.judge.status_of(&refused).unwrap().status, "Failed");
        assert!(
            refused.metadata.finalizers.is_none(),
            "nothing was made, so nothing is to be removed"
        );
        if space != "kite-system" {
            assert!(admin.namespaces().get_opt(space).await.unwrap().is_none());
        }
    }
}

// A wrong flag ends the process with 2 and a sentence.
#[test]
fn a_wrong_flag_exits_with_two_and_a_sentence() {
    let program = kite_testkit::kite_process::binary("kite-user").unwrap();
    for (args, words) in [
        (["--vm-service-account", "kite-vm"], "NAMESPACE/NAME"),
        (["--reserved-namespaces", "a,B"], "lower-case"),
        (["--lease-duration", "10s"], "--lease-duration"),
    ] {
        let out = std::process::Command::new(&program)
            .args(args)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{told}");
        assert!(told.contains(words), "{told}");
    }
}
