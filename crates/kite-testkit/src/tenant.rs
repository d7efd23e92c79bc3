//! A user and the machines in its namespace, as scenarios handle them: made,
//! edited, waited for, followed.
//!
//! Everything panics when the cluster does not do what is asked, since a
//! scenario cannot go on without it. What is looked at is left to the scenario.

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::events::v1::Event;
use kite_api::machine::Phase;
use kite_api::{Condition, KiteUser, KiteVirtualMachine, condition};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::cluster::IMAGE;
use crate::followed::Followed;
use crate::{Cluster, install, wait};

/// Longer than any step takes at the clusters' speed.
pub const LONG: Duration = Duration::from_secs(90);
/// How soon something that was changed by hand must be as it was.
pub const REPAIR: Duration = Duration::from_secs(5);

/// A user and the machines in its namespace, as people see them.
pub struct Tenant<'a> {
    /// Where it lives.
    pub cluster: &'a Cluster,
    /// The administrator's.
    pub client: Client,
    /// Of the KiteUser and of its namespace.
    pub name: String,
}

impl<'a> Tenant<'a> {
    /// A tenant that is yet to be made.
    pub async fn new(cluster: &'a Cluster, name: &str) -> Self {
        Self {
            cluster,
            client: cluster.client().await,
            name: name.to_owned(),
        }
    }

    /// Makes the KiteUser and waits until its namespace is safe to use.
    pub async fn create(&self) -> KiteUser {
        let user = json!({
            "apiVersion": "kite.dev/v1alpha1", "kind": "KiteUser", "metadata": {"name": self.name},
            "spec": {
                "namespace": self.name,
                "quota": {"cpu": 8, "memory": "16Gi", "storage": "100Gi", "virtualMachines": 4},
                "subjects": [{"kind": "User", "name": format!("{}@example.org", self.name)}],
            },
        });
        install::apply(&self.client, &user.to_string())
            .await
            .unwrap();
        self.user_until(|u| is_true(user_conditions(u), condition::READY))
            .await
    }

    /// Waits for a state of the KiteUser.
    pub async fn user_until(&self, is: impl Fn(&KiteUser) -> bool + Send + Sync) -> KiteUser {
        let users: Api<KiteUser> = Api::all(self.client.clone());
        wait::wait_until(&users, &self.name, LONG, is)
            .await
            .unwrap()
    }

    /// Deletes the KiteUser and waits until it is gone.
    pub async fn delete_user(&self) {
        let users: Api<KiteUser> = Api::all(self.client.clone());
        users
            .delete(&self.name, &DeleteParams::default())
            .await
            .unwrap();
        wait::wait_gone(&users, &self.name, LONG).await.unwrap();
    }

    /// Waits until the namespace is gone.
    pub async fn namespace_gone(&self) {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        wait::wait_gone(&namespaces, &self.name, LONG)
            .await
            .unwrap();
    }

