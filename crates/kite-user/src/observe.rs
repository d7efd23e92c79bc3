//! Step 1: what there is, from the caches; and the live looks that a user's end
//! needs (rules C-6, U-10).
//!
//! Nothing is judged here.

pub mod siblings;

use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{LimitRange, Namespace, Pod, ResourceQuota};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::RoleBinding;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;
use kite_api::acknowledge::removal_held;
use kite_api::platform::PLATFORM_NAME;
use kite_api::{KitePlatform, KiteUser, KiteVirtualMachine};
use kite_kubevirt::names::{KUBEVIRT, LAUNCHER};
use kite_render::platform::InForce;
use kite_render::validate::{DnsLabel, ValidPlatform};
use kite_runtime::errors::refusal;
use kite_runtime::{By, Cache, Key, Refusal};
use kube::api::{ListParams, PartialObjectMeta};
use kube::{Api, Client};

use crate::reconcile::Error;

/// Name of the CustomResourceDefinition of KiteUsers.
pub const USER_CRD: &str = "kiteusers.kite.dev";

/// Users, by their UID.
pub const BY_UID: By<KiteUser> = By {
    name: "uid",
    of: |user| user.metadata.uid.clone(),
};

/// A namespace as the watch shows it.
pub type NamespaceMeta = PartialObjectMeta<Namespace>;

/// Everything that passes read without asking the server.
pub struct Caches {
    /// The users.
    pub users: Cache<KiteUser>,
    /// The one KitePlatform.
    pub platforms: Cache<KitePlatform>,
    /// The CustomResourceDefinition of KiteUsers.
    pub crd: Cache<PartialObjectMeta<CustomResourceDefinition>>,
    /// Managed namespaces.
    pub namespaces: Cache<NamespaceMeta>,
    /// Managed network policies.
    pub policies: Cache<NetworkPolicy>,
    /// Managed quotas.
    pub quotas: Cache<ResourceQuota>,
    /// Managed limit ranges.
    pub limit_ranges: Cache<LimitRange>,
    /// Managed role bindings.
    pub bindings: Cache<RoleBinding>,
}

impl Caches {
    /// The platform's settings in force, with the namespaces reserved that only the process knows.
    pub fn platform(&self, in_force: &InForce, reserved: &[DnsLabel]) -> ValidPlatform {
        let key = Key::cluster(PLATFORM_NAME);
        let current = match (self.platforms.get(&key), self.platforms.malformed(&key)) {
            (None, Some(_)) => in_force.last(),
            (platform, _) => in_force.current(platform.as_deref()),
        };
        let mut platform = ValidPlatform::clone(&current);
        platform.reserve(reserved.iter().cloned());
        platform
    }

    /// The user of a UID, wherever its namespace is.
    pub fn user_of(&self, uid: &str) -> Option<Arc<KiteUser>> {
        self.users.find(BY_UID, uid).into_iter().next()
    }

    /// Whether users go because the kind itself is being removed, and nobody has said that this
    /// is meant (rule N-6).
    pub fn removal_held(&self, now: Timestamp) -> bool {
        let crd = self.crd.get(&Key::cluster(USER_CRD));
        crd.is_some_and(|crd| removal_held(&crd.metadata, now))
    }
}

/// The other users of a namespace that are not going, asked of the server; the oldest first.
///
/// Only metadata is read, so that an object of an unknown shape counts like any other.
pub async fn other_users(
    client: &Client,
    namespace: &str,
    uid: &str,
) -> Result<Vec<ObjectMeta>, Error> {
    let api = Api::<KiteUser>::all(client.clone());
    let selected = ListParams::default().fields(&format!("spec.namespace={namespace}"));
    let list = api.list_metadata(&selected).await;
    let list = list.map_err(|source| Error::list("KiteUsers", source))?;
    let mut others: Vec<ObjectMeta> = list.items.into_iter().map(|u| u.metadata).collect();
    others.retain(|m| m.uid.as_deref() != Some(uid) && m.deletion_timestamp.is_none());
    others.sort_by_key(|m| {
        let created = m.creation_timestamp.as_ref().map(|t| t.0);
        (created, m.name.clone())
    });
    Ok(others)
}

/// Why the isolation of a namespace cannot be taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// There is a machine.
    Machine,
    /// There is a pod in which a guest may run.
    Launcher,
    /// The server does not serve the kind of machines, so nobody can tell.
    Unknown,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Machine => "a KiteVirtualMachine is left",
            Self::Launcher => "a launcher pod is left",
            Self::Unknown => {
                "the kind KiteVirtualMachine is not served, so nobody can tell what runs"
            }
        })
    }
}

/// Looks, on the server itself, whether something may still run in a namespace.
pub async fn look_for_machines(client: &Client, namespace: &str) -> Result<Option<Left>, Error> {
    let one = ListParams::default().limit(1);
    let machines = Api::<KiteVirtualMachine>::namespaced(client.clone(), namespace);
    match machines.list_metadata(&one).await {
        Ok(list) if list.items.is_empty() => {}
        Ok(_) => return Ok(Some(Left::Machine)),
        Err(error) if refusal(&error) == Refusal::KindMissing => return Ok(Some(Left::Unknown)),
        Err(source) => return Err(Error::list("KiteVirtualMachines", source)),
    }
    let pods = Api::<Pod>::namespaced(client.clone(), namespace);
    let running = one
        .labels(&format!("{KUBEVIRT}={LAUNCHER}"))
        .fields("status.phase!=Succeeded,status.phase!=Failed");
    let list = pods.list_metadata(&running).await;
    let list = list.map_err(|source| Error::list("Pods", source))?;
    Ok((!list.items.is_empty()).then_some(Left::Launcher))
}
