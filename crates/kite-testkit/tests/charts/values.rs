//! Every value does something, and everything that is read is a value.

use std::collections::BTreeSet;
use std::fs;

use kite_testkit::helm::{Helm, chart};
use serde_json::{Value, json};

use crate::{ALL_OF_ONE, PARTS, charts, render};

/// Places of values, each with its part of the schema.
fn leaves(schema: &Value, above: &str, found: &mut Vec<(String, Value)>) {
    let Some(properties) = schema["properties"].as_object() else {
        return;
    };
    for (key, part) in properties {
        let place = format!("{above}{key}");
        if part["properties"].is_object() {
            leaves(part, &format!("{place}."), found);
        } else {
            found.push((place, part.clone()));
        }
    }
}

/// Another value than the one that is there: the schema says of what kind.
fn another(place: &str, schema: &Value) -> Value {
    match place {
        "replicas" => return json!(4),
        "resources" => return json!({"requests": {"cpu": "11m"}}),
        "shutdownGrace" => return json!("7s"),
        "leaderElection.leaseDuration" => return json!("31s"),
        "leaderElection.renewDeadline" => return json!("11s"),
        "terminationGracePeriodSeconds" => return json!(77),
        "leaderElection.renewInterval" => return json!("4s"),
        "leaderElection.retryInterval" => return json!("3s"),
        "image.digest" => return json!(format!("sha256:{}", "0".repeat(64))),
        _ => {}
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.first().cloned().unwrap_or_default();
    }
    if schema["pattern"]
        .as_str()
        .is_some_and(|p| p.contains("ms|s|m|h"))
    {
        return json!("17s");
    }
    match schema["type"].as_str() {
        Some("integer") => json!(17),
        Some("string") => json!("other"),
        Some("array") if schema["items"]["type"] == "string" => json!(["other"]),
        Some("array") if schema["items"]["type"] == "integer" => json!([17]),
        Some("array") => json!([{"name": "other"}]),
        Some("object") => json!({"other": "thing"}),
        _ => json!("17%"),
    }
}

/// Values to try at this place: of a switch both positions, since it is on in one scene.
fn tries(place: &str, schema: &Value) -> Vec<Value> {
    if schema["type"] == "boolean" {
        return vec![json!(true), json!(false)];
    }
    if schema["enum"].is_array() {
        return schema["enum"].as_array().cloned().unwrap_or_default();
    }
    vec![another(place, schema)]
}

/// What is on in one scene is off in the other.
fn scenes() -> [Vec<String>; 2] {
    let all: Value = serde_json::from_str(ALL_OF_ONE).unwrap();
    let set = |value: &Value, place: &str, key: &str| {
        let value = &value[key];
        ["--set-json".to_owned(), format!("{place}{key}={value}")]
    };
    let first: Vec<String> = all
        .as_object()
        .unwrap()
        .keys()
        .filter(|key| !["nodeSelector", "tolerations"].contains(&key.as_str()))
        .flat_map(|key| set(&all, "", key))
        .collect();
    let metrics = r#"metrics={"podMonitor": {"enabled": true},
        "secure": {"enabled": true, "certificateSecret": "metrics"}}"#;
    let second = ["--set-json", metrics];
    [first, second.map(str::to_owned).to_vec()]
}

/// Whether another value at this place changes one of the scenes.
async fn changes(name: &str, place: &str, schema: &Value, before: &[Scene]) -> bool {
    for value in tries(place, schema) {
        for scene in before {
            let mut arguments = scene.arguments.clone();
            arguments.extend(["--set-json".to_owned(), format!("{place}={value}")]);
            match render(Helm::Four, name, &arguments).await {
                Ok(after) if after == scene.objects => {}
                Ok(_) => return true,
                // A combination that a template refuses was read; one that the schema
                // refuses is a mistake of this test.
                Err(said) => {
                    assert!(said.contains("execution error"), "{place}={value}: {said}");
                    return true;
                }
            }
        }
    }
    false
}

struct Scene {
    arguments: Vec<String>,
    objects: Vec<Value>,
}

#[tokio::test]
async fn every_value_of_a_controllers_chart_changes_what_is_rendered() {
    // Helm's own, and the empty block of the library.
    let mut seen = BTreeSet::from(["enabled".to_owned(), "kite-common".to_owned()]);
    for (_, name) in PARTS {
        let text = fs::read_to_string(chart(name).join("values.schema.json")).unwrap();
        let mut values = Vec::new();
        leaves(&serde_json::from_str(&text).unwrap(), "", &mut values);
        // What all six have is tried with the first.
        values.retain(|(place, _)| seen.insert(place.clone()));
        let mut before = Vec::new();
        for arguments in scenes() {
            let objects = render(Helm::Four, name, &arguments).await.unwrap();
            before.push(Scene { arguments, objects });
        }
        for (place, schema) in values {
            let changed = changes(name, &place, &schema, &before).await;
            assert!(changed, "{name}: {place} changes nothing");
        }
    }
    assert!(seen.len() > 100, "{}", seen.len());
}

/// The values that a template reads, by their first key.
fn read(text: &str) -> BTreeSet<String> {
    let ways = [".Values.", "$values."];
    let places = ways
        .iter()
        .flat_map(|way| text.match_indices(way).map(|(at, _)| at + way.len()));
    let key = |at: usize| -> String {
        let tail = text[at..].chars();
        tail.take_while(char::is_ascii_alphanumeric).collect()
    };
    places.map(key).collect()
}

#[tokio::test]
async fn every_value_that_a_template_reads_is_in_the_values() {
    charts().await;
    let library: BTreeSet<_> = fs::read_dir(chart("kite-common").join("templates"))
        .unwrap()
        .flat_map(|file| read(&fs::read_to_string(file.unwrap().path()).unwrap()))
        .collect();
    assert!(library.len() > 30, "{library:?}");
    for (_, name) in PARTS {
        let text = fs::read_to_string(chart(name).join("values.yaml")).unwrap();
        let values: Value = serde_saphyr::from_str(&text).unwrap();
        let own = fs::read_to_string(chart(name).join("templates/_arguments.tpl")).unwrap();
        for key in read(&own).union(&library) {
            let elsewhere = key == "imageNamespace" && name != "kite-vm";
            assert!(elsewhere || values.get(key).is_some(), "{name}: {key}");
        }
    }
}
