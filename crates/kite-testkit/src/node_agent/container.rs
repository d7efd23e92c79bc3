//! The life of one container: started, probed, started again with a pause that
//! grows, ended when its pod goes.
//!
//! It decides by the pod's restart policy alone and writes nothing to the
//! server; what it does is seen in its [`View`].

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Container;
use kube::ResourceExt;
use nix::sys::signal::Signal;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::downward::Facts;
use super::probe::{Probes, Seen};
use super::view::{End, State, View, now};
use super::volumes::Volumes;
use super::{Shared, command, image};
use crate::process::{Process, tail};

/// How often it is looked whether a process has ended.
const EXIT_POLL: Duration = Duration::from_millis(25);

/// How long after something was missing it is looked for again.
pub(super) const RETRY: Duration = Duration::from_secs(1);

/// The pause between two starts grows to this many times the first one, as a
/// kubelet's from 10 s to 5 min.
const LONGEST_PAUSE: u32 = 30;

/// As much of a log as a status may hold, for a kubelet too.
const MESSAGE: usize = 2048;
const MESSAGE_LINES: usize = 80;

/// What a kubelet gives a pod that does not say.
pub(super) const GRACE: Duration = Duration::from_secs(30);

/// The time a pod has to end, once it is to end.
pub(super) type Stop = watch::Receiver<Option<Duration>>;

/// One container of one pod.
pub(super) struct Life {
    pub(super) shared: Arc<Shared>,
    pub(super) facts: Arc<Facts>,
    pub(super) container: Container,
    pub(super) index: usize,
    pub(super) volumes: Arc<Volumes>,
    pub(super) views: Arc<watch::Sender<Vec<View>>>,
    pub(super) stop: Stop,
    /// The pod's.
    pub(super) folder: PathBuf,
    pub(super) log: PathBuf,
}

/// Kills its process when nobody looks after it any more, whoever else holds it.
struct Leash(Arc<Process>);

impl Drop for Leash {
    fn drop(&mut self) {
        self.0.kill();
    }
}

impl Life {
    /// Lives until it is to end or is not to be started again.
    pub(super) async fn live(mut self) {
        let probes = Probes::of(&self.container, self.facts.ip);
        let (reason, message) = match (image::program(&self.container), &probes) {
            (Err(message), _) => ("ErrImageNeverPull", message),
            (_, Err(message)) => ("CreateContainerConfigError", message.clone()),
            (Ok(_), Ok(probes)) => return self.lives(probes).await,
        };
        self.show(|view| view.wait(reason, message));
        self.stop.wait_for(Option::is_some).await.ok();
    }

    async fn lives(&mut self, probes: &Probes) {
        let first_pause = self.shared.options.backoff;
        let mut pause = None;
        for life in 0_u32.. {
            let Some(process) = self.start().await else {
                return;
            };
            let began = Instant::now();
            let end = self.one_life(&process.0, probes, life).await;
            let again = self.is_restarted(&end) && self.stop.borrow().is_none();
            let code = end.code;
            self.show(|view| {
                view.started = false;
                view.ready = false;
                view.state = State::Ended(end);
            });
            if !again {
                return;
            }
            // One that worked for long has earned a new start without a pause.
            if began.elapsed() > first_pause * LONGEST_PAUSE * 2 {
                pause = None;
            }
            tracing::info!(
                pod = self.facts.pod.name_any(),
                code,
                ?pause,
                "is started again"
            );
            if !self.rest(pause).await {
                return;
            }
            let next = pause.map_or(first_pause, |pause| pause * 2);
            pause = Some(next.min(first_pause * LONGEST_PAUSE));
        }
    }

    /// From start to end.
    async fn one_life(&mut self, process: &Process, probes: &Probes, life: u32) -> End {
        let since = now();
        let id = format!("process://{}-{}", self.facts.pod.name_any(), process.pid());
        self.show(|view| {
            view.restarts = life;
            view.state = State::Running {
                since: since.clone(),
                id: id.clone(),
            };
        });
        let status = self.watch_over(process, probes).await;
        self.shared.forget(&self.facts.pod, self.index);
        self.end(status, since, id)
    }

    /// Waits before the next start. False when there shall be none.
    async fn rest(&mut self, pause: Option<Duration>) -> bool {
        let pause = pause.unwrap_or_default();
        let name = &self.container.name;
        let pod = self.facts.pod.name_any();
        let message = format!("back-off {pause:?} restarting failed container={name} pod={pod}");
        self.show(|view| {
            if let State::Ended(end) = &view.state {
                view.last = Some(end.clone());
            }
            if !pause.is_zero() {
                view.wait("CrashLoopBackOff", message);
            }
        });
        if self.stops_within(pause).await {
            self.show(|view| {
                if let Some(end) = view.last.clone() {
                    view.state = State::Ended(end);
                }
            });
            return false;
        }
        true
    }

