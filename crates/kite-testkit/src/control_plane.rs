//! A real control plane: etcd, kube-apiserver and kube-controller-manager as
//! plain processes on loopback, and kube-scheduler where it is asked for. There is
//! no kubelet; [`NodeAgent`](crate::node_agent::NodeAgent) stands in for it.
//!
//! It never imitates an answer of the API server. RBAC is on; who needs limited
//! rights takes an [`Identity`](crate::identity::Identity).

use std::env;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::DeleteParams;
use kube::config::Kubeconfig;
use kube::{Api, Client};
use tokio::sync::OnceCell;

use crate::audit::AuditLog;
use crate::kubeconfig;
use crate::pki::{CONTROLLER_MANAGER, Pki, SCHEDULER};
use crate::process::Process;
use crate::programs::{self, Program};
use crate::wait;

mod folder;
mod scheduler;
mod servers;

use folder::Folder;
pub use servers::free_port;

/// A folder for the audit logs of all test binaries, for checks over a whole suite.
pub const AUDIT_FOLDER_VARIABLE: &str = "KITE_AUDIT_DIR";

const ADMIN_FILE: &str = "admin.kubeconfig";
const CONTROLLER_MANAGER_FILE: &str = "controller-manager.kubeconfig";
const SCHEDULER_FILE: &str = "scheduler.kubeconfig";

/// Tries when another process takes a port between choosing and using it.
const PORT_TRIES: u32 = 4;

/// How long each server may take to stop by itself. An API server whose etcd is
/// gone would never.
const STOP_GRACE: Duration = Duration::from_secs(4);

/// Which Kubernetes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerVersion {
    /// The newest that Kite is tested with.
    #[default]
    Newest,
    /// The oldest that Kite is tested with. Its controllers are the newest.
    Oldest,
}

/// What may differ between control planes.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which API server.
    pub version: ServerVersion,
    /// A folder to keep; without it a temporary one. Data in it is taken up again.
    pub folder: Option<PathBuf>,
    /// Where the audit log goes; without it into `KITE_AUDIT_DIR`, or the folder.
    pub audit_log: Option<PathBuf>,
    /// Whether requests are recorded.
    pub audit: bool,
    /// Whether namespaces, garbage and quota are looked after.
    pub controller_manager: bool,
    /// Whether pods that name no node are given one.
    pub scheduler: bool,
    /// More flags for the API server.
    pub apiserver_args: Vec<String>,
    /// Controllers of the controller-manager that do not run.
    pub without_controllers: Vec<&'static str>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            version: ServerVersion::Newest,
            folder: None,
            audit_log: None,
            audit: true,
            controller_manager: true,
            scheduler: false,
            apiserver_args: Vec::new(),
            without_controllers: Vec::new(),
        }
    }
}

/// How long each part of a start took.
#[derive(Clone, Copy, Debug, Default)]
pub struct StartTimes {
    /// etcd until it accepts connections.
    pub etcd: Duration,
    /// The API server until it is ready.
    pub apiserver: Duration,
    /// The controller-manager until the `default` ServiceAccount is there.
    pub controller_manager: Duration,
}

/// A running control plane. Dropping it ends it.
pub struct ControlPlane {
    // Dropped from top to bottom: a server before what it depends on.
    scheduler: Mutex<Option<Arc<Process>>>,
    controller_manager: Mutex<Option<Arc<Process>>>,
    apiserver: Mutex<Option<Arc<Process>>>,
    etcd: Arc<Process>,
    etcd_port: u16,
    port: u16,
    apiserver_program: PathBuf,
    options: Options,
    pki: Pki,
    admin: Kubeconfig,
    audit_log: Option<PathBuf>,
    start_times: Mutex<StartTimes>,
    pub(crate) files: AtomicU32,
    folder: Folder,
}

impl ControlPlane {
    /// Starts one and waits until an object can be created in `default`.
    pub async fn start(options: Options) -> Result<Self> {
        // More than one provider in the tree would make rustls panic.
        rustls::crypto::ring::default_provider()
            .install_default()
            .ok();
        let mut tries = 1;
        loop {
            match Self::start_servers(options.clone()).await {
                Err(error) if tries < PORT_TRIES && is_port_race(&error) => tries += 1,
                Err(error) => return Err(error),
                Ok(control_plane) => {
                    if control_plane.options.controller_manager {
                        control_plane.start_controller_manager().await?;
                    }
                    if control_plane.options.scheduler {
                        control_plane.start_scheduler().await?;
                    }
                    return Ok(control_plane);
                }
            }
        }
    }

