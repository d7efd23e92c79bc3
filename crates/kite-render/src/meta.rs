//! Names, labels, annotations and owners of children, in one place (rule C-7).
//!
//! Labels are for finding. What binds a child is, for a machine's children, a
//! controller owner reference; for a machine's disk and for everything of a
//! user's, an annotation with the UID, since the garbage collector would take
//! those too early.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kite_api::labels::{Controller, MANAGED_BY, MANAGED_BY_VALUE, USER, USER_UID, VM_NAME, VM_UID};
use kite_api::{GROUP, VERSION};

use crate::validate::{DnsLabel, MachineOwner, UserOwner};

/// Labels or annotations.
pub type Pairs = BTreeMap<String, String>;

/// What a child is for its owner; stands in `app.kubernetes.io/component`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// A user's namespace.
    Namespace,
    /// A user's network policies.
    Isolation,
    /// A user's quota.
    Quota,
    /// Rights in a user's namespace.
    Access,
    /// A machine's disk.
    Disk,
    /// A machine's login.
    Login,
    /// The machine itself.
    Machine,
    /// A machine's address.
    Service,
    /// A machine's host name.
    Ingress,
}

impl Component {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Namespace => "namespace",
            Self::Isolation => "isolation",
            Self::Quota => "quota",
            Self::Access => "access",
            Self::Disk => "disk",
            Self::Login => "login",
            Self::Machine => "machine",
            Self::Service => "service",
            Self::Ingress => "ingress",
        }
    }
}

/// Metadata of a machine's child that the garbage collector may take with its owner.
pub fn owned_by_machine(owner: &MachineOwner, name: String, component: Component) -> ObjectMeta {
    ObjectMeta {
        owner_references: Some(vec![OwnerReference {
            api_version: format!("{GROUP}/{VERSION}"),
            kind: "KiteVirtualMachine".to_owned(),
            name: owner.name.to_string(),
            uid: owner.uid.to_string(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }]),
        ..bound_to_machine(owner, name, component)
    }
}

/// Metadata of a machine's child that only the annotation binds: the disk, which outlives
/// any cascade until kite-vm lets it go (rule V-19).
pub fn bound_to_machine(owner: &MachineOwner, name: String, component: Component) -> ObjectMeta {
    let mut labels = common_labels(owner.name.as_str(), component, Controller::Vm);
    labels.insert(VM_NAME.to_owned(), owner.name.to_string());
    labels.insert(VM_UID.to_owned(), owner.uid.to_string());
    ObjectMeta {
        name: Some(name),
        namespace: Some(owner.namespace.to_string()),
        labels: Some(labels),
        annotations: Some(pair(VM_UID, owner.uid.as_str())),
        ..ObjectMeta::default()
    }
}

/// Metadata of what stands in a user's namespace, bound by annotation.
pub fn bound_to_user(
    owner: &UserOwner,
    namespace: &DnsLabel,
    name: String,
    component: Component,
) -> ObjectMeta {
    ObjectMeta {
        namespace: Some(namespace.to_string()),
        ..bound_to_user_without_namespace(owner, name, component)
    }
}

/// The same for the namespace itself.
pub(crate) fn bound_to_user_without_namespace(
    owner: &UserOwner,
    name: String,
    component: Component,
) -> ObjectMeta {
    let mut labels = common_labels(owner.name.as_str(), component, Controller::User);
    labels.insert(USER.to_owned(), owner.name.to_string());
    ObjectMeta {
        name: Some(name),
        labels: Some(labels),
        annotations: Some(pair(USER_UID, owner.uid.as_str())),
        ..ObjectMeta::default()
    }
}

/// Adds an annotation to metadata.
pub fn annotate(meta: &mut ObjectMeta, key: &str, value: &str) {
    meta.annotations
        .get_or_insert_default()
        .insert(key.to_owned(), value.to_owned());
}

/// A map of one pair.
pub(crate) fn pair(key: &str, value: &str) -> Pairs {
    Pairs::from([(key.to_owned(), value.to_owned())])
}

fn common_labels(instance: &str, component: Component, by: Controller) -> Pairs {
    [
        (MANAGED_BY, MANAGED_BY_VALUE),
        ("app.kubernetes.io/name", "kite"),
        ("app.kubernetes.io/instance", instance),
        ("app.kubernetes.io/component", component.as_str()),
        ("app.kubernetes.io/part-of", "kite"),
        ("app.kubernetes.io/managed-by", by.name()),
    ]
    .into_iter()
    .map(|(k, v)| (k.to_owned(), v.to_owned()))
    .collect()
}
