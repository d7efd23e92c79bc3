//! The real Helm, 3 and 4, as an administrator would run it, with Kite's own charts.
//!
//! Each run has folders of its own for what Helm keeps, so that nothing of the
//! machine's user is read or left behind.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

use crate::command_line::{Output, run};
use crate::control_plane::ControlPlane;
use crate::install::SYSTEM_NAMESPACE;
use crate::programs::{self, Program};

/// Longer than anything that Helm or `kubectl rollout` waits for, on a busy machine too.
pub const LIMIT: &str = "--timeout=5m";

/// Which Helm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Helm {
    /// Installs by client-side merge; waits by its own list of kinds.
    Three,
    /// Installs by server-side apply; waits by kstatus.
    Four,
}

impl Helm {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Three, Self::Four];

    fn program(self) -> Program {
        match self {
            Self::Three => Program::Helm3,
            Self::Four => Program::Helm,
        }
    }

    /// Runs it without a cluster, as for `template`, `lint` and `package`.
    pub async fn offline(self, args: &[&str]) -> Result<Output> {
        let folder = tempfile::tempdir()?;
        self.start(folder.path(), None, args).await
    }

    /// The objects of a chart for the release `kite` in Kite's namespace, without a cluster;
    /// with more arguments, such as values.
    pub async fn rendered(self, chart: &str, arguments: &[String]) -> Result<Vec<Value>> {
        let namespace = format!("--namespace={SYSTEM_NAMESPACE}");
        let mut line = vec!["template", "kite", chart, &namespace];
        line.extend(arguments.iter().map(String::as_str));
        let objects: Vec<Value> = serde_saphyr::from_multiple(&self.offline(&line).await?.ok()?)?;
        Ok(objects.into_iter().filter(|o| !o.is_null()).collect())
    }

    /// Runs it as administrator of a cluster.
    pub async fn run(self, control_plane: &ControlPlane, args: &[&str]) -> Result<Output> {
        let kubeconfig = control_plane.admin_kubeconfig();
        let folder = control_plane.folder().join("helm");
        self.start(&folder, Some(&kubeconfig), args).await
    }

    /// Installs one of the charts as a release of its own name in Kite's namespace, with more
    /// arguments, and waits until Helm says that all is ready.
    pub async fn install(
        self,
        control_plane: &ControlPlane,
        charts: &Charts,
        chart: &str,
        more: &[&str],
    ) -> Result<String> {
        let path = charts.path(chart);
        let mut args = vec!["install", chart, &path, "--create-namespace", "--wait"];
        args.extend(["--namespace", SYSTEM_NAMESPACE, LIMIT]);
        args.extend(more);
        let said = self.run(control_plane, &args).await?.ok();
        said.with_context(|| format!("helm install {chart}"))
    }

    async fn start(
        self,
        folder: &Path,
        kubeconfig: Option<&Path>,
        args: &[&str],
    ) -> Result<Output> {
        let program = programs::find_all(&[self.program()]).await?;
        let mut command = Command::new(&program[0]);
        for (variable, name) in [
            ("HELM_CACHE_HOME", "cache"),
            ("HELM_CONFIG_HOME", "config"),
            ("HELM_DATA_HOME", "data"),
        ] {
            command.env(variable, folder.join(name));
        }
        // An empty path, where the user's own kubeconfig would be looked for.
        command.env("KUBECONFIG", kubeconfig.unwrap_or(Path::new("")));
        command.args(args);
        run(command, "").await
    }
}

/// The charts that can be installed; a chart stands behind its parts.
pub const CHARTS: [&str; 8] = [
    "kite-crds",
    "kite-user",
    "kite-namespace",
    "kite-vm",
    "kite-vm-status",
    "kite-service",
    "kite-datavolume",
    "kite",
];

/// The six, by their names in the umbrella and by their own.
pub const PARTS: [(&str, &str); 6] = [
    ("user", "kite-user"),
    ("namespace", "kite-namespace"),
    ("vm", "kite-vm"),
    ("vmStatus", "kite-vm-status"),
    ("service", "kite-service"),
    ("datavolume", "kite-datavolume"),
];

/// Kite's charts in a folder of their own, each with its parts gathered by
/// `helm dependency build`, as somebody does who installs from a fresh checkout.
/// The checkout stays as it is.
pub struct Charts {
    folder: TempDir,
}

impl Charts {
    /// Copies the charts and gathers their parts; nothing is fetched.
    pub async fn gathered() -> Result<Self> {
        Self::changed(|_| Ok(())).await
    }

    /// As [`Self::gathered`], with the copy changed before, into those of another version.
    pub async fn changed(change: impl FnOnce(&Path) -> Result<()>) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        copy_charts(folder.path())?;
        change(folder.path())?;
        let charts = Self { folder };
        for name in CHARTS {
            let path = charts.path(name);
            let built = Helm::Four.offline(&["dependency", "build", &path]).await?;
            built.ok().with_context(|| format!("the parts of {name}"))?;
        }
        Ok(charts)
    }

    /// The path of one of them, for a command line.
    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }
}

/// Copies the charts into a folder, as they are in a fresh checkout: their parts are not gathered.
pub fn copy_charts(to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    copy(&chart(""), to)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let (name, place) = (entry.file_name(), to.join(entry.file_name()));
        // What an earlier `helm dependency build` has left in the checkout.
        let gathered =
            from.join("Chart.yaml").exists() && (name == "charts" || name == "Chart.lock");
        if gathered {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::create_dir(&place)?;
            copy(&entry.path(), &place)?;
        } else {
            fs::copy(entry.path(), &place)?;
        }
    }
    Ok(())
}

/// The folder of one of Kite's charts.
pub fn chart(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../charts")
        .join(name)
}
