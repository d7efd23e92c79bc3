//! The admission policies: what the API server refuses that no schema can see,
//! since it depends on who asks or on the namespace.
//!
//! There is no webhook: the server itself evaluates them. They take no
//! parameters, so that nothing that is missing can stop a write. Who is refused
//! what stands in the table; here it becomes manifests.

mod table;

use std::fmt::Write;

use anyhow::Result;
use serde_json::{Value, json};

use super::{File, template, yaml};
use table::{Policy, Target};

const API_VERSION: &str = "admissionregistration.k8s.io/v1";

/// The last line of every binding. Without it what would be refused is only noted in the audit log.
const DENY: &str = "  - Deny\n";

/// The one file. All policies come before all bindings, so that a server that
/// has taken in the last binding and the last policy has taken in all.
pub(super) fn file() -> Result<File> {
    let mut body = String::new();
    for policy in policies() {
        write!(body, "---\n# {}\n{}", policy.why, yaml(&manifest(&policy))?)?;
    }
    for policy in policies() {
        let text = yaml(&binding(&policy))?;
        write!(body, "---\n{text}")?;
    }
    let text = template(
        "xtask/src/generate/policies/table.rs",
        ".Values.admissionPolicies.enabled",
        &body,
    )?;
    let denies = format!("{{{{- if .Values.admissionPolicies.enforce }}}}\n{DENY}{{{{- end }}}}\n");
    Ok(File {
        path: "charts/kite-crds/templates/admission-policies.yaml".to_owned(),
        text: text.replace(DENY, &denies),
    })
}

/// All of them.
pub(super) fn policies() -> Vec<Policy> {
    table::policies()
}

fn metadata(policy: &Policy) -> Value {
    json!({"name": policy.name, "labels": {"app.kubernetes.io/part-of": "kite"}})
}

fn manifest(policy: &Policy) -> Value {
    let named = |pairs: &[(&'static str, String)]| -> Vec<Value> {
        let pairs = pairs.iter();
        pairs
            .map(|(name, expression)| json!({"name": name, "expression": expression}))
            .collect()
    };
    let checks = policy.checks.iter().map(|check| {
        json!({
            "expression": check.expression,
            // Said when the sentence itself cannot be made.
            "message": format!("refused by Kite's admission policy {}: {}", policy.name, policy.why),
            "messageExpression": check.says,
            "reason": "Forbidden",
        })
    });
    let mut spec = json!({
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": policy.targets.iter().map(rule).collect::<Vec<_>>()},
        "matchConditions": named(&policy.only),
        "validations": checks.collect::<Vec<_>>(),
    });
    if !policy.variables.is_empty() {
        spec["variables"] = named(&policy.variables).into();
    }
    json!({
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": metadata(policy),
        "spec": spec,
    })
}

fn rule(target: &Target) -> Value {
    json!({
        "apiGroups": [target.group],
        "apiVersions": ["*"],
        "operations": target.operations,
        "resources": target.resources,
    })
}

fn binding(policy: &Policy) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": metadata(policy),
        "spec": {"policyName": policy.name, "validationActions": ["Audit", "Deny"]},
    })
}