    /// A namespace without a KiteUser, prepared by hand, for scenarios without kite-user.
    pub async fn prepare_by_hand(&self) {
        let objects = [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name}}),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                "metadata": {"name": "kite-vm-secrets", "namespace": self.name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kite-vm-secrets"},
                "subjects": [{"kind": "ServiceAccount", "name": "kite-vm", "namespace": "kite-system"}],
            }),
        ];
        for object in objects {
            install::apply(&self.client, &object.to_string())
                .await
                .unwrap();
        }
    }

    /// The objects of a kind in the namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// Applies a machine as `kubectl apply` would.
    pub async fn machine(&self, name: &str, spec: Value) {
        self.try_machine(name, spec).await.unwrap();
    }

    /// As [`Self::machine`], with the server's answer.
    pub async fn try_machine(&self, name: &str, spec: Value) -> kube::Result<KiteVirtualMachine> {
        self.apply_machine(name, spec, PatchParams::apply("kubectl").force())
            .await
    }

    /// What the server would say to a machine.
    pub async fn dry_run(&self, name: &str, spec: Value) -> kube::Result<KiteVirtualMachine> {
        let params = PatchParams::apply("kubectl").force().dry_run();
        self.apply_machine(name, spec, params).await
    }

    async fn apply_machine(
        &self,
        name: &str,
        spec: Value,
        params: PatchParams,
    ) -> kube::Result<KiteVirtualMachine> {
        let mut whole = json!({"cpu": 1, "memory": "1Gi", "disk": "2Gi", "image": IMAGE});
        whole
            .as_object_mut()
            .unwrap()
            .extend(spec.as_object().unwrap().clone());
        let object = json!({
            "apiVersion": "kite.dev/v1alpha1", "kind": "KiteVirtualMachine",
            "metadata": {"name": name}, "spec": whole,
        });
        let machines = self.api::<KiteVirtualMachine>();
        machines.patch(name, &params, &Patch::Apply(&object)).await
    }

    /// Merges into an object, as somebody at a keyboard does.
    pub async fn edit<K>(&self, name: &str, patch: Value) -> K
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
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

    /// Waits for a state of an object.
    pub async fn until<K>(
        &self,
        name: &str,
        limit: Duration,
        is: impl Fn(&K) -> bool + Send + Sync,
    ) -> K
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug
            + Send
            + Sync
            + Serialize
            + 'static,
    {
        wait::wait_until(&self.api::<K>(), name, limit, is)
            .await
            .unwrap()
    }

    /// Waits until a machine is Ready for its present generation.
    pub async fn ready(&self, name: &str) -> KiteVirtualMachine {
        self.until(name, LONG, is_ready).await
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

    /// Asks the stand-ins for a fault of one object, such as `virtctl-stop`; nothing ends it.
    pub async fn fault(&self, name: &str, fault: Option<&str>) {
        let key = format!("stand-in.kite.dev/{name}");
        let patch = Patch::Merge(json!({"metadata": {"annotations": {key: fault}}}));
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        namespaces
            .patch(&self.name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// Events about the object of this name, oldest first: reason and note.
    pub async fn events(&self, name: &str) -> Vec<(String, String)> {
        let events = self
            .api::<Event>()
            .list(&ListParams::default())
            .await
            .unwrap();
        let about = |e: &Event| {
            e.regarding
                .as_ref()
                .is_some_and(|r| r.name.as_deref() == Some(name))
        };
        let mut events: Vec<_> = events.items.into_iter().filter(about).collect();
        events.sort_by_key(|e| e.event_time.clone().map(|t| t.0));
        let words = |e: Event| (e.reason.unwrap_or_default(), e.note.unwrap_or_default());
        events.into_iter().map(words).collect()
    }

    /// Waits for an event with this reason, and returns its note.
    pub async fn event(&self, name: &str, reason: &str) -> String {
        wait::eventually(reason, REPAIR, async || {
            let events = self.events(name).await;
            events.into_iter().find(|(r, _)| r == reason)
        })
        .await
        .unwrap()
        .1
    }

    /// Everything that a watcher of this object sees from now on, in order.
    pub async fn follow<K>(&self, name: &str) -> Followed<K>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug
            + Send
            + 'static,
    {
        Followed::start(self.api(), name).await
    }

    /// Waits until a machine is gone.
    pub async fn machine_gone(&self, name: &str) {
        wait::wait_gone(&self.api::<KiteVirtualMachine>(), name, LONG)
            .await
            .unwrap();
    }
}

/// Whether a machine is Ready for its present generation.
pub fn is_ready(machine: &KiteVirtualMachine) -> bool {
    let Some(status) = &machine.status else {
        return false;
    };
    status.observed_generation == machine.metadata.generation
        && is_true(&status.conditions, condition::READY)
}

/// The conditions of a machine.
pub fn conditions(machine: &KiteVirtualMachine) -> &[Condition] {
    machine
        .status
        .as_ref()
        .map(|s| s.conditions.as_slice())
        .unwrap_or_default()
}

/// One condition of a machine.
pub fn condition_of<'a>(machine: &'a KiteVirtualMachine, type_: &str) -> Option<&'a Condition> {
    condition::find(conditions(machine), type_)
}

/// The message of a condition that is there.
pub fn message_of(machine: &KiteVirtualMachine, type_: &str) -> String {
    condition_of(machine, type_).unwrap().message.clone()
}

/// The phase of a machine.
pub fn phase(machine: &KiteVirtualMachine) -> Option<Phase> {
    machine.status.as_ref()?.phase
}

/// The conditions of a user.
pub fn user_conditions(user: &KiteUser) -> &[Condition] {
    user.status
        .as_ref()
        .map(|s| s.conditions.as_slice())
        .unwrap_or_default()
}

/// Whether a condition is there and True.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    condition::is_true(conditions, type_)
}
