//! Finds the programs of a control plane, or builds them from pinned Go modules.
//!
//! The order is: the folder in `KITE_CONTROL_PLANE`, the folder in
//! `KUBEBUILDER_ASSETS` for what it has, Kite's cache in the user's cache folder,
//! a build into that cache. Only what is asked for is built. Nothing is
//! downloaded except by Go, which verifies it against go.sum.

use std::collections::HashMap;
use std::env;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::process::{spawn_mortal, tail};

/// The variable that names a folder with all the programs.
pub const FOLDER_VARIABLE: &str = "KITE_CONTROL_PLANE";

/// The variable that other projects use for such a folder.
const KUBEBUILDER_VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// What the pinned modules ask for.
const OLDEST_GO: (u32, u32) = (1, 26);

/// How often a build says that it is still alive.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);

/// A program that tests or `cargo xtask` may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Program {
    /// The store.
    Etcd,
    /// The API server of the newest Kubernetes that Kite is tested with.
    ApiServer,
    /// The API server of the oldest one.
    OldestApiServer,
    /// The controllers of Kubernetes itself.
    ControllerManager,
    /// What gives each pod its node.
    Scheduler,
    /// The command line.
    Kubectl,
    /// Helm 4, which installs by server-side apply and waits by kstatus.
    Helm,
    /// Helm 3, which many still have.
    Helm3,
    /// The monitoring that scrapes Kite's pods.
    Prometheus,
    /// The judge of rules, of alerts and of what an endpoint exposes.
    Promtool,
    /// A filter around kstatus, the judge of readiness.
    Kstatus,
    /// A filter around the matcher of cyclonus, the judge of network policies.
    Cyclonus,
    /// The judge of GitHub's workflows.
    Actionlint,
    /// A filter around BuildKit's frontend, the judge of Dockerfiles.
    Dockerfile,
}

/// How a Go program is built.
struct Recipe {
    /// Folder of the go.mod, relative to `xtask/control-plane`.
    module: &'static str,
    package: &'static str,
    /// The version that a Kubernetes program must report, or clients misjudge it.
    version: Option<&'static str>,
    /// Build tags that leave out what no test needs.
    tags: &'static str,
}

impl Program {
    /// The file's name, in every folder in which it is looked for.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::OldestApiServer => "kube-apiserver-1.34",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kubectl => "kubectl",
            Self::Helm => "helm",
            Self::Helm3 => "helm3",
            Self::Prometheus => "prometheus",
            Self::Promtool => "promtool",
            Self::Kstatus => "kstatus",
            Self::Cyclonus => "cyclonus",
            Self::Actionlint => "actionlint",
            Self::Dockerfile => "dockerfile",
        }
    }

    fn recipe(self) -> Recipe {
        let newest = |package| Recipe {
            module: ".",
            package,
            version: Some("v1.37.2"),
            tags: "",
        };
        let other = |module, package| Recipe {
            module,
            package,
            version: None,
            tags: "",
        };
        let monitoring = |package| Recipe {
            // Its other ways to discover targets bring the clients of every cloud.
            tags: "remove_all_sd,enable_kubernetes_sd",
            ..other("prometheus", package)
        };
        match self {
            Self::Etcd => newest("go.etcd.io/etcd/server/v3"),
            Self::ApiServer => newest("k8s.io/kubernetes/cmd/kube-apiserver"),
            Self::ControllerManager => newest("k8s.io/kubernetes/cmd/kube-controller-manager"),
            Self::Scheduler => newest("k8s.io/kubernetes/cmd/kube-scheduler"),
            Self::Kubectl => newest("k8s.io/kubernetes/cmd/kubectl"),
            Self::Helm => other("helm", "helm.sh/helm/v4/cmd/helm"),
            Self::Helm3 => other("helm", "helm.sh/helm/v3/cmd/helm"),
            Self::Prometheus => monitoring("github.com/prometheus/prometheus/cmd/prometheus"),
            Self::Promtool => monitoring("github.com/prometheus/prometheus/cmd/promtool"),
            Self::OldestApiServer => Recipe {
                module: "oldest",
                package: "k8s.io/kubernetes/cmd/kube-apiserver",
                version: Some("v1.34.4"),
                tags: "",
            },
            Self::Kstatus => other("kstatus", "."),
            Self::Cyclonus => other("cyclonus", "."),
            Self::Actionlint => other("actionlint", "github.com/rhysd/actionlint/cmd/actionlint"),
            Self::Dockerfile => other("dockerfile", "."),
        }
    }
}

