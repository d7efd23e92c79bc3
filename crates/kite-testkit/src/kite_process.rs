//! One of Kite's own binaries as a real process, with a kubeconfig of its own.
//!
//! It runs what `cargo build` made; it never builds, and it knows no more about
//! a controller than the flags that all six have.

use std::collections::BTreeMap;
use std::env;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::control_plane::{ControlPlane, free_port};
use crate::http_get;
use crate::install::SYSTEM_NAMESPACE;
use crate::process::{Memory, Process};

/// A folder with Kite's binaries, when they are not beside the running one.
pub const BINARIES_VARIABLE: &str = "KITE_BIN_DIR";

/// How long a binary may take until it is ready; two busy cores need a while.
const READY_LIMIT: Duration = Duration::from_mins(1);

/// Between two looks whether it is ready.
const READY_POLL: Duration = Duration::from_millis(20);

/// How much of its log an error carries; its lines are long.
const TAIL: usize = 8;

/// How a Kite binary is started.
#[derive(Clone, Debug)]
pub struct KiteOptions {
    /// The binary, such as `kite-vm`.
    pub name: String,
    /// The folder it is in; without it, it is looked for where cargo puts it.
    pub folder: Option<PathBuf>,
    /// The kubeconfig whose rights it has.
    pub kubeconfig: PathBuf,
    /// What it calls itself in its lease; made up when not given.
    pub identity: Option<String>,
    /// The namespace of its lease.
    pub namespace: String,
    /// More flags.
    pub args: Vec<String>,
    /// More environment.
    pub env: Vec<(String, String)>,
    /// Where its log goes; without it into the control plane's folder.
    pub log: Option<PathBuf>,
    /// Whether to wait until it is ready.
    pub wait_ready: bool,
}

impl KiteOptions {
    /// The usual ones.
    pub fn new(name: &str, kubeconfig: &Path) -> Self {
        Self {
            name: name.to_owned(),
            folder: None,
            kubeconfig: kubeconfig.to_owned(),
            identity: None,
            namespace: SYSTEM_NAMESPACE.to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            log: None,
            wait_ready: true,
        }
    }

    /// With more flags.
    #[must_use]
    pub fn args<'a>(mut self, args: impl IntoIterator<Item = &'a str>) -> Self {
        self.args.extend(args.into_iter().map(str::to_owned));
        self
    }

    /// With one more environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// A running Kite binary. Dropping it kills it.
#[derive(Debug)]
pub struct KiteProcess {
    process: Process,
    address: SocketAddr,
    identity: String,
    ready_after: Option<Duration>,
}

impl KiteProcess {
    /// Starts it and, unless told otherwise, waits until it is ready.
    pub async fn start(control_plane: &ControlPlane, options: KiteOptions) -> Result<Self> {
        let number = control_plane.files.fetch_add(1, Ordering::Relaxed);
        let unique = format!("{}-{number}", options.name);
        let logs = control_plane.folder().join("logs");
        let log = options
            .log
            .unwrap_or_else(|| logs.join(format!("{unique}.log")));
        let identity = options.identity.unwrap_or(unique);
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        let program = match &options.folder {
            Some(folder) => folder.join(&options.name),
            None => binary(&options.name)?,
        };
        let mut command = Command::new(program);
        command
            .arg("--kubeconfig")
            .arg(&options.kubeconfig)
            .args(["--listen", &address.to_string()])
            .args(["--namespace", &options.namespace])
            .args(["--identity", &identity])
            .args(&options.args)
            .envs(options.env);
        let mut started = Self {
            process: Process::start(&options.name, command, &log)?,
            address,
            identity,
            ready_after: None,
        };
        if options.wait_ready {
            started.wait_ready(READY_LIMIT).await?;
        }
        Ok(started)
    }

    /// Waits until it says that it is ready.
    pub async fn wait_ready(&mut self, limit: Duration) -> Result<()> {
        let deadline = Instant::now() + limit;
        while !self.is_ready().await {
            let name = self.process.name();
            if let Some(status) = self.process.exited() {
                bail!("{name} ended ({status}):\n{}", self.process.log_tail(TAIL));
            }
            if Instant::now() >= deadline {
                let tail = self.process.log_tail(TAIL);
                bail!("{name} is not ready after {} s:\n{tail}", limit.as_secs());
            }
            tokio::time::sleep(READY_POLL).await;
        }
        self.ready_after.get_or_insert(self.process.age());
        Ok(())
    }