    async fn start_servers(options: Options) -> Result<Self> {
        let apiserver = match options.version {
            ServerVersion::Newest => Program::ApiServer,
            ServerVersion::Oldest => Program::OldestApiServer,
        };
        let found = programs::find_all(&[Program::Etcd, apiserver]).await?;
        let folder = match &options.folder {
            Some(path) => Folder::kept(path)?,
            None => Folder::temporary()?,
        };
        let pki = Pki::create(&folder.path().join("pki"))?;
        let began = Instant::now();
        let (etcd, etcd_port) = servers::start_etcd(&found[0], folder.path()).await?;
        let start_times = StartTimes {
            etcd: began.elapsed(),
            ..StartTimes::default()
        };
        let port = servers::free_port()?;
        let url = format!("https://127.0.0.1:{port}");
        let write = |user, (certificate, key): &(String, String), file| {
            let credentials = kubeconfig::by_certificate(certificate, key)?;
            let config = kubeconfig::kubeconfig(&url, &pki.ca, user, credentials)?;
            kubeconfig::write(&config, &folder.path().join(file))?;
            anyhow::Ok(config)
        };
        let admin = write("kite-admin", &pki.admin, ADMIN_FILE)?;
        let manager = &pki.controller_manager;
        write(CONTROLLER_MANAGER, manager, CONTROLLER_MANAGER_FILE)?;
        write(SCHEDULER, &pki.scheduler, SCHEDULER_FILE)?;
        let control_plane = Self {
            scheduler: Mutex::default(),
            controller_manager: Mutex::default(),
            apiserver: Mutex::default(),
            etcd: Arc::new(etcd),
            etcd_port,
            port,
            apiserver_program: found[1].clone(),
            audit_log: audit_log(&options, folder.path())?,
            options,
            pki,
            admin,
            start_times: Mutex::new(start_times),
            files: AtomicU32::new(0),
            folder,
        };
        control_plane.start_apiserver().await?;
        Ok(control_plane)
    }

    /// Starts the API server after [`ControlPlane::stop_apiserver`], at the same
    /// address, and waits until it is ready.
    pub async fn start_apiserver(&self) -> Result<()> {
        let began = Instant::now();
        let server = servers::ApiServer {
            program: &self.apiserver_program,
            folder: self.folder(),
            pki: &self.pki,
            port: self.port,
            etcd_port: self.etcd_port,
            audit_log: self.audit_log.as_deref(),
            more: &self.options.apiserver_args,
        };
        let process = Arc::new(server.start()?);
        *lock(&self.apiserver) = Some(Arc::clone(&process));
        servers::wait_ready(&process, &self.admin_client().await?).await?;
        lock(&self.start_times).apiserver = began.elapsed();
        Ok(())
    }

    /// Starts the controller-manager when it does not run, and waits until it
    /// works: it has made a ServiceAccount that was taken away before.
    ///
    /// Its garbage collector looks for new kinds every 30 s only; a test of
    /// owner references starts it after the CRDs are there, or restarts it.
    pub async fn start_controller_manager(&self) -> Result<()> {
        if self.controller_manager().is_some() {
            return Ok(());
        }
        let program = programs::find_all(&[Program::ControllerManager]).await?;
        let client = self.admin_client().await?;
        // Nobody uses this account, so that a running cluster does not notice.
        let probe: Api<ServiceAccount> = Api::namespaced(client.clone(), "kube-node-lease");
        probe.delete("default", &DeleteParams::default()).await.ok();
        let began = Instant::now();
        let process = servers::start_controller_manager(
            &program[0],
            self.folder(),
            &self.pki,
            &self.folder().join(CONTROLLER_MANAGER_FILE),
            &self.options.without_controllers,
        )?;
        let process = Arc::new(process);
        *lock(&self.controller_manager) = Some(Arc::clone(&process));
        let accounts: Api<ServiceAccount> = Api::namespaced(client, "default");
        for api in [probe, accounts] {
            wait::wait_for(&api, "default", servers::START_LIMIT, Option::is_some)
                .await
                .with_context(|| process.log_tail(30))?;
        }
        lock(&self.start_times).controller_manager = began.elapsed();
        Ok(())
    }

