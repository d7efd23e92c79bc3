//! What the scenarios share: one control plane, kite-user under its generated
//! rights, and short ways to write and to wait.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, ResourceQuota};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kite_api::KiteUser;
use kite_api::condition::{READY, find};
use kite_testkit::audit::{AuditLog, Mark, Request, Table};
use kite_testkit::kstatus::Judge;
use kite_testkit::wait::{eventually, wait_gone, wait_until};
use kite_testkit::{ControlPlane, Identity, KiteOptions, KiteProcess, install, shared};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// What was refused is tried again within 60 s, and two busy cores need a while beside.
pub const LIMIT: Duration = Duration::from_secs(150);
/// U-8: within this a child is as it was.
pub const REPAIR: Duration = Duration::from_secs(5);

/// The running kite-user of a test binary.
pub struct World {
    pub plane: &'static ControlPlane,
    pub identity: Identity,
    pub process: KiteProcess,
    pub judge: Judge,
}

/// The one of this binary.
pub async fn world() -> &'static World {
    static WORLD: OnceCell<World> = OnceCell::const_new();
    WORLD
        .get_or_init(|| async {
            let (plane, identity) = prepared().await;
            let options = KiteOptions::new("kite-user", identity.kubeconfig());
            let process = KiteProcess::start(plane, options).await.unwrap();
            let judge = Judge::start().await.unwrap();
            World {
                plane,
                identity,
                process,
                judge,
            }
        })
        .await
}

/// The control plane with Kite's kinds and kite-user's account, without a process.
pub async fn prepared() -> (&'static ControlPlane, Identity) {
    let plane = shared().await;
    install::kite_crds(plane).await.unwrap();
    // The quota controller would look for the new kinds only after a while.
    plane.restart_controller_manager().await.unwrap();
    let identity = install::controller(plane, "kite-user").await.unwrap();
    (plane, identity)
}

/// An administrator at work.
#[derive(Clone)]
pub struct Admin {
    pub client: Client,
    pub plane: &'static ControlPlane,
}

impl Admin {
    pub async fn new(plane: &'static ControlPlane) -> Self {
        let client = plane.admin_client().await.unwrap();
        Self { client, plane }
    }

    pub fn users(&self) -> Api<KiteUser> {
        Api::all(self.client.clone())
    }

    pub fn namespaces(&self) -> Api<Namespace> {
        Api::all(self.client.clone())
    }

    pub fn policies(&self, namespace: &str) -> Api<NetworkPolicy> {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub fn quotas(&self, namespace: &str) -> Api<ResourceQuota> {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub fn bindings(&self, namespace: &str) -> Api<RoleBinding> {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub async fn apply(&self, object: &Value) {
        install::apply(&self.client, &object.to_string())
            .await
            .unwrap();
    }

    /// A user that is ready.
    pub async fn ready_user(&self, name: &str, spec: Value) -> KiteUser {
        self.apply(&user(name, spec)).await;
        self.ready(name).await
    }

    pub async fn ready(&self, name: &str) -> KiteUser {
        let ready = |user: &KiteUser| is(user, READY, "True") && current(user);
        wait_until(&self.users(), name, LIMIT, ready).await.unwrap()
    }

    /// Waits until Ready has this reason at the user's generation.
    pub async fn reason(&self, name: &str, reason: &str) -> KiteUser {
        let holds = |user: &KiteUser| {
            let found = user
                .status
                .as_ref()
                .and_then(|s| find(&s.conditions, READY));
            found.is_some_and(|c| c.reason == reason) && current(user)
        };
        wait_until(&self.users(), name, LIMIT, holds).await.unwrap()
    }

    pub async fn delete_user(&self, name: &str) {
        self.users()
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
    }

    pub async fn user_gone(&self, name: &str) {
        wait_gone(&self.users(), name, LIMIT).await.unwrap();
    }

    /// Reasons of the events about a user.
    pub async fn event_reasons(&self, name: &str) -> BTreeSet<String> {
        use k8s_openapi::api::events::v1::Event;
        let api = Api::<Event>::namespaced(self.client.clone(), "default");
        let all = api.list(&ListParams::default()).await.unwrap();
        let about = all.items.into_iter().filter(|event| {
            let of = event.regarding.as_ref().and_then(|r| r.name.as_deref());
            of == Some(name)
        });
        about.filter_map(|event| event.reason).collect()
    }

    /// Waits for an event about a user.
    pub async fn event(&self, name: &str, reason: &str) {
        let what = format!("the event {reason} about {name}");
        let seen = async || {
            self.event_reasons(name)
                .await
                .contains(reason)
                .then_some(())
        };
        eventually(&what, LIMIT, seen).await.unwrap();
    }

    pub async fn merge<K>(&self, api: &Api<K>, name: &str, patch: Value) -> K
    where
        K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
    {
        let params = PatchParams::default();
        api.patch(name, &params, &Patch::Merge(patch))
            .await
            .unwrap()
    }

    /// The server's words about an object it refuses.
    pub async fn refused(&self, object: &Value) -> String {
        let told = self
            .plane
            .kubectl_stdin(
                &[
                    "apply",
                    "--server-side",
                    "--force-conflicts",
                    "--dry-run=server",
                    "-f",
                    "-",
                ],
                &object.to_string(),
            )
            .await
            .unwrap();
        assert!(!told.success, "accepted: {object}");
        told.stderr
    }
}

/// A KiteUser.
#[allow(
    clippy::needless_pass_by_value,
    reason = "so that calls read as one line"
)]
pub fn user(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "kite.dev/v1alpha1", "kind": "KiteUser", "metadata": {"name": name}, "spec": spec})
}

