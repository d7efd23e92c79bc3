//! The one control plane of these scenarios, its nodes, and Deployments of kite-user on them.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::authentication::v1::TokenReview;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod};
use kite_testkit::command_line::Output;
use kite_testkit::install::SYSTEM_NAMESPACE;
use kite_testkit::process::{Process, tail};
use kite_testkit::wait::{eventually, wait_until};
use kite_testkit::{AgentOptions, ControlPlane, NodeAgent, Options, install};
use kube::api::{ListParams, PostParams};
use kube::config::Kubeconfig;
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// Longer than any step takes on a busy machine.
pub(crate) const LONG: Duration = Duration::from_mins(2);

/// What a process says when it was asked to end and ends by itself.
pub(crate) const GENTLE: &str = "stopping: running passes are finished first";

struct Ground {
    control_plane: ControlPlane,
    agent: NodeAgent,
}

async fn ground() -> &'static Ground {
    static GROUND: OnceCell<Ground> = OnceCell::const_new();
    GROUND
        .get_or_init(|| async {
            let options = Options {
                scheduler: true,
                ..Options::default()
            };
            let control_plane = ControlPlane::start(options).await.unwrap();
            install::kite_crds(&control_plane).await.unwrap();
            install::controller(&control_plane, "kite-user")
                .await
                .unwrap();
            let options = AgentOptions {
                nodes: 3,
                backoff: Duration::from_secs(2),
            };
            let agent = NodeAgent::start(&control_plane, options).await.unwrap();
            Ground {
                control_plane,
                agent,
            }
        })
        .await
}

/// A Deployment of kite-user in kite-system; all of them share one Lease.
pub(crate) struct App {
    ground: &'static Ground,
    client: Client,
    pub(crate) name: &'static str,
}

impl App {
    /// Nothing of it is there yet.
    pub(crate) async fn new(name: &'static str) -> Self {
        let ground = ground().await;
        let client = ground.control_plane.admin_client().await.unwrap();
        Self {
            ground,
            client,
            name,
        }
    }

