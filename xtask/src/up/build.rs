//! Finds or builds what a cluster consists of, and says what takes its time.

use std::env;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kite_testkit::kite_process::BINARIES_VARIABLE;
use kite_testkit::programs::{self, Program};
use tokio::process::Command;

use super::report::Report;
use crate::workspace::root;

/// What is started or called.
const PROGRAMS: [Program; 4] = [
    Program::Etcd,
    Program::ApiServer,
    Program::ControllerManager,
    Program::Kubectl,
];

/// How often a build that shows nothing says that it goes on.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);

/// How Kite's binaries are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// Quickly.
    Dev,
    /// As shipped.
    Release,
}

impl Profile {
    /// The name of cargo's folder for it.
    pub(crate) const fn folder(self) -> &'static str {
        match self {
            Self::Dev => "debug",
            Self::Release => "release",
        }
    }
}

/// Has the control plane's programs and Kite's binaries ready; returns the
/// folder of the latter. Binaries in `KITE_BIN_DIR` are taken as they are.
pub(crate) async fn prepare(profile: Profile, helm: bool, report: &Report) -> Result<PathBuf> {
    report
        .line("control plane: looking for etcd, kube-apiserver, kube-controller-manager, kubectl");
    let began = Instant::now();
    let found = programs::find_all(&PROGRAMS).await?;
    if helm {
        programs::find_all(&[Program::Scheduler, Program::Helm]).await?;
    }
    let folder = found[0].parent().context("a program is in a folder")?;
    report.line(&format!(
        "control plane: {} ({:.1} s)",
        folder.display(),
        began.elapsed().as_secs_f64()
    ));
    if let Some(folder) = env::var_os(BINARIES_VARIABLE).map(PathBuf::from) {
        report.line(&format!("Kite: taken as it is from {}", folder.display()));
        return Ok(folder);
    }
    binaries(profile, report).await
}

async fn binaries(profile: Profile, report: &Report) -> Result<PathBuf> {
    let mut arguments = vec!["build", "--workspace", "--bins"];
    if profile == Profile::Release {
        arguments.push("--release");
    }
    report.line(&format!("Kite: cargo {}", arguments.join(" ")));
    let began = Instant::now();
    // The cargo that runs us, so that both agree about everything.
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut child = Command::new(cargo)
        .args(&arguments)
        .current_dir(root())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .context("cannot start cargo")?;
    // On a terminal cargo shows its own progress.
    let shows = std::io::stderr().is_terminal();
    let status = loop {
        tokio::select! {
            status = child.wait() => break status?,
            () = tokio::time::sleep(PROGRESS_EVERY), if !shows => {
                report.line(&format!("Kite: still building, {} s", began.elapsed().as_secs()));
            }
        }
    };
    if !status.success() {
        bail!("Kite does not build; cargo's messages are above");
    }
    report.line(&format!(
        "Kite: built in {:.1} s",
        began.elapsed().as_secs_f64()
    ));
    // <target folder>/<profile>/xtask
    let own = env::current_exe()?;
    let target = own
        .ancestors()
        .nth(2)
        .context("this program is in a folder")?;
    Ok(target.join(profile.folder()))
}
