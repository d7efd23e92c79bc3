//! The health script for Argo CD, run as Argo CD runs it, over objects that a real
//! API server had, with the answer of the real kstatus beside each.
//!
//! Recorded anew by `KITE_RECORD=$PWD/crates/kite-testkit/recordings/kite.jsonl cargo xtask test`
//! after the file was removed.

use std::collections::BTreeMap;
use std::path::Path;

use kite_testkit::recorder::{self, Recorded};
use mlua::{Lua, LuaOptions, LuaSerdeExt, StdLib};
use serde::Deserialize;
use serde_json::{Value, json};

/// What the script answers.
#[derive(Debug, Deserialize, PartialEq, Eq)]
struct Health {
    status: String,
    message: String,
}

fn file(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(path).unwrap()
}

/// Argo CD gives a script the base and table libraries and the object, without its nulls.
fn health(object: &Value) -> Health {
    let lua = Lua::new_with(StdLib::TABLE, LuaOptions::default()).unwrap();
    let options = mlua::serde::ser::Options::new()
        .serialize_none_to_null(false)
        .serialize_unit_to_null(false);
    let object = lua.to_value_with(object, options).unwrap();
    lua.globals().set("obj", object).unwrap();
    let script = file("../../docs/gitops/health.lua");
    let answer = lua.load(script).eval::<mlua::Value>().unwrap();
    lua.from_value(answer).unwrap()
}

fn recorded() -> Vec<Recorded> {
    recorder::read(&file("recordings/kite.jsonl")).unwrap()
}

fn has(object: &Value, type_: &str, reason: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|c| c["type"] == type_ && c["status"] != "True" && c["reason"] == reason)
}

/// Whether the generation that stands there was looked at.
fn is_seen(object: &Value) -> bool {
    object["status"]["observedGeneration"] == object["metadata"]["generation"]
}

/// What Argo CD should say where kstatus says this.
fn expected(recorded: &Recorded) -> &'static str {
    let Recorded { kstatus, object } = recorded;
    let is_paused =
        has(object, "ResourcesApplied", "ReconciliationPaused") || has(object, "Ready", "Paused");
    // What nobody has looked at yet stands still for nobody.
    let by_a_person = is_paused && is_seen(object);
    match kstatus.as_str() {
        "Current" => "Healthy",
        "InProgress" if by_a_person => "Suspended",
        "InProgress" | "Terminating" => "Progressing",
        "Failed" => "Degraded",
        other => panic!("kstatus said {other}"),
    }
}

// C-11
#[test]
fn argo_cd_says_what_kstatus_says_of_every_recorded_object() {
    let mut seen: BTreeMap<(String, &str), usize> = BTreeMap::new();
    for recorded in recorded() {
        let answer = health(&recorded.object);
        let expected = expected(&recorded);
        assert_eq!(answer.status, expected, "{recorded:#?}");
        assert!(!answer.message.is_empty(), "{recorded:#?}");
        let kind = recorded.object["kind"].as_str().unwrap().to_owned();
        *seen.entry((kind, expected)).or_default() += 1;
    }
    println!("{seen:#?}");
    for kind in ["KiteUser", "KiteVirtualMachine"] {
        for health in ["Healthy", "Progressing", "Degraded"] {
            let key = (kind.to_owned(), health);
            assert!(seen.contains_key(&key), "no {kind} is {health}");
        }
    }
}

// C-11
#[test]
fn a_machine_that_is_off_on_purpose_is_healthy() {
    let off = recorded()
        .into_iter()
        .filter(|r| r.object["spec"]["powerState"] == "Off" && r.kstatus == "Current");
    let answers: Vec<Health> = off.map(|r| health(&r.object)).collect();
    assert!(!answers.is_empty());
    for answer in answers {
        let whole = "the machine is off, as asked for";
        assert_eq!(
            (answer.status.as_str(), answer.message.as_str()),
            ("Healthy", whole)
        );
    }
}

