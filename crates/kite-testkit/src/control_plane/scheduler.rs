//! The scheduler of a control plane, for those whose pods name no node.
//!
//! Nothing waits until it works, since nothing but a scheduled pod shows that.

use std::sync::Arc;

use anyhow::Result;
use kube::config::Kubeconfig;

use super::{ControlPlane, SCHEDULER_FILE, lock, servers, stop};
use crate::kubeconfig;
use crate::pki::NODE_AGENT;
use crate::process::Process;
use crate::programs::{self, Program};

impl ControlPlane {
    /// Starts the scheduler when it does not run.
    pub async fn start_scheduler(&self) -> Result<()> {
        if self.scheduler().is_some() {
            return Ok(());
        }
        let program = programs::find_all(&[Program::Scheduler]).await?;
        let kubeconfig = self.folder().join(SCHEDULER_FILE);
        let process = servers::start_scheduler(&program[0], self.folder(), &kubeconfig)?;
        *lock(&self.scheduler) = Some(Arc::new(process));
        Ok(())
    }

    /// Stops the scheduler: pods that are made from now on stay Pending.
    pub async fn stop_scheduler(&self) {
        stop(&self.scheduler).await;
    }

    /// The scheduler, unless stopped or not asked for.
    pub fn scheduler(&self) -> Option<Arc<Process>> {
        lock(&self.scheduler).clone()
    }

    /// How the node agent reaches the server: as a user of its own, so that the
    /// audit log tells it from the administrator.
    pub(crate) fn node_agent_config(&self) -> Result<Kubeconfig> {
        let (certificate, key) = &self.pki.node_agent;
        let credentials = kubeconfig::by_certificate(certificate, key)?;
        kubeconfig::kubeconfig(&self.url(), &self.pki.ca, NODE_AGENT, credentials)
    }
}
