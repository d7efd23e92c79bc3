//! What a KiteUser gets: a namespace, isolation, a quota and rights, one file each.
//!
//! None of it carries an owner reference (rule C-7): the annotation binds it.

mod limit_range;
mod namespace;
mod network_policy;
mod quota;
mod role_binding;

pub use limit_range::{LIMIT_RANGE, limit_range};
pub use namespace::{POD_SECURITY, POD_SECURITY_LEVEL, namespace};
pub use network_policy::{CLONE_POLICY, ISOLATION_POLICY, network_policies};
pub use quota::{COUNT_KEY, QUOTA, closing_quota, resource_quota};
pub use role_binding::{
    ServiceAccount, TENANT_BINDING_PREFIX, VM_SECRETS_BINDING, tenant_role_binding,
    vm_secrets_role_binding,
};
