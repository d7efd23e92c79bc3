//! The frame of the story: one step after the other, each measured, each either
//! seen to happen or the end.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kite_api::labels::Controller;
use kite_testkit::audit::AuditLog;
use kite_testkit::process::{Memory, tail};
use kube::Client;

use super::kubectl::Kubectl;
use super::ledger::{self, Entry, Title};
use crate::up::{Cluster, Report, Speed, Table, tell};

/// What a step may take beside what is played: a busy machine is slow.
const LIMIT: Duration = Duration::from_secs(60);
/// The longest that is played, a clone and a start, at the pace of life.
const PLAYED: Duration = Duration::from_secs(180);

/// No work for this long is the end of a step's work.
const QUIET: Duration = Duration::from_millis(1500);
/// It is counted at the latest after this.
const QUIET_LIMIT: Duration = Duration::from_secs(10);

/// How much of a log is shown when a step fails.
const LOG_LINES: usize = 15;

/// What the steps work with.
pub(super) struct Story<'a> {
    pub(super) report: &'a Report,
    pub(super) client: Client,
    pub(super) kubectl: Kubectl<'a>,
    pub(super) cluster: &'a Cluster,
    pub(super) grace: Duration,
    /// How long a step may wait for what it wants to see.
    pub(super) limit: Duration,
    audit: AuditLog,
    entries: Vec<Entry>,
    total: usize,
}

impl<'a> Story<'a> {
    /// Begins with what the start of the processes cost.
    pub(super) async fn begin(
        cluster: &'a Cluster,
        report: &'a Report,
        speed: Speed,
        grace: Duration,
    ) -> Result<Self> {
        let control_plane = cluster.control_plane();
        let kubeconfig = cluster.files().kubeconfig();
        let cache = cluster.files().folder().join("kubectl-cache");
        let audit = control_plane.audit()?;
        let client = control_plane.admin_client().await?;
        audit.settled_mark(&client).await?;
        let title = Title {
            text: "the six processes start",
            limit: None,
        };
        let start = Entry::count(title, cluster.took(), &audit.all()?);
        Ok(Self {
            report,
            client,
            kubectl: Kubectl::new(&kubeconfig, &cache, report).await?,
            cluster,
            grace,
            limit: LIMIT + speed.scaled(PLAYED),
            audit,
            entries: vec![start],
            total: 0,
        })
    }

    /// Plays one step and counts it. On failure the logs of those concerned are shown.
    pub(super) async fn step(
        &mut self,
        title: Title,
        concerned: &[Controller],
        play: impl AsyncFnOnce(&Self) -> Result<()>,
    ) -> Result<()> {
        self.total += 1;
        tell("");
        self.report
            .line(&format!("── {}. {}", self.total, title.text));
        let mark = self.audit.settled_mark(&self.client).await?;
        let began = Instant::now();
        let seen = play(self).await.and_then(|()| self.all_run());
        let took = began.elapsed();
        if seen.is_err() {
            self.show_logs(concerned);
        }
        seen.with_context(|| {
            format!(
                "step {}, {}, was not seen to happen",
                self.total, title.text
            )
        })?;
        self.report
            .line(&format!("seen after {:.1} s", took.as_secs_f64()));
        self.quiet().await?;
        let requests = self.audit.since(mark)?;
        self.entries.push(Entry::count(title, took, &requests));
        Ok(())
    }

    /// Waits until Kite has nothing more to do, so that a step's last write counts
    /// for the step.
    async fn quiet(&self) -> Result<()> {
        let deadline = Instant::now() + QUIET_LIMIT;
        loop {
            let mark = self.audit.mark();
            tokio::time::sleep(QUIET).await;
            let since = self.audit.since(mark)?;
            if !since.iter().any(ledger::is_work) || Instant::now() >= deadline {
                return Ok(());
            }
        }
    }

    /// A process that ends on the way is a failure even when nobody misses it.
    fn all_run(&self) -> Result<()> {
        let ended = self.cluster.ended();
        if ended.is_empty() {
            return Ok(());
        }
        let ended: Vec<_> = ended
            .into_iter()
            .map(|(name, status)| format!("{name} ended ({status})"))
            .collect();
        bail!("{}", ended.join(", "))
    }

    fn show_logs(&self, concerned: &[Controller]) {
        let kite = self.cluster.kite().iter();
        for member in kite.filter(|member| concerned.contains(&member.controller)) {
            tell(&format!(
                "\n-- the end of the log of {}:",
                member.controller.name()
            ));
            tell(&tail(member.log(), LOG_LINES));
        }
    }

    /// The tables.
    pub(super) fn close(&self, release: bool) -> Result<()> {
        tell("");
        self.report.line("── what it cost");
        tell(&format!(
            "\nTime and requests to the API server by controller, from the server's audit log\n\
             (events, leases and watches stand apart; limit is what the tests allow the step):\n\n{}",
            ledger::table(&self.entries)
        ));
        let build = if release { "release" } else { "dev" };
        tell(&format!(
            "\nEach process, {build} build of Kite:\n\n{}",
            self.processes()
        ));
        self.all_run()?;
        tell("");
        self.report.line(&format!(
            "all {} steps were seen to happen; KubeVirt and CDI were stand-ins, all else was real",
            self.total
        ));
        Ok(())
    }

    fn processes(&self) -> Table {
        let mut table = Table::new(["process", "at work after", "memory", "at most"]);
        let memory = |memory: Option<Memory>| {
            let megabytes = |bytes: u64| format!("{:.1} MiB", bytes_in_mebibytes(bytes));
            memory.map_or_else(
                || ["–".to_owned(), "–".to_owned()],
                |memory| [megabytes(memory.resident), megabytes(memory.peak)],
            )
        };
        for member in self.cluster.kite() {
            let mut row = vec![
                member.controller.name().to_owned(),
                member
                    .works_after
                    .map_or_else(|| "–".to_owned(), |time| format!("{} ms", time.as_millis())),
            ];
            row.extend(memory(member.memory()));
            table.row(row);
        }
        for (name, _, resident) in self.cluster.others() {
            let mut row = vec![name, "–".to_owned()];
            row.extend(memory(resident));
            table.row(row);
        }
        table
    }
}

/// Exact enough for a table: the loss begins at petabytes.
#[expect(
    clippy::cast_precision_loss,
    reason = "memory of a process fits 52 bits"
)]
fn bytes_in_mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
