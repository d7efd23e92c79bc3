//! The role manifests: one file for each controller, and the roles that are
//! handed out namespace by namespace.
//!
//! Each right stands under a comment that says what it is for, taken from the
//! same line of the same table. Nothing here decides what a controller may do.

use std::fmt::Write;

use anyhow::Result;
use k8s_openapi::api::rbac::v1::PolicyRule;
use kite_api::labels::{EDIT_ROLE, TENANT_ROLE, VIEW_ROLE, VM_SECRETS_ROLE};
use kite_runtime::rbac::{METRICS_AUTH, Rule, Scope, common};
use kite_runtime::shared_roles;
use serde_json::{Value, json};

use super::{File, MARK, template, yaml};

/// The namespace in which the controllers run.
const OWN_NAMESPACE: &str = "kite-system";

/// The namespace of the published images, as the platform's default has it.
const IMAGE_NAMESPACE: &str = "kite-images";

const RBAC_GROUP: &str = "rbac.authorization.k8s.io";
const API_VERSION: &str = "rbac.authorization.k8s.io/v1";

/// A controller with all its rights.
pub(crate) struct Controller {
    pub(crate) name: &'static str,
    pub(crate) rules: Vec<Rule>,
}

/// The six, in the order of the design.
pub(crate) fn controllers() -> Vec<Controller> {
    let tables: [(&'static [&'static str; 1], &[Rule]); 6] = [
        (&["kite-user"], kite_user::RULES),
        (&["kite-namespace"], kite_namespace::RULES),
        (&["kite-vm"], kite_vm::RULES),
        (&["kite-vm-status"], kite_vm_status::RULES),
        (&["kite-service"], kite_service::RULES),
        (&["kite-datavolume"], kite_datavolume::RULES),
    ];
    tables
        .into_iter()
        .map(|(lease, own)| Controller {
            name: lease[0],
            rules: common(lease)
                .into_iter()
                .chain(own.iter().copied())
                .collect(),
        })
        .collect()
}

/// The roles that are bound namespace by namespace.
pub(super) const SHARED: [(&str, &[Rule]); 2] = [
    (TENANT_ROLE, shared_roles::TENANT),
    (VM_SECRETS_ROLE, shared_roles::VM_SECRETS),
];

/// The roles that become part of those that every cluster has, with the names of these.
pub(super) const AGGREGATED: [(&str, &[Rule], &[&str]); 2] = [
    (VIEW_ROLE, shared_roles::VIEW, &["view", "edit", "admin"]),
    (EDIT_ROLE, shared_roles::EDIT, &["edit", "admin"]),
];

/// All role manifests.
pub(super) fn files() -> Result<Vec<File>> {
    let mut files = controllers()
        .iter()
        .map(controller_file)
        .collect::<Result<Vec<_>>>()?;
    for controller in controllers() {
        files.push(metrics_file(controller.name)?);
    }
    files.push(shared_file()?);
    files.push(aggregated_file()?);
    Ok(files)
}

fn controller_file(controller: &Controller) -> Result<File> {
    let name = controller.name;
    let mut text = format!("# {MARK} from the RULES of crates/{name}. Change them there.\n");
    for scope in [Scope::Cluster, Scope::OwnNamespace, Scope::ImageNamespace] {
        let rules: Vec<&Rule> = controller
            .rules
            .iter()
            .filter(|r| r.scope == scope)
            .collect();
        if !rules.is_empty() {
            text.push_str(&role(name, scope, &rules)?);
            text.push_str(&binding(name, scope)?);
        }
    }
    Ok(File {
        path: format!("charts/{name}/files/rbac.yaml"),
        text,
    })
}