/// A specification with all that a user usually has.
pub fn full_spec(namespace: &str) -> Value {
    json!({
        "namespace": namespace,
        "quota": {"cpu": 4, "memory": "8Gi", "storage": "100Gi", "virtualMachines": 4},
        "subjects": [{"kind": "User", "name": format!("{namespace}@example.org")}],
    })
}

pub fn plain_spec(namespace: &str) -> Value {
    json!({ "namespace": namespace })
}

/// A namespace as kite-user would have made it for a user that is gone.
pub fn left_namespace(name: &str, user: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": name,
        "labels": {"kite.dev/managed-by": "kite-controller", "kite.dev/user": user},
        "annotations": {"kite.dev/user-uid": "00000000-0000-0000-0000-000000000000"},
    }})
}

pub fn is(user: &KiteUser, type_: &str, status: &str) -> bool {
    let conditions = user.status.as_ref().map(|s| s.conditions.as_slice());
    find(conditions.unwrap_or_default(), type_).is_some_and(|c| c.status == status)
}

pub fn message(user: &KiteUser, type_: &str) -> String {
    let conditions = user.status.as_ref().map(|s| s.conditions.as_slice());
    find(conditions.unwrap_or_default(), type_)
        .unwrap()
        .message
        .clone()
}

pub fn current(user: &KiteUser) -> bool {
    let observed = user.status.as_ref().and_then(|s| s.observed_generation);
    observed == user.metadata.generation
}

/// What kite-user asked about a user and its namespace since a mark, without watches, leases and events.
pub fn requests(audit: &AuditLog, mark: Mark, name: &str, namespace: &str) -> Vec<Request> {
    let about = |request: &Request| {
        let selected = format!("spec.namespace%3D{namespace}");
        request.namespace == namespace
            || (request.namespace.is_empty() && [name, namespace].contains(&&*request.name))
            || request.uri.contains(&format!("{selected}&"))
            || request.uri.ends_with(&selected)
    };
    let mut requests = audit.since(mark).unwrap();
    requests.retain(|r| r.is_by("kite-user") && !r.is_watch() && !r.is_lease() && !r.is_event());
    requests.retain(about);
    requests
}

/// Prints and returns how many requests there were.
pub fn counted(title: &str, requests: &[Request]) -> usize {
    println!("{title}\n{}", Table::of(requests));
    let refused: Vec<_> = requests.iter().filter(|r| r.code >= 400).collect();
    assert!(refused.is_empty(), "{title}: {refused:?}");
    requests.len()
}

/// Everything of an object that a write could have changed.
pub fn bytes(object: &impl serde::Serialize) -> String {
    serde_json::to_string(object).unwrap()
}

/// No object that Kite makes for a user has an owner (rule C-7 (b)).
pub fn unowned(object: &impl ResourceExt) {
    assert!(object.owner_references().is_empty(), "{:?}", object.meta());
}