impl Recipe {
    fn folder(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../xtask/control-plane")
            .join(self.module)
    }

    fn linker_flags(&self) -> String {
        let mut flags = "-s -w".to_owned();
        if let Some(version) = self.version {
            let mut numbers = version.trim_start_matches('v').split('.');
            let variables = [
                ("gitVersion", version),
                ("gitMajor", numbers.next().unwrap_or_default()),
                ("gitMinor", numbers.next().unwrap_or_default()),
            ];
            for (variable, value) in variables {
                flags.push_str(" -X k8s.io/component-base/version.");
                flags.push_str(variable);
                flags.push('=');
                flags.push_str(value);
            }
        }
        flags
    }

    /// Names a cache folder by everything that the built programs depend on.
    fn key(&self) -> Result<String> {
        let folder = self.folder();
        let mut inputs = vec![
            env::consts::OS.as_bytes().to_vec(),
            env::consts::ARCH.as_bytes().to_vec(),
            self.linker_flags().into_bytes(),
            self.tags.as_bytes().to_vec(),
        ];
        for file in ["go.mod", "go.sum", "main.go"] {
            let path = folder.join(file);
            match fs::read(&path) {
                Ok(bytes) => inputs.push(bytes),
                // Only Kite's own tools have a source beside their go.mod.
                Err(_) if file == "main.go" => {}
                Err(error) => {
                    return Err(error).with_context(|| format!("cannot read {}", path.display()));
                }
            }
        }
        Ok(format!("control-plane-{:016x}", fingerprint(&inputs)))
    }
}

/// FNV-1a: the same in every build of Kite, which the standard hasher is not.
fn fingerprint(inputs: &[Vec<u8>]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in inputs.iter().flat_map(|input| input.iter().chain(&[0])) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}

/// Where `program` is; built first when it is nowhere. May take many minutes, so
/// an async caller wants a blocking thread for it.
pub fn find(program: Program) -> Result<PathBuf> {
    static FOUND: LazyLock<Mutex<HashMap<Program, PathBuf>>> = LazyLock::new(Mutex::default);
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(path) = found.get(&program) {
        return Ok(path.clone());
    }
    let path = match ready_made(program) {
        Some(path) => path,
        None => build(program)?,
    };
    found.insert(program, path.clone());
    Ok(path)
}

/// [`find`] for several, on a blocking thread.
pub async fn find_all(programs: &[Program]) -> Result<Vec<PathBuf>> {
    let programs = programs.to_vec();
    tokio::task::spawn_blocking(move || programs.into_iter().map(find).collect()).await?
}

/// The program in one of the folders that the environment names.
fn ready_made(program: Program) -> Option<PathBuf> {
    [FOLDER_VARIABLE, KUBEBUILDER_VARIABLE]
        .into_iter()
        .filter_map(env::var_os)
        .map(|folder| Path::new(&folder).join(program.file_name()))
        .find(|path| path.is_file())
}

fn cache_folder() -> Result<PathBuf> {
    let base = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| env::home_dir().map(|home| home.join(".cache")))
        .context("neither XDG_CACHE_HOME nor HOME is set")?;
    Ok(base.join("kite"))
}

fn build(program: Program) -> Result<PathBuf> {
    let recipe = program.recipe();
    let folder = cache_folder()?.join(recipe.key()?);
    let path = folder.join(program.file_name());
    if path.is_file() {
        return Ok(path);
    }
    require_go(program, installed_go())?;
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let lock = File::create(folder.join("lock"))?;
    lock.lock()?;
    // Another process may have built it while this one waited for the lock.
    if !path.is_file() {
        run_go(program, &recipe, &folder, &path)?;
    }
    Ok(path)
}

