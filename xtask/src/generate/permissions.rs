//! The reference page of permissions: the role tables, for people.
//!
//! It says what the manifests say, in the order of the design; it adds nothing.

use std::fmt::Write;

use kite_runtime::rbac::{METRICS_AUTH, Rule};

use super::policies::policies;
use super::roles::{AGGREGATED, SHARED, controllers, namespace};
use super::{File, MARK};

const INTRODUCTION: &str = "\
# Permissions

What each controller may do, and why. Every controller runs under a ServiceAccount of its own in the
namespace `kite-system`; each manifest is `files/rbac.yaml` of the controller's chart. No right is granted by a
star, and no controller reads Secrets beyond the namespaces in which it was given the role
[`kite-vm-secrets`](#kite-vm-secrets) (rule [C-20](rules.md#c-20)).
";

const ADMISSION: &str = "
## Admission policies

Rights say who may write a kind. Some writes depend on more: on what is written, or on the namespace. The chart
`kite-crds` installs ValidatingAdmissionPolicies for these, which the API server evaluates itself. Its release must be in
the namespace of the controllers, since they are told by their ServiceAccounts there. Whoever is refused is told what to do.
The value `admissionPolicies.enforce: false` notes in the audit log what would be refused, and refuses nothing;
`admissionPolicies.enabled: false` leaves them out.

An administrator is who may update KiteUsers in the whole cluster.

| Policy | Looks at | Who may | Why |
|---|---|---|---|
";

const METRICS: &str = "
## Secured metrics

Where the value `metrics.secure.enabled` is set, and only there, each controller has these rights too, as the ClusterRole
`kite-vm-metrics` and so on, from `files/rbac-metrics.yaml` of its chart. Who scrapes needs the ClusterRole
`kite-metrics-reader` of the chart `kite-crds`, which grants `get` on `/metrics` and nothing else.

| Where | API group | Resources | Verbs | Why |
|---|---|---|---|---|
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
    for (name, rules, into) in AGGREGATED {
        let note = format!(
            "A ClusterRole that becomes part of {}; it holds where these are bound. The value `roles.aggregate` leaves it out.\n\n",
            code(into)
        );
        section(&mut text, name, &note, rules);
    }
    text.push_str(METRICS);
    text.extend(METRICS_AUTH.iter().map(|rule| line(rule, false)));
    text.push_str(ADMISSION);
    for policy in policies() {
        let (name, why, may) = (policy.name, policy.why, policy.may);
        let looks = policy.targets.iter().flat_map(|t| t.resources).copied();
        let looks = code(&looks.collect::<Vec<_>>());
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| `{name}` | {looks} | {may} | {why} |");
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
        // Two headings more are those of the policies and of secured metrics.
        let headings = controllers().len() + SHARED.len() + AGGREGATED.len() + 2;
        let aggregated: usize = AGGREGATED.iter().map(|(_, rules, _)| rules.len()).sum();
        let rights: usize = controllers().iter().map(|c| c.rules.len()).sum();
        let shared: usize = SHARED.iter().map(|(_, rules)| rules.len()).sum();
        assert_eq!(
            lines,
            headings + rights + shared + aggregated + METRICS_AUTH.len() + policies().len()
        );
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
