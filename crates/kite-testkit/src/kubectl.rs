//! The real kubectl, as a user would run it.

use std::ffi::OsStr;
use std::path::Path;

use anyhow::Result;
use tokio::process::Command;

pub use crate::command_line::Output;
use crate::command_line::run;
use crate::control_plane::ControlPlane;
use crate::programs::{self, Program};

impl ControlPlane {
    /// kubectl as administrator.
    pub async fn kubectl(&self, args: &[&str]) -> Result<Output> {
        self.kubectl_as(&self.admin_kubeconfig(), args, "").await
    }

    /// kubectl as administrator, with something to read.
    pub async fn kubectl_stdin(&self, args: &[&str], input: &str) -> Result<Output> {
        self.kubectl_as(&self.admin_kubeconfig(), args, input).await
    }

    /// kubectl with the kubeconfig of somebody.
    pub async fn kubectl_as(
        &self,
        kubeconfig: &Path,
        args: &[&str],
        input: &str,
    ) -> Result<Output> {
        let program = programs::find_all(&[Program::Kubectl]).await?;
        let cache = self.folder().join("kubectl-cache");
        let mut command = Command::new(&program[0]);
        command
            .args([OsStr::new("--kubeconfig"), kubeconfig.as_os_str()])
            .args([OsStr::new("--cache-dir"), cache.as_os_str()])
            .args(args);
        run(command, input).await
    }
}
