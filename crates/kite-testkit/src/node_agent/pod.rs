//! The life of one pod on a node: its volumes made, its containers run, its
//! status written, and its object removed when all has ended.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::address::Address;
use super::container::{GRACE, Life, RETRY, Stop};
use super::downward::Facts;
use super::view::{View, now};
use super::volumes::Volumes;
use super::{Shared, status};

/// The pod as it is known; nothing when its object has gone.
pub(super) type Known = watch::Receiver<Option<Pod>>;

/// Lives until the object has gone. Whatever runs then is killed.
pub(super) async fn live(shared: Arc<Shared>, mut known: Known) {
    let Some(pod) = known.borrow_and_update().clone() else {
        return;
    };
    if is_over(&pod) {
        return until_deleted(&shared, pod, known).await;
    }
    let address = loop {
        match shared.block.pod() {
            Ok(address) => break address,
            Err(error) => tracing::warn!("{error:#}"),
        }
        sleep(RETRY).await;
    };
    let mut life = PodLife::new(shared, &pod, address);
    let (stop, stopping) = watch::channel(None);
    let mut running = Abort(tokio::spawn(life.run(stopping)));
    life.follow(known, &stop, &mut running).await;
    life.shared.forget_pod(&pod);
    drop(running);
    fs::remove_dir_all(&life.folder).ok();
}

/// A task that ends with its owner.
struct Abort(JoinHandle<()>);

impl Drop for Abort {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct PodLife {
    shared: Arc<Shared>,
    facts: Arc<Facts>,
    /// Given back when the pod has gone.
    _address: Address,
    folder: PathBuf,
    since: String,
    views: Arc<watch::Sender<Vec<View>>>,
    written: Value,
}

impl PodLife {
    fn new(shared: Arc<Shared>, pod: &Pod, address: Address) -> Self {
        let facts = Facts {
            pod: pod.clone(),
            ip: address.ip(),
            host: shared.block.node(),
        };
        let containers = pod.spec.as_ref().map_or(0, |spec| spec.containers.len());
        let folder = shared.folder.join(pod.uid().unwrap_or_default());
        shared.remember_pod(pod, address.ip(), containers);
        Self {
            shared,
            facts: Arc::new(facts),
            _address: address,
            folder,
            since: now(),
            views: Arc::new(watch::Sender::new(vec![View::creating(); containers])),
            written: Value::Null,
        }
    }

    /// Runs all containers until none is to run any more.
    fn run(&self, mut stop: Stop) -> impl Future<Output = ()> + use<> {
        let (shared, facts) = (Arc::clone(&self.shared), Arc::clone(&self.facts));
        let views = Arc::clone(&self.views);
        let folder = self.folder.clone();
        async move {
            let made = make_volumes(&shared, &facts, &folder, &views);
            let volumes = tokio::select! {
                volumes = made => Arc::new(volumes),
                _ = stop.wait_for(Option::is_some) => return,
            };
            let spec = facts.pod.spec.clone().unwrap_or_default();
            let lives = spec
                .containers
                .into_iter()
                .enumerate()
                .map(|(index, container)| {
                    let life = Life {
                        log: shared.log(&facts.pod, &container.name),
                        shared: Arc::clone(&shared),
                        facts: Arc::clone(&facts),
                        container,
                        index,
                        volumes: Arc::clone(&volumes),
                        views: Arc::clone(&views),
                        stop: stop.clone(),
                        folder: folder.clone(),
                    };
                    life.live()
                });
            tokio::select! {
                _ = futures::future::join_all(lives) => {}
                () = volumes.keep_fresh(&shared.client, &facts) => {}
            }
        }
    }

