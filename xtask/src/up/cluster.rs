//! A control plane with Kite on it: each controller as a process of its own,
//! with a token of its own and its generated rights.
//!
//! It decides nothing about what is then done on the cluster.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::future::{join_all, try_join_all};
use kite_api::labels::Controller;
use kite_testkit::process::Process;
use kite_testkit::{
    ControlPlane, Identity, KiteOptions, KiteProcess, NodeAgent, install, stand_ins,
};

use super::files::{Files, Running};
use super::ground::{STAND_INS, start_control_plane, start_stand_ins};
use super::member::Member;
use super::options::{Speed, milliseconds};
use super::pods;
use super::report::Report;

/// The image that the examples name.
pub(crate) const IMAGE: &str = "ubuntu-24.04";
/// Smaller than any disk of the examples.
const IMAGE_SIZE: &str = "4Gi";
/// Where the example's KitePlatform says that images are.
pub(crate) const IMAGE_NAMESPACE: &str = "kite-images";

/// How `/readyz?verbose` calls a process that has its Lease.
const LEADS: &str = "role: Leader";
/// Finer than what is measured with it.
const POLL: Duration = Duration::from_millis(5);
/// Two busy cores need a while.
pub(super) const START_LIMIT: Duration = Duration::from_mins(1);
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
    /// Whether Helm installs Kite, in pods; without, the processes are started as they are.
    pub(crate) helm: bool,
}

/// All that runs. Dropping it kills it.
pub(crate) struct Cluster {
    kite: Vec<Member>,
    /// What runs the pods, where Helm has installed Kite.
    nodes: Option<NodeAgent>,
    took: Duration,
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
            nodes: None,
            took: Duration::ZERO,
            absent: Vec::new(),
            stand_ins: None,
            control_plane,
            files: plan.files.clone(),
            binaries: plan.binaries.clone(),
        };
        if plan.stand_ins {
            cluster.stand_ins = Some(start_stand_ins(plan, &cluster.control_plane, report).await?);
        }
        if plan.helm {
            cluster.install(plan, report).await?;
        } else {
            cluster.start_all(plan, report).await?;
        }
        Ok(cluster)
    }

    /// Has Helm install Kite, and waits until it works.
    async fn install(&mut self, plan: &Plan, report: &Report) -> Result<()> {
        let installed = pods::install(plan, &self.control_plane, report).await?;
        self.kite = installed.members;
        self.nodes = Some(installed.nodes);
        self.took = installed.took;
        Ok(())
    }

    /// Starts the processes that the plan wants, one after the other.
    async fn start_all(&mut self, plan: &Plan, report: &Report) -> Result<()> {
        let names = Controller::ALL.map(Controller::name);
        let identities = names.map(|name| install::controller(&self.control_plane, name));
        let identities = try_join_all(identities).await?;
        for (controller, identity) in Controller::ALL.into_iter().zip(identities) {
            if plan.without.contains(&controller) {
                self.absent.push((controller, identity));
            } else {
                self.start_controller(plan, controller, &identity).await?;
            }
        }
        self.took = self.kite.iter().filter_map(|m| m.works_after).sum();
        report.line(&self.start_times());
        Ok(())
    }

    /// Kite first, so that leases are given back; then what it stands on.
    pub(crate) async fn shutdown(self) {
        let kite = self.kite.iter();
        join_all(kite.map(|member| member.terminate(STOP_GRACE))).await;
        if let Some(nodes) = self.nodes {
            nodes.stop().await;
        }
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
    pub(crate) fn kite(&self) -> &[Member] {
        &self.kite
    }

    /// How long Kite took to be at work: the processes one after the other, or all pods at once.
    pub(crate) fn took(&self) -> Duration {
        self.took
    }

    /// Writes `processes.json`.
    pub(crate) fn write_processes(&self) -> Result<()> {
        let kite = self.kite.iter().map(|member| Running {
            name: member.controller.name().to_owned(),
            pid: member.process().pid(),
            metrics: Some(member.address()),
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
            self.control_plane.scheduler(),
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
        let kite = self.kite.iter();
        let kite = kite.filter_map(|member| ended(member.process()));
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
            wait_ready: false,
            ..KiteOptions::new(name, account.kubeconfig())
        };
        let options = options
            .args(flags.iter().map(String::as_str))
            // A log file is not a terminal.
            .env("NO_COLOR", "1");
        let process = KiteProcess::start(&self.control_plane, options).await?;
        let works_after = until_it_works(&process)
            .await
            .with_context(|| format!("{name} did not start; `--without {name}` leaves it out"))?;
        self.kite.push(Member::process_of(
            controller,
            process,
            self.files.log(name),
            works_after,
        ));
        Ok(())
    }

    fn start_times(&self) -> String {
        let times = self.kite.iter().filter_map(|member| {
            let name = member.controller.name();
            let time = member.works_after?;
            Some(format!("{name} {} ms", time.as_millis()))
        });
        format!("Kite: at work: {}", times.collect::<Vec<_>>().join(", "))
    }
}

/// Waits until it leads and has read all that it watches. A standby is ready too,
/// and every process is one until it has its Lease; so readiness alone is not enough.
async fn until_it_works(process: &KiteProcess) -> Result<Duration> {
    let deadline = Instant::now() + START_LIMIT;
    loop {
        let told = process.get("/readyz?verbose").await;
        if let Ok((200, told)) = &told
            && told.contains(LEADS)
        {
            return Ok(process.process().age());
        }
        let tail = || process.process().log_tail(20);
        if let Some(status) = process.process().exited() {
            bail!("it ended ({status}):\n{}", tail());
        }
        if Instant::now() >= deadline {
            bail!("it does not work yet, and says {told:?}:\n{}", tail());
        }
        tokio::time::sleep(POLL).await;
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

/// How a controller is told to be quick enough to watch.
pub(super) fn flags(plan: &Plan, controller: Controller) -> Vec<String> {
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
