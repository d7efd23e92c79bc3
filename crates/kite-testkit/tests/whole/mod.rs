//! What the scenarios of the whole system share: a user, a machine, and counts.
#![allow(dead_code, missing_docs, unreachable_pub)]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::events::v1::Event;
use kite_api::machine::Phase;
use kite_api::{Condition, KiteUser, KiteVirtualMachine, condition};
use kite_testkit::audit::{Mark, Request, Table};
use kite_testkit::cluster::IMAGE;
use kite_testkit::{Cluster, install, wait};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::runtime::watcher::{self, Event as Change, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// Longer than any step takes at the clusters' speed.
pub const LONG: Duration = Duration::from_secs(90);
/// How soon something that was changed by hand must be as it was.
pub const REPAIR: Duration = Duration::from_secs(5);

/// A user and the machines in its namespace, as people see them.
pub struct Tenant<'a> {
    pub cluster: &'a Cluster,
    pub client: Client,
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

    pub async fn user_until(&self, is: impl Fn(&KiteUser) -> bool + Send + Sync) -> KiteUser {
        let users: Api<KiteUser> = Api::all(self.client.clone());
        wait::wait_until(&users, &self.name, LONG, is)
            .await
            .unwrap()
    }

    pub async fn delete_user(&self) {
        let users: Api<KiteUser> = Api::all(self.client.clone());
        users
            .delete(&self.name, &DeleteParams::default())
            .await
            .unwrap();
        wait::wait_gone(&users, &self.name, LONG).await.unwrap();
    }

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
    pub fn follow<K>(&self, name: &str) -> Followed<K>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug
            + Send
            + 'static,
    {
        Followed::new(self.api(), name)
    }

    pub async fn machine_gone(&self, name: &str) {
        wait::wait_gone(&self.api::<KiteVirtualMachine>(), name, LONG)
            .await
            .unwrap();
    }
}

/// What a watcher saw of one object.
pub struct Followed<K> {
    seen: Arc<Mutex<Vec<K>>>,
    task: JoinHandle<()>,
}

impl<K> Followed<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    pub fn new(api: Api<K>, name: &str) -> Self {
        let seen = Arc::<Mutex<Vec<K>>>::default();
        let (into, name) = (Arc::clone(&seen), name.to_owned());
        let task = tokio::spawn(async move {
            let mut changes = Box::pin(watcher(api, watcher::Config::default()));
            while let Some(change) = changes.next().await {
                if let Ok(Change::Apply(object) | Change::InitApply(object)) = change
                    && object.name_any() == name
                {
                    into.lock().unwrap().push(object);
                }
            }
        });
        Self { seen, task }
    }

    /// Ends the watch when it has shown this version, which another watch has shown before.
    pub async fn end(self, last: &K) -> Vec<K> {
        let version = last.resource_version();
        let shown = |seen: &[K]| seen.iter().any(|o| o.resource_version() == version);
        wait::eventually("a watcher to come along", REPAIR, async || {
            shown(&self.seen.lock().unwrap()).then_some(())
        })
        .await
        .unwrap();
        self.task.abort();
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}

pub fn is_ready(machine: &KiteVirtualMachine) -> bool {
    let Some(status) = &machine.status else {
        return false;
    };
    status.observed_generation == machine.metadata.generation
        && is_true(&status.conditions, condition::READY)
}

pub fn conditions(machine: &KiteVirtualMachine) -> &[Condition] {
    machine
        .status
        .as_ref()
        .map(|s| s.conditions.as_slice())
        .unwrap_or_default()
}

pub fn condition_of<'a>(machine: &'a KiteVirtualMachine, type_: &str) -> Option<&'a Condition> {
    condition::find(conditions(machine), type_)
}

/// The message of a condition that is there.
pub fn message_of(machine: &KiteVirtualMachine, type_: &str) -> String {
    condition_of(machine, type_).unwrap().message.clone()
}

pub fn phase(machine: &KiteVirtualMachine) -> Option<Phase> {
    machine.status.as_ref()?.phase
}

/// Lets the last write of a step and its echo go by: the longest hold of a status is two seconds.
pub async fn quiet(cluster: &Cluster) {
    let audit = cluster.control_plane.audit().unwrap();
    let client = cluster.client().await;
    let mut mark = audit.settled_mark(&client).await.unwrap();
    loop {
        tokio::time::sleep(Duration::from_millis(2500)).await;
        if Counted::since(cluster, &client, mark).await.total() == 0 {
            return;
        }
        mark = audit.settled_mark(&client).await.unwrap();
    }
}

pub fn user_conditions(user: &KiteUser) -> &[Condition] {
    user.status
        .as_ref()
        .map(|s| s.conditions.as_slice())
        .unwrap_or_default()
}

pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    condition::is_true(conditions, type_)
}

/// Kite's requests since a mark, leases and watches left out, events apart.
pub struct Counted {
    pub requests: Vec<Request>,
    pub events: usize,
    /// Leases and watches, which go on for ever.
    pub upkeep: usize,
}

impl Counted {
    pub async fn since(cluster: &Cluster, client: &Client, mark: Mark) -> Self {
        let audit = cluster.control_plane.audit().unwrap();
        audit.settled_mark(client).await.unwrap();
        let by_kite = |r: &Request| {
            r.user
                .starts_with("system:serviceaccount:kite-system:kite-")
        };
        let all: Vec<Request> = audit
            .since(mark)
            .unwrap()
            .into_iter()
            .filter(by_kite)
            .collect();
        let upkeep = all.iter().filter(|r| r.is_lease() || r.is_watch()).count();
        let events = all.iter().filter(|r| r.is_event()).count();
        let requests = all
            .into_iter()
            .filter(|r| !r.is_event() && !r.is_lease() && !r.is_watch())
            .collect();
        Self {
            requests,
            events,
            upkeep,
        }
    }

    pub fn total(&self) -> usize {
        self.requests.len()
    }

    /// Prints the table of a step, and fails when there are more than allowed.
    pub fn at_most(&self, what: &str, limit: usize) {
        println!(
            "\n{what}: {} requests (at most {limit}), {} events\n{}",
            self.total(),
            self.events,
            Table::of(&self.requests)
        );
        let conflicts: Vec<_> = self.requests.iter().filter(|r| r.code == 409).collect();
        assert!(
            self.total() <= limit,
            "{what} took {} requests, {limit} are allowed; conflicts: {conflicts:?}",
            self.total()
        );
    }

    /// One controller's requests.
    pub fn only(mut self, controller: &str) -> Self {
        self.requests.retain(|r| r.is_by(controller));
        self
    }

    /// Requests by controller.
    pub fn by_controller(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for request in &self.requests {
            let name = request
                .user
                .rsplit(':')
                .next()
                .unwrap_or_default()
                .to_owned();
            *counts.entry(name).or_default() += 1;
        }
        counts
    }
}