    /// Writes what happens, and ends the pod when its object is to go.
    async fn follow(
        &mut self,
        mut known: Known,
        stop: &watch::Sender<Option<Duration>>,
        running: &mut Abort,
    ) {
        let mut views = self.views.subscribe();
        let mut over = false;
        let mut pod = self.facts.pod.clone();
        loop {
            if let Some(grace) = grace(&pod)
                && *stop.borrow() != Some(grace)
            {
                stop.send_replace(Some(grace));
            }
            views.borrow_and_update();
            let written = self.write(&pod, over).await;
            if over && written && stop.borrow().is_some() {
                remove(&self.shared, &pod).await;
            }
            tokio::select! {
                changed = known.changed() => {
                    let now = known.borrow_and_update().clone();
                    match (changed, now) {
                        (Ok(()), Some(now)) => pod = now,
                        _ => return,
                    }
                }
                Ok(()) = views.changed() => {}
                _ = &mut running.0, if !over => over = true,
                () = sleep(RETRY), if !written => {}
            }
        }
    }

    /// Writes the status when it differs from the one written last. False when
    /// it has to be tried again.
    async fn write(&mut self, pod: &Pod, over: bool) -> bool {
        let views = self.views.borrow().clone();
        let facts = status::Facts {
            pod,
            ip: self.facts.ip,
            host: self.facts.host,
            since: &self.since,
            views: &views,
            over,
        };
        let status = status::status(&facts, &self.written);
        if status == self.written {
            return true;
        }
        // The UID keeps the status off a pod of the same name that came later.
        let patch = json!({"metadata": {"uid": pod.uid()}, "status": status});
        let patch = Patch::Strategic(patch);
        let (pods, name) = (pods(&self.shared, pod), pod.name_any());
        match pods
            .patch_status(&name, &PatchParams::default(), &patch)
            .await
        {
            Ok(_) => self.written = status,
            Err(kube::Error::Api(answer)) if answer.is_not_found() || answer.is_conflict() => {}
            Err(error) => {
                tracing::warn!(pod = name, %error, "its status was not written");
                return false;
            }
        }
        true
    }
}

/// Makes the volumes, as soon as all that they need is there.
async fn make_volumes(
    shared: &Shared,
    facts: &Facts,
    folder: &std::path::Path,
    views: &watch::Sender<Vec<View>>,
) -> Volumes {
    loop {
        let made = match fs::create_dir_all(folder) {
            Ok(()) => Volumes::make(&shared.client, facts, &folder.join("volumes")).await,
            Err(error) => Err(error.to_string()),
        };
        match made {
            Ok(volumes) => return volumes,
            Err(message) => views.send_modify(|views| {
                for view in views {
                    view.wait("ContainerCreating", message.clone());
                }
            }),
        }
        sleep(RETRY).await;
    }
}

/// A pod of which nothing runs here: only its object is left to remove.
async fn until_deleted(shared: &Shared, mut pod: Pod, mut known: Known) {
    loop {
        if grace(&pod).is_some() {
            remove(shared, &pod).await;
        }
        if known.changed().await.is_err() {
            return;
        }
        match known.borrow_and_update().clone() {
            Some(now) => pod = now,
            None => return,
        }
    }
}

/// Removes the object at once: everything of it has ended.
async fn remove(shared: &Shared, pod: &Pod) {
    let params = DeleteParams {
        grace_period_seconds: Some(0),
        preconditions: Some(Preconditions {
            uid: pod.uid(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    loop {
        match pods(shared, pod).delete(&pod.name_any(), &params).await {
            Err(kube::Error::Api(answer)) if answer.is_not_found() || answer.is_conflict() => {
                return;
            }
            Err(error) => tracing::warn!(pod = pod.name_any(), %error, "it was not removed"),
            Ok(_) => return,
        }
        sleep(RETRY).await;
    }
}

fn pods(shared: &Shared, pod: &Pod) -> Api<Pod> {
    Api::namespaced(shared.client.clone(), &pod.namespace().unwrap_or_default())
}

/// How long the pod has, when it is to go.
fn grace(pod: &Pod) -> Option<Duration> {
    pod.metadata.deletion_timestamp.as_ref()?;
    let seconds = pod.metadata.deletion_grace_period_seconds;
    let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
    Some(seconds.map_or(GRACE, Duration::from_secs))
}

fn is_over(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref());
    grace(pod).is_some() || matches!(phase, Some("Succeeded" | "Failed"))
}
