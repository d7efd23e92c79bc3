//! The user's Namespace with its Pod Security level (rule U-4).

use k8s_openapi::api::core::v1::Namespace;

use crate::meta::{Component, bound_to_user_without_namespace};
use crate::validate::ValidUser;

/// Label by which the server enforces a Pod Security level.
pub const POD_SECURITY: &str = "pod-security.kubernetes.io/enforce";

/// KubeVirt's launcher pods need more than `baseline` for some devices, and KubeVirt can raise
/// the label to this level by itself; so Kite sets it and owns it. Tenants make no pods: their
/// role gives no right to, which is what keeps this safe.
pub const POD_SECURITY_LEVEL: &str = "privileged";

/// The user's namespace.
pub fn namespace(user: &ValidUser) -> Namespace {
    let mut metadata = bound_to_user_without_namespace(
        &user.owner,
        user.namespace.to_string(),
        Component::Namespace,
    );
    metadata
        .labels
        .get_or_insert_default()
        .insert(POD_SECURITY.to_owned(), POD_SECURITY_LEVEL.to_owned());
    Namespace {
        metadata,
        spec: None,
        status: None,
    }
}