// C-11, S-9, V-16, V-20, V-21: what people look at for longer says what is the matter.
#[test]
fn a_guest_that_stays_down_a_lost_node_and_a_blocked_deletion_say_what_to_do() {
    for (type_, reason, status, words) in [
        (
            "Stalled",
            "GuestShutDown",
            "Degraded",
            "to start it, set spec.powerState",
        ),
        (
            "Ready",
            "NodeUnreachable",
            "Progressing",
            "look at the node",
        ),
        (
            "Deleting",
            "DeletionBlocked",
            "Progressing",
            "held by the finalizer",
        ),
        (
            "Stalled",
            "HostNameTaken",
            "Degraded",
            "choose another domainPrefix",
        ),
        (
            "Stalled",
            "NamespaceNotPrepared",
            "Degraded",
            "kubectl create rolebinding",
        ),
        (
            "Stalled",
            "NamespaceOrphaned",
            "Degraded",
            "kubectl annotate namespace",
        ),
    ] {
        let says = |r: &Recorded| {
            let conditions = r.object["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|c| c["type"] == type_ && c["reason"] == reason)
        };
        let answers: Vec<Health> = recorded()
            .iter()
            .filter(|r| says(r) && (type_ == "Deleting" || is_seen(&r.object)))
            .map(|r| health(&r.object))
            .collect();
        assert!(!answers.is_empty(), "no recorded object is {reason}");
        for answer in answers {
            assert_eq!(answer.status, status, "{reason}: {}", answer.message);
            assert!(
                answer.message.contains(words),
                "{reason}: {}",
                answer.message
            );
        }
    }
    // Also a deletion by the specification, of an object that does not go yet.
    let by_spec = recorded().into_iter().filter(|r| {
        r.object["metadata"]["deletionTimestamp"].is_null() && r.object["spec"]["delete"] == true
    });
    assert!(by_spec.count() > 0);
}

fn object(kind: &str, generation: i64, status: &Value) -> Value {
    json!({"apiVersion": "kite.dev/v1alpha1", "kind": kind, "metadata": {"name": "x", "generation": generation}, "status": status})
}

fn condition(type_: &str, status: &str, reason: &str) -> Value {
    json!({"type": type_, "status": status, "reason": reason, "message": format!("{type_} {reason}")})
}

fn says(object: &Value) -> (String, String) {
    let Health { status, message } = health(object);
    (status, message)
}

// C-11: what people do by hand, and what no scenario brings about.
#[test]
fn what_a_person_holds_back_is_suspended_and_what_goes_names_who_holds_it() {
    let paused = json!({"observedGeneration": 1, "conditions": [
        condition("Ready", "False", "Paused")]});
    assert_eq!(
        says(&object("KiteVirtualMachine", 1, &paused)),
        ("Suspended".into(), "Ready Paused".into())
    );
    let held = json!({"observedGeneration": 1, "conditions": [
        condition("Ready", "False", "ReconciliationPaused"),
        condition("ResourcesApplied", "False", "ReconciliationPaused")]});
    assert_eq!(says(&object("KiteVirtualMachine", 1, &held)).0, "Suspended");
    let mut going = object("KiteVirtualMachine", 2, &held);
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    going["metadata"]["finalizers"] = json!(["kite.dev/vm-cleanup", "example.org/mine"]);
    let (status, message) = says(&going);
    assert_eq!(status, "Progressing");
    assert!(
        message.ends_with("held by kite.dev/vm-cleanup; held by example.org/mine"),
        "{message}"
    );
}

// C-11: Unknown is not Degraded, and an old verdict is none.
#[test]
fn what_cannot_be_told_is_in_progress() {
    let ready = condition("Ready", "True", "Running");
    for (generation, status) in [
        (1, Value::Null),
        (1, json!({"observedGeneration": -1})),
        (1, json!({"observedGeneration": 1})),
        (2, json!({"observedGeneration": 1, "conditions": [ready]})),
        (
            1,
            json!({"observedGeneration": 1, "conditions": [condition("Ready", "Unknown", "Unknown")]}),
        ),
    ] {
        let (health, message) = says(&object("KiteVirtualMachine", generation, &status));
        assert_eq!(health, "Progressing", "{status}");
        assert!(!message.is_empty());
    }
    // Argo CD's own decoder can make a text of a number.
    let text = json!({"observedGeneration": "1", "conditions": [ready]});
    assert_eq!(says(&object("KiteUser", 1, &text)).0, "Healthy");
}

// P-3: settings that are not in force are somebody's to mend, although kstatus knows no such condition.
#[test]
fn a_platform_that_is_not_accepted_is_degraded() {
    for (accepted, expected) in [
        ("True", "Healthy"),
        ("False", "Degraded"),
        ("Unknown", "Progressing"),
    ] {
        let status =
            json!({"observedGeneration": 1, "conditions": [condition("Accepted", accepted, "X")]});
        assert_eq!(says(&object("KitePlatform", 1, &status)).0, expected);
    }
}
