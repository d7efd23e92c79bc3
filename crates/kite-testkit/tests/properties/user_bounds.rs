//! Users just inside and just outside of every bound.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::bounds::{NO_AMOUNTS, NO_NAMES, each, edited, long, texts};
use crate::specs::plain_user;

/// What Kite refuses of a user and the schema cannot: a field, and some of the words.
pub(crate) const BEYOND_THE_SCHEMA: [(&str, &str); 2] = [
    ("spec.namespace", "which belongs to the platform"),
    ("spec.subjects", ""),
];

/// One or two fields of a user at their bounds.
pub(crate) fn user() -> impl Strategy<Value = Value> {
    let mut fields = user_numbers();
    fields.extend(user_names());
    fields.extend(ranges_and_subjects());
    edited(plain_user(), fields)
}

fn user_numbers() -> Vec<(&'static str, Value)> {
    let mut out = each(
        "/spec/quota/cpu",
        [
            json!(0),
            json!(1),
            json!(100_000),
            json!(100_001),
            json!("1"),
            json!(0.5),
        ],
    );
    out.extend(each(
        "/spec/quota/virtualMachines",
        [json!(-1), json!(0), json!(10_000), json!(10_001)],
    ));
    for path in ["/spec/quota/memory", "/spec/quota/storage"] {
        out.extend(texts(path, NO_AMOUNTS));
    }
    out.extend(texts(
        "/spec/quota/memory",
        [
            "31Mi",
            "32Mi",
            "33554431",
            "1Pi",
            "1025Ti",
            "1125899906842625",
        ],
    ));
    out.extend(texts(
        "/spec/quota/storage",
        ["63Mi", "64Mi", "64Pi", "65Pi", "72057594037927937"],
    ));
    let hard = [
        json!({"services.loadbalancers": "0"}),
        json!({"services.loadbalancers": "1.5"}),
        json!({"services.loadbalancers": "abc"}),
        json!({"services.loadbalancers": "-1"}),
        json!({"services.loadbalancers": ""}),
        json!({"count/pods": "1e3"}),
        json!({"a b": "1"}),
        json!({"": "1"}),
        json!({"-a": "1"}),
        json!({"a-": "1"}),
        json!({"ä": "1"}),
        json!({"x\ny": "1"}),
        json!({"limits.ephemeral-storage": "1Gi"}),
        json!({"requests.ephemeral-storage": "1Gi"}),
        json!({"limits.cpu": "10"}),
        json!({"requests.cpu": "1"}),
        json!({"requests.storage": "1"}),
        json!({"persistentvolumeclaims": "1"}),
        json!({"count/kitevirtualmachines.kite.dev": "1"}),
        json!({}),
    ];
    out.extend(each("/spec/quota/hard", hard));
    out.extend(each(
        "/spec/quota/hard",
        [253, 254].map(|n| json!({long(n): "1"})),
    ));
    let many = |n: usize| {
        (0..n)
            .map(|i| (format!("count/things-{i}"), json!("1")))
            .collect::<serde_json::Map<_, _>>()
    };
    out.extend(each(
        "/spec/quota/hard",
        [32, 33].map(|n| Value::Object(many(n))),
    ));
    out
}

fn user_names() -> Vec<(&'static str, Value)> {
    let mut out = texts("/spec/namespace", NO_NAMES);
    out.extend(texts(
        "/spec/namespace",
        [
            "default",
            "kube-system",
            "kube-x",
            "kubevirt",
            "cdi",
            "kite-images",
            "a.b",
            "1",
            "kube",
        ],
    ));
    out.extend(texts(
        "/spec/namespace",
        [long(63), long(64)].iter().map(String::as_str),
    ));
    out.extend(texts("/metadata/name", ["a", "1a", "a.b", "-a", "a-", "A"]));
    out.extend(texts(
        "/metadata/name",
        [long(63), long(64)].iter().map(String::as_str),
    ));
    out.extend(each(
        "/spec/network/allowFromNamespaces",
        [
            json!([]),
            json!(["a"]),
            json!(["A"]),
            json!([""]),
            json!([long(63)]),
            json!([long(64)]),
            json!(vec!["a"; 32]),
            json!(vec!["a"; 33]),
        ],
    ));
    out
}

fn ranges_and_subjects() -> Vec<(&'static str, Value)> {
    let mut out = Vec::new();
    let ranges = [
        "10.20.0.0/16",
        "10.20.3.4/16",
        "10.20.3.4",
        "10.0.0.0/33",
        "10.0.0.0/-1",
        "10.0.0.0/",
        "/8",
        "10.0.0/8",
        "010.0.0.0/8",
        "10.0.0.0/08",
        "10.0.0.0/0",
        "::/0",
        "0.0.0.0/0",
        "fd00:20::/32",
        "fd00:20::/129",
        "fd00::20::/32",
        "FD00::/8",
        "::ffff:10.0.0.0/104",
        "fe80::1%eth0/64",
        "",
        "a/b",
        " 10.0.0.0/8",
    ];
    out.extend(each(
        "/spec/network/extraEgress",
        ranges.iter().map(|cidr| json!([{"cidr": cidr}])),
    ));
    let ports = [
        json!(0),
        json!(1),
        json!(65535),
        json!(65536),
        json!(-1),
        json!("80"),
    ];
    out.extend(each(
        "/spec/network/extraEgress",
        ports.map(|port| json!([{"cidr": "10.0.0.0/8", "ports": [{"port": port}]}])),
    ));
    out.extend(each(
        "/spec/network/extraEgress",
        ["TCP", "UDP", "SCTP", "tcp"]
            .map(|p| json!([{"cidr": "10.0.0.0/8", "ports": [{"protocol": p, "port": 1}]}])),
    ));
    out.extend(each(
        "/spec/network/extraEgress",
        [32, 33].map(|n| json!(vec![json!({"cidr": "10.0.0.0/8"}); n])),
    ));
    let names = [
        "",
        "a",
        "alice@example.org",
        "a: b",
        "a\nb",
        "a\tb",
        "a\u{202e}b",
        "ä",
        "system:anonymous",
        "system:unauthenticated",
        "system:masters",
        "*",
    ];
    out.extend(each(
        "/spec/subjects",
        names.map(|name| json!([{"kind": "User", "name": name}])),
    ));
    out.extend(each(
        "/spec/subjects",
        [long(253), long(254), "ä".repeat(200)]
            .map(|name| json!([{"kind": "Group", "name": name}])),
    ));
    out.extend(each(
        "/spec/subjects",
        [
            json!([{"kind": "ServiceAccount", "name": "a"}]),
            json!([{"name": "a"}]),
            json!([{"kind": "User"}]),
        ],
    ));
    out
}
