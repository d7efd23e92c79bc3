//! The real kubectl, as a user would run it.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;

use crate::control_plane::ControlPlane;
use crate::programs::{self, Program};

/// No command of a test takes longer; `kubectl wait` has a limit of its own.
const LIMIT: Duration = Duration::from_mins(5);

/// What kubectl said.
#[derive(Clone, Debug)]
pub struct Output {
    /// Whether it exited with 0.
    pub success: bool,
    /// Standard output.
    pub stdout: String,
    /// Error output.
    pub stderr: String,
}

impl Output {
    /// The standard output, or an error with the error output.
    pub fn ok(self) -> Result<String> {
        if self.success {
            Ok(self.stdout)
        } else {
            anyhow::bail!("kubectl failed: {}", self.stderr.trim())
        }
    }
}

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
        let mut child = Command::new(&program[0])
            .args([OsStr::new("--kubeconfig"), kubeconfig.as_os_str()])
            .args([OsStr::new("--cache-dir"), cache.as_os_str()])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start kubectl")?;
        let mut stdin = child.stdin.take().context("kubectl has no input")?;
        let write = async {
            // It may end without reading.
            stdin.write_all(input.as_bytes()).await.ok();
            drop(stdin);
        };
        let run = async { tokio::join!(write, child.wait_with_output()).1 };
        let output = timeout(LIMIT, run)
            .await
            .with_context(|| format!("kubectl {} did not end", args.join(" ")))??;
        Ok(Output {
            success: output.status.success(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}
