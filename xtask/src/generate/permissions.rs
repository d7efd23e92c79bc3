//! The reference page of permissions: the role tables, for people.
//!
//! It says what the manifests say, in the order of the design; it adds nothing.

use std::fmt::Write;

use kite_runtime::rbac::Rule;

use super::roles::{SHARED, controllers, namespace};
use super::{File, MARK};

const INTRODUCTION: &str = "\
# Permissions

What each controller may do, and why. Every controller runs under a ServiceAccount of its own in the
namespace `kite-system`; the manifests are in `charts/kite-common/files/rbac/`. No right is granted by a
star, and no controller reads Secrets beyond the namespaces in which it was given the role
[`kite-vm-secrets`](#kite-vm-secrets) (rule [C-20](rules.md#c-20)).
";

/// The page.
pub(super) fn file() -> File {
    let mut text = format!("<!-- {MARK}. Change the tables in code. -->\n\n{INTRODUCTION}");
    for controller in controllers() {
        section(&mut text, controller.name, "", &controller.rules);
    }
    for (name, rules) in SHARED {
        let note = "A ClusterRole that is bound in single namespaces; it holds nowhere else.\n\n";
        section(&mut text, name, note, rules);
    }
    File {
        path: "docs/reference/permissions.md".to_owned(),
        text,
    }
}

fn section(text: &mut String, name: &str, note: &str, rules: &[Rule]) {
    let shared = !note.is_empty();
    let lines = rules.iter().map(|rule| line(rule, shared));
    let table: String = lines.collect();
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "\n## {name}\n\n{note}| Where | API group | Resources | Verbs | Why |\n|---|---|---|---|---|\n{table}"
    );
}

fn line(rule: &Rule, shared: bool) -> String {
    let place = match namespace(rule.scope) {
        Some(namespace) => format!("`{namespace}`"),
        None if shared => "where bound".to_owned(),
        None => "cluster".to_owned(),
    };
    let group = if rule.group.is_empty() {
        "core"
    } else {
        rule.group
    };
    let mut resources = code(rule.resources);
    if !rule.names.is_empty() {
        resources = format!("{resources} named {}", code(rule.names));
    }
    let verbs = rule.verbs.join(", ");
    format!(
        "| {place} | {group} | {resources} | {verbs} | {} |\n",
        rule.why
    )
}

fn code(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use kite_runtime::rbac::Scope;

    use super::*;

    #[test]
    fn every_right_of_every_controller_has_its_line() {
        let lines = file().text.lines().filter(|l| l.starts_with("| ")).count();
        let headings = controllers().len() + SHARED.len();
        let rights: usize = controllers().iter().map(|c| c.rules.len()).sum();
        let shared: usize = SHARED.iter().map(|(_, rules)| rules.len()).sum();
        assert_eq!(lines, headings + rights + shared);
    }

    #[test]
    fn a_line_says_where_a_right_holds_and_for_which_names() {
        let rule = Rule::cluster("", &["secrets"], &["get"], "because")
            .named(&["a"])
            .within(Scope::OwnNamespace);
        assert_eq!(
            line(&rule, false),
            "| `kite-system` | core | `secrets` named `a` | get | because |\n"
        );
    }
}
