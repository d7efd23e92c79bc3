//! A whole cluster for scenarios: the control plane, the CRDs, the stand-ins and
//! Kite's processes, each under its own generated rights.
//!
//! A scenario says which processes it wants, with which flags; the rest is as in
//! an installation. Nothing about Kite's behaviour is decided here.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, Result};
use kube::Client;

use crate::control_plane::{ControlPlane, Options};
use crate::identity::Identity;
use crate::kite_process::{KiteOptions, KiteProcess, binary};
use crate::process::Process;
use crate::{install, stand_ins};

/// The six controllers.
pub const CONTROLLERS: [&str; 6] = [
    "kite-user",
    "kite-namespace",
    "kite-vm",
    "kite-vm-status",
    "kite-service",
    "kite-datavolume",
];

/// Namespace of the published images.
pub const IMAGE_NAMESPACE: &str = "kite-images";

/// The image that every cluster has published.
pub const IMAGE: &str = "ubuntu-24.04";

/// What a cluster has.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// By how much the stand-ins, and Kite's own waits with them, are faster than life.
    pub speed: f64,
    /// Whether the kinds of KubeVirt and CDI are installed and played.
    pub stand_ins: bool,
    /// Whether Kite is there: its kinds, its rights, its processes. Without it an
    /// [installation](crate::installed) brings them.
    pub kite: bool,
    /// Controllers that are not started.
    pub without: Vec<&'static str>,
    /// More flags, by controller; the name `all` is for each of them.
    pub args: Vec<(&'static str, String)>,
    /// More flags of the stand-ins.
    pub stand_ins_args: Vec<String>,
    /// The control plane's own options.
    pub control_plane: Options,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            speed: 10.0,
            stand_ins: true,
            kite: true,
            without: Vec::new(),
            args: Vec::new(),
            stand_ins_args: Vec::new(),
            control_plane: Options::default(),
        }
    }
}

/// A running cluster. Dropping it ends it.
pub struct Cluster {
    /// The control plane.
    pub control_plane: ControlPlane,
    options: ClusterOptions,
    identities: BTreeMap<&'static str, Identity>,
    /// Locked while a process is started, taken or looked at, by the test's own thread.
    processes: Mutex<BTreeMap<String, KiteProcess>>,
    stand_ins: Mutex<Option<Process>>,
}

