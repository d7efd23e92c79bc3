//! The ground that a scenario stands on: a control plane on memory, the stand-ins, and Kite's six
//! processes, which are started and ended as often as the scenario wants.
//!
//! Accounts are told apart: `load` makes and changes what people would, `bare` is the bare client,
//! and each of the six has its own. None of them is exempt from the server's fairness.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use kite_testkit::audit::{AuditLog, Mark};
use kite_testkit::cluster::CONTROLLERS;
use kite_testkit::{Cluster, ClusterOptions, Identity, Options, install, kubeconfig};
use kube::Client;
use kube::api::DynamicObject;
use kube::config::Kubeconfig;

use crate::bare::Clients;
use crate::usage::{Usage, Users};

/// Where temporary folders are on memory, so that no disk is measured.
const MEMORY: &str = "/dev/shm";

/// As many clones of one image at once as a platform may have. With the default of ten, most of a
/// burst would wait for its turn, and what is measured would be the length of that row.
const PLATFORM: &str = "
apiVersion: kite.dev/v1alpha1
kind: KitePlatform
metadata:
  name: default
spec:
  limits:
    clonesPerImage: 1000
";

/// The controller that binds claims, one after the other: behind it a storm would wait for minutes,
/// and what is measured would be that row. The stand-ins bind instead.
const BINDER: &str = "persistentvolume-binder-controller";

/// How long a process may take to stop by itself.
const GRACE: Duration = Duration::from_secs(25);

/// How a ground is made.
#[derive(Clone, Debug)]
pub struct GroundOptions {
    /// Whether requests are recorded; they are when counting, and not when timing.
    pub audit: bool,
    /// By how much life is faster.
    pub speed: f64,
    /// How many ticks of progress a clone has; 20 is a whole life, 2 a short one.
    pub ticks: u32,
    /// More flags for Kite's processes, by controller; `all` is for each of them.
    pub args: Vec<(&'static str, String)>,
    /// More flags for the API server.
    pub apiserver_args: Vec<String>,
    /// More objects.
    pub more: Vec<DynamicObject>,
}

impl Default for GroundOptions {
    fn default() -> Self {
        Self {
            audit: true,
            speed: 10.0,
            ticks: 20,
            args: Vec::new(),
            apiserver_args: Vec::new(),
            more: Vec::new(),
        }
    }
}

impl GroundOptions {
    /// For what is timed: nothing is recorded, and nobody logs what goes well.
    pub fn timed() -> Self {
        Self {
            audit: false,
            args: vec![("all", "--log-level=warn".to_owned())],
            ..Self::default()
        }
    }
}

/// A running ground. Dropping it ends everything.
pub struct Ground {
    /// The control plane, the stand-ins, and Kite's processes while they run.
    pub cluster: Cluster,
    /// The administrator's client, for looking and for what no contestant does.
    pub admin: Client,
    /// Who makes users and machines.
    pub load: Client,
    /// The bare client's.
    pub bare: Clients,
    /// The kubeconfigs of the bare client: its own, and kite-vm's for status.
    pub bare_accounts: [PathBuf; 2],
    options: GroundOptions,
    folder: Option<PathBuf>,
}

impl Ground {
    /// Starts a control plane with everything installed; of Kite nothing runs yet.
    pub async fn start(options: GroundOptions) -> Result<Self> {
        let folder = memory_folder()?;
        let mut args = options.args.clone();
        let logs = args.iter().any(|(_, arg)| arg.starts_with("--log-level"));
        if !logs {
            args.push(("all", "--log-level=info".to_owned()));
        }
        let cluster = Cluster::start(ClusterOptions {
            speed: options.speed,
            args,
            without: CONTROLLERS.to_vec(),
            stand_ins_args: stand_ins_args(options.ticks),
            control_plane: Options {
                audit: options.audit,
                folder: folder.clone(),
                apiserver_args: options.apiserver_args.clone(),
                without_controllers: vec![BINDER],
                ..Options::default()
            },
            ..ClusterOptions::default()
        })
        .await?;
        let admin = cluster.client().await;
        install::apply(&admin, PLATFORM).await?;
        install::apply_objects(&admin, options.more.clone()).await?;
        let load = account(&cluster, &admin, "load").await?;
        let bare = account(&cluster, &admin, "bare").await?;
        let teller = cluster.kite_options("kite-vm", "bare", &[]).kubeconfig;
        let bare_accounts = [bare.kubeconfig().to_owned(), teller];
        Ok(Self {
            cluster,
            admin,
            load: load.client().await?,
            bare: Clients {
                own: client_by(&bare_accounts[0]).await?,
                status: client_by(&bare_accounts[1]).await?,
            },
            bare_accounts,
            options,
            folder,
        })
    }