    /// Whether it says that it is ready now.
    pub async fn is_ready(&self) -> bool {
        matches!(self.get("/readyz").await, Ok((200, _)))
    }

    /// The status and body of a path on its port of health and metrics.
    pub async fn get(&self, path: &str) -> Result<(u16, String)> {
        http_get::get(self.address, path).await
    }

    /// Its metrics.
    pub async fn metrics(&self) -> Result<Metrics> {
        let (status, text) = self.get("/metrics").await?;
        if status != 200 {
            bail!("/metrics answered {status}: {text}");
        }
        Metrics::parse(&text)
    }

    /// Where it serves health and metrics.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it calls itself in its lease.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// How long it took from its start until it was seen ready.
    pub fn ready_after(&self) -> Option<Duration> {
        self.ready_after
    }

    /// The process, for its id, log, memory, CPU time and other signals.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Its memory.
    pub fn memory(&self) -> Option<Memory> {
        self.process.memory()
    }

    /// All that it logged.
    pub fn log(&self) -> String {
        self.process.log_tail(usize::MAX)
    }

    /// SIGKILL.
    pub fn kill(&self) -> Option<ExitStatus> {
        self.process.kill()
    }

    /// SIGTERM, and SIGKILL after `grace`.
    pub async fn terminate(&self, grace: Duration) -> Option<ExitStatus> {
        self.process.stop(grace).await
    }

    /// SIGSTOP.
    pub fn pause(&self) -> Result<()> {
        self.process.pause()
    }

    /// SIGCONT.
    pub fn resume(&self) -> Result<()> {
        self.process.resume()
    }
}

/// Metrics in the text format of Prometheus, by series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// Value by series as written, labels included.
    pub series: BTreeMap<String, f64>,
}

impl Metrics {
    /// Reads the text format; comments and times are left out.
    pub fn parse(text: &str) -> Result<Self> {
        let lines = text.lines().map(str::trim);
        let mut series = BTreeMap::new();
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            // Label values may hold blanks, so the name ends at the last brace.
            let end = line.rfind('}').map(|brace| brace + 1);
            let end = end.or_else(|| line.find(' ')).context("a bare name")?;
            let value = line[end..].split_whitespace().next();
            let value = value.with_context(|| format!("no value: {line}"))?;
            series.insert(line[..end].to_owned(), value.parse()?);
        }
        Ok(Self { series })
    }

    /// The value of one series as written.
    pub fn get(&self, series: &str) -> Option<f64> {
        self.series.get(series).copied()
    }

    /// The sum over all series of a metric whose labels contain each of `labels`,
    /// written `name="value"`.
    pub fn sum(&self, metric: &str, labels: &[&str]) -> f64 {
        let matching = self.series.iter().filter(|(series, _)| {
            let (name, rest) = series.split_once('{').unwrap_or((series, ""));
            name == metric && labels.iter().all(|label| rest.contains(label))
        });
        matching.map(|(_, value)| value).sum()
    }
}

/// The binary called `name`: in `KITE_BIN_DIR`, or where cargo puts it, which is
/// beside the running program or one folder above a test.
pub fn binary(name: &str) -> Result<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    folders.extend(env::var_os(BINARIES_VARIABLE).map(PathBuf::from));
    let own = env::current_exe()?;
    folders.extend(own.ancestors().skip(1).take(2).map(Path::to_owned));
    let found = folders.iter().map(|folder| folder.join(name));
    match found.into_iter().find(|path| path.is_file()) {
        Some(path) => Ok(path),
        None => bail!(
            "{name} is not built: run `cargo build --workspace --bins`, \
             or set {BINARIES_VARIABLE} to the folder with Kite's binaries"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_read_with_labels_that_hold_blanks() {
        let text =
            "# HELP a b\n# TYPE a counter\na{x=\"1 2\",y=\"z\"} 3\na{x=\"4\"} 5 1700\nb 0.5\n";
        let metrics = Metrics::parse(text).unwrap();
        assert_eq!(metrics.get("a{x=\"1 2\",y=\"z\"}"), Some(3.0));
        assert!((metrics.sum("a", &[]) - 8.0).abs() < f64::EPSILON);
        assert!((metrics.sum("a", &["x=\"4\""]) - 5.0).abs() < f64::EPSILON);
        assert_eq!(metrics.get("b"), Some(0.5));
    }

    #[test]
    fn a_binary_that_is_not_built_is_asked_for_by_command() {
        let said = binary("kite-nothing").unwrap_err().to_string();
        assert!(said.contains("cargo build --workspace --bins"), "{said}");
    }
}
