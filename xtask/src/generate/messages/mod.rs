//! The reference page of messages: all that people are told, and what helps.
//!
//! The code is the source: what the API server refuses is read from the CRDs, the
//! refusals of values are asked of `kite-render`, and reasons and sentences of
//! conditions and events are read from the controllers' source. Only where a
//! reason shows and what helps is written here, because no code says it.

mod reasons;
mod said;
mod tokens;
#[cfg(test)]
mod words;

use std::collections::BTreeSet;
use std::fmt::Write;

use anyhow::Result;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use kite_api::labels::Controller;
use kite_render::validate::Wrong;

use self::reasons::Reason;
use self::said::Said;
use super::{File, MARK};
use crate::workspace;

const INTRODUCTION: &str = "\
# Messages

Whatever Kite refuses or waits for, it says on the object itself: `kubectl describe` shows the conditions and the
events. A condition has a reason, one word for machines, and a message for people. Names in braces stand for what is
put in; a reason without a sentence here has one that is put together from what was found.
";

const KUBEVIRT: &str = "
`Ready` may also have a word of KubeVirt's own as its reason, such as `ErrorUnschedulable` or `CrashLoopBackOff`, or the
reason of `DiskReady`; the message then says where to look.
";

/// The page.
pub(super) fn file() -> Result<File> {
    let said = said::said(&workspace::sources()?);
    let mut text = format!("<!-- {MARK}. Change it in the code. -->\n\n{INTRODUCTION}");
    for controller in Controller::ALL {
        section(&mut text, controller, &said);
    }
    values(&mut text);
    server(&mut text);
    Ok(File {
        path: "docs/reference/messages.md".to_owned(),
        text,
    })
}

fn section(text: &mut String, controller: Controller, said: &[Said]) {
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "\n## {}\n\n| Reason | Where | Message | What to do |\n|---|---|---|---|\n",
        controller.name()
    );
    for reason in reasons::of(controller) {
        let Reason {
            word,
            place,
            remedy,
            ..
        } = reason;
        let messages = messages(reason, controller, said).join("<br>");
        let _ = writeln!(text, "| `{word}` | {place} | {messages} | {remedy} |");
    }
    if controller == Controller::VmStatus {
        *text += KUBEVIRT;
    }
}

/// The sentences of a reason: those beside it in the code, and what is written here.
fn messages(reason: &Reason, controller: Controller, said: &[Said]) -> Vec<String> {
    let mut found: Vec<String> = said
        .iter()
        .filter(|s| s.word == reason.word && s.by == controller.name())
        .filter(|s| s.text.split(' ').count() > 2)
        .map(|s| cell(&s.text))
        .collect();
    if !reason.means.is_empty() {
        found.push(reason.means.to_owned());
    }
    found
}

/// A text that keeps its form in a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
        .replace('<', "&lt;")
        .replace('\n', " ")
}

fn values(text: &mut String) {
    *text += "\n## Refused values\n\nWith the reason `InvalidSpec`: each begins with the field that is meant, for \
        instance `spec.memory must be between 32Mi and\n256Gi`. All that is wrong is told at once.\n\n\
        | About | Message |\n|---|---|\n";
    for wrong in Wrong::all() {
        let _ = writeln!(text, "| {} | {} |", wrong.about(), cell(&wrong.to_string()));
    }
}

/// Every reason of Kite's own, sorted.
pub(super) fn words() -> Vec<&'static str> {
    let all = Controller::ALL.into_iter().flat_map(reasons::of);
    let sorted: BTreeSet<_> = all.map(|reason| reason.word).collect();
    sorted.into_iter().collect()
}

/// What the API server refuses with Kite's words.
fn server(text: &mut String) {
    *text += "\n## Refused by the API server\n\nBefore anything is stored. Bounds of lengths and numbers, patterns and \
        choices are told in the server's own words;\nthese are Kite's.\n\n| Kind | Field | Message |\n|---|---|---|\n";
    for crd in kite_api::crds::all() {
        let kind = &crd.spec.names.kind;
        for version in &crd.spec.versions {
            let schema = version.schema.as_ref();
            let Some(root) = schema.and_then(|s| s.open_api_v3_schema.as_ref()) else {
                continue;
            };
            let mut rules = Vec::new();
            collect(root, "", &mut rules);
            for (field, message) in rules {
                let _ = writeln!(text, "| {kind} | {field} | {} |", cell(&message));
            }
        }
    }
}

/// The messages of a schema's validation rules, each with the path of its field.
fn collect(schema: &JSONSchemaProps, path: &str, found: &mut Vec<(String, String)>) {
    for rule in schema.x_kubernetes_validations.iter().flatten() {
        let field = match (path, rule.field_path.as_deref()) {
            ("", None) => "the object".to_owned(),
            (_, None) => format!("`{path}`"),
            (_, Some(own)) => format!("`{path}{own}`"),
        };
        found.push((field, rule.message.clone().unwrap_or_default()));
    }
    for (name, property) in schema.properties.iter().flatten() {
        let inner = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        collect(property, &inner, found);
    }
}

#[cfg(test)]
mod tests;
