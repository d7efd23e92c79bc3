//! One control plane with one set of stand-ins for all tests of this binary, a
//! Namespace for each test, and a watcher that misses no state.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::StreamExt;
use kite_testkit::install::upstream_crds;
use kite_testkit::stand_ins::{self, Behaviour, Options};
use kite_testkit::{ControlPlane, shared};
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// How much faster than in reality the lives of these tests pass.
pub(crate) const SPEED: f64 = 10.0;
/// No step of a test takes longer.
pub(crate) const LIMIT: Duration = Duration::from_secs(90);
/// Namespace of the images.
pub(crate) const IMAGES: &str = "kite-images";

static BEHAVIOUR: OnceCell<Behaviour> = OnceCell::const_new();

/// The control plane, with CRDs, an image and the stand-ins at work.
pub(crate) async fn plane() -> (&'static ControlPlane, Behaviour) {
    let plane = shared().await;
    let behaviour = BEHAVIOUR.get_or_init(|| async {
        upstream_crds(plane).await.unwrap();
        // Its collector would learn of the new kinds only within half a minute.
        plane.restart_controller_manager().await.unwrap();
        let (tell, told) = tokio::sync::oneshot::channel();
        // The stand-ins outlive the test that starts them, so they need a
        // runtime of their own.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async move {
                let client = plane.admin_client().await.unwrap();
                let options = Options {
                    speed: SPEED,
                    ..Options::default()
                };
                let mut running = stand_ins::start(client, options).await.unwrap();
                tell.send(running.behaviour()).ok();
                eprintln!("{:#}", running.ended().await);
                // No test could go on.
                std::process::abort();
            });
        });
        let behaviour = told.await.unwrap();
        let client = plane.admin_client().await.unwrap();
        stand_ins::publish_image(&client, IMAGES, "golden", "2Gi")
            .await
            .unwrap();
        behaviour
    });
    (plane, behaviour.await.clone())
}

/// One test's Namespace.
pub(crate) struct Stage {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) behaviour: Behaviour,
}

impl Stage {
    pub(crate) async fn new(namespace: &str) -> Self {
        let (plane, behaviour) = plane().await;
        let client = plane.admin_client().await.unwrap();
        let stage = Self {
            client,
            namespace: namespace.to_owned(),
            behaviour,
        };
        stage
            .make("Namespace", json!({"metadata": {"name": namespace}}))
            .await;
        let accounts = stage.api("ServiceAccount");
        until(|| async { accounts.get_opt("default").await.unwrap() }).await;
        stage
    }

    pub(crate) fn api(&self, kind: &str) -> Api<DynamicObject> {
        self.api_in(kind, &self.namespace)
    }

