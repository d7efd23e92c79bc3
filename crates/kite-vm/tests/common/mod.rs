//! A cluster in which kite-vm runs alone, and short ways to say things in it.
#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::events::v1::Event;
use kite_api::condition;
use kite_api::{Condition, KiteVirtualMachine};
use kite_testkit::cluster::{CONTROLLERS, IMAGE};
use kite_testkit::{Cluster, ClusterOptions, install, wait};
use kube::api::{
    DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, TypeMeta,
};
use kube::core::GroupVersionKind;
use kube::discovery::pinned_kind;
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// Longer than any step of a life at the cluster's speed takes.
pub const LONG: Duration = Duration::from_secs(60);
/// How soon something that was changed by hand must be as it was (rule: within 5 s).
pub const REPAIR: Duration = Duration::from_secs(5);

/// The cluster of this test binary: kite-vm and the stand-ins, nobody else.
pub async fn cluster() -> &'static Cluster {
    static CLUSTER: OnceCell<Cluster> = OnceCell::const_new();
    CLUSTER
        .get_or_init(|| async {
            let without = CONTROLLERS
                .into_iter()
                .filter(|c| *c != "kite-vm")
                .collect();
            let options = ClusterOptions {
                without,
                args: vec![("kite-vm", "--deletion-patience=3s".to_owned())],
                ..ClusterOptions::default()
            };
            Cluster::start(options).await.unwrap()
        })
        .await
}

/// A namespace in the shared cluster, prepared for machines as an administrator prepares one.
pub struct Place {
    pub cluster: &'static Cluster,
    pub client: Client,
    pub namespace: String,
}

