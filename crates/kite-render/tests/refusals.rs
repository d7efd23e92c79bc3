//! Each refusal of a value is said by some bad object, about the field that is
//! wrong, in words that help. The reference page of messages lists them all.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::collections::BTreeMap;

use common::{platform, platform_spec, raw_machine, raw_user, value};
use kite_render::validate::{
    CryptHash, Problem, Problems, ValidMachine, ValidPlatform, ValidUser, Wrong,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A good object with one part that is replaced.
fn with<T: DeserializeOwned>(mut object: Value, pointer: &str, part: &Value) -> T {
    let mut place = &mut object;
    for key in pointer.trim_start_matches('/').split('/') {
        place = &mut place[key];
    }
    place.clone_from(part);
    serde_json::from_value(object).unwrap()
}

fn machine(pointer: &str, part: &Value) -> Problems {
    ValidMachine::parse(&with(value(&raw_machine()), pointer, part), &platform()).unwrap_err()
}

fn user(pointer: &str, part: &Value) -> Problems {
    ValidUser::parse(&with(value(&raw_user()), pointer, part), &platform()).unwrap_err()
}

fn settings(pointer: &str, part: &Value) -> Problems {
    ValidPlatform::parse(&with(value(&platform_spec()), pointer, part)).unwrap_err()
}

/// Each problem is alone, so that an example shows one refusal.
fn only(problems: &Problems) -> Problem {
    let [problem] = problems.all() else {
        panic!("not one problem: {problems}")
    };
    problem.clone()
}

fn of_machines() -> Vec<(&'static str, Problems)> {
    let dss = "ssh-dss AAAAB3NzaC1kc3MAAAAVAJkMX9n2GtO5tmqjeVKoFTxZZNkzAAAAFQCZDF/Z9hrTubZqo3lSqBU8WWTZMwAAAAEDAAAAAQI=";
    let rsa = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAQQC7VJTUt9Us8cKjMzEfYyjiWA4R4/M2bS1GB4t7NXp98C3SC6dVMvDuictGeurT8jNbvJZHtCSuYEvuNMoSfm76";
    vec![
        ("metadata.name", machine("/metadata/name", &json!("1web"))),
        ("metadata.uid", machine("/metadata/uid", &json!("a b"))),
        ("spec.image", machine("/spec/image", &json!("Debian 13"))),
        ("spec.cpu", machine("/spec/cpu", &json!(0))),
        ("spec.memory", machine("/spec/memory", &json!("4 GB"))),
        ("spec.disk", machine("/spec/disk", &json!("1Mi"))),
        (
            "spec.domainPrefix",
            machine("/spec/domainPrefix", &json!("a_b")),
        ),
        (
            "spec.domainPrefix",
            machine("/spec/domainPrefix", &json!("www")),
        ),
        (
            "spec.loginUser",
            machine("/spec/loginUser", &json!("Alice")),
        ),
        ("spec.loginUser", machine("/spec/loginUser", &json!("root"))),
        (
            "spec.sshAuthorizedKeys[0]",
            machine("/spec/sshAuthorizedKeys", &json!(["a\nb"])),
        ),
        (
            "spec.sshAuthorizedKeys[0]",
            machine("/spec/sshAuthorizedKeys", &json!(["key"])),
        ),
        (
            "spec.sshAuthorizedKeys[0]",
            machine("/spec/sshAuthorizedKeys", &json!([dss])),
        ),
        (
            "spec.sshAuthorizedKeys[0]",
            machine("/spec/sshAuthorizedKeys", &json!([rsa])),
        ),
        (
            "spec.passwordSecretRef.key",
            machine(
                "/spec/passwordSecretRef",
                &json!({"name": "a", "key": "../b"}),
            ),
        ),
    ]
}

fn of_users() -> Vec<(&'static str, Problems)> {
    let hard = |key: &str, amount: &str| user("/spec/quota/hard", &json!({key: amount}));
    let subject = |name: &str| user("/spec/subjects", &json!([{"kind": "User", "name": name}]));
    let port = json!([{"cidr": "10.0.0.0/8", "ports": [{"port": 70_000}]}]);
    vec![
        ("spec.namespace", user("/spec/namespace", &json!("cdi"))),
        ("spec.subjects[0]", subject("a\u{202e}b")),
        ("spec.subjects[0]", subject("system:anonymous")),
        (
            "spec.network.extraEgress[0].ports[0]",
            user("/spec/network/extraEgress", &port),
        ),
        (
            "spec.network.extraEgress[0].cidr",
            user(
                "/spec/network/extraEgress",
                &json!([{"cidr": "10.0.0.0/99"}]),
            ),
        ),
        ("spec.quota.cpu", user("/spec/quota/cpu", &json!(0))),
        ("spec.quota.hard", hard("a b", "1")),
        ("spec.quota.hard", hard("requests.cpu", "1")),
        ("spec.quota.hard", hard("limits.ephemeral-storage", "1Gi")),
        ("spec.quota.hard", hard("pods", "-1")),
        ("spec.quota.hard", hard("pods", "many")),
    ]
}

fn of_platforms() -> Vec<(&'static str, Problems)> {
    vec![
        (
            "spec.network.clusterRanges[0]",
            settings("/network/clusterRanges", &json!(["0.0.0.0/0"])),
        ),
        (
            "spec.network.nodeLocalDns",
            settings("/network/nodeLocalDns", &json!("here")),
        ),
        (
            "spec.network.dnsLabels",
            settings("/network/dnsLabels", &json!({"a b": "c"})),
        ),
        (
            "spec.network.sshSources[0]",
            settings("/network/sshSources", &json!([{}])),
        ),
        ("spec.limits", settings("/limits/cpu", &json!(0))),
    ]
}

/// A host name can only be too long under a long domain.
fn of_a_long_domain() -> Wrong {
    let mut spec = platform_spec();
    spec.base_domain = Some(["abcdefghi"; 24].join("."));
    let platform = ValidPlatform::parse(&spec).unwrap();
    let prefix = json!("a".repeat(40));
    let machine = with(value(&raw_machine()), "/spec/domainPrefix", &prefix);
    only(&ValidMachine::parse(&machine, &platform).unwrap_err()).wrong
}

/// The refusal without its parts.
fn kind(wrong: &Wrong) -> String {
    let text = format!("{wrong:?}");
    text.split(' ').next().unwrap().to_owned()
}

// C-15, C-17
#[test]
fn each_refusal_is_said_of_the_field_that_is_wrong() {
    let mut said: BTreeMap<String, String> = BTreeMap::new();
    for (field, problems) in [of_machines(), of_users(), of_platforms()].concat() {
        let problem = only(&problems);
        assert_eq!(problem.field, field);
        assert_eq!(problems.to_string(), format!("{field} {}", problem.wrong));
        said.insert(kind(&problem.wrong), problem.wrong.to_string());
    }
    for wrong in [CryptHash::parse(b"secret").unwrap_err(), of_a_long_domain()] {
        said.insert(kind(&wrong), wrong.to_string());
    }
    let all: Vec<String> = Wrong::all().iter().map(kind).collect();
    let never: Vec<_> = all
        .iter()
        .filter(|kind| !said.contains_key(*kind))
        .collect();
    assert!(never.is_empty(), "no example brings about {never:?}");
}

// C-17: the end of a sentence that says what is wrong, and either what must be or what to do.
#[test]
fn each_refusal_helps() {
    for wrong in Wrong::all() {
        let text = wrong.to_string();
        let begins = ["must ", "is ", "has ", "cannot "]
            .iter()
            .any(|w| text.starts_with(w));
        assert!(
            begins && !text.ends_with('.') && !text.contains("  "),
            "{text}"
        );
        let helps = text.starts_with("must ") || text.contains("; ") || text.contains("{error}");
        assert!(helps, "says nothing to do: {text}");
        assert!(!wrong.about().is_empty() && !wrong.about().ends_with('.'));
    }
}

// C-18: what is refused as a password hash may be the password.
#[test]
fn a_refused_password_is_not_repeated() {
    let refused = CryptHash::parse(b"hunter2hunter2").unwrap_err();
    assert!(!format!("{refused} {refused:?}").contains("hunter2"));
}