/// What a controller needs beside that where its metrics ask who reads them.
fn metrics_file(controller: &str) -> Result<File> {
    let name = format!("{controller}-metrics");
    let rules: Vec<&Rule> = METRICS_AUTH.iter().collect();
    let role = role(&name, Scope::Cluster, &rules)?;
    let binding = binding_of(&name, controller, Scope::Cluster)?;
    Ok(File {
        path: format!("charts/{controller}/files/rbac-metrics.yaml"),
        text: format!(
            "# {MARK} from METRICS_AUTH of crates/kite-runtime. Change it there.\n{role}{binding}"
        ),
    })
}

fn shared_file() -> Result<File> {
    let mut body = String::new();
    for (name, rules) in SHARED {
        body.push_str(&role(
            name,
            Scope::Cluster,
            &rules.iter().collect::<Vec<_>>(),
        )?);
    }
    Ok(File {
        path: "charts/kite-crds/templates/roles.yaml".to_owned(),
        text: template(
            "crates/kite-runtime/src/shared_roles.rs",
            ".Values.roles.enabled",
            &body,
        )?,
    })
}

fn aggregated_file() -> Result<File> {
    let mut body = String::new();
    for (name, rules, into) in AGGREGATED {
        let mut metadata = metadata(name, Scope::Cluster);
        for role in into {
            let label = format!("{RBAC_GROUP}/aggregate-to-{role}");
            metadata["labels"][label] = "true".into();
        }
        body.push_str(&role_with(
            &metadata,
            Scope::Cluster,
            &rules.iter().collect::<Vec<_>>(),
        )?);
    }
    Ok(File {
        path: "charts/kite-crds/templates/aggregated-roles.yaml".to_owned(),
        text: template(
            "crates/kite-runtime/src/shared_roles.rs",
            ".Values.roles.aggregate",
            &body,
        )?,
    })
}

/// The namespace of a scope; none means the whole cluster.
pub(super) fn namespace(scope: Scope) -> Option<&'static str> {
    match scope {
        Scope::Cluster => None,
        Scope::OwnNamespace => Some(OWN_NAMESPACE),
        Scope::ImageNamespace => Some(IMAGE_NAMESPACE),
    }
}

fn kind(scope: Scope, suffix: &str) -> String {
    let cluster = if namespace(scope).is_none() {
        "Cluster"
    } else {
        ""
    };
    format!("{cluster}Role{suffix}")
}

fn metadata(name: &str, scope: Scope) -> Value {
    let mut metadata = json!({
        "name": name,
        "labels": {"app.kubernetes.io/part-of": "kite"},
    });
    if let Some(namespace) = namespace(scope) {
        metadata["namespace"] = namespace.into();
    }
    metadata
}

fn role(name: &str, scope: Scope, rules: &[&Rule]) -> Result<String> {
    role_with(&metadata(name, scope), scope, rules)
}

fn role_with(metadata: &Value, scope: Scope, rules: &[&Rule]) -> Result<String> {
    let head = yaml(&json!({
        "apiVersion": API_VERSION,
        "kind": kind(scope, ""),
        "metadata": metadata,
    }))?;
    let mut text = format!("---\n{head}rules:\n");
    for rule in rules {
        writeln!(text, "# {}", rule.why)?;
        text.push_str(&yaml(&[policy(rule)])?);
    }
    Ok(text)
}

fn policy(rule: &Rule) -> PolicyRule {
    let owned = |list: &[&str]| list.iter().map(|&s| s.to_owned()).collect::<Vec<_>>();
    PolicyRule {
        api_groups: Some(vec![rule.group.to_owned()]),
        resources: Some(owned(rule.resources)),
        resource_names: (!rule.names.is_empty()).then(|| owned(rule.names)),
        verbs: owned(rule.verbs),
        ..PolicyRule::default()
    }
}

fn binding(name: &str, scope: Scope) -> Result<String> {
    binding_of(name, name, scope)
}