    /// Stops and starts the controller-manager, which then knows every kind.
    pub async fn restart_controller_manager(&self) -> Result<()> {
        self.stop_controller_manager().await;
        self.start_controller_manager().await
    }

    /// Stops the controller-manager.
    pub async fn stop_controller_manager(&self) {
        stop(&self.controller_manager).await;
    }

    /// Stops the API server; etcd keeps what it stored.
    pub async fn stop_apiserver(&self) {
        stop(&self.apiserver).await;
    }

    /// Stops and starts the API server.
    pub async fn restart_apiserver(&self) -> Result<()> {
        self.stop_apiserver().await;
        self.start_apiserver().await
    }

    /// Ends it in the right order: scheduler, controller-manager, API server, etcd.
    pub async fn shutdown(self) {
        self.stop_scheduler().await;
        self.stop_controller_manager().await;
        self.stop_apiserver().await;
        self.etcd.stop(STOP_GRACE).await;
    }

    /// The address of the API server.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// The certificate of its authority, PEM.
    pub fn ca(&self) -> &str {
        &self.pki.ca
    }

    /// Where its files are: `logs/`, `audit.log`, `pki/`.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// How long the last start of each server took.
    pub fn start_times(&self) -> StartTimes {
        *lock(&self.start_times)
    }

    /// The API server, unless stopped: for signals and measurements.
    pub fn apiserver(&self) -> Option<Arc<Process>> {
        lock(&self.apiserver).clone()
    }

    /// The controller-manager, unless stopped.
    pub fn controller_manager(&self) -> Option<Arc<Process>> {
        lock(&self.controller_manager).clone()
    }

    /// The address of the store, plain HTTP on loopback.
    pub fn etcd_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.etcd_port)
    }

    /// The store.
    pub fn etcd(&self) -> &Arc<Process> {
        &self.etcd
    }

    /// What was asked of the API server so far.
    pub fn audit(&self) -> Result<AuditLog> {
        match &self.audit_log {
            Some(path) => Ok(AuditLog::new(path)),
            None => bail!("this control plane was started without an audit log"),
        }
    }

    /// A new client of the group `system:masters`. Each test makes its own: a
    /// client's worker dies with the runtime that made it.
    pub async fn admin_client(&self) -> Result<Client> {
        kubeconfig::client(self.admin.clone()).await
    }

    /// The administrator's kubeconfig file.
    pub fn admin_kubeconfig(&self) -> PathBuf {
        self.folder().join(ADMIN_FILE)
    }
}

/// The control plane that all tests of one test binary share, started by the
/// first that asks. Tests keep out of each other's way by namespace and name.
///
/// # Panics
///
/// When it cannot be started, with the same words for every test.
pub async fn shared() -> &'static ControlPlane {
    static SHARED: OnceCell<Result<ControlPlane, String>> = OnceCell::const_new();
    let started = SHARED
        .get_or_init(|| async {
            let started = ControlPlane::start(Options::default()).await;
            started.map_err(|error| format!("{error:#}"))
        })
        .await;
    match started {
        Ok(control_plane) => control_plane,
        Err(error) => panic!("no control plane: {error}"),
    }
}

fn audit_log(options: &Options, folder: &Path) -> Result<Option<PathBuf>> {
    if !options.audit {
        return Ok(None);
    }
    if let Some(path) = &options.audit_log {
        return Ok(Some(path.clone()));
    }
    let Some(suite) = env::var_os(AUDIT_FOLDER_VARIABLE) else {
        return Ok(Some(folder.join("audit.log")));
    };
    std::fs::create_dir_all(&suite)?;
    let owner = env::current_exe()?;
    let owner = owner.file_stem().unwrap_or_default().to_string_lossy();
    // Named by the folder too, since one process may start several.
    let unique = folder.file_name().unwrap_or_default().to_string_lossy();
    Ok(Some(
        Path::new(&suite).join(format!("{owner}.{unique}.log")),
    ))
}

fn is_port_race(error: &anyhow::Error) -> bool {
    format!("{error:#}").contains(servers::PORT_TAKEN)
}

async fn stop(slot: &Mutex<Option<Arc<Process>>>) {
    let process = lock(slot).take();
    if let Some(process) = process {
        process.stop(STOP_GRACE).await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
