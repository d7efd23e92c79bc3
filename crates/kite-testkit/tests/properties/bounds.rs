//! Machines just inside and just outside of every bound.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::specs::plain_machine;

/// What Kite refuses of a machine and the schema cannot: a field, and some of the words.
pub(crate) const BEYOND_THE_SCHEMA: [(&str, &str); 2] = [
    // Whether the text after the algorithm is a key of it, and whether each character shows.
    ("spec.sshAuthorizedKeys", ""),
    // The platform's own list.
    ("spec.domainPrefix", "which is reserved"),
];

/// What only the server refuses, and Kite could work with: other ways to write an amount, a
/// fraction of a byte, which Kite rounds up, and how many of something there may be.
pub(crate) const FORM: [&str; 8] = [
    "in body should match '^[0-9]{1,15}",
    "Invalid value: \"33554431.5\": memory must be",
    "Invalid value: \"33554431999m\": memory must be",
    "Invalid value: \"67108863.999\": disk must be",
    "Too many: 33",
    "must have at most 32 items",
    "spec.quota.cpu in body should be less than or equal to 100000",
    "spec.quota.virtualMachines in body should be less than or equal to 10000",
];

/// One or two fields of a machine at their bounds.
pub(crate) fn machine() -> impl Strategy<Value = Value> {
    let mut fields = amounts();
    fields.extend(machine_names());
    fields.extend(machine_choices());
    edited(plain_machine(), fields)
}

pub(crate) fn edited(
    plain: Value,
    fields: Vec<(&'static str, Value)>,
) -> impl Strategy<Value = Value> {
    let edits = prop::collection::vec(select(fields), 1..=2);
    edits.prop_map(move |edits| {
        let mut object = plain.clone();
        for (path, value) in edits {
            let (parent, field) = path.rsplit_once('/').unwrap();
            let parent = parent
                .split('/')
                .skip(1)
                .fold(&mut object, |at, key| &mut at[key]);
            parent[field] = value;
        }
        object
    })
}

pub(crate) fn each(
    path: &'static str,
    values: impl IntoIterator<Item = Value>,
) -> Vec<(&'static str, Value)> {
    values.into_iter().map(|value| (path, value)).collect()
}

pub(crate) fn texts<'a>(
    path: &'static str,
    values: impl IntoIterator<Item = &'a str>,
) -> Vec<(&'static str, Value)> {
    each(path, values.into_iter().map(Value::from))
}

/// What no amount looks like.
pub(crate) const NO_AMOUNTS: [&str; 16] = [
    "",
    " 1Gi",
    "1Gi ",
    "1gi",
    "+1Gi",
    "-1Gi",
    "0x10",
    "1e30",
    "1E9",
    "abc",
    "1_000Mi",
    "1,5Gi",
    "½Gi",
    "1Gi\n",
    "9223372036854775808",
    "99999999999999999999999999999999999",
];

fn amounts() -> Vec<(&'static str, Value)> {
    let mut out = each(
        "/spec/cpu",
        [
            json!(-1),
            json!(0),
            json!(1),
            json!(256),
            json!(257),
            json!(i32::MAX),
            json!("1"),
            json!(1.5),
            json!(null),
        ],
    );
    for path in ["/spec/memory", "/spec/disk"] {
        out.extend(texts(path, NO_AMOUNTS));
        out.extend(each(path, [json!(1_073_741_824), json!(null)]));
    }
    out.extend(texts(
        "/spec/memory",
        [
            "31Mi",
            "32Mi",
            "33554431",
            "33554432",
            "0.03125Gi",
            "33554431.5",
            "33554432000m",
            "33554431999m",
            "34M",
            "33M",
            "12Ti",
            "12289Gi",
            "13194139533312",
            "13194139533313",
            "13194139533312.1",
            "13T",
            "0.0128Pi",
        ],
    ));
    out.extend(texts(
        "/spec/disk",
        [
            "63Mi",
            "64Mi",
            "67108863",
            "67108864",
            "67108863.999",
            "64Ti",
            "65537Gi",
            "70368744177664",
            "70368744177665",
            "0.0625Pi",
            "16Ei",
            "100m",
        ],
    ));
    out
}