    pub(crate) fn api_in(&self, kind: &str, namespace: &str) -> Api<DynamicObject> {
        let resource = resource(kind);
        if matches!(kind, "Namespace" | "PersistentVolume") {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), namespace, &resource)
        }
    }

    /// Creates an object.
    pub(crate) async fn make(&self, kind: &str, object: Value) -> DynamicObject {
        self.try_make(kind, object).await.unwrap()
    }

    /// Creates an object that may be refused.
    pub(crate) async fn try_make(
        &self,
        kind: &str,
        object: Value,
    ) -> Result<DynamicObject, kube::Error> {
        self.post(kind, object, &PostParams::default()).await
    }

    async fn post(
        &self,
        kind: &str,
        mut object: Value,
        params: &PostParams,
    ) -> Result<DynamicObject, kube::Error> {
        let resource = resource(kind);
        object["apiVersion"] = json!(resource.api_version);
        object["kind"] = json!(resource.kind);
        let object = serde_json::from_value(object).unwrap();
        self.api(kind).create(params, &object).await
    }

    /// Merges a patch into an object.
    pub(crate) async fn merge(&self, kind: &str, name: &str, patch: Value) {
        let params = PatchParams::default();
        self.api(kind)
            .patch(name, &params, &Patch::Merge(&patch))
            .await
            .unwrap();
    }

    /// Plays CDI for a DataVolume that the stand-in is told not to see.
    pub(crate) async fn set_phase(&self, name: &str, phase: &str) {
        let patch = json!({"status": {"phase": phase}});
        let api = self.api("DataVolume");
        api.patch_status(name, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .unwrap();
    }

    pub(crate) async fn delete(&self, kind: &str, name: &str) {
        self.api(kind)
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
    }

    /// Waits until an object is there and fits.
    pub(crate) async fn wait(
        &self,
        kind: &str,
        name: &str,
        fits: impl Fn(&DynamicObject) -> bool,
    ) -> DynamicObject {
        let api = self.api(kind);
        until(|| async { api.get_opt(name).await.unwrap().filter(|found| fits(found)) }).await
    }

    pub(crate) async fn wait_gone(&self, kind: &str, name: &str) {
        let api = self.api(kind);
        until(|| async { api.get_opt(name).await.unwrap().is_none().then_some(()) }).await;
    }

    /// Records every state of every object of a kind in this Namespace, from
    /// what is there when this returns.
    pub(crate) async fn record(&self, kind: &str) -> Recorder {
        let seen: Arc<Mutex<Vec<DynamicObject>>> = Arc::default();
        let api = self.api(kind);
        let sink = seen.clone();
        let (tell, told) = tokio::sync::oneshot::channel();
        let task = tokio::spawn(async move {
            let mut tell = Some(tell);
            let events = watcher(api, watcher::Config::default()).default_backoff();
            let mut events = Box::pin(events);
            while let Some(event) = events.next().await {
                match event {
                    Ok(Event::Apply(object) | Event::InitApply(object)) => {
                        sink.lock().unwrap().push(object);
                    }
                    Ok(Event::InitDone) => {
                        let _ = tell.take().map(|tell| tell.send(()));
                    }
                    _ => {}
                }
            }
        });
        told.await.unwrap();
        Recorder { seen, task }
    }

    /// A machine on a claim, valid for the webhooks.
    pub(crate) fn machine(name: &str, strategy: &str, volume: &Value) -> Value {
        json!({
            "metadata": {"name": name},
            "spec": {
                "runStrategy": strategy,
                "template": {
                    "metadata": {"labels": {"kite.dev/vm-uid": "abc"}},
                    "spec": {
                        "domain": {
                            "cpu": {"sockets": 2, "cores": 1, "threads": 1},
                            "memory": {"guest": "1Gi"},
                            "devices": {
                                "disks": [{"name": "root", "disk": {"bus": "virtio"}}],
                                "interfaces": [{"name": "default", "masquerade": {}}],
                            },
                        },
                        "networks": [{"name": "default", "pod": {}}],
                        "volumes": [volume],
                    },
                },
            },
        })
    }

    /// A DataVolume that clones an image.
    pub(crate) fn disk(name: &str, image: &str) -> Value {
        json!({
            "metadata": {
                "name": name,
                "labels": {"kite.dev/vm-uid": "abc"},
                "annotations": {
                    "kite.dev/vm-uid": "abc",
                    "cdi.kubevirt.io/storage.bind.immediate.requested": "",
                },
            },
            "spec": {
                "sourceRef": {"kind": "DataSource", "name": image, "namespace": IMAGES},
                "storage": {"resources": {"requests": {"storage": "2Gi"}}},
            },
        })
    }

    /// A quota named `q`, in force: the server holds nothing against one that it has just learned of,
    /// though its status is there.
    pub(crate) async fn quota(&self, mut hard: Value) {
        // Nobody makes any, so that whether one is refused says whether the quota is known.
        hard["replicationcontrollers"] = json!("0");
        let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": hard}});
        self.make("ResourceQuota", quota).await;
        let probe = json!({
            "metadata": {"name": "probe"},
            "spec": {
                "selector": {"app": "probe"},
                "template": {
                    "metadata": {"labels": {"app": "probe"}},
                    "spec": {"containers": [{"name": "probe", "image": "probe"}]},
                },
            },
        });
        let dry_run = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        until(|| async {
            let answer = self.post("ReplicationController", probe.clone(), &dry_run);
            let refused = answer.await.err()?;
            refused
                .to_string()
                .contains("exceeded quota: q")
                .then_some(())
        })
        .await;
    }

    /// A claim as CDI would have made it.
    pub(crate) async fn claim(&self, name: &str) {
        self.make(
            "PersistentVolumeClaim",
            json!({
                "metadata": {"name": name},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": stand_ins::STORAGE_CLASS,
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            }),
        )
        .await;
    }
}