    /// Starts the process, as soon as all that it needs is there. Nothing when
    /// the pod is to end first.
    async fn start(&mut self) -> Option<Leash> {
        loop {
            let made = command::command(
                &self.shared.client,
                &self.shared.server,
                &self.facts,
                &self.container,
                &self.volumes,
                &self.folder,
            );
            let started = made.await.and_then(|command| {
                let name = &self.container.name;
                let process = Process::start(name, command, &self.log);
                process.map_err(|error| format!("{error:#}"))
            });
            match started {
                Ok(process) => {
                    let process = Leash(Arc::new(process));
                    self.shared
                        .remember(&self.facts.pod, self.index, &process.0);
                    return Some(process);
                }
                Err(message) => {
                    self.show(|view| view.wait("CreateContainerConfigError", message));
                    if self.stops_within(RETRY).await {
                        return None;
                    }
                }
            }
        }
    }

    /// Probes the process until it has ended, by itself or not.
    async fn watch_over(&mut self, process: &Process, probes: &Probes) -> ExitStatus {
        let (views, index) = (Arc::clone(&self.views), self.index);
        let seen = |seen| {
            show(&views, index, |view| match seen {
                Seen::Started => view.started = true,
                Seen::Ready(ready) => view.ready = ready,
            });
        };
        let mut stop = self.stop.clone();
        let grace = tokio::select! {
            status = exit(process) => return status,
            failed = probes.watch(seen) => {
                tracing::info!(pod = self.facts.pod.name_any(), "does not answer its probes");
                failed.grace.unwrap_or_else(|| self.grace())
            }
            _ = stop.wait_for(Option::is_some) => self.grace(),
        };
        self.end_gently(process, grace).await
    }

    /// SIGTERM, and SIGKILL when the time is over. A frozen process is not
    /// thawed: a kubelet would not do that either.
    async fn end_gently(&mut self, process: &Process, grace: Duration) -> ExitStatus {
        process.signal(Signal::SIGTERM).ok();
        let mut deadline = Instant::now() + grace;
        loop {
            if let Some(grace) = *self.stop.borrow_and_update() {
                deadline = deadline.min(Instant::now() + grace);
            }
            tokio::select! {
                status = exit(process) => return status,
                Ok(()) = self.stop.changed() => {}
                () = tokio::time::sleep_until(deadline) => {
                    process.kill();
                    return exit(process).await;
                }
            }
        }
    }

    fn end(&self, status: ExitStatus, started: String, id: String) -> End {
        let killed = status.signal().map(|signal| 128 + signal);
        let code = status.code().or(killed).unwrap_or(-1);
        let policy = self.container.termination_message_policy.as_deref();
        let mut message = String::new();
        if code != 0 && policy == Some("FallbackToLogsOnError") {
            message = tail(&self.log, MESSAGE_LINES);
            let start = message.ceil_char_boundary(message.len().saturating_sub(MESSAGE));
            message.drain(..start);
        }
        End {
            code,
            reason: if code == 0 { "Completed" } else { "Error" },
            message,
            started,
            finished: now(),
            id,
        }
    }

    fn is_restarted(&self, end: &End) -> bool {
        let spec = self.facts.pod.spec.as_ref();
        match spec.and_then(|spec| spec.restart_policy.as_deref()) {
            Some("Never") => false,
            Some("OnFailure") => end.code != 0,
            _ => true,
        }
    }

    /// How long the process has after SIGTERM.
    fn grace(&self) -> Duration {
        let asked = *self.stop.borrow();
        let spec = self.facts.pod.spec.as_ref();
        let own = spec.and_then(|spec| spec.termination_grace_period_seconds);
        let own = own.and_then(|seconds| u64::try_from(seconds).ok());
        asked.or(own.map(Duration::from_secs)).unwrap_or(GRACE)
    }

    async fn stops_within(&mut self, pause: Duration) -> bool {
        timeout(pause, self.stop.wait_for(Option::is_some))
            .await
            .is_ok()
    }

    fn show(&self, change: impl FnOnce(&mut View)) {
        show(&self.views, self.index, change);
    }
}

fn show(views: &watch::Sender<Vec<View>>, index: usize, change: impl FnOnce(&mut View)) {
    views.send_if_modified(|views| {
        let before = views[index].clone();
        change(&mut views[index]);
        views[index] != before
    });
}

async fn exit(process: &Process) -> ExitStatus {
    loop {
        if let Some(status) = process.exited() {
            return status;
        }
        sleep(EXIT_POLL).await;
    }
}