impl Cluster {
    /// Starts everything and waits until it is ready.
    pub async fn start(options: ClusterOptions) -> Result<Self> {
        // The garbage collector asks for new kinds only twice a minute, so it starts when they are there.
        let controller_manager = options.control_plane.controller_manager;
        let control_plane = ControlPlane::start(Options {
            controller_manager: false,
            ..options.control_plane.clone()
        })
        .await?;
        if options.kite {
            install::kite_crds(&control_plane).await?;
        }
        if options.stand_ins {
            install::upstream_crds(&control_plane).await?;
        }
        if controller_manager {
            control_plane.start_controller_manager().await?;
        }
        let client = control_plane.admin_client().await?;
        let mut identities = BTreeMap::new();
        // The images' namespace holds a role of kite-vm's, so it comes first.
        namespace(&client, IMAGE_NAMESPACE).await?;
        let controllers: &[&'static str] = if options.kite { &CONTROLLERS } else { &[] };
        for &name in controllers {
            identities.insert(name, install::controller(&control_plane, name).await?);
        }
        let cluster = Self {
            control_plane,
            options,
            identities,
            processes: Mutex::default(),
            stand_ins: Mutex::default(),
        };
        if cluster.options.stand_ins {
            cluster.start_stand_ins().await?;
            cluster.publish(IMAGE).await?;
        }
        for &name in controllers {
            if !cluster.options.without.contains(&name) {
                cluster.run(name, name, &[]).await?;
            }
        }
        Ok(cluster)
    }

    /// The administrator's client, for the calling test's runtime.
    pub async fn client(&self) -> Client {
        self.control_plane
            .admin_client()
            .await
            .expect("the control plane is up")
    }

    /// Installs the kinds of KubeVirt and CDI and has them played.
    pub async fn start_stand_ins(&self) -> Result<()> {
        if !self.options.stand_ins {
            install::upstream_crds(&self.control_plane).await?;
            self.control_plane.restart_controller_manager().await?;
        }
        let identity = self.control_plane.identity("kubevirt", "stand-ins").await?;
        install::apply(&self.client().await, STAND_INS_RIGHTS).await?;
        let mut command = std::process::Command::new(binary("kite-stand-ins")?);
        command
            .arg("--kubeconfig")
            .arg(identity.kubeconfig())
            .args(["--speed", &self.options.speed.to_string()])
            .args(&self.options.stand_ins_args);
        let log = self.log("kite-stand-ins");
        let process = Process::start("kite-stand-ins", command, &log)
            .context("the stand-ins cannot be started")?;
        *self.stand_ins.lock().unwrap() = Some(process);
        Ok(())
    }

    /// Publishes an image and waits until it is ready.
    pub async fn publish(&self, name: &str) -> Result<()> {
        let client = self.client().await;
        stand_ins::publish_image(&client, IMAGE_NAMESPACE, name, "1Gi").await?;
        Ok(())
    }

    /// Starts a controller under a name of its own, so that there can be two of one kind.
    pub async fn run(&self, controller: &str, called: &str, args: &[&str]) -> Result<()> {
        let options = self.kite_options(controller, called, args);
        let process = KiteProcess::start(&self.control_plane, options).await?;
        let mut processes = self.processes.lock().unwrap();
        processes.insert(called.to_owned(), process);
        Ok(())
    }

    /// How a controller is started here, for those who start it themselves.
    pub fn kite_options(&self, controller: &str, called: &str, args: &[&str]) -> KiteOptions {
        let identity = &self.identities[controller];
        let mut options = KiteOptions::new(controller, identity.kubeconfig());
        options.identity = Some(called.to_owned());
        options.log = Some(self.log(called));
        options.args = self.flags(controller);
        options.args.extend(args.iter().map(|a| (*a).to_owned()));
        options
    }

    /// Takes a process out of the cluster; dropping it kills it.
    pub fn take(&self, called: &str) -> KiteProcess {
        let taken = self.processes.lock().unwrap().remove(called);
        taken.unwrap_or_else(|| panic!("no process is called {called}"))
    }

    /// Looks at a process.
    pub fn with<T>(&self, called: &str, look: impl FnOnce(&KiteProcess) -> T) -> T {
        let processes = self.processes.lock().unwrap();
        look(
            processes
                .get(called)
                .unwrap_or_else(|| panic!("no process is called {called}")),
        )
    }

    /// The process id of the stand-ins, while they run.
    pub fn stand_ins_pid(&self) -> Option<u32> {
        self.stand_ins.lock().unwrap().as_ref().map(Process::pid)
    }

    /// Ends the stand-ins; what they made stays as it is.
    pub async fn end_stand_ins(&self) {
        let running = self.stand_ins.lock().unwrap().take();
        if let Some(process) = running {
            process.stop(STAND_INS_GRACE).await;
        }
    }

    /// The names of the processes that were started and not taken.
    pub fn names(&self) -> Vec<String> {
        self.processes.lock().unwrap().keys().cloned().collect()
    }

    /// The log of a process.
    pub fn log(&self, called: &str) -> PathBuf {
        let folder = self.control_plane.folder().join("logs");
        folder.join(format!("{called}.log"))
    }

    /// A time of life, as long as it is in this cluster.
    pub fn scaled(&self, time: Duration) -> Duration {
        time.div_f64(self.options.speed)
    }

    /// Kite's own waits go as fast as the life that is played (`--speed`).
    fn flags(&self, controller: &str) -> Vec<String> {
        let time = |seconds: f64| format!("{}ms", (seconds * 1000.0 / self.options.speed).ceil());
        let mut flags = match controller {
            "kite-datavolume" => vec![
                "--tick-interval".to_owned(),
                time(10.0),
                "--error-hold".to_owned(),
                time(10.0),
            ],
            "kite-vm-status" => vec!["--error-hold".to_owned(), time(10.0)],
            _ => Vec::new(),
        };
        let own = |name: &str| name == controller || name == "all";
        let asked = self.options.args.iter().filter(|(name, _)| own(name));
        flags.extend(asked.map(|(_, arg)| arg.clone()));
        if !flags.iter().any(|flag| flag.starts_with("--log-level")) {
            flags.push("--log-level=info,kite_runtime=debug".to_owned());
        }
        flags
    }
}

/// The cluster that all tests of one test binary share, with all six controllers.
///
/// # Panics
///
/// When it cannot be started, with the same words for every test.
pub async fn shared_cluster() -> &'static Cluster {
    static SHARED: tokio::sync::OnceCell<Result<Cluster, String>> =
        tokio::sync::OnceCell::const_new();
    let started = SHARED
        .get_or_init(|| async {
            let started = Cluster::start(ClusterOptions::default()).await;
            started.map_err(|error| format!("{error:#}"))
        })
        .await;
    match started {
        Ok(cluster) => cluster,
        Err(error) => panic!("no cluster: {error}"),
    }
}

/// They take their webhooks back before they end.
const STAND_INS_GRACE: Duration = Duration::from_secs(10);

/// The stand-ins play components that may do anything.
const STAND_INS_RIGHTS: &str = r"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: stand-ins
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects:
- {kind: ServiceAccount, name: stand-ins, namespace: kubevirt}
";

async fn namespace(client: &Client, name: &str) -> Result<()> {
    let text = format!("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {name}\n");
    install::apply(client, &text).await
}