/// What no name may hold.
pub(crate) const NO_NAMES: [&str; 22] = [
    "", "-", "-a", "a-", "a.", ".a", "a..b", "A", "a_b", "a b", "ä", "a\nb", "---", "{{x}}",
    "${x}", "a\"", "a'", "a#", "a\tb", "a: b", "../x", "ns/name",
];

pub(crate) fn long(length: usize) -> String {
    "a".repeat(length)
}

/// A DNS name of so many characters in parts of at most 63.
fn dotted(length: usize) -> String {
    let part = long(63) + ".";
    let mut name = part.repeat(length / 64 + 1);
    name.truncate(length - 1);
    name + "z"
}

fn machine_names() -> Vec<(&'static str, Value)> {
    let lengths = [
        long(63),
        long(64),
        dotted(253),
        dotted(254),
        long(253),
        format!("{}.b", long(64)),
        "a.b".to_owned(),
        "1a".to_owned(),
        "a".to_owned(),
    ];
    let mut out = Vec::new();
    for path in [
        "/spec/image",
        "/spec/storageClassName",
        "/spec/passwordSecretRef/name",
        "/spec/domainPrefix",
    ] {
        out.extend(texts(path, NO_NAMES));
        out.extend(texts(path, lengths.iter().map(String::as_str)));
    }
    // Others are no part of a URL, so nobody could even ask.
    out.extend(texts(
        "/metadata/name",
        ["a", "1a", "a.b", "-a", "a-", "A", "a_b"],
    ));
    out.extend(texts(
        "/metadata/name",
        [long(63), long(64), long(253)].iter().map(String::as_str),
    ));
    out.extend(each(
        "/spec/passwordSecretRef",
        [
            "a", ".", "..", "..a", "a..b", ".a", "-", "_", "a b", "a/b", "", "ä",
        ]
        .iter()
        .map(|key| json!({"name": "login", "key": key})),
    ));
    out.extend(each(
        "/spec/passwordSecretRef",
        [253, 254].map(|n| json!({"name": "login", "key": long(n)})),
    ));
    out.extend(texts(
        "/spec/loginUser",
        [
            "_",
            "a",
            "root",
            "-a",
            "1a",
            "a$",
            "Admin",
            "",
            "a: b",
            "x\nruncmd: [reboot]",
            "a-_9",
        ],
    ));
    out.extend(texts(
        "/spec/loginUser",
        [long(32), long(33)].iter().map(String::as_str),
    ));
    out.extend(texts("/spec/domainPrefix", ["www", "api", "*"]));
    out
}

fn machine_choices() -> Vec<(&'static str, Value)> {
    const KEY: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti";
    let mut out = Vec::new();
    let lines = [
        KEY.to_owned(),
        format!("{KEY} a \"quoted\" comment: with {{braces}}"),
        format!("{KEY} ünïcode 漢字"),
        format!("{KEY} tab\there"),
        format!("{KEY}\n{KEY}"),
        format!("{KEY} \u{85}"),
        format!("{KEY} \u{202e}"),
        format!("{KEY} \u{7f}"),
        format!("command=\"x\" {KEY}"),
        format!(" {KEY}"),
        format!("{KEY} {}", long(4096 - KEY.len() - 1)),
        format!("{KEY} {}", long(4096 - KEY.len())),
        "ssh-ed25519 AAAA".to_owned(),
        "ssh-dss AAAAB3NzaC1kc3MAAACB".to_owned(),
        "ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti".to_owned(),
        String::new(),
    ];
    out.extend(each(
        "/spec/sshAuthorizedKeys",
        lines.iter().map(|line| json!([line])),
    ));
    out.extend(each(
        "/spec/sshAuthorizedKeys",
        [32, 33].map(|n| json!(vec![KEY; n])),
    ));
    for (path, words) in [
        ("/spec/powerState", ["On", "Off", "on", "Hibernate", ""]),
        (
            "/spec/onGuestShutdown",
            ["Restart", "StayOff", "restart", "Ask", ""],
        ),
        (
            "/spec/deletionPolicy",
            ["Delete", "Retain", "Keep", "delete", ""],
        ),
    ] {
        out.extend(texts(path, words));
    }
    out.extend(each(
        "/spec/delete",
        [json!(true), json!(false), json!("true"), json!(1)],
    ));
    out
}
