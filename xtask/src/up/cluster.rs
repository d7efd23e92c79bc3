//! A control plane with Kite on it: each controller as a process of its own,
//! with a token of its own and its generated rights.
//!
//! It decides nothing about what is then done on the cluster.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::future::{join, join_all, try_join_all};
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleRef, Subject};
use kite_api::labels::Controller;
use kite_testkit::process::Process;
use kite_testkit::wait::eventually;
use kite_testkit::{ControlPlane, Identity, KiteOptions, KiteProcess, Options, install, stand_ins};
use kube::Api;
use kube::api::PostParams;
use kube::core::ObjectMeta;

use super::files::{Files, Running};
use super::options::{Speed, milliseconds};
use super::report::Report;

/// The image that the examples name.
pub(crate) const IMAGE: &str = "ubuntu-24.04";
/// Smaller than any disk of the examples.
const IMAGE_SIZE: &str = "4Gi";
/// Where the example's KitePlatform says that images are.
pub(crate) const IMAGE_NAMESPACE: &str = "kite-images";

/// The binary and process of the stand-ins.
const STAND_INS: &str = "kite-stand-ins";
/// Who plays KubeVirt and CDI, as the audit log calls it.
const STAND_IN_ACCOUNT: (&str, &str) = ("kubevirt", "kubevirt-stand-in");
/// What the stand-ins log when their webhooks are registered.
const STAND_INS_RUN: &str = "are running";

/// Two busy cores need a while.
const START_LIMIT: Duration = Duration::from_mins(1);
/// A little more than what a controller grants its running passes.
const STOP_GRACE: Duration = Duration::from_secs(22);

/// What is started.
pub(crate) struct Plan {
    pub(crate) files: Files,
    /// The folder of Kite's binaries.
    pub(crate) binaries: PathBuf,
    pub(crate) without: Vec<Controller>,
    pub(crate) stand_ins: bool,
    pub(crate) speed: Speed,
    /// How long a namespace that nobody needs stays; kite-namespace's default without.
    pub(crate) namespace_grace: Option<Duration>,
}

/// All that runs. Dropping it kills it.
pub(crate) struct Cluster {
    kite: Vec<(Controller, KiteProcess)>,
    absent: Vec<(Controller, Identity)>,
    stand_ins: Option<Process>,
    control_plane: ControlPlane,
    files: Files,
    binaries: PathBuf,
}

impl Cluster {
    /// Starts everything, one thing after the other, and says so.
    pub(crate) async fn start(plan: &Plan, report: &Report) -> Result<Self> {
        plan.files.clear()?;
        missing_binaries(plan)?;
        let control_plane = start_control_plane(plan, report).await?;
        let mut cluster = Self {
            kite: Vec::new(),
            absent: Vec::new(),
            stand_ins: None,
            control_plane,
            files: plan.files.clone(),
            binaries: plan.binaries.clone(),
        };
        if plan.stand_ins {
            cluster.start_stand_ins(plan.speed, report).await?;
        }
        let names = Controller::ALL.map(Controller::name);
        let identities = names.map(|name| install::controller(&cluster.control_plane, name));
        let identities = try_join_all(identities).await?;
        for (controller, identity) in Controller::ALL.into_iter().zip(identities) {
            if plan.without.contains(&controller) {
                cluster.absent.push((controller, identity));
            } else {
                cluster
                    .start_controller(plan, controller, &identity)
                    .await?;
            }
        }
        report.line(&cluster.start_times());
        Ok(cluster)
    }

    /// Kite first, so that leases are given back; then what it stands on.
    pub(crate) async fn shutdown(self) {
        let kite = self.kite.iter();
        join_all(kite.map(|(_, process)| process.terminate(STOP_GRACE))).await;
        if let Some(stand_ins) = &self.stand_ins {
            stand_ins.stop(STOP_GRACE).await;
        }
        self.control_plane.shutdown().await;
    }

    pub(crate) fn control_plane(&self) -> &ControlPlane {
        &self.control_plane
    }

    pub(crate) fn files(&self) -> &Files {
        &self.files
    }

    pub(crate) fn has_stand_ins(&self) -> bool {
        self.stand_ins.is_some()
    }

    /// The controllers that were started.
    pub(crate) fn kite(&self) -> impl Iterator<Item = (Controller, &KiteProcess)> {
        self.kite.iter().map(|(who, process)| (*who, process))
    }

