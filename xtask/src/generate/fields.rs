//! The reference page of fields and conditions.
//!
//! Fields, defaults and descriptions are read from the CRDs, so that the page
//! and `kubectl explain` never differ. Only the writers of conditions stand in
//! a table here, because a schema has no place for them.

use anyhow::{Context, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kite_api::condition;

use super::{File, MARK};

const INTRODUCTION: &str = "\
# Fields and conditions

Every field of every kind, as `kubectl explain` tells it. A field with a default need not be given. What
the API server refuses, and with which words, stands under each kind.
";

/// A condition, the one controller that writes it, and what True means.
struct Writer(&'static str, &'static str, &'static str);

const MACHINE: &[Writer] = &[
    Writer(
        condition::READY,
        "kite-vm-status",
        "what is equals what is wanted, a machine that is off on purpose included",
    ),
    Writer(
        condition::ACCEPTED,
        "kite-vm",
        "the specification can be carried out",
    ),
    Writer(
        condition::RESOURCES_APPLIED,
        "kite-vm",
        "the children are as declared",
    ),
    Writer(
        condition::DOMAIN_READY,
        "kite-vm",
        "the host name is the machine's, or none was asked for",
    ),
    Writer(
        condition::RECONCILING,
        "kite-vm",
        "work is under way; present only when True",
    ),
    Writer(
        condition::STALLED,
        "kite-vm",
        "a person must change something; present only when True",
    ),
    Writer(
        condition::DELETING,
        "kite-vm",
        "the machine is on its way out",
    ),
    Writer(
        condition::POWER_IN_SYNC,
        "kite-vm-status",
        "the machine's power is what was asked for",
    ),
    Writer(
        condition::PAUSED,
        "kite-vm-status",
        "KubeVirt has paused the machine",
    ),
    Writer(
        condition::RESTART_REQUIRED,
        "kite-vm-status",
        "KubeVirt holds changes back until the next start",
    ),
    Writer(
        condition::LIVE_MIGRATABLE,
        "kite-vm-status",
        "the machine can move to another node",
    ),
    Writer(
        condition::AGENT_CONNECTED,
        "kite-vm-status",
        "the guest agent answers",
    ),
    Writer(
        condition::SERVICE_READY,
        "kite-service",
        "the machine's Service is as declared",
    ),
    Writer(
        condition::DISK_READY,
        "kite-datavolume",
        "the machine's disk is filled",
    ),
];

const USER: &[Writer] = &[
    Writer(
        condition::READY,
        "kite-user",
        "the namespace is safe to use",
    ),
    Writer(
        condition::NAMESPACE_READY,
        "kite-user",
        "the namespace exists and is the user's",
    ),
    Writer(
        condition::ISOLATION_READY,
        "kite-user",
        "the wanted network policies exist unchanged",
    ),
    Writer(
        condition::QUOTA_READY,
        "kite-user",
        "the quota is in force, or none was asked for",
    ),
    Writer(
        condition::RECONCILING,
        "kite-user",
        "work is under way; present only when True",
    ),
    Writer(
        condition::STALLED,
        "kite-user",
        "a person must change something; present only when True",
    ),
];

const PLATFORM: &[Writer] = &[Writer(
    condition::ACCEPTED,
    "kite-vm",
    "the settings are in force; False says what is wrong, and that the last good ones stay",
)];

/// The page.
pub(super) fn file() -> Result<File> {
    let mut text =
        format!("<!-- {MARK}. Change the types in crates/kite-api. -->\n\n{INTRODUCTION}");
    for crd in kite_api::crds::all() {
        text.push_str(&kind(&crd)?);
    }
    Ok(File {
        path: "docs/reference/fields.md".to_owned(),
        text,
    })
}

fn kind(crd: &CustomResourceDefinition) -> Result<String> {
    let names = &crd.spec.names;
    let root = crd
        .spec
        .versions
        .first()
        .and_then(|v| v.schema.as_ref())
        .and_then(|s| s.open_api_v3_schema.as_ref())
        .with_context(|| format!("{} has no schema", names.kind))?;
    let mut fields = Vec::new();
    walk("", root, &mut fields);
    let mut refusals = Vec::new();
    collect_refusals(root, &mut refusals);
    let mut text = format!(
        "\n## {}\n\n{} {}.\n\n| Field | Type | Default | What it is |\n|---|---|---|---|\n{}",
        names.kind,
        cell(root.description.as_deref().unwrap_or_default()),
        scope(crd),
        fields.concat()
    );
    if !refusals.is_empty() {
        text.push_str("\nThe API server refuses what breaks one of these:\n\n");
        text.push_str(&refusals.concat());
    }
    text.push_str(&conditions(&names.kind));
    Ok(text)
}

fn scope(crd: &CustomResourceDefinition) -> String {
    let names = &crd.spec.names;
    let short = names.short_names.as_deref().unwrap_or_default();
    let also = if short.is_empty() {
        String::new()
    } else {
        format!(", short name `{}`", short.join("`, `"))
    };
    let scope = if crd.spec.scope == "Namespaced" {
        "In a namespace"
    } else {
        "Cluster-wide"
    };
    format!("{scope}; `{}`{also}", names.plural)
}

/// One line for each field below this one, depth first.
fn walk(path: &str, schema: &JSONSchemaProps, lines: &mut Vec<String>) {
    let required = schema.required.as_deref().unwrap_or_default();
    for (name, field) in schema.properties.iter().flatten() {
        let place = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        let head = path.is_empty();
        if head && !matches!(name.as_str(), "spec" | "status") {
            continue;
        }
        // The fields of a condition are the same everywhere and well known.
        let opaque = name == "conditions";
        if !head {
            lines.push(line(&place, field, required.contains(name)));
        }
        if !opaque {
            let entries = if field.items.is_some() { "[]" } else { "" };
            walk(&format!("{place}{entries}"), inner(field), lines);
        }
    }
}

/// A list's entries, or the field itself.
fn inner(field: &JSONSchemaProps) -> &JSONSchemaProps {
    match &field.items {
        Some(JSONSchemaPropsOrArray::Schema(item)) => item,
        _ => field,
    }
}

fn line(place: &str, field: &JSONSchemaProps, required: bool) -> String {
    let default = match &field.default {
        Some(value) => format!("`{}`", value.0),
        None if required => "required".to_owned(),
        None => String::new(),
    };
    let mut what = cell(field.description.as_deref().unwrap_or_default());
    let values: Vec<_> = inner(field)
        .enum_
        .iter()
        .flatten()
        .filter_map(|v| v.0.as_str())
        .map(|v| format!("`{v}`"))
        .collect();
    if !values.is_empty() {
        what = format!("{what} One of {}.", values.join(", "));
    }
    format!("| `{place}` | {} | {default} | {what} |\n", type_of(field))
}

fn type_of(field: &JSONSchemaProps) -> String {
    match (&field.items, &field.additional_properties) {
        (Some(JSONSchemaPropsOrArray::Schema(item)), _) => format!("list of {}", type_of(item)),
        (_, Some(JSONSchemaPropsOrBool::Schema(value))) => format!("map to {}", type_of(value)),
        _ => field.type_.clone().unwrap_or_else(|| "any".to_owned()),
    }
}

/// The messages of all validation rules, once each.
fn collect_refusals(schema: &JSONSchemaProps, found: &mut Vec<String>) {
    for rule in schema.x_kubernetes_validations.iter().flatten() {
        let message = rule.message.as_deref().unwrap_or(&rule.rule);
        let entry = format!("* {}\n", message.replace('\n', " "));
        if !found.contains(&entry) {
            found.push(entry);
        }
    }
    for field in schema.properties.iter().flat_map(|p| p.values()) {
        collect_refusals(inner(field), found);
    }
}

fn conditions(kind: &str) -> String {
    let writers = match kind {
        "KiteVirtualMachine" => MACHINE,
        "KiteUser" => USER,
        "KitePlatform" => PLATFORM,
        _ => return String::new(),
    };
    let lines = writers
        .iter()
        .map(|Writer(name, writer, meaning)| format!("| `{name}` | {writer} | {meaning} |\n"));
    format!(
        "\nEach condition has one writer (rule [C-9](rules.md#c-9)):\n\n| Condition | Written by | True means |\n|---|---|---|\n{}",
        lines.collect::<String>()
    )
}

/// A description as it may stand in a table cell.
fn cell(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_each_kind_and_a_field_of_each_shape() {
        let text = file().unwrap().text;
        for wanted in [
            "## KiteVirtualMachine",
            "## KiteHostClaim",
            "| `spec.powerState` | string | `\"On\"` |",
            "| `spec.image` | string | required |",
            "| `spec.sshAuthorizedKeys` | list of string |",
            "| `status.endpoints[].port` | integer | required |",
            "| `status.observedGeneration` | integer | `-1` |",
            "disk only grows",
        ] {
            assert!(text.contains(wanted), "no {wanted:?}");
        }
    }

    // C-9
    #[test]
    fn no_condition_of_a_kind_has_two_writers() {
        for table in [MACHINE, USER, PLATFORM] {
            let mut names: Vec<_> = table.iter().map(|w| w.0).collect();
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all);
        }
    }
}
