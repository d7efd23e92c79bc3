//! Stand-ins for KubeVirt and CDI, labelled as such wherever they show.
//!
//! They play virt-controller, virt-handler, cdi-controller and a storage driver
//! on the real objects of a real API server, as the recordings of the real
//! ones show. No guest runs and no byte is copied; everything else (quotas,
//! bindings, garbage collection, endpoints, admission) is the server's own.
//! They know nothing of Kite's crates: they are the other side.
//!
//! Times of a life at speed 1: a claim 10 to 110 ms after its DataVolume,
//! `CloneScheduled` a second later, twenty ticks of progress every three
//! seconds; a machine is seen after 50 to 200 ms, its launcher runs after
//! three seconds, its guest after ten, and stops within five.

mod agenda;
mod behaviour;
mod cache;
mod cdi;
mod clock;
mod fault;
mod kubevirt;
mod names;
mod value;
mod webhooks;
mod wiring;
mod world;

use std::sync::Arc;

use anyhow::Result;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::task::JoinSet;

pub use behaviour::{Behaviour, EVERY_OBJECT};
pub use cdi::images::publish_image;
pub use fault::{Fault, UnknownFault};
pub use names::{FAULT_PREFIX, NODES, PROVISIONER, PUBLISHED_LABEL, STAND_IN_LABEL, STORAGE_CLASS};

use names::KUBEVIRT_MANAGER;
use webhooks::Webhooks;
use world::World;

/// How the stand-ins behave.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// All times of the script are divided by this.
    pub speed: f64,
    /// Whether the admission webhooks are served and registered.
    pub webhooks: bool,
    /// Whether a clone fills a temporary claim first, as with a CSI driver, so
    /// that it needs two claims and twice the storage until it ends.
    pub temporary_claims: bool,
    /// Whether claims are bound here, where the server's own controller does not run.
    pub binds_claims: bool,
    /// How many ticks of progress make a clone; fewer are a shorter life.
    pub ticks: u32,
    /// How many objects are worked on at a time.
    pub slots: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            speed: 1.0,
            webhooks: true,
            temporary_claims: true,
            binds_claims: false,
            ticks: 20,
            slots: 24,
        }
    }
}

/// Stand-ins that run until they are stopped or dropped.
pub struct StandIns {
    world: Arc<World>,
    webhooks: Option<Webhooks>,
    tasks: JoinSet<()>,
}

/// Registers nodes, storage class and webhooks, and begins to watch.
pub async fn start(client: Client, options: Options) -> Result<StandIns> {
    register(&client).await?;
    let world = World::new(client, options);
    let world = Arc::new(world);
    let mut tasks = JoinSet::new();
    let webhooks = if options.webhooks {
        Some(Webhooks::start(&world, &mut tasks).await?)
    } else {
        None
    };
    wiring::spawn(&world, options.slots.max(1), &mut tasks);
    Ok(StandIns {
        world,
        webhooks,
        tasks,
    })
}

impl StandIns {
    /// The handle by which failures are asked for.
    pub fn behaviour(&self) -> Behaviour {
        self.world.behaviour.clone()
    }

    /// Waits until a part ends by itself, and tells how. None should: what it was to do nobody does then.
    pub async fn ended(&mut self) -> anyhow::Error {
        match self.tasks.join_next().await {
            Some(Err(error)) => anyhow::Error::new(error).context("a part of the stand-ins ended"),
            _ => anyhow::anyhow!("a watch or a server of the stand-ins ended without a word"),
        }
    }

    /// Stops, and takes the webhooks back so that nothing is refused for want
    /// of an answer. Objects stay as they are.
    pub async fn stop(mut self) -> Result<()> {
        let removed = match &self.webhooks {
            Some(webhooks) => webhooks.remove().await,
            None => Ok(()),
        };
        self.tasks.shutdown().await;
        removed
    }
}

/// What must be there before anything can happen.
async fn register(client: &Client) -> Result<()> {
    apply(
        client,
        "storage.k8s.io",
        "StorageClass",
        "storageclasses",
        storage_class(),
    )
    .await?;
    for name in NODES {
        apply(client, "", "Node", "nodes", kubevirt::node(name)).await?;
        let ready = json!({"status": {"conditions": [{
            "type": "Ready", "status": "True", "reason": "StandIn",
            "message": "nothing runs on this node",
        }]}});
        let nodes = resource(client, "", "Node", "nodes");
        let params = PatchParams::default();
        nodes
            .patch_status(name, &params, &Patch::Merge(&ready))
            .await?;
    }
    Ok(())
}

fn storage_class() -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": STORAGE_CLASS,
            "labels": {STAND_IN_LABEL: "true"},
            "annotations": {
                "storageclass.kubernetes.io/is-default-class": "true",
                "storageclass.kubevirt.io/is-default-virt-class": "true",
            },
        },
        "provisioner": PROVISIONER,
        "allowVolumeExpansion": true,
        "volumeBindingMode": "Immediate",
        "reclaimPolicy": "Delete",
    })
}

fn resource(client: &Client, group: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
    let kind = kube::api::GroupVersionKind::gvk(group, "v1", kind);
    let resource = kube::api::ApiResource::from_gvk_with_plural(&kind, plural);
    Api::all_with(client.clone(), &resource)
}

async fn apply(
    client: &Client,
    group: &str,
    kind: &str,
    plural: &str,
    object: Value,
) -> Result<()> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let params = PatchParams::apply(KUBEVIRT_MANAGER).force();
    let api = resource(client, group, kind, plural);
    api.patch(name, &params, &Patch::Apply(&object)).await?;
    Ok(())
}