    /// As an administrator writes it by hand. `pod` and `container` are merged
    /// into their parts of it.
    pub(crate) async fn deploy(&self, replicas: u32, pod: Value, container: Value) {
        let downward = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
        let mut whole = json!({
            "name": "kite-user",
            "image": "kite/kite-user:0.1.0",
            "args": ["--listen=0.0.0.0:8080", "--identity=$(POD)"],
            "env": [downward("POD", "metadata.name"), downward("KITE_NAMESPACE", "metadata.namespace")],
            "ports": [{"name": "metrics", "containerPort": 8080}],
            "readinessProbe": {"httpGet": {"path": "/readyz", "port": "metrics"}, "periodSeconds": 1, "timeoutSeconds": 5},
        });
        merge(&mut whole, &container);
        let mut spec = json!({"serviceAccountName": "kite-user", "containers": [whole]});
        merge(&mut spec, &pod);
        let labels = json!({"app": self.name});
        self.apply(json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": self.name, "namespace": SYSTEM_NAMESPACE},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        }))
        .await;
    }

    pub(crate) async fn apply(&self, object: Value) {
        let text = object.to_string();
        install::apply(&self.client, &text).await.unwrap();
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), SYSTEM_NAMESPACE)
    }

    pub(crate) async fn kubectl(&self, args: &[&str]) -> Output {
        let args = [&["-n", SYSTEM_NAMESPACE], args].concat();
        self.ground.control_plane.kubectl(&args).await.unwrap()
    }

    /// What `kubectl rollout status` waits for.
    pub(crate) async fn rolled_out(&self) {
        let said = self
            .kubectl(&[
                "rollout",
                "status",
                "deployment",
                self.name,
                "--timeout=120s",
            ])
            .await;
        if !said.success {
            let selector = self.selector();
            let look = ["get", "pods", "-o", "yaml", "-l", &selector];
            panic!("{}\n{}", said.stderr, self.kubectl(&look).await.stdout);
        }
    }

    fn selector(&self) -> String {
        format!("app={}", self.name)
    }

    /// Its pods that are not going, by name.
    pub(crate) async fn pods(&self) -> Vec<Pod> {
        let own = ListParams::default().labels(&self.selector());
        let pods = self.api::<Pod>().list(&own).await.unwrap();
        let stays = |pod: &Pod| pod.metadata.deletion_timestamp.is_none();
        pods.items.into_iter().filter(stays).collect()
    }

    /// The name of its only pod, as soon as there is one.
    pub(crate) async fn pod(&self) -> String {
        let only = eventually("one pod", LONG, async || {
            let mut pods = self.pods().await;
            (pods.len() == 1).then(|| pods.remove(0).name_any())
        });
        only.await.unwrap()
    }

    /// Waits until the container of a pod is as wanted.
    pub(crate) async fn until(
        &self,
        pod: &str,
        is: impl Fn(&ContainerStatus) -> bool + Send + Sync,
    ) -> ContainerStatus {
        let holds = |pod: &Pod| container(pod).is_some_and(&is);
        let pod = wait_until(&self.api::<Pod>(), pod, LONG, holds).await;
        container(&pod.unwrap()).unwrap().clone()
    }

    pub(crate) fn process(&self, pod: &str) -> Arc<Process> {
        self.ground.agent.process(SYSTEM_NAMESPACE, pod).unwrap()
    }

    /// Its pods that have a process.
    pub(crate) fn alive(&self) -> Vec<String> {
        let mut alive = self.ground.agent.pods(SYSTEM_NAMESPACE);
        alive.retain(|pod| pod.starts_with(&format!("{}-", self.name)));
        alive
    }

    /// All that a pod's container logged.
    pub(crate) fn log(&self, pod: &str) -> String {
        let agent = &self.ground.agent;
        tail(&agent.log(SYSTEM_NAMESPACE, pod, "kite-user"), usize::MAX)
    }

    pub(crate) fn address(&self, pod: &str) -> std::net::Ipv4Addr {
        self.ground.agent.address(SYSTEM_NAMESPACE, pod).unwrap()
    }

    /// A kubeconfig of kite-user that no pod has to do with.
    pub(crate) async fn user_kubeconfig(&self) -> String {
        let control_plane = &self.ground.control_plane;
        let identity = control_plane.identity(SYSTEM_NAMESPACE, "kite-user").await;
        std::fs::read_to_string(identity.unwrap().kubeconfig()).unwrap()
    }

    /// What the server makes of the token that the process of a pod has: whose
    /// it is, and for which pod.
    pub(crate) async fn token_of(&self, pod: &str) -> (String, Vec<String>) {
        let environment = format!("/proc/{}/environ", self.process(pod).pid());
        let environment = std::fs::read_to_string(environment).unwrap();
        let mut variables = environment.split('\0');
        let config = variables.find_map(|v| v.strip_prefix("KITE_KUBECONFIG="));
        let config = Kubeconfig::read_from(config.unwrap()).unwrap();
        let file = config.auth_infos[0]
            .auth_info
            .as_ref()
            .unwrap()
            .token_file
            .clone();
        let token = std::fs::read_to_string(file.unwrap()).unwrap();
        let review = json!({"spec": {"token": token}});
        let review: TokenReview = serde_json::from_value(review).unwrap();
        let reviews: Api<TokenReview> = Api::all(self.client.clone());
        let answer = reviews
            .create(&PostParams::default(), &review)
            .await
            .unwrap();
        let user = answer.status.unwrap().user.unwrap();
        let pod = user
            .extra
            .unwrap()
            .remove("authentication.kubernetes.io/pod-name");
        (user.username.unwrap(), pod.unwrap_or_default())
    }

    /// The value of an argument `flag=value` of a pod's process.
    pub(crate) fn argument(&self, pod: &str, flag: &str) -> String {
        let line = format!("/proc/{}/cmdline", self.process(pod).pid());
        let line = std::fs::read_to_string(line).unwrap();
        let flag = format!("{flag}=");
        let mut words = line.split('\0');
        let value = words.find_map(|word| word.strip_prefix(&flag));
        value.unwrap().to_owned()
    }

    /// Removes the Deployment and waits until nothing of it is left.
    pub(crate) async fn remove(&self) {
        self.kubectl(&["delete", "deployment", self.name])
            .await
            .ok()
            .unwrap();
        let own = ListParams::default().labels(&self.selector());
        let gone = eventually("no pod", LONG, async || {
            let pods = self.api::<Pod>().list(&own).await.ok()?;
            pods.items.is_empty().then_some(())
        });
        gone.await.unwrap();
    }
}

/// The status of a pod's first container.
pub(crate) fn container(pod: &Pod) -> Option<&ContainerStatus> {
    pod.status.as_ref()?.container_statuses.as_ref()?.first()
}

/// How the life before this one ended.
pub(crate) fn last(status: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    status.last_state.as_ref()?.terminated.as_ref()
}

/// Why a container waits, and what it says of it.
pub(crate) fn waiting(status: &ContainerStatus) -> Option<(&str, &str)> {
    let waiting = status.state.as_ref()?.waiting.as_ref()?;
    let message = waiting.message.as_deref().unwrap_or_default();
    Some((waiting.reason.as_deref()?, message))
}

fn merge(into: &mut Value, from: &Value) {
    for (key, value) in from.as_object().unwrap() {
        into[key] = value.clone();
    }
}