/// Everything that was seen of a kind.
pub(crate) struct Recorder {
    seen: Arc<Mutex<Vec<DynamicObject>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Recorder {
    /// How much has been seen so far: the beginning of the next step.
    pub(crate) fn mark(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    /// The states of one object since a mark, as `view` shows them, without
    /// repetitions.
    pub(crate) fn since<T: PartialEq>(
        &self,
        mark: usize,
        name: &str,
        view: impl Fn(&DynamicObject) -> Option<T>,
    ) -> Vec<T> {
        let seen = self.seen.lock().unwrap();
        let named = seen[mark..]
            .iter()
            .filter(|object| object.name_any() == name);
        let mut states: Vec<T> = Vec::new();
        for state in named.filter_map(view) {
            if states.last() != Some(&state) {
                states.push(state);
            }
        }
        states
    }

    /// Waits until the newest state of an object fits.
    pub(crate) async fn wait(&self, name: &str, fits: impl Fn(&DynamicObject) -> bool) {
        until(|| async {
            let seen = self.seen.lock().unwrap();
            let last = seen.iter().rev().find(|object| object.name_any() == name);
            last.filter(|object| fits(object)).map(|_| ())
        })
        .await;
    }
}

/// Asks again until there is an answer.
pub(crate) async fn until<T, F: Future<Output = Option<T>>>(ask: impl Fn() -> F) -> T {
    let began = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(began.elapsed() < LIMIT, "waited in vain");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The text at a JSON pointer of an object.
pub(crate) fn text<'a>(object: &'a DynamicObject, pointer: &str) -> &'a str {
    object
        .data
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or("")
}

/// Conditions of an object, each as `type=status:reason`.
pub(crate) fn conditions(object: &DynamicObject) -> BTreeMap<String, String> {
    let list = object
        .data
        .pointer("/status/conditions")
        .and_then(Value::as_array);
    let entry = |condition: &Value| {
        let field = |name: &str| condition[name].as_str().unwrap_or("").to_owned();
        (
            field("type"),
            format!("{}:{}", field("status"), field("reason")),
        )
    };
    list.into_iter().flatten().map(entry).collect()
}

fn resource(kind: &str) -> ApiResource {
    let (group, version, plural) = match kind {
        "VirtualMachine" => ("kubevirt.io", "v1", "virtualmachines"),
        "VirtualMachineInstance" => ("kubevirt.io", "v1", "virtualmachineinstances"),
        "DataVolume" => ("cdi.kubevirt.io", "v1beta1", "datavolumes"),
        "DataSource" => ("cdi.kubevirt.io", "v1beta1", "datasources"),
        "EndpointSlice" => ("discovery.k8s.io", "v1", "endpointslices"),
        "Namespace" => ("", "v1", "namespaces"),
        "PersistentVolume" => ("", "v1", "persistentvolumes"),
        "PersistentVolumeClaim" => ("", "v1", "persistentvolumeclaims"),
        "Pod" => ("", "v1", "pods"),
        "ReplicationController" => ("", "v1", "replicationcontrollers"),
        "ResourceQuota" => ("", "v1", "resourcequotas"),
        "Secret" => ("", "v1", "secrets"),
        "Service" => ("", "v1", "services"),
        "ServiceAccount" => ("", "v1", "serviceaccounts"),
        other => panic!("{other} is not known here"),
    };
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}