/// Gives a role to a controller's account.
fn binding_of(name: &str, account: &str, scope: Scope) -> Result<String> {
    let body = yaml(&json!({
        "apiVersion": API_VERSION,
        "kind": kind(scope, "Binding"),
        "metadata": metadata(name, scope),
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": kind(scope, ""),
            "name": name,
        },
        "subjects": [{
            "kind": "ServiceAccount",
            "name": account,
            "namespace": OWN_NAMESPACE,
        }],
    }))?;
    Ok(format!("---\n{body}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_rule() -> Vec<(&'static str, Rule)> {
        let own = controllers()
            .into_iter()
            .flat_map(|c| c.rules.into_iter().map(move |r| (c.name, r)));
        let shared = SHARED
            .into_iter()
            .flat_map(|(name, rules)| rules.iter().map(move |r| (name, *r)));
        let aggregated = AGGREGATED
            .into_iter()
            .flat_map(|(name, rules, _)| rules.iter().map(move |r| (name, *r)));
        own.chain(shared).chain(aggregated).collect()
    }

    #[test]
    fn no_right_is_granted_by_a_star_or_without_a_reason() {
        for (name, rule) in every_rule() {
            let words = rule.resources.iter().chain(rule.verbs);
            assert!(
                rule.group != "*" && words.into_iter().all(|w| !w.contains('*')),
                "{name}: {rule:?}"
            );
            assert!(
                !rule.why.is_empty() && !rule.why.contains('\n'),
                "{name}: {rule:?}"
            );
            assert!(
                !rule.resources.is_empty() && !rule.verbs.is_empty(),
                "{name}: {rule:?}"
            );
        }
    }

    // C-20, F-22
    #[test]
    fn no_controller_reads_secrets_beyond_a_namespace() {
        for controller in controllers() {
            for rule in controller
                .rules
                .iter()
                .filter(|r| r.scope == Scope::Cluster)
            {
                let secrets = rule.group.is_empty() && rule.resources.contains(&"secrets");
                assert!(!secrets, "{} has {rule:?}", controller.name);
            }
        }
    }

    // U-3: KiteUsers are written by administrators only. D-7: nobody plants a disk.
    #[test]
    fn a_tenant_writes_neither_its_quota_nor_its_isolation_nor_a_disk() {
        const WRITE: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];
        let untouchable = [
            "kiteusers",
            "kiteplatforms",
            "kitehostclaims",
            "kitevirtualmachines/status",
            "networkpolicies",
            "resourcequotas",
            "limitranges",
            "rolebindings",
            "persistentvolumeclaims",
            "datavolumes",
            "virtualmachines",
            "virtualmachineinstances",
            "services",
            "ingresses",
            "pods",
        ];
        for rule in shared_roles::TENANT {
            let writes = rule.verbs.iter().any(|v| WRITE.contains(v));
            let touched = rule.resources.iter().find(|r| untouchable.contains(r));
            assert!(!writes || touched.is_none(), "{rule:?}");
        }
    }

    // U-3, P-1: what becomes part of everybody's roles opens no more than machines.
    #[test]
    fn whoever_may_edit_a_namespace_writes_machines_and_nothing_else_of_kites() {
        const LOOK: [&str; 3] = ["get", "list", "watch"];
        for rule in shared_roles::EDIT {
            assert_eq!(rule.resources, ["kitevirtualmachines"]);
        }
        for rule in shared_roles::VIEW {
            assert_eq!(rule.verbs, LOOK, "{rule:?}");
        }
    }

    #[test]
    fn every_manifest_is_yaml_with_a_role_and_a_binding_for_each_scope() {
        for (controller, file) in controllers().iter().zip(files().unwrap()) {
            let documents: Vec<Value> = serde_saphyr::from_multiple(&file.text).unwrap();
            let kinds: Vec<_> = documents
                .iter()
                .map(|d| d["kind"].as_str().unwrap())
                .collect();
            assert_eq!(
                kinds[..4],
                ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]
            );
            let granted: usize = documents
                .iter()
                .filter_map(|d| d["rules"].as_array())
                .map(Vec::len)
                .sum();
            assert_eq!(granted, controller.rules.len(), "{}", file.path);
        }
    }
}
