//! A stand-in for the kubelets of a cluster, labelled as such: pods of Kite's
//! images become local processes under the pods' own identities.
//!
//! Each container whose image is called like one of Kite's binaries runs as
//! that binary, with the pod's own command, arguments, environment, volumes and
//! token, at a loopback address of its own, and is probed, restarted and ended
//! as a kubelet would. It pulls no image, isolates nothing, enforces no limit
//! and no security context, runs no init container, and answers neither
//! `kubectl logs` nor `kubectl exec`. Pods of nodes that are not its own, such
//! as KubeVirt's launchers, it leaves alone.
//!
//! ```text
//! let cp = ControlPlane::start(Options { scheduler: true, ..Options::default() }).await?;
//! let agent = NodeAgent::start(&cp, AgentOptions::default()).await?;
//! cp.kubectl(&["rollout", "status", "deployment/kite-user", "-n", "kite-system"]).await?;
//! agent.process("kite-system", &agent.pods("kite-system")[0])?.kill();
//! ```

mod address;
mod command;
mod container;
mod downward;
mod environment;
mod image;
mod node;
mod pod;
mod probe;
mod status;
mod token;
mod view;
mod volumes;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Pod;
use kube::{Client, ResourceExt};
use tokio::runtime::{Builder, Runtime};

use crate::control_plane::ControlPlane;
use crate::kubeconfig;
use crate::process::Process;
use address::Block;
use command::Server;

/// Field manager of the nodes.
const MANAGER: &str = "kite-node-agent";

/// How long tasks may take to end; they wait for nothing but each other.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// How an agent differs from another.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// How many nodes it registers, called `kite-node-0` and so on.
    pub nodes: usize,
    /// The first pause before a container that fails is started again; the
    /// first restart is at once, and each further pause is twice the last, up
    /// to thirty times the first. A kubelet's is 10 s.
    pub backoff: Duration,
}

impl Default for AgentOptions {
    fn default() -> Self {
        Self {
            nodes: 2,
            backoff: Duration::from_secs(10),
        }
    }
}

/// A running agent. It lives on a thread of its own, so that the tests of one
/// binary may share it. Dropping it kills its processes; nodes and pods stay as
/// they are in the API.
pub struct NodeAgent {
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
}

/// What the tasks of an agent share.
struct Shared {
    client: Client,
    server: Server,
    options: AgentOptions,
    block: Arc<Block>,
    /// For the volumes of pods.
    folder: PathBuf,
    logs: PathBuf,
    /// Pods by namespace and name; locked for single looks and changes.
    running: Mutex<BTreeMap<(String, String), Running>>,
}

/// A pod that the agent runs.
struct Running {
    uid: Option<String>,
    ip: Ipv4Addr,
    processes: Vec<Option<Arc<Process>>>,
}

impl NodeAgent {
    /// Registers the nodes and begins to run what is bound to them.
    pub async fn start(control_plane: &ControlPlane, options: AgentOptions) -> Result<Self> {
        let config = control_plane.node_agent_config()?;
        let server = Server {
            url: control_plane.url(),
            ca: control_plane.ca().to_owned(),
        };
        let folder = control_plane.folder().to_owned();
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("node-agent")
            .enable_all()
            .build()?;
        // The client's worker lives where the client is made.
        let started = runtime.spawn(async move {
            let shared = Arc::new(Shared {
                client: kubeconfig::client(config).await?,
                server,
                options,
                block: Block::take()?,
                folder: folder.join("pods"),
                logs: folder.join("logs"),
                running: Mutex::default(),
            });
            for number in 0..shared.options.nodes {
                let name = format!("kite-node-{number}");
                node::register(&shared, &name)
                    .await
                    .with_context(|| format!("cannot register the node {name}"))?;
                tokio::spawn(node::live(Arc::clone(&shared), name));
            }
            anyhow::Ok(shared)
        });
        // A runtime must not be dropped in a task, so it has an owner before anything can fail.
        let runtime = Owned(Some(runtime));
        let shared = started.await??;
        Ok(Self {
            shared,
            runtime: runtime.release(),
        })
    }