/// One message for all who have neither the programs nor a Go that builds them.
fn require_go(program: Program, installed: Option<(u32, u32)>) -> Result<()> {
    if installed.is_some_and(|version| version >= OLDEST_GO) {
        return Ok(());
    }
    let found = installed.map_or_else(
        || "Go is not installed".to_owned(),
        |(major, minor)| format!("Go {major}.{minor} is too old"),
    );
    let (major, minor) = OLDEST_GO;
    bail!(
        "{} is needed and not here, and {found}. Either install Go {major}.{minor} or newer, \
         and Kite builds what it needs, or set {FOLDER_VARIABLE} to a folder with these programs: \
         etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, kstatus, \
         cyclonus, helm, helm3, prometheus, promtool, actionlint, dockerfile \
         (and kube-apiserver-1.34 for the tests against the oldest server).",
        program.file_name()
    )
}

fn installed_go() -> Option<(u32, u32)> {
    let output = Command::new("go")
        .args(["env", "GOVERSION"])
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut numbers = text.trim().strip_prefix("go")?.split('.');
    let major = numbers.next()?.parse().ok()?;
    let minor = numbers.next()?.split(['r', 'b']).next()?.parse().ok()?;
    Some((major, minor))
}

fn run_go(program: Program, recipe: &Recipe, folder: &Path, path: &Path) -> Result<()> {
    let name = program.file_name();
    // A half-finished build must never look finished.
    let unfinished = folder.join(format!("{name}.unfinished"));
    let log = folder.join(format!("{name}.log"));
    let output = File::create(&log)?;
    let mut command = Command::new("go");
    command
        .current_dir(recipe.folder())
        .args(["build", "-mod=readonly", "-trimpath", "-ldflags"])
        .arg(recipe.linker_flags())
        .args(["-tags", recipe.tags])
        .arg("-o")
        .arg(&unfinished)
        .arg(recipe.package)
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output);
    let mut child = spawn_mortal(command).context("cannot start go")?;
    let started = Instant::now();
    let mut said = Duration::ZERO;
    progress(&format!(
        "building {name} with Go, once; the servers take minutes …"
    ));
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if started.elapsed() >= said + PROGRESS_EVERY {
            said = started.elapsed();
            progress(&format!("building {name}: {} s", said.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    if !status.success() {
        bail!("go could not build {name} ({status}):\n{}", tail(&log, 20));
    }
    fs::rename(&unfinished, path)?;
    progress(&format!(
        "built {name} in {} s",
        started.elapsed().as_secs()
    ));
    Ok(())
}

/// Straight to the error output: a test harness would keep `eprintln!` back
/// until the test ends.
fn progress(line: &str) {
    writeln!(std::io::stderr(), "kite: {line}").ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_go_one_message_names_both_ways_out() {
        for installed in [None, Some((1, 25))] {
            let said = require_go(Program::Etcd, installed)
                .unwrap_err()
                .to_string();
            assert!(said.contains("install Go 1.26"), "{said}");
            assert!(said.contains(FOLDER_VARIABLE), "{said}");
            assert!(said.contains("kube-controller-manager"), "{said}");
        }
        require_go(Program::Etcd, Some((1, 26))).unwrap();
    }

    #[test]
    fn a_server_is_built_with_the_version_that_it_reports() {
        let flags = Program::OldestApiServer.recipe().linker_flags();
        assert_eq!(
            flags,
            "-s -w -X k8s.io/component-base/version.gitVersion=v1.34.4 \
             -X k8s.io/component-base/version.gitMajor=1 \
             -X k8s.io/component-base/version.gitMinor=34"
        );
    }

    #[test]
    fn a_cache_folder_is_named_by_what_is_built() {
        let key = |program: Program| program.recipe().key().unwrap();
        assert_eq!(key(Program::Etcd), key(Program::Kubectl));
        assert_ne!(key(Program::ApiServer), key(Program::OldestApiServer));
        assert_ne!(key(Program::ApiServer), key(Program::Kstatus));
        assert_ne!(key(Program::Kstatus), key(Program::Cyclonus));
        assert_eq!(key(Program::Helm), key(Program::Helm3));
    }
}