    /// Writes `processes.json`.
    pub(crate) fn write_processes(&self) -> Result<()> {
        let kite = self.kite().map(|(_, process)| Running {
            name: process.process().name().to_owned(),
            pid: process.process().pid(),
            metrics: Some(process.address()),
        });
        let plain = |name: &str, pid| Running {
            name: name.to_owned(),
            pid,
            metrics: None,
        };
        let mut running: Vec<Running> = kite.collect();
        let others = self.others();
        running.extend(others.iter().map(|(name, pid, _)| plain(name, *pid)));
        running.push(plain("xtask", std::process::id()));
        self.files.write_processes(&running)
    }

    /// What is no Kite: name, process id, and memory where the system tells it.
    pub(crate) fn others(&self) -> Vec<(String, u32, Option<kite_testkit::process::Memory>)> {
        let describe =
            |process: &Process| (process.name().to_owned(), process.pid(), process.memory());
        let mut others = vec![describe(self.control_plane.etcd())];
        let servers = [
            self.control_plane.apiserver(),
            self.control_plane.controller_manager(),
        ];
        others.extend(servers.iter().flatten().map(|process| describe(process)));
        others.extend(self.stand_ins.as_ref().map(describe));
        others
    }

    /// The processes that ended by themselves.
    pub(crate) fn ended(&self) -> Vec<(String, ExitStatus)> {
        let ended = |process: &Process| {
            let status = process.exited()?;
            Some((process.name().to_owned(), status))
        };
        let kite = self.kite().filter_map(|(_, kite)| ended(kite.process()));
        let others = [
            self.control_plane.apiserver(),
            self.control_plane.controller_manager(),
        ];
        kite.chain(ended(self.control_plane.etcd()))
            .chain(others.iter().flatten().filter_map(|process| ended(process)))
            .chain(self.stand_ins.as_ref().and_then(ended))
            .collect()
    }

    /// How to start by hand what was left out.
    pub(super) fn commands_of_absent(&self) -> Vec<String> {
        let command = |(controller, identity): &(Controller, Identity)| {
            format!(
                "  {program} --kubeconfig {kubeconfig} --listen 127.0.0.1:0 --log-format text",
                program = self.binaries.join(controller.name()).display(),
                kubeconfig = identity.kubeconfig().display(),
            )
        };
        self.absent.iter().map(command).collect()
    }

    async fn start_stand_ins(&mut self, speed: Speed, report: &Report) -> Result<()> {
        let (namespace, account) = STAND_IN_ACCOUNT;
        let identity = self.control_plane.identity(namespace, account).await?;
        self.bind_to_cluster_admin().await?;
        let mut command = Command::new(self.binaries.join(STAND_INS));
        command
            .arg("--kubeconfig")
            .arg(identity.kubeconfig())
            .args(["--speed", &speed.to_string()]);
        let process = Process::start(STAND_INS, command, &self.files.log(STAND_INS))?;
        eventually(STAND_INS, START_LIMIT, async || {
            let runs = process.log_tail(20).contains(STAND_INS_RUN);
            (runs || process.exited().is_some()).then_some(())
        })
        .await
        .with_context(|| process.log_tail(20))?;
        if let Some(status) = process.exited() {
            bail!("{STAND_INS} ended ({status}):\n{}", process.log_tail(20));
        }
        self.stand_ins = Some(process);
        report.line(&format!(
            "stand-ins for KubeVirt and CDI run at speed {speed}"
        ));
        Ok(())
    }

    /// KubeVirt's and CDI's own operators are as mighty; Kite never is.
    async fn bind_to_cluster_admin(&self) -> Result<()> {
        let (namespace, account) = STAND_IN_ACCOUNT;
        let client = self.control_plane.admin_client().await?;
        let binding = ClusterRoleBinding {
            metadata: ObjectMeta {
                name: Some(account.to_owned()),
                ..ObjectMeta::default()
            },
            role_ref: RoleRef {
                api_group: "rbac.authorization.k8s.io".to_owned(),
                kind: "ClusterRole".to_owned(),
                name: "cluster-admin".to_owned(),
            },
            subjects: Some(vec![Subject {
                kind: "ServiceAccount".to_owned(),
                name: account.to_owned(),
                namespace: Some(namespace.to_owned()),
                ..Subject::default()
            }]),
        };
        Api::all(client)
            .create(&PostParams::default(), &binding)
            .await?;
        Ok(())
    }

