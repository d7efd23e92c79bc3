//! A namespace as scenarios handle it: machines made, edited, waited for and
//! followed, faults asked for, events read.
//!
//! Everything panics when the cluster does not do what is asked, since a
//! scenario cannot go on without it. What is looked at is left to the scenario.

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::events::v1::Event;
use kite_api::machine::{Phase, PowerState};
use kite_api::{Condition, KiteVirtualMachine, condition};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::cluster::IMAGE;
use crate::followed::Followed;
use crate::{install, wait};

/// Longer than any step takes at the clusters' speed, on a busy machine too.
pub const LONG: Duration = Duration::from_secs(90);
/// How soon something that was changed by hand must be as it was.
pub const REPAIR: Duration = Duration::from_secs(5);

/// A namespace of a cluster.
#[derive(Clone)]
pub struct Place {
    /// The administrator's.
    pub client: Client,
    /// Its name.
    pub namespace: String,
}

impl Place {
    /// Makes the namespace and nothing in it.
    pub async fn make(&self) {
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
        install::apply(&self.client, &object.to_string())
            .await
            .unwrap();
    }

    /// Gives kite-vm its role in the namespace, as an administrator does where there is no KiteUser (rule C-20).
    pub async fn prepare(&self) {
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "kite-vm-secrets", "namespace": self.namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kite-vm-secrets"},
            "subjects": [{"kind": "ServiceAccount", "name": "kite-vm", "namespace": "kite-system"}],
        });
        install::apply(&self.client, &binding.to_string())
            .await
            .unwrap();
    }

    /// The objects of a kind in the namespace.
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
            "metadata": {"name": name, "namespace": self.namespace}, "spec": whole,
        });
        let machines = self.api::<KiteVirtualMachine>();
        machines.patch(name, &params, &Patch::Apply(&object)).await
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

    /// Waits for a state of an object.
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

    /// Switches a machine on or off, and waits until it is Ready as that.
    pub async fn switch(&self, name: &str, power: PowerState) -> KiteVirtualMachine {
        self.edit::<KiteVirtualMachine>(name, json!({"spec": {"powerState": power}}))
            .await;
        let end = match power {
            PowerState::On => Phase::Running,
            PowerState::Off => Phase::Stopped,
        };
        self.until(name, LONG, |m: &KiteVirtualMachine| {
            is_ready(m) && phase(m) == Some(end)
        })
        .await
    }

    /// Waits until kite-vm has done all that a machine's present generation asks of it.
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

    /// Asks the stand-ins for a fault of one object, such as `virtctl-stop`; nothing ends it.
    pub async fn fault(&self, name: &str, fault: Option<&str>) {
        let key = format!("stand-in.kite.dev/{name}");
        let patch = Patch::Merge(json!({"metadata": {"annotations": {key: fault}}}));
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        namespaces
            .patch(&self.namespace, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// Events about the machine of this name, oldest first: reason and note.
    pub async fn events(&self, name: &str) -> Vec<(String, String)> {
        let events = self
            .api::<Event>()
            .list(&ListParams::default())
            .await
            .unwrap();
        let about = |e: &Event| {
            let about = e.regarding.as_ref();
            about.is_some_and(|r| {
                r.kind.as_deref() == Some("KiteVirtualMachine") && r.name.as_deref() == Some(name)
            })
        };
        let mut events: Vec<_> = events.items.into_iter().filter(about).collect();
        events.sort_by_key(|e| e.event_time.clone().map(|t| t.0));
        let words = |e: Event| (e.reason.unwrap_or_default(), e.note.unwrap_or_default());
        events.into_iter().map(words).collect()
    }

    /// Waits for an event with this reason, and returns its note.
    pub async fn event(&self, name: &str, reason: &str) -> String {
        wait::eventually(reason, LONG, async || {
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
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug
            + Send
            + 'static,
    {
        Followed::start(self.api(), name).await
    }

    /// Waits until an object is gone.
    pub async fn gone<K>(&self, name: &str, limit: Duration)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug
            + Send
            + Sync
            + Serialize
            + 'static,
    {
        wait::wait_gone(&self.api::<K>(), name, limit)
            .await
            .unwrap();
    }

    /// Waits until a machine is gone.
    pub async fn machine_gone(&self, name: &str) {
        self.gone::<KiteVirtualMachine>(name, LONG).await;
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

/// Whether a condition is there and True.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    condition::is_true(conditions, type_)
}
