//! What the scenarios of kite-namespace share. There is no kite-user: namespaces
//! are bound by hand, as kite-user would bind them.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::events::v1::Event;
use kite_api::KiteUser;
use kite_testkit::wait::{eventually, wait_until};
use kite_testkit::{ControlPlane, KiteOptions, KiteProcess, install, shared};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

/// What was refused is tried again within 60 s, and two busy cores need a while beside.
pub const LIMIT: Duration = Duration::from_secs(150);

/// An administrator at work.
pub struct Admin {
    pub plane: &'static ControlPlane,
    pub client: Client,
}

impl Admin {
    /// The shared control plane with Kite's kinds.
    pub async fn new() -> Self {
        let plane = shared().await;
        let client = plane.admin_client().await.unwrap();
        Self { plane, client }
    }

    pub async fn start(&self, args: &[&str]) -> KiteProcess {
        let options = self.options(args).await;
        KiteProcess::start(self.plane, options).await.unwrap()
    }

    /// How it is started, under its generated rights.
    pub async fn options(&self, args: &[&str]) -> KiteOptions {
        let identity = install::controller(self.plane, "kite-namespace")
            .await
            .unwrap();
        let options = KiteOptions::new("kite-namespace", identity.kubeconfig());
        options.args(args.iter().copied())
    }

    pub fn users(&self) -> Api<KiteUser> {
        Api::all(self.client.clone())
    }

    pub fn namespaces(&self) -> Api<Namespace> {
        Api::all(self.client.clone())
    }

    pub async fn apply(&self, object: &Value) {
        install::apply(&self.client, &object.to_string())
            .await
            .unwrap();
    }

    /// A KiteUser of that name with a namespace of that name, bound to it.
    pub async fn user_with_namespace(&self, name: &str) -> Namespace {
        let user = self.user(name, name).await;
        self.apply(&namespace(name, user.uid().as_deref())).await;
        self.namespaces().get(name).await.unwrap()
    }

    pub async fn user(&self, name: &str, namespace: &str) -> KiteUser {
        let user = json!({"apiVersion": "kite.dev/v1alpha1", "kind": "KiteUser",
            "metadata": {"name": name}, "spec": {"namespace": namespace}});
        self.apply(&user).await;
        self.users().get(name).await.unwrap()
    }

    pub async fn delete_user(&self, name: &str) {
        self.users()
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
    }

    pub async fn annotated(&self, name: &str, key: &str) -> String {
        let there = |ns: &Namespace| ns.annotations().contains_key(key);
        let namespace = wait_until(&self.namespaces(), name, LIMIT, there)
            .await
            .unwrap();
        namespace.annotations()[key].clone()
    }

    pub async fn unannotated(&self, name: &str, key: &str) {
        let gone = |ns: &Namespace| !ns.annotations().contains_key(key);
        wait_until(&self.namespaces(), name, LIMIT, gone)
            .await
            .unwrap();
    }

    pub async fn annotate(&self, name: &str, annotations: Value) {
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        let params = PatchParams::default();
        self.namespaces()
            .patch(name, &params, &patch)
            .await
            .unwrap();
    }

    /// Says that the deletion of a namespace is meant.
    pub async fn acknowledge(&self, name: &str) {
        let now = k8s_openapi::jiff::Timestamp::now().to_string();
        self.annotate(name, json!({"kite.dev/acknowledge-deletion": now}))
            .await;
    }

    /// Runs the command that a sentence ends with, as an administrator would paste it.
    pub async fn paste(&self, note: &str) {
        let (_, command) = note.split_once("kubectl ").unwrap();
        let now = k8s_openapi::jiff::Timestamp::now();
        let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let command = command.replace("$(date -u +%FT%TZ)", &now);
        let args: Vec<&str> = command.split_whitespace().collect();
        self.plane.kubectl(&args).await.unwrap().ok().unwrap();
    }

    /// Whether nothing but time and others' writes has happened to it.
    pub async fn stays(&self, names: &[&str], time: Duration) {
        tokio::time::sleep(time).await;
        for name in names {
            let namespace = self.namespaces().get(name).await.unwrap();
            assert!(
                namespace.metadata.deletion_timestamp.is_none(),
                "{name} is being deleted"
            );
        }
    }

    /// Waits for an event about a namespace, and gives its note.
    pub async fn event(&self, name: &str, reason: &str) -> String {
        let what = format!("the event {reason} about {name}");
        let seen = async || self.told(name, reason).await.into_iter().next()?.note;
        eventually(&what, LIMIT, seen).await.unwrap()
    }

    /// How often it was told, repeats that were merged included.
    pub async fn events(&self, name: &str, reason: &str) -> i32 {
        let told = self.told(name, reason).await;
        let times = told
            .iter()
            .map(|e| e.series.as_ref().map_or(1, |s| s.count));
        times.sum()
    }

    async fn told(&self, name: &str, reason: &str) -> Vec<Event> {
        let api = Api::<Event>::namespaced(self.client.clone(), "default");
        let mut all = api.list(&ListParams::default()).await.unwrap().items;
        all.retain(|event| {
            let of = event.regarding.as_ref().and_then(|r| r.name.as_deref());
            of == Some(name) && event.reason.as_deref() == Some(reason)
        });
        all
    }
}

/// A namespace with Kite's label, bound to a KiteUser's UID or to nobody.
pub fn namespace(name: &str, uid: Option<&str>) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name,
        "labels": {"kite.dev/managed-by": "kite-controller", "kite.dev/user": name}}});
    if let Some(uid) = uid {
        object["metadata"]["annotations"] = json!({"kite.dev/user-uid": uid});
    }
    object
}
