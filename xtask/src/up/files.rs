//! Where a cluster's files are: the same names every time, so that a script can rely on them.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::workspace;

/// What outlives a cluster: for reading afterwards, and the lock.
const KEPT: [&str; 3] = [LOGS, "audit.log", super::lock::FILE];

/// The folder of the processes' logs.
const LOGS: &str = "logs";

/// The folder of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    folder: PathBuf,
}

/// A line of `processes.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Running {
    /// Such as `kite-vm`.
    pub(crate) name: String,
    /// Its process id.
    pub(crate) pid: u32,
    /// Where it serves health and metrics, if it does.
    pub(crate) metrics: Option<SocketAddr>,
}

impl Files {
    /// Those of `cargo xtask up`.
    pub(crate) fn of_up() -> Self {
        Self::named("up")
    }

    /// Those of `cargo xtask demo`, which may run beside it.
    pub(crate) fn of_demo() -> Self {
        Self::named("demo")
    }

    fn named(name: &str) -> Self {
        Self {
            folder: workspace::root().join("target").join(name),
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    pub(crate) fn audit_log(&self) -> PathBuf {
        self.folder.join("audit.log")
    }

    pub(super) fn logs(&self) -> PathBuf {
        self.folder.join(LOGS)
    }

    pub(crate) fn log(&self, process: &str) -> PathBuf {
        self.logs().join(format!("{process}.log"))
    }

    pub(crate) fn processes(&self) -> PathBuf {
        self.folder.join("processes.json")
    }

    pub(super) fn lock(&self) -> PathBuf {
        self.folder.join(super::lock::FILE)
    }

    /// What runs, as written by who started it; nothing when the file is not there.
    pub(crate) fn read_processes(&self) -> Result<Vec<Running>> {
        match fs::read(self.processes()) {
            Ok(text) => serde_json::from_slice(&text)
                .with_context(|| format!("{} is not ours", self.processes().display())),
            Err(_) => Ok(Vec::new()),
        }
    }

    /// Writes the file in one step: who sees it sees all of it.
    pub(crate) fn write_processes(&self, running: &[Running]) -> Result<()> {
        let unfinished = self.folder.join("processes.unfinished");
        fs::write(&unfinished, serde_json::to_vec_pretty(running)?)?;
        fs::rename(&unfinished, self.processes())?;
        Ok(())
    }

    /// An empty folder, but for the lock that the caller holds and the log it may write.
    pub(crate) fn clear(&self) -> Result<()> {
        remove(&self.folder, &[super::lock::FILE, LOGS])?;
        remove(&self.folder.join(LOGS), &[super::detach::LOG])
    }

    /// Removes what only makes sense while the cluster runs.
    pub(crate) fn remove_running(&self) -> Result<()> {
        remove(&self.folder, &KEPT)
    }
}

fn remove(folder: &Path, kept: &[&str]) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if kept.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        let removed = if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())
        } else {
            fs::remove_file(entry.path())
        };
        removed.with_context(|| format!("cannot remove {}", entry.path().display()))?;
    }
    Ok(())
}