    /// The names of the pods in a namespace that have a process now.
    pub fn pods(&self, namespace: &str) -> Vec<String> {
        let running = self.shared.running();
        let alive = running.iter().filter(|((space, _), pod)| {
            space == namespace && pod.processes.iter().any(Option::is_some)
        });
        alive.map(|((_, name), _)| name.clone()).collect()
    }

    /// Those of them that are a Deployment's, by their names: a ReplicaSet and a pod each add a part
    /// without a hyphen.
    pub fn pods_of(&self, namespace: &str, deployment: &str) -> Vec<String> {
        let mut pods = self.pods(namespace);
        pods.retain(|pod| pod.rsplitn(3, '-').nth(2) == Some(deployment));
        pods
    }

    /// The process of a pod's first container: its id, log, memory and CPU time,
    /// and the signals that a test sends. One that is killed is started again,
    /// as a new process.
    pub fn process(&self, namespace: &str, pod: &str) -> Result<Arc<Process>> {
        let running = self.shared.running();
        let found = running.get(&(namespace.to_owned(), pod.to_owned()));
        let process = found.and_then(|pod| pod.processes.iter().flatten().next());
        match process {
            Some(process) => Ok(Arc::clone(process)),
            None => bail!("no process runs for the pod {pod} in {namespace}"),
        }
    }

    /// The address of a pod.
    pub fn address(&self, namespace: &str, pod: &str) -> Option<Ipv4Addr> {
        let running = self.shared.running();
        let found = running.get(&(namespace.to_owned(), pod.to_owned()));
        found.map(|pod| pod.ip)
    }

    /// Where a container logs to, also after its pod has gone.
    pub fn log(&self, namespace: &str, pod: &str, container: &str) -> PathBuf {
        self.shared.log_of(namespace, pod, container)
    }

    /// Ends all processes at once and waits until they are gone.
    pub async fn stop(mut self) {
        if let Some(runtime) = self.runtime.take() {
            let ended = tokio::task::spawn_blocking(move || runtime.shutdown_timeout(STOP_LIMIT));
            ended.await.ok();
        }
        self.shared.kill_all();
    }
}

impl Drop for NodeAgent {
    fn drop(&mut self) {
        // Waiting for the tasks could block a test's only thread.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        self.shared.kill_all();
    }
}

/// A runtime that is ended without waiting, unless it is handed on.
struct Owned(Option<Runtime>);

impl Owned {
    fn release(mut self) -> Option<Runtime> {
        self.0.take()
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Shared {
    fn running(&self) -> MutexGuard<'_, BTreeMap<(String, String), Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember_pod(&self, pod: &Pod, ip: Ipv4Addr, containers: usize) {
        let running = Running {
            uid: pod.uid(),
            ip,
            processes: vec![None; containers],
        };
        self.running().insert(key(pod), running);
    }

    fn forget_pod(&self, pod: &Pod) {
        let mut running = self.running();
        // A pod of the same name may have come meanwhile.
        if running
            .get(&key(pod))
            .is_some_and(|known| known.uid == pod.uid())
        {
            running.remove(&key(pod));
        }
    }

    fn remember(&self, pod: &Pod, container: usize, process: &Arc<Process>) {
        self.put(pod, container, Some(Arc::clone(process)));
    }

    fn forget(&self, pod: &Pod, container: usize) {
        self.put(pod, container, None);
    }

    fn put(&self, pod: &Pod, container: usize, process: Option<Arc<Process>>) {
        let mut running = self.running();
        let known = running.get_mut(&key(pod));
        if let Some(known) = known.filter(|known| known.uid == pod.uid())
            && let Some(place) = known.processes.get_mut(container)
        {
            *place = process;
        }
    }

    fn kill_all(&self) {
        let pods = std::mem::take(&mut *self.running());
        for process in pods.into_values().flat_map(|pod| pod.processes).flatten() {
            process.kill();
        }
    }

    fn log(&self, pod: &Pod, container: &str) -> PathBuf {
        let (namespace, name) = key(pod);
        self.log_of(&namespace, &name, container)
    }

    fn log_of(&self, namespace: &str, pod: &str, container: &str) -> PathBuf {
        self.logs.join(format!("{namespace}.{pod}.{container}.log"))
    }
}

fn key(pod: &Pod) -> (String, String) {
    (pod.namespace().unwrap_or_default(), pod.name_any())
}
