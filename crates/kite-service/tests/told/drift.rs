//! What counts as drift, and in which words.

use std::collections::BTreeSet;

use kite_api::condition::{SERVICE_READY, find};
use serde_json::{Value, json};

use crate::{live, machine, ready, told};

/// Every kind of drift that matters, and what names it.
fn drifts() -> Vec<(&'static str, Value, &'static str)> {
    let other = "11111111-0000-4000-8000-000000000009";
    let port = |name: &str, port: i32, protocol: &str| json!({"name": name, "port": port, "targetPort": port, "protocol": protocol});
    vec![
        ("/spec/type", json!("NodePort"), "spec.type is NodePort"),
        (
            "/spec/type",
            json!("LoadBalancer"),
            "spec.type is LoadBalancer",
        ),
        (
            "/spec/type",
            json!("ExternalName"),
            "spec.type is ExternalName",
        ),
        ("/spec/ports", json!([]), "spec.ports"),
        (
            "/spec/ports",
            json!([port("ssh", 22, "TCP")]),
            "spec.ports[80/TCP] is missing",
        ),
        (
            "/spec/ports/0/targetPort",
            json!(2222),
            "spec.ports[22/TCP].targetPort",
        ),
        (
            "/spec/ports/0/targetPort",
            json!("ssh"),
            "spec.ports[22/TCP].targetPort",
        ),
        (
            "/spec/ports/1/name",
            json!("web"),
            "spec.ports[80/TCP].name",
        ),
        (
            "/spec/ports/0/protocol",
            json!("UDP"),
            "spec.ports[22/TCP] is missing",
        ),
        (
            "/spec/ports/0/port",
            json!(2022),
            "spec.ports[22/TCP] is missing",
        ),
        (
            "/spec/ports/-",
            port("telnet", 23, "TCP"),
            "/spec/ports/2 has",
        ),
        (
            "/spec/ports/-",
            port("ssh-udp", 22, "UDP"),
            "/spec/ports/2 has",
        ),
        ("/spec/selector", json!({"app": "mine"}), "spec.selector"),
        ("/spec/selector", Value::Null, "spec.selector"),
        (
            "/spec/selector/app",
            json!("mine"),
            "/spec/selector/app has",
        ),
        ("/metadata/labels", json!({}), "metadata.labels"),
        (
            "/metadata/labels",
            json!({"kite.dev/vm-uid": other}),
            "metadata.labels.kite.dev/vm-uid is",
        ),
        ("/metadata/annotations", json!({}), "metadata.annotations"),
        (
            "/spec/externalIPs",
            json!(["192.0.2.1"]),
            "/spec/externalIPs has",
        ),
        (
            "/spec/externalIPs",
            json!(["2001:db8::1"]),
            "/spec/externalIPs has",
        ),
        (
            "/spec/loadBalancerIP",
            json!("192.0.2.1"),
            "/spec/loadBalancerIP has",
        ),
        (
            "/metadata/ownerReferences",
            json!([]),
            "metadata.ownerReferences",
        ),
        (
            "/metadata/ownerReferences/0/uid",
            json!(other),
            "metadata.ownerReferences",
        ),
        (
            "/metadata/ownerReferences/0/controller",
            json!(false),
            "metadata.ownerReferences",
        ),
    ]
}

// E-1, E-2, C-4, C-8
#[test]
fn each_drift_that_matters_is_named_in_words_of_its_own_that_do_not_change() {
    let mut fingerprints = BTreeSet::new();
    for (pointer, edit, named) in drifts() {
        let service = live(&[(pointer, edit.clone())]);
        let status = told(&machine(), Some(&service), true);
        assert_eq!(ready(&status), "False Drifted", "{pointer} {edit}");
        let message = &find(&status.conditions, SERVICE_READY).unwrap().message;
        assert!(message.contains(named), "{pointer} {edit}: {message}");
        // That our owner is missing is one drift, whoever else may own the Service now.
        let is_new = fingerprints.insert(message.clone());
        assert!(
            is_new || pointer.contains("ownerReferences"),
            "said before: {message}"
        );
        // The same drift is the same text, with or without an answer, and however often it is read.
        for answers in [true, false] {
            let again = told(&machine(), Some(&service), answers);
            assert_eq!(again.conditions, status.conditions);
        }
    }
}

// E-1, C-8
#[test]
fn several_drifts_are_named_together_and_in_one_order() {
    let edits = [
        ("/spec/type", json!("NodePort")),
        ("/spec/externalIPs", json!(["192.0.2.1"])),
    ];
    let turned = [edits[1].clone(), edits[0].clone()];
    let (one, other) = (live(&edits), live(&turned));
    let (one, other) = (
        told(&machine(), Some(&one), true),
        told(&machine(), Some(&other), true),
    );
    assert_eq!(one, other);
    let message = &find(&one.conditions, SERVICE_READY).unwrap().message;
    assert!(
        message.contains("NodePort") && message.contains("192.0.2.1"),
        "{message}"
    );
}

// E-1
#[test]
fn what_the_server_and_others_add_is_no_drift() {
    let edits = [
        ("/metadata/labels/team", json!("blue")),
        ("/metadata/annotations/note", json!("mine")),
        ("/spec/ipFamilies", json!(["IPv4"])),
    ];
    assert_eq!(
        ready(&told(&machine(), Some(&live(&edits)), true)),
        "True Reachable"
    );
}
