//! Kite's objects as the API server had them, each with what kstatus said of it.
//!
//! Tests that judge objects without a cluster read them from a file. It is
//! written while scenarios run, when the environment variable `KITE_RECORD`
//! names it; without that nothing happens here. Of objects that differ in
//! nothing but names, times and words one is kept.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::kstatus::KStatus;

/// One line of a recording.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Recorded {
    /// What kstatus said: its word.
    pub kstatus: String,
    /// The object, without what differs from run to run.
    pub object: Value,
}

/// Reads a recording.
pub fn read(text: &str) -> Result<Vec<Recorded>> {
    text.lines()
        .map(|line| serde_json::from_str(line).with_context(|| format!("no recording: {line}")))
        .collect()
}

/// Adds an object of Kite's to the recording, if one is wanted and none like it is there.
pub(crate) fn record(object: &impl Serialize, answer: &KStatus) -> Result<()> {
    let Some(path) = std::env::var_os("KITE_RECORD") else {
        return Ok(());
    };
    let object = serde_json::to_value(object)?;
    let group = object["apiVersion"].as_str().unwrap_or_default();
    if !group.starts_with("kite.dev/") {
        return Ok(());
    }
    // Read anew each time: several tests write at once.
    let known = read(&fs::read_to_string(&path).unwrap_or_default())?;
    let shapes: BTreeSet<String> = known.iter().map(|r| shape(&r.object)).collect();
    if shapes.contains(&shape(&object)) {
        return Ok(());
    }
    let line = serde_json::to_string(&Recorded {
        kstatus: answer.status.clone(),
        object: masked(object),
    })?;
    let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
    file.write_all((line + "\n").as_bytes())?;
    Ok(())
}

/// What makes two objects alike for somebody who judges their readiness.
fn shape(object: &Value) -> String {
    let meta = &object["metadata"];
    let conditions: Vec<Value> = object["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|c| json!([c["type"], c["status"], c["reason"]]))
        .collect();
    let observed = object["status"]["observedGeneration"] == meta["generation"];
    let going = !meta["deletionTimestamp"].is_null();
    json!([
        object["kind"],
        going,
        observed,
        conditions,
        object["spec"]["powerState"]
    ])
    .to_string()
}

fn masked(mut object: Value) -> Value {
    const TIME: &str = "2026-01-01T00:00:00Z";
    if let Some(meta) = object["metadata"].as_object_mut() {
        for field in ["managedFields", "resourceVersion", "uid"] {
            meta.remove(field);
        }
        for field in ["creationTimestamp", "deletionTimestamp"] {
            if let Some(time) = meta.get_mut(field) {
                *time = TIME.into();
            }
        }
    }
    let conditions = object.pointer_mut("/status/conditions");
    for condition in conditions
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        condition["lastTransitionTime"] = TIME.into();
    }
    object
}