    /// How it was made.
    pub fn options(&self) -> &GroundOptions {
        &self.options
    }

    /// A time of life, as long as it is here.
    pub fn scaled(&self, time: Duration) -> Duration {
        self.cluster.scaled(time)
    }

    /// Starts the six, one after the other, and returns how long each took until it was ready.
    pub async fn start_kite(&self) -> Result<Vec<(&'static str, Duration)>> {
        let mut times = Vec::new();
        for name in CONTROLLERS {
            self.cluster.run(name, name, &[]).await?;
            let ready = self
                .cluster
                .with(name, kite_testkit::KiteProcess::ready_after);
            times.push((name, ready.unwrap_or_default()));
        }
        Ok(times)
    }

    /// Ends those of the six that run, gently.
    pub async fn stop_kite(&self) {
        for name in self.cluster.names() {
            self.cluster.take(&name).terminate(GRACE).await;
        }
    }

    /// The audit log.
    pub fn audit(&self) -> Result<AuditLog> {
        self.cluster.control_plane.audit()
    }

    /// The end of the audit log, when all that was answered before is in it.
    pub async fn mark(&self) -> Result<Mark> {
        self.audit()?.settled_mark(&self.admin).await
    }

    /// What each process has used so far.
    pub fn usage(&self) -> Usage {
        let mut users = Users::default();
        for name in self.cluster.names() {
            let pid = self.cluster.with(&name, |process| process.process().pid());
            users.add(&name, pid);
        }
        let plane = &self.cluster.control_plane;
        users.add("etcd", plane.etcd().pid());
        let servers = [
            ("kube-apiserver", plane.apiserver()),
            ("kube-controller-manager", plane.controller_manager()),
        ];
        for (name, process) in servers {
            if let Some(process) = process {
                users.add(name, process.pid());
            }
        }
        if let Some(pid) = self.cluster.stand_ins_pid() {
            users.add("stand-ins", pid);
        }
        users.add("bench", std::process::id());
        users.now()
    }

    /// Ends everything and takes its files away.
    pub async fn end(self) {
        self.stop_kite().await;
        self.cluster.end_stand_ins().await;
        self.cluster.control_plane.shutdown().await;
        if let Some(folder) = self.folder {
            // What stays behind is in memory and goes with the machine.
            std::fs::remove_dir_all(folder).ok();
        }
    }
}

fn stand_ins_args(ticks: u32) -> Vec<String> {
    // No webhooks and one claim for each disk: the stand-ins are to cost little. As many slots as
    // KubeVirt's and CDI's controllers have workers by default, which is more than the server of
    // a small machine can serve: they wait for it and not for each other.
    [
        "--webhooks=false".to_owned(),
        "--temporary-claims=false".to_owned(),
        "--binds-claims=true".to_owned(),
        "--slots=16".to_owned(),
        format!("--ticks={ticks}"),
    ]
    .into()
}

/// A folder on memory; without one the usual temporary place.
fn memory_folder() -> Result<Option<PathBuf>> {
    if !std::path::Path::new(MEMORY).is_dir() {
        return Ok(None);
    }
    let folder = tempfile::Builder::new()
        .prefix("kite-bench-")
        .tempdir_in(MEMORY)
        .context("cannot make a folder on memory")?;
    Ok(Some(folder.keep()))
}

/// A client with the credentials of a kubeconfig file.
pub async fn client_by(file: &Path) -> Result<Client> {
    let client = kubeconfig::client(Kubeconfig::read_from(file)?).await;
    client.with_context(|| format!("no client by {}", file.display()))
}

/// An account that may do anything, and is still subject to priority and fairness.
async fn account(cluster: &Cluster, admin: &Client, name: &str) -> Result<Identity> {
    let identity = cluster.control_plane.identity("kite-bench", name).await?;
    let binding = format!(
        "apiVersion: rbac.authorization.k8s.io/v1\n\
         kind: ClusterRoleBinding\n\
         metadata: {{name: kite-bench-{name}}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}}\n\
         subjects: [{{kind: ServiceAccount, name: {name}, namespace: kite-bench}}]\n"
    );
    install::apply(admin, &binding).await?;
    Ok(identity)
}
