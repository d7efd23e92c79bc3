//! Who may do what in a user's namespace.
//!
//! Both bindings name ClusterRoles that the chart installs; nothing here makes a role.

use k8s_openapi::api::rbac::v1::{RoleBinding, RoleRef, Subject};
use kite_api::labels::{TENANT_ROLE, VM_SECRETS_ROLE};
use kite_api::user::SubjectKind;

use crate::meta::{Component, bound_to_user};
use crate::validate::{DnsLabel, ValidUser};

/// The group of roles, users and groups.
const RBAC: &str = "rbac.authorization.k8s.io";

/// Name of a tenant binding up to the user's name. Several users may share a namespace (rule U-3),
/// so each has a binding of its own.
pub const TENANT_BINDING_PREFIX: &str = "kite-tenant-";

/// Name of kite-vm's binding.
pub const VM_SECRETS_BINDING: &str = "kite-vm-secrets";

/// A ServiceAccount by namespace and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAccount {
    /// Its namespace.
    pub namespace: DnsLabel,
    /// Its name.
    pub name: DnsLabel,
}

/// The tenant role for the user's subjects; nothing when there are none.
pub fn tenant_role_binding(user: &ValidUser) -> Option<RoleBinding> {
    if user.subjects.is_empty() {
        return None;
    }
    let subjects = user.subjects.iter().map(|s| Subject {
        api_group: Some(RBAC.to_owned()),
        kind: match s.kind {
            SubjectKind::User => "User".to_owned(),
            SubjectKind::Group => "Group".to_owned(),
        },
        name: s.name.clone(),
        namespace: None,
    });
    let name = format!("{TENANT_BINDING_PREFIX}{}", user.owner.name);
    Some(binding(user, name, TENANT_ROLE, subjects.collect()))
}

/// kite-vm's right on Secrets, in this namespace only (rule C-20).
pub fn vm_secrets_role_binding(user: &ValidUser, kite_vm: &ServiceAccount) -> RoleBinding {
    let subject = Subject {
        api_group: None,
        kind: "ServiceAccount".to_owned(),
        name: kite_vm.name.to_string(),
        namespace: Some(kite_vm.namespace.to_string()),
    };
    binding(
        user,
        VM_SECRETS_BINDING.to_owned(),
        VM_SECRETS_ROLE,
        vec![subject],
    )
}

fn binding(user: &ValidUser, name: String, role: &str, subjects: Vec<Subject>) -> RoleBinding {
    RoleBinding {
        metadata: bound_to_user(&user.owner, &user.namespace, name, Component::Access),
        role_ref: RoleRef {
            api_group: RBAC.to_owned(),
            kind: "ClusterRole".to_owned(),
            name: role.to_owned(),
        },
        subjects: Some(subjects),
    }
}
