//! One node: registered with what it offers, and its pods followed.
//!
//! No lease is renewed: the node-lifecycle controller does not run here, so
//! nobody looks at it, and a node is Ready until somebody says otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;

use anyhow::Result;
use futures::StreamExt;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Patch, PatchParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::downward::node_has;
use super::view::now;
use super::{MANAGER, Shared, pod};
use crate::stand_ins::STAND_IN_LABEL;

/// Registers a node, Ready and open to pods.
pub(super) async fn register(shared: &Shared, name: &str) -> Result<()> {
    let nodes: Api<Node> = Api::all(shared.client.clone());
    let params = PatchParams::apply(MANAGER).force();
    nodes
        .patch(name, &params, &Patch::Apply(object(name)))
        .await?;
    let status = json!({"status": status(shared, name)});
    let params = PatchParams::default();
    nodes
        .patch_status(name, &params, &Patch::Strategic(status))
        .await?;
    // Admission marks every new node as not ready, and the controller that
    // would take the mark away does not run.
    let open = json!({"spec": {"taints": null}});
    nodes.patch(name, &params, &Patch::Merge(open)).await?;
    Ok(())
}

fn object(name: &str) -> Value {
    let arch = match std::env::consts::ARCH {
        "aarch64" => "arm64",
        _ => "amd64",
    };
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                STAND_IN_LABEL: "true",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": arch,
                // One each, so that a spread over zones can be seen.
                "topology.kubernetes.io/zone": format!("zone-of-{name}"),
            },
        },
    })
}

fn status(shared: &Shared, name: &str) -> Value {
    let resources = ["cpu", "memory", "ephemeral-storage", "pods"];
    let resources: Value = resources
        .into_iter()
        .map(|resource| (resource.to_owned(), json!(node_has(resource))))
        .collect::<serde_json::Map<_, _>>()
        .into();
    json!({
        "capacity": resources,
        "allocatable": resources,
        "addresses": [
            {"type": "Hostname", "address": name},
            {"type": "InternalIP", "address": shared.block.node()},
        ],
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "StandIn",
            "message": "a stand-in for a kubelet runs Kite's pods as local processes",
            "lastHeartbeatTime": now(), "lastTransitionTime": now(),
        }],
    })
}

/// Follows the pods of a node for ever.
pub(super) async fn live(shared: Arc<Shared>, name: String) {
    let pods: Api<Pod> = Api::all(shared.client.clone());
    let own = watcher::Config::default().fields(&format!("spec.nodeName={name}"));
    let mut events = pin!(watcher(pods, own).default_backoff());
    let mut known = Pods {
        shared,
        senders: BTreeMap::new(),
        tasks: JoinSet::new(),
    };
    let mut listed = BTreeSet::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(pod)) => {
                listed.extend(pod.uid());
                known.seen(pod);
            }
            Ok(Event::InitDone) => known.keep(&listed),
            Ok(Event::Apply(pod)) => known.seen(pod),
            Ok(Event::Delete(pod)) => known.gone(&pod.uid().unwrap_or_default()),
            Err(error) => tracing::debug!(node = name, %error, "its pods are not seen"),
        }
    }
}

/// The pods of a node by UID, each with a task of its own.
struct Pods {
    shared: Arc<Shared>,
    senders: BTreeMap<String, watch::Sender<Option<Pod>>>,
    tasks: JoinSet<()>,
}

impl Pods {
    fn seen(&mut self, pod: Pod) {
        while self.tasks.try_join_next().is_some() {}
        let uid = pod.uid().unwrap_or_default();
        if let Some(sender) = self.senders.get(&uid) {
            sender.send_replace(Some(pod));
            return;
        }
        let (sender, receiver) = watch::channel(Some(pod));
        self.senders.insert(uid, sender);
        self.tasks
            .spawn(pod::live(Arc::clone(&self.shared), receiver));
    }

    fn gone(&mut self, uid: &str) {
        if let Some(sender) = self.senders.remove(uid) {
            sender.send_replace(None);
        }
    }

    fn keep(&mut self, listed: &BTreeSet<String>) {
        let all: Vec<_> = self.senders.keys().cloned().collect();
        for uid in all.iter().filter(|uid| !listed.contains(*uid)) {
            self.gone(uid);
        }
    }
}
