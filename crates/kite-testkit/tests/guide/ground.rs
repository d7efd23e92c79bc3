//! Where the guide is carried out: a folder as a fresh checkout is, a shell with Helm 4
//! and kubectl, and a cluster that has KubeVirt, CDI and nodes, and nothing of Kite.

use std::env;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use kite_testkit::cluster::IMAGE;
use kite_testkit::command_line::run;
use kite_testkit::helm::copy_charts;
use kite_testkit::installed::Installed;
use kite_testkit::programs::{self, Program};
use tempfile::TempDir;

use crate::page::{Block, Command, docs};
use crate::shown::{as_shown, fails};

/// What a reader has installed, under the names they type.
const TOOLS: [(Program, &str); 2] = [(Program::Helm, "helm"), (Program::Kubectl, "kubectl")];

/// A cluster and a folder to work in.
pub(crate) struct Ground {
    installed: Installed,
    folder: TempDir,
}

impl Ground {
    /// Makes both.
    pub(crate) async fn new() -> Result<Self> {
        let installed = Installed::ground().await?;
        // The guide makes it and publishes the first image in it.
        let control_plane = &installed.cluster.control_plane;
        let gone = ["delete", "namespace", "kite-images"];
        control_plane.kubectl(&gone).await?.ok()?;

        let folder = tempfile::tempdir()?;
        let checkout = folder.path().join("kite");
        copy_charts(&checkout.join("charts"))?;
        symlink(docs().canonicalize()?, checkout.join("docs"))?;
        let tools = folder.path().join("bin");
        std::fs::create_dir(&tools)?;
        let programs = programs::find_all(&TOOLS.map(|(program, _)| program)).await?;
        for (path, (_, name)) in programs.iter().zip(TOOLS) {
            symlink(path, tools.join(name))?;
        }
        Ok(Self { installed, folder })
    }

    /// Runs a command and compares what it says with what is shown.
    pub(crate) async fn carry_out(&self, command: &Command) -> Result<()> {
        let started = std::time::Instant::now();
        let (success, said) = self.shell(&command.text).await?;
        println!(
            "{:6.1} s  {}",
            started.elapsed().as_secs_f64(),
            command.text
        );
        let told = || format!("$ {}\n{said}", command.text);
        ensure!(
            success != fails(&command.shown),
            "it {}:\n{}",
            if success { "was to fail" } else { "failed" },
            told()
        );
        let shown = command.shown.join("\n");
        ensure!(
            command.shown.is_empty() || as_shown(&command.shown, &said),
            "it is not as shown:\n{}\nshown is:\n{shown}",
            told()
        );
        // Kubernetes asks for new kinds twice a minute; a test does not wait for that.
        if ["helm install", "helm upgrade"]
            .iter()
            .any(|verb| command.text.contains(verb))
        {
            self.installed
                .cluster
                .control_plane
                .restart_controller_manager()
                .await?;
        }
        Ok(())
    }

    /// Does in the stand-ins' way what a block that cannot run would have done, where what comes after
    /// counts on it: CDI downloads nothing here.
    pub(crate) async fn stand_in_for(&self, block: &Block) -> Result<()> {
        let mut texts = block.commands.iter().map(|command| &command.text);
        if texts.any(|text| text.contains("kind: DataSource")) {
            self.installed.cluster.publish(IMAGE).await?;
        }
        Ok(())
    }

    /// What a shell in the checkout makes of a script: whether it succeeded, and all that was said.
    pub(crate) async fn shell(&self, script: &str) -> Result<(bool, String)> {
        let home = self.folder.path();
        let mut command = tokio::process::Command::new("bash");
        command
            .args(["-euo", "pipefail", "-c", &format!("exec 2>&1\n{script}")])
            .current_dir(home.join("kite"))
            .env("HOME", home)
            .env("PATH", self.path()?)
            .env("KUBECONFIG", self.kubeconfig());
        for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            command.env_remove(variable);
        }
        let output = run(command, "").await?;
        let said = output.stdout.lines().filter(|line| !is_logged(line));
        Ok((output.success, said.collect::<Vec<_>>().join("\n")))
    }

    fn path(&self) -> Result<String> {
        let path = env::var("PATH").context("PATH is not set")?;
        Ok(format!(
            "{}:{path}",
            self.folder.path().join("bin").display()
        ))
    }

    fn kubeconfig(&self) -> PathBuf {
        self.installed.cluster.control_plane.admin_kubeconfig()
    }
}

/// A line of the log of the client library in Helm and kubectl, such as
/// `E1201 05:00:01.067887 …`: what it tells of closed watches is no part of what they say.
fn is_logged(line: &str) -> bool {
    let bytes = line.as_bytes();
    bytes.len() > 6
        && b"IWEF".contains(&bytes[0])
        && bytes[1..5].iter().all(u8::is_ascii_digit)
        && bytes[5] == b' '
}