    async fn start_controller(
        &mut self,
        plan: &Plan,
        controller: Controller,
        account: &Identity,
    ) -> Result<()> {
        let name = controller.name();
        let flags = flags(plan, controller);
        let options = KiteOptions {
            folder: Some(plan.binaries.clone()),
            log: Some(self.files.log(name)),
            identity: Some(identity(controller)),
            ..KiteOptions::new(name, account.kubeconfig())
        };
        let options = options
            .args(flags.iter().map(String::as_str))
            // A log file is not a terminal.
            .env("NO_COLOR", "1");
        let process = KiteProcess::start(&self.control_plane, options)
            .await
            .with_context(|| format!("{name} did not start; `--without {name}` leaves it out"))?;
        self.kite.push((controller, process));
        Ok(())
    }

    fn start_times(&self) -> String {
        let times = self.kite().map(|(controller, process)| {
            let after = process.ready_after().unwrap_or_default();
            format!("{} {} ms", controller.name(), after.as_millis())
        });
        format!("Kite: ready: {}", times.collect::<Vec<_>>().join(", "))
    }
}

/// What a controller that was started here calls itself in its Lease.
pub(super) fn identity(controller: Controller) -> String {
    format!("{}-0", controller.name())
}

/// Publishes the image of the examples, and waits until it can be cloned.
pub(crate) async fn publish(cluster: &Cluster) -> Result<()> {
    let client = cluster.control_plane.admin_client().await?;
    stand_ins::publish_image(&client, IMAGE_NAMESPACE, IMAGE, IMAGE_SIZE).await?;
    if cluster.has_stand_ins() {
        let condition = "--for=condition=Ready";
        let source = format!("datasource/{IMAGE}");
        let wait = ["wait", condition, &source, "-n", IMAGE_NAMESPACE];
        cluster.control_plane.kubectl(&wait).await?.ok()?;
    }
    Ok(())
}

fn flags(plan: &Plan, controller: Controller) -> Vec<String> {
    let mut flags = plan.speed.flags(controller);
    flags.extend(["--log-format".to_owned(), "text".to_owned()]);
    if let (Controller::Namespace, Some(grace)) = (controller, plan.namespace_grace) {
        flags.extend(["--grace-period".to_owned(), milliseconds(grace)]);
    }
    flags
}

/// Names all that is missing at once, before anything is started.
fn missing_binaries(plan: &Plan) -> Result<()> {
    let wanted = Controller::ALL
        .into_iter()
        .filter(|controller| !plan.without.contains(controller))
        .map(Controller::name)
        .chain(plan.stand_ins.then_some(STAND_INS));
    let missing: Vec<_> = wanted
        .filter(|name| !plan.binaries.join(name).is_file())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    bail!(
        "{} does not have {}",
        plan.binaries.display(),
        missing.join(", ")
    )
}

/// The controllers of Kubernetes come last: its garbage collector learns the
/// kinds that are there when it starts, and looks for others only every 30 s.
async fn start_control_plane(plan: &Plan, report: &Report) -> Result<ControlPlane> {
    let options = Options {
        folder: Some(plan.files.folder().to_owned()),
        audit_log: Some(plan.files.audit_log()),
        controller_manager: false,
        ..Options::default()
    };
    let control_plane = ControlPlane::start(options).await?;
    fs::copy(control_plane.admin_kubeconfig(), plan.files.kubeconfig())?;
    let times = control_plane.start_times();
    report.line(&format!(
        "etcd and kube-apiserver run ({:.1} s and {:.1} s)",
        times.etcd.as_secs_f64(),
        times.apiserver.as_secs_f64()
    ));
    let crds = join(
        install::kite_crds(&control_plane),
        install::upstream_crds(&control_plane),
    );
    let (kite, upstream) = crds.await;
    kite?;
    upstream?;
    report.line("CRDs of Kite, KubeVirt and CDI are served");
    control_plane.start_controller_manager().await?;
    let time = control_plane.start_times().controller_manager;
    report.line(&format!(
        "kube-controller-manager works ({:.1} s)",
        time.as_secs_f64()
    ));
    Ok(control_plane)
}
