//! Step 1: what there is, from the caches; and the live looks that come before a
//! deletion (rules C-6, N-2, N-5).
//!
//! Nothing is judged here.

pub mod record;

use std::borrow::Cow;

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kite_api::KiteUser;
use kite_api::labels::RETAINED;
use kite_runtime::{By, Cache};
use kube::api::{ListParams, PartialObjectMeta};
use kube::core::Resource;
use kube::{Api, Client, ResourceExt};
use serde::Deserialize;
use serde_json::Value;

use crate::plan::bound_uid;
use crate::reconcile::Error;

/// Name of the CustomResourceDefinition of KiteUsers.
pub const USER_CRD: &str = "kiteusers.kite.dev";
/// Names of all of Kite's CustomResourceDefinitions.
pub const KITE_CRDS: [&str; 4] = [
    USER_CRD,
    "kitevirtualmachines.kite.dev",
    "kiteplatforms.kite.dev",
    "kitehostclaims.kite.dev",
];

/// Users, by the namespace they name.
pub const BY_NAMESPACE: By<UserView> = By {
    name: "namespace",
    of: |user| user.namespace().map(str::to_owned),
};
/// Users, by their UID.
pub const BY_UID: By<UserView> = By {
    name: "uid",
    of: |user| user.metadata.uid.clone(),
};

/// The metadata of a claim.
pub type ClaimMeta = PartialObjectMeta<PersistentVolumeClaim>;

/// Everything that passes read without asking the server.
pub struct Caches {
    /// Managed namespaces.
    pub namespaces: Cache<Namespace>,
    /// The users.
    pub users: Cache<UserView>,
    /// The claims of retained disks.
    pub retained: Cache<ClaimMeta>,
}

impl Caches {
    /// Whether a KiteUser needs a namespace.
    pub fn is_needed(&self, namespace: &ObjectMeta) -> bool {
        let by_name = namespace
            .name
            .iter()
            .map(|name| (BY_NAMESPACE, name.as_str()));
        let by_uid = bound_uid(namespace).map(|uid| (BY_UID, uid));
        let mut ways = by_name.chain(by_uid);
        ways.any(|(by, value)| !self.users.find(by, value).is_empty())
    }

    /// The names of the claims in a namespace that hold a retained disk, as far as the watch has
    /// shown them: enough to keep a namespace, not to delete one.
    pub fn retained_in(&self, namespace: &str) -> Vec<String> {
        let claims = self.retained.within(namespace);
        sorted(claims.iter().map(|claim| claim.name_any()))
    }
}

fn sorted(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Drops of a namespace what no pass reads.
pub fn trim(namespace: &mut Namespace) {
    namespace.metadata.managed_fields = None;
}

/// What is read of a KiteUser. Nothing else of its shape matters here, so that no KiteUser is
/// ever left out of a list on which a deletion rests.
#[derive(Clone, Debug, Deserialize)]
pub struct UserView {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// Its specification, whatever it holds.
    #[serde(default)]
    spec: Value,
}

impl UserView {
    /// The namespace it names.
    pub fn namespace(&self) -> Option<&str> {
        self.spec.get("namespace").and_then(Value::as_str)
    }

    /// Drops what no pass reads.
    pub fn trim(&mut self) {
        let namespace = self.namespace().map(str::to_owned);
        self.spec = serde_json::json!({ "namespace": namespace });
    }
}

impl Resource for UserView {
    type DynamicType = ();
    type Scope = ClusterResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        KiteUser::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        KiteUser::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        KiteUser::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        KiteUser::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// All KiteUsers, asked of the server.
pub async fn users_now(client: &Client) -> Result<Vec<UserView>, Error> {
    let api = Api::<UserView>::all(client.clone());
    // Without a limit and without a resourceVersion: complete, and not from a lagging cache.
    let list = api.list(&ListParams::default()).await;
    let list = list.map_err(|source| Error::live("list KiteUsers", source))?;
    Ok(list.items)
}

/// The metadata of Kite's CustomResourceDefinitions that exist, asked of the server; the one of
/// KiteUsers first.
pub async fn kinds_now(client: &Client) -> Result<Vec<ObjectMeta>, Error> {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    let mut kinds = Vec::new();
    for name in KITE_CRDS {
        let found = api.get_metadata_opt(name).await;
        let found =
            found.map_err(|source| Error::live("read a CustomResourceDefinition", source))?;
        kinds.extend(found.map(|crd| crd.metadata));
    }
    Ok(kinds)
}

/// The names of the claims in a namespace that hold a retained disk, asked of the server.
///
/// The claim holds the data; its DataVolume may be gone, and its kind with it.
pub async fn retained_now(client: &Client, namespace: &str) -> Result<Vec<String>, Error> {
    let api = Api::<PersistentVolumeClaim>::namespaced(client.clone(), namespace);
    let list = api
        .list_metadata(&ListParams::default().labels(RETAINED))
        .await;
    let list = list.map_err(|source| Error::live("list PersistentVolumeClaims", source))?;
    Ok(sorted(list.items.iter().map(ResourceExt::name_any)))
}

/// Kite's own namespace, asked of the server: on it stands which namespaces were deleted lately.
pub async fn own_now(client: &Client, name: &str) -> Result<Namespace, Error> {
    let own = Api::<Namespace>::all(client.clone()).get(name).await;
    own.map_err(|source| Error::live("read Kite's own Namespace", source))
}
