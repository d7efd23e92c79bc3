//! Kite as an administrator has it: charts installed by Helm, pods placed by the
//! real scheduler and run by the node agent.
//!
//! Beside the pods everything is as in a [`Cluster`], so a scenario that takes
//! one does not notice who started the processes. No container runs, and no
//! image is pulled: the agent starts the binaries that cargo built.

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use crate::cluster::{CONTROLLERS, Cluster, ClusterOptions};
use crate::command_line::Output;
use crate::control_plane::Options;
use crate::helm::{Charts, Helm, LIMIT};
use crate::install::SYSTEM_NAMESPACE;
use crate::node_agent::{AgentOptions, NodeAgent};

/// Kite's own waits at the pace at which KubeVirt and CDI are played, as values of the umbrella.
const PACE: [&str; 3] = [
    "datavolume.tickInterval=1s",
    "datavolume.errorHold=1s",
    "vmStatus.errorHold=1s",
];

/// A cluster with nodes, and charts to install.
pub struct Installed {
    // Dropped first: its processes are clients of the cluster.
    /// The nodes.
    pub agent: NodeAgent,
    /// The cluster; of Kite it has what Helm has brought.
    pub cluster: Cluster,
    /// The charts with their parts.
    pub charts: Charts,
}

impl Installed {
    /// Two nodes, KubeVirt and CDI, and nothing of Kite.
    pub async fn ground() -> Result<Self> {
        let options = ClusterOptions {
            kite: false,
            control_plane: Options {
                scheduler: true,
                ..Options::default()
            },
            ..ClusterOptions::default()
        };
        Self::on(options, AgentOptions::default()).await
    }

    /// As [`Self::ground`], on a cluster and nodes as described.
    pub async fn on(options: ClusterOptions, agent: AgentOptions) -> Result<Self> {
        let charts = Charts::gathered().await?;
        let cluster = Cluster::start(options).await?;
        let agent = NodeAgent::start(&cluster.control_plane, agent).await?;
        Ok(Self {
            agent,
            cluster,
            charts,
        })
    }

    /// Runs Helm as administrator.
    pub async fn helm(&self, helm: Helm, args: &[&str]) -> Result<Output> {
        helm.run(&self.cluster.control_plane, args).await
    }

    /// Installs one of the charts as a release of its own name, waits until Helm says that all is
    /// ready, and has the garbage collector learn the new kinds.
    pub async fn install(&self, helm: Helm, chart: &str, values: &[&str]) -> Result<String> {
        let args: Vec<_> = values.iter().flat_map(|value| ["--set", value]).collect();
        self.install_with(helm, chart, &args).await
    }

    /// As [`Self::install`], with more of Helm's own arguments.
    pub async fn install_with(&self, helm: Helm, chart: &str, more: &[&str]) -> Result<String> {
        let control_plane = &self.cluster.control_plane;
        let said = helm
            .install(control_plane, &self.charts, chart, more)
            .await?;
        control_plane.restart_controller_manager().await?;
        Ok(said)
    }

    /// Installs the umbrella at the pace of the cluster, with more values.
    pub async fn install_all(&self, helm: Helm, values: &[&str]) -> Result<String> {
        self.install(helm, "kite", &[&PACE[..], values].concat())
            .await
    }

    /// As [`Self::install_all`], for clusters in which a node may go away unnoticed, as the preset of
    /// the chart has it.
    pub async fn install_available(&self, helm: Helm, values: &[&str]) -> Result<String> {
        let preset = format!("{}/values-ha.yaml", self.charts.path("kite"));
        let values = [&PACE[..], values].concat();
        let mut args = vec!["--values", &preset];
        args.extend(values.iter().flat_map(|value| ["--set", value]));
        self.install_with(helm, "kite", &args).await
    }

    /// The controllers that have a Deployment now, by name.
    pub async fn controllers(&self) -> Result<Vec<String>> {
        let api: Api<Deployment> = Api::namespaced(self.cluster.client().await, SYSTEM_NAMESPACE);
        let found = api.list(&ListParams::default()).await?;
        let names = found.iter().map(ResourceExt::name_any);
        Ok(names
            .filter(|n| CONTROLLERS.contains(&n.as_str()))
            .collect())
    }

    /// Replaces the pods of a controller, as `kubectl rollout restart` does, and waits until it is done.
    pub async fn restart(&self, controller: &str) -> Result<()> {
        self.rollout("restart", controller, &[]).await?;
        self.rolled_out(controller).await
    }

    /// Waits until a controller has all the pods that it should have, and these are ready.
    pub async fn rolled_out(&self, controller: &str) -> Result<()> {
        self.rollout("status", controller, &[LIMIT]).await
    }

    async fn rollout(&self, verb: &str, controller: &str, more: &[&str]) -> Result<()> {
        let deployment = format!("deployment/{controller}");
        let args = ["-n", SYSTEM_NAMESPACE, "rollout", verb, &deployment];
        let args = [&args[..], more].concat();
        let said = self.cluster.control_plane.kubectl(&args).await?.ok();
        said.with_context(|| format!("rollout {verb} of {controller}"))?;
        Ok(())
    }
}
