//! What the lives are, and what happens in each.

use futures::future::join_all;
use kite_api::KiteUser;
use kite_api::KiteVirtualMachine;
use kite_api::condition::{self, READY};
use kite_api::machine::Phase;
use kite_testkit::fault_layer::Asked;
use kite_testkit::install::SYSTEM_NAMESPACE;
use kite_testkit::tenant::{LONG, Tenant, condition_of, is_ready, is_true, phase, user_conditions};
use kite_testkit::{install, wait};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::world::World;

/// Whose lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Machines,
    Users,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Create,
    Off,
    On,
    Delete,
}

impl Step {
    pub(crate) const ALL: [Self; 4] = [Self::Create, Self::Off, Self::On, Self::Delete];

    pub(crate) fn of(kind: Kind) -> Vec<Self> {
        match kind {
            Kind::Machines => Self::ALL.to_vec(),
            Kind::Users => vec![Self::Create, Self::Delete],
        }
    }

    pub(crate) fn named(self, kind: Kind) -> &'static str {
        match (self, kind) {
            (Self::Create, Kind::Machines) => "machine create",
            (Self::Off, _) => "power off",
            (Self::On, _) => "power on",
            (Self::Delete, Kind::Machines) => "machine delete",
            (Self::Create, Kind::Users) => "user create",
            (Self::Delete, Kind::Users) => "user delete",
        }
    }
}

/// Lives that run side by side.
pub(crate) struct Lives {
    pub(crate) kind: Kind,
    /// The namespace that the machines share; each user has its own, called like it.
    pub(crate) tenant: String,
    /// No name is the beginning of another.
    pub(crate) names: Vec<String>,
}

impl Lives {
    pub(crate) fn new(kind: Kind, batch: &str, count: usize) -> Self {
        let letter = match kind {
            Kind::Machines => 'm',
            Kind::Users => 'u',
        };
        Self {
            kind,
            tenant: format!("tenant-{batch}"),
            names: (1..=count)
                .map(|i| format!("{batch}-{letter}{i:02}"))
                .collect(),
        }
    }

    /// Some of them.
    pub(crate) fn only(&self, names: &[String]) -> Self {
        Self {
            kind: self.kind,
            tenant: self.tenant.clone(),
            names: names.to_vec(),
        }
    }

    /// Whether a request is about a life.
    pub(crate) fn is_about(&self, asked: &Asked, name: &str) -> bool {
        let alone = self.names.len() == 1;
        self.holds(&asked.namespace, &asked.name, name) || (alone && is_record(asked))
    }

    /// Whether an object is part of a life.
    pub(crate) fn holds(&self, namespace: &str, object: &str, name: &str) -> bool {
        match self.kind {
            Kind::Machines => {
                (namespace.is_empty() || namespace == self.tenant) && object.starts_with(name)
            }
            Kind::Users => namespace == name || (namespace.is_empty() && object.starts_with(name)),
        }
    }

    /// Makes what the lives share.
    pub(crate) async fn prepare(&self, world: &World) {
        if self.kind == Kind::Machines {
            let user = user(&self.tenant, &json!({"namespace": self.tenant}));
            install::apply(&world.client, &user.to_string())
                .await
                .unwrap();
            let tenant = Tenant::new(&world.cluster, &self.tenant).await;
            tenant
                .user_until(|u| is_true(user_conditions(u), READY))
                .await;
        }
    }

    /// Asks for a step in every life at once.
    pub(crate) async fn ask(&self, world: &World, step: Step) {
        join_all(self.names.iter().map(|name| async move {
            match self.kind {
                Kind::Machines => self.ask_machine(world, step, name).await,
                Kind::Users => ask_user(world, step, name).await,
            }
        }))
        .await;
    }

    async fn ask_machine(&self, world: &World, step: Step, name: &str) {
        let tenant = Tenant::new(&world.cluster, &self.tenant).await;
        let change = match step {
            Step::Create => {
                tenant.machine(name, json!({"domainPrefix": name})).await;
                return;
            }
            Step::Off => json!({"powerState": "Off"}),
            Step::On => json!({"powerState": "On"}),
            Step::Delete => json!({"delete": true}),
        };
        tenant
            .edit::<KiteVirtualMachine>(name, json!({"spec": change}))
            .await;
    }

    /// Waits until a step is done in every life, as far as a person would see it.
    pub(crate) async fn done(&self, world: &World, step: Step) {
        join_all(self.names.iter().map(|name| async move {
            match self.kind {
                Kind::Machines => self.machine_done(world, step, name).await,
                Kind::Users => user_done(world, step, name).await,
            }
        }))
        .await;
    }

    async fn machine_done(&self, world: &World, step: Step, name: &str) {
        let tenant = Tenant::new(&world.cluster, &self.tenant).await;
        let end = match step {
            Step::Create | Step::On => Phase::Running,
            Step::Off => Phase::Stopped,
            Step::Delete => return tenant.machine_gone(name).await,
        };
        let is_done = |m: &KiteVirtualMachine| {
            let disk = condition_of(m, condition::DISK_READY);
            is_ready(m) && phase(m) == Some(end) && disk.is_some_and(|c| c.status == "True")
        };
        tenant.until(name, LONG, is_done).await;
    }
}

/// What kite-namespace keeps on Kite's own namespace about each deletion.
pub(crate) fn is_record(asked: &Asked) -> bool {
    asked.resource == "namespaces" && asked.name == SYSTEM_NAMESPACE
}

fn user(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "kite.dev/v1alpha1", "kind": "KiteUser", "metadata": {"name": name}, "spec": spec,
    })
}

async fn ask_user(world: &World, step: Step, name: &str) {
    let users: Api<KiteUser> = Api::all(world.client.clone());
    if step == Step::Delete {
        users.delete(name, &DeleteParams::default()).await.unwrap();
        return;
    }
    let spec = json!({
        "namespace": name,
        "quota": {"cpu": 8, "memory": "16Gi", "storage": "100Gi", "virtualMachines": 4},
        "subjects": [{"kind": "User", "name": format!("{name}@example.org")}],
    });
    let how = PatchParams::apply("kubectl").force();
    users
        .patch(name, &how, &Patch::Apply(&user(name, &spec)))
        .await
        .unwrap();
}

async fn user_done(world: &World, step: Step, name: &str) {
    let users: Api<KiteUser> = Api::all(world.client.clone());
    if step == Step::Delete {
        wait::wait_gone(&users, name, LONG).await.unwrap();
        Tenant::new(&world.cluster, name)
            .await
            .namespace_gone()
            .await;
        return;
    }
    let ready = |u: &KiteUser| is_true(user_conditions(u), READY);
    wait::wait_until(&users, name, LONG, ready).await.unwrap();
}