impl Place {
    /// A new namespace without a KiteUser, with the role that kite-vm needs there.
    pub async fn new(namespace: &str) -> Self {
        let place = Self::unprepared(namespace).await;
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "kite-vm-secrets", "namespace": namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kite-vm-secrets"},
            "subjects": [{"kind": "ServiceAccount", "name": "kite-vm", "namespace": "kite-system"}],
        });
        install::apply(&place.client, &binding.to_string())
            .await
            .unwrap();
        place
    }

    pub async fn unprepared(namespace: &str) -> Self {
        let cluster = cluster().await;
        let client = cluster.client().await;
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        install::apply(&client, &object.to_string()).await.unwrap();
        Self {
            cluster,
            client,
            namespace: namespace.to_owned(),
        }
    }

    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Applies a machine as `kubectl apply` would.
    pub async fn machine(&self, name: &str, spec: Value) -> KiteVirtualMachine {
        self.try_machine(name, spec).await.unwrap()
    }

    pub async fn try_machine(&self, name: &str, spec: Value) -> kube::Result<KiteVirtualMachine> {
        let mut whole = json!({"cpu": 1, "memory": "1Gi", "disk": "2Gi", "image": IMAGE});
        whole
            .as_object_mut()
            .unwrap()
            .extend(spec.as_object().unwrap().clone());
        let object = json!({
            "apiVersion": "kite.dev/v1alpha1", "kind": "KiteVirtualMachine",
            "metadata": {"name": name, "namespace": self.namespace}, "spec": whole,
        });
        let params = PatchParams::apply("kubectl").force();
        self.api::<KiteVirtualMachine>()
            .patch(name, &params, &Patch::Apply(&object))
            .await
    }

    /// Merges into an object, as somebody at a keyboard does.
    pub async fn edit<K>(&self, name: &str, patch: Value) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug,
    {
        let params = PatchParams {
            field_manager: Some("somebody".into()),
            ..PatchParams::default()
        };
        self.api::<K>()
            .patch(name, &params, &Patch::Merge(&patch))
            .await
            .unwrap()
    }

    /// Waits until an object is as a predicate says.
    pub async fn until<K>(
        &self,
        name: &str,
        limit: Duration,
        is: impl Fn(&K) -> bool + Send + Sync,
    ) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug
            + Send
            + Sync
            + serde::Serialize
            + 'static,
    {
        wait::wait_until(&self.api::<K>(), name, limit, is)
            .await
            .unwrap()
    }

    pub async fn gone<K>(&self, name: &str, limit: Duration)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug
            + Send
            + Sync
            + serde::Serialize
            + 'static,
    {
        wait::wait_gone(&self.api::<K>(), name, limit)
            .await
            .unwrap();
    }

    /// Waits until a machine has everything it needs.
    pub async fn applied(&self, name: &str) -> KiteVirtualMachine {
        self.until(name, LONG, |m: &KiteVirtualMachine| {
            let applied = condition_of(m, condition::RESOURCES_APPLIED);
            applied.is_some_and(|c| {
                c.status == "True" && c.observed_generation == m.metadata.generation
            })
        })
        .await
    }

    /// Waits until a condition has a reason.
    pub async fn says(
        &self,
        name: &str,
        type_: &'static str,
        reason: &'static str,
    ) -> KiteVirtualMachine {
        self.until(name, LONG, move |m: &KiteVirtualMachine| {
            condition_of(m, type_).is_some_and(|c| c.reason == reason)
        })
        .await
    }

    /// Asks the stand-ins for a fault of one object, such as `guest-shutdown`; nothing ends it.
    pub async fn fault(&self, name: &str, fault: Option<&str>) {
        let key = format!("stand-in.kite.dev/{name}");
        let patch = Patch::Merge(json!({"metadata": {"annotations": {key: fault}}}));
        Api::<Namespace>::all(self.client.clone())
            .patch(&self.namespace, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// Events about the machine of this name, oldest first: reason and note.
    pub async fn events(&self, name: &str) -> Vec<(String, String)> {
        let api = self.api::<Event>();
        let mut events = api.list(&ListParams::default()).await.unwrap().items;
        events.retain(|e| {
            let about = e.regarding.as_ref();
            about.is_some_and(|r| {
                r.kind.as_deref() == Some("KiteVirtualMachine") && r.name.as_deref() == Some(name)
            })
        });
        events.sort_by_key(|e| e.event_time.clone().map(|t| t.0));
        let words = |e: Event| (e.reason.unwrap_or_default(), e.note.unwrap_or_default());
        events.into_iter().map(words).collect()
    }

    /// Waits for an event with this reason, and returns its note.
    pub async fn event(&self, name: &str, reason: &str) -> String {
        wait::eventually(reason, LONG, async || {
            let mut events = self.events(name).await.into_iter();
            events.find(|(r, _)| r == reason)
        })
        .await
        .unwrap()
        .1
    }

    /// Puts an object that is not Kite's under the name of a machine's child (`web` in the object
    /// stands for the machine's name), makes the machine, and sees that it is told, that the
    /// object is as it was, and that all is well when it goes.
    pub async fn meets_foreign(&self, machine: &str, mut object: Value, spec: Value) {
        let kind = object["kind"].as_str().unwrap().to_owned();
        let child = object["metadata"]["name"]
            .as_str()
            .unwrap()
            .replace("web", machine);
        object["metadata"]["name"] = json!(child);
        let types = TypeMeta {
            api_version: object["apiVersion"].as_str().unwrap().to_owned(),
            kind: kind.clone(),
        };
        let kind_of = GroupVersionKind::try_from(types).unwrap();
        let (resource, _) = pinned_kind(&self.client, &kind_of).await.unwrap();
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &self.namespace, &resource);
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let before = api.create(&PostParams::default(), &object).await.unwrap();
        self.machine(machine, spec).await;
        let told = self
            .says(
                machine,
                condition::RESOURCES_APPLIED,
                condition::NAME_CONFLICT,
            )
            .await;
        let message = &condition_of(&told, condition::RESOURCES_APPLIED)
            .unwrap()
            .message;
        assert!(message.contains(&format!("{kind} {child}")), "{message}");
        let after = api.get(&child).await.unwrap();
        if matches!(kind.as_str(), "DataVolume" | "VirtualMachine") {
            assert_eq!(
                without_what_its_controller_writes(&after),
                without_what_its_controller_writes(&before)
            );
        } else {
            assert_eq!(after, before, "a foreign {kind} is not as it was");
        }
        api.delete(&child, &DeleteParams::default()).await.unwrap();
        self.applied(machine).await;
    }
}

/// KubeVirt's and CDI's stand-ins write to objects of their kinds, whoever made them.
fn without_what_its_controller_writes(object: &DynamicObject) -> Value {
    let mut value = serde_json::to_value(object).unwrap();
    value.as_object_mut().unwrap().remove("status");
    let meta = value["metadata"].as_object_mut().unwrap();
    let managers = meta.remove("managedFields").unwrap_or_default();
    assert!(
        !managers.to_string().contains("kite-vm"),
        "written to: {managers}"
    );
    for key in ["resourceVersion", "generation", "finalizers"] {
        meta.remove(key);
    }
    if let Some(annotations) = meta.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.retain(|key, _| !key.contains("kubevirt.io"));
        if annotations.is_empty() {
            meta.remove("annotations");
        }
    }
    value["spec"].as_object_mut().unwrap().remove("template");
    value
}

pub fn condition_of<'a>(machine: &'a KiteVirtualMachine, type_: &str) -> Option<&'a Condition> {
    condition::find(&machine.status.as_ref()?.conditions, type_)
}

pub fn uid<K: ResourceExt>(object: &K) -> String {
    object.uid().unwrap()
}
