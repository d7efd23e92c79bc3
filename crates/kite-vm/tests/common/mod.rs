//! A cluster in which kite-vm runs alone, and short ways to say things in it.
#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]

use std::ops::Deref;

use kite_api::condition;
use kite_testkit::cluster::CONTROLLERS;
use kite_testkit::{Cluster, ClusterOptions, place};
use kube::api::{DeleteParams, DynamicObject, PostParams, TypeMeta};
use kube::core::GroupVersionKind;
use kube::discovery::pinned_kind;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

pub use kite_testkit::place::{LONG, condition_of};

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
    place: place::Place,
}

impl Deref for Place {
    type Target = place::Place;

    fn deref(&self) -> &place::Place {
        &self.place
    }
}

impl Place {
    /// A new namespace without a KiteUser, with the role that kite-vm needs there.
    pub async fn new(namespace: &str) -> Self {
        let place = Self::unprepared(namespace).await;
        place.prepare().await;
        place
    }

    pub async fn unprepared(namespace: &str) -> Self {
        let cluster = cluster().await;
        let place = place::Place {
            client: cluster.client().await,
            namespace: namespace.to_owned(),
        };
        place.make().await;
        Self { cluster, place }
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

pub fn uid<K: ResourceExt>(object: &K) -> String {
    object.uid().unwrap()
}
