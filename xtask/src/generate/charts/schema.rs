//! The schema of a chart's values: closed, so that a misspelt value is an error
//! that names it.
//!
//! Open is what Helm or another chart puts in: `global`, and the values of the
//! charts that are parts of this one, which have schemas of their own.

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

use super::{Chart, UMBRELLA};

/// The longest kind of time the programs take: units from hours to milliseconds.
const TIME: &str = "^([0-9]+(ms|s|m|h))+$";

/// The schema as a file.
pub(super) fn text(chart: &Chart) -> Result<String> {
    Ok(serde_json::to_string_pretty(&schema(chart)?)? + "\n")
}

fn schema(chart: &Chart) -> Result<Value> {
    let mut root = group();
    for entry in &chart.entries {
        let leaf = leaf(&entry.kind).with_context(|| entry.place())?;
        let described = merged(leaf, &json!({"description": entry.text}));
        insert(&mut root, &entry.path, described)?;
    }
    let properties = root["properties"].as_object_mut().context("a group")?;
    let mut open = vec!["global"];
    open.extend(chart.about.dependencies.iter().map(super::Dependency::key));
    for key in open {
        let part = properties
            .entry(key)
            .or_insert_with(|| json!({"type": "object"}));
        part["additionalProperties"] = true.into();
    }
    if chart.name != UMBRELLA {
        // The condition under which the chart is a part of the umbrella.
        properties
            .entry("enabled")
            .or_insert_with(|| json!({"type": "boolean"}));
    }
    root["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    root["title"] = format!("Values of the chart {}", chart.name).into();
    Ok(root)
}

fn group() -> Value {
    json!({"type": "object", "additionalProperties": false, "properties": {}})
}

fn insert(group_: &mut Value, path: &[String], leaf: Value) -> Result<()> {
    let (key, rest) = path.split_first().context("a value has a place")?;
    let properties = group_["properties"].as_object_mut().context("a group")?;
    if rest.is_empty() {
        properties.insert(key.clone(), leaf);
        return Ok(());
    }
    insert(properties.entry(key).or_insert_with(group), rest, leaf)
}

fn merged(mut one: Value, other: &Value) -> Value {
    if let (Some(one), Some(other)) = (one.as_object_mut(), other.as_object()) {
        one.extend(other.clone().into_iter().collect::<Map<_, _>>());
    }
    one
}

/// The schema of one value by the words of its type.
fn leaf(kind: &str) -> Result<Value> {
    let bounds = kind.strip_prefix("integer ");
    if let Some((least, most)) = bounds.and_then(|bounds| bounds.split_once(" to ")) {
        let (least, most): (i64, i64) = (least.parse()?, most.parse()?);
        return Ok(json!({"type": "integer", "minimum": least, "maximum": most}));
    }
    if let Some(words) = kind.strip_prefix("one of ") {
        let words: Vec<_> = words.split(", ").collect();
        return Ok(json!({"type": "string", "enum": words}));
    }
    Ok(match kind {
        "boolean" | "string" | "object" => json!({"type": kind}),
        "time" => json!({"type": "string", "pattern": TIME}),
        "name" => json!({"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"}),
        "tag" => json!({"type": "string", "not": {"const": "latest"}}),
        "digest" => json!({"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"}),
        "integer or percent" => json!({
            "type": ["integer", "string"], "minimum": 0, "pattern": "^[0-9]+%$"
        }),
        "list of strings" => json!({"type": "array", "items": {"type": "string"}}),
        "list of ports" => json!({
            "type": "array", "minItems": 1,
            "items": {"type": "integer", "minimum": 1, "maximum": 65535},
        }),
        "list of objects" => json!({"type": "array", "items": {"type": "object"}}),
        "map of strings" => json!({
            "type": "object", "additionalProperties": {"type": "string"}
        }),
        _ => bail!("the type ({kind}) is not known here"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(values: &str) -> Chart {
        let about = "description: d\ndependencies:\n- {name: lib}\n- {name: n, alias: a}\n";
        Chart::new("c", about, values).unwrap()
    }

    #[test]
    fn a_schema_is_closed_at_every_group_and_open_for_what_is_not_its_own() {
        let schema = schema(&chart(
            "a:\n  # -- (time) When.\n  b: 1s\nd:\n  # -- (boolean) If.\n  e: true\n",
        ))
        .unwrap();
        assert_eq!(schema["additionalProperties"], false);
        let part = |key: &str| schema["properties"][key]["additionalProperties"].clone();
        assert_eq!(part("d"), false);
        for open in ["a", "lib", "global"] {
            assert_eq!(part(open), true, "{open}");
        }
        assert_eq!(
            schema["properties"]["a"]["properties"]["b"]["pattern"],
            TIME
        );
    }

    #[test]
    fn a_type_that_is_not_known_is_an_error() {
        assert!(leaf("intger").is_err());
        assert_eq!(leaf("integer 1 to 9").unwrap()["maximum"], 9);
    }
}
