//! Child processes that die with their parent, write to a log file and can be
//! stopped, killed or frozen.
//!
//! The death signal of Linux fires when the *thread* that forked ends, and test
//! harnesses end their threads early; so every child is forked by one thread
//! that lives as long as the process. On other systems a child is stopped by
//! its handle only.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How often a stop looks whether the child has gone.
const EXIT_POLL: Duration = Duration::from_millis(10);

/// The unit of CPU times in /proc; fixed at 100 a second on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// A running child. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    name: String,
    pid: Pid,
    log: PathBuf,
    started: Instant,
    child: Mutex<Child>,
}

/// Memory of a process, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// What is resident now.
    pub resident: u64,
    /// The most that ever was.
    pub peak: u64,
}

impl Process {
    /// Starts `command` with both outputs appended to `log`, in a process group
    /// of its own, so that Ctrl-C reaches the parent only, which then stops its
    /// children in the right order.
    pub fn start(name: &str, mut command: Command, log: &Path) -> Result<Self> {
        let output = open_log(log)?;
        command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0);
        Self::spawn(name, command, log)
    }

    /// As [`Process::start`], with standard input and output kept as pipes; only
    /// the error output goes to `log`.
    pub fn start_piped(
        name: &str,
        mut command: Command,
        log: &Path,
    ) -> Result<(Self, ChildStdin, ChildStdout)> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(open_log(log)?)
            .process_group(0);
        let process = Self::spawn(name, command, log)?;
        let mut child = process.child();
        let stdin = child.stdin.take().context("the child has no input")?;
        let stdout = child.stdout.take().context("the child has no output")?;
        drop(child);
        Ok((process, stdin, stdout))
    }

    fn spawn(name: &str, command: Command, log: &Path) -> Result<Self> {
        let program = command.get_program().to_string_lossy().into_owned();
        let child = spawn_mortal(command).with_context(|| format!("cannot start {program}"))?;
        Ok(Self {
            name: name.to_owned(),
            pid: pid_of(&child)?,
            log: log.to_owned(),
            started: Instant::now(),
            child: Mutex::new(child),
        })
    }

    /// What it was called when started.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw().unsigned_abs()
    }

    /// Where its output goes.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// How long ago it was started.
    pub fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// The last `lines` lines of its log, for messages.
    pub fn log_tail(&self, lines: usize) -> String {
        tail(&self.log, lines)
    }

    /// The exit status, once it has one.
    pub fn exited(&self) -> Option<ExitStatus> {
        self.child().try_wait().ok().flatten()
    }

    /// Sends a signal, unless the child is gone (its id may be someone else's by
    /// then; the lock keeps it from being reaped in between).
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let mut child = self.child();
        if child.try_wait()?.is_none() {
            kill(self.pid, signal).with_context(|| format!("cannot signal {}", self.name))?;
        }
        Ok(())
    }

    /// SIGSTOP: it keeps its connections and its lock on the world, and does nothing.
    pub fn pause(&self) -> Result<()> {
        self.signal(Signal::SIGSTOP)
    }

    /// SIGCONT after [`Process::pause`].
    pub fn resume(&self) -> Result<()> {
        self.signal(Signal::SIGCONT)
    }

    /// SIGKILL, and waits until it is gone.
    pub fn kill(&self) -> Option<ExitStatus> {
        let mut child = self.child();
        child.kill().ok();
        child.wait().ok()
    }

    /// Waits for the exit, at most `limit`.
    pub async fn wait(&self, limit: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.exited() {
                return Some(status);
            }
            if Instant::now() >= deadline {
                return None;
            }
            tokio::time::sleep(EXIT_POLL).await;
        }
    }

    /// SIGTERM, then SIGKILL when it has not gone within `grace`. A frozen child
    /// is thawed, or it could not act on the signal.
    pub async fn stop(&self, grace: Duration) -> Option<ExitStatus> {
        self.signal(Signal::SIGTERM).ok();
        self.signal(Signal::SIGCONT).ok();
        match self.wait(grace).await {
            Some(status) => Some(status),
            None => self.kill(),
        }
    }

    /// Its memory now and at most; none where /proc is not there.
    pub fn memory(&self) -> Option<Memory> {
        memory_of(self.pid())
    }

    /// CPU time used so far, in user and system mode together.
    pub fn cpu(&self) -> Option<Duration> {
        cpu_of(self.pid())
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The memory of any process, now and at most.
pub fn memory_of(pid: u32) -> Option<Memory> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(Memory {
        resident: kilobytes(&status, "VmRSS:")?,
        peak: kilobytes(&status, "VmHWM:")?,
    })
}

/// The CPU time that any process has used so far, in user and system mode together.
pub fn cpu_of(pid: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold blanks; the fields after it are fixed.
    let fields = stat.rsplit_once(')')?.1;
    let ticks: u32 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u32>().ok())
        .sum();
    Some(Duration::from_secs_f64(f64::from(ticks) / TICKS_PER_SECOND))
}

/// The last `lines` lines of a file; empty when it cannot be read.
pub fn tail(file: &Path, lines: usize) -> String {
    let text = fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

fn open_log(log: &Path) -> Result<File> {
    if let Some(folder) = log.parent() {
        fs::create_dir_all(folder)?;
    }
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)
        .with_context(|| format!("cannot write {}", log.display()))
}

fn pid_of(child: &Child) -> Result<Pid> {
    Ok(Pid::from_raw(i32::try_from(child.id())?))
}

fn kilobytes(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let number: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(number * 1024)
}

struct Job {
    command: Command,
    reply: Sender<io::Result<Child>>,
}

/// Spawns a child that the system kills when this process ends, however it ends.
pub(crate) fn spawn_mortal(command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<Sender<Job>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (jobs, inbox) = mpsc::channel::<Job>();
        std::thread::spawn(move || {
            for mut job in inbox {
                die_with_parent(&mut job.command);
                job.reply.send(job.command.spawn()).ok();
            }
        });
        jobs
    });
    let (reply, answer) = mpsc::channel();
    spawner
        .send(Job { command, reply })
        .map_err(io::Error::other)?;
    answer.recv().map_err(io::Error::other)?
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn die_with_parent(command: &mut Command) {
    let parent = nix::unistd::getpid();
    // SAFETY: between fork and exec only two system calls are made, both safe
    // in a signal handler; nothing is allocated and no lock is taken.
    unsafe {
        command.pre_exec(move || {
            nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
            // The parent may have gone before the signal was asked for.
            if nix::unistd::getppid() == parent {
                Ok(())
            } else {
                Err(io::ErrorKind::NotConnected.into())
            }
        });
    }
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent(_command: &mut Command) {}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    fn shell(script: &str) -> (Process, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let log = folder.path().join("logs/shell.log");
        let process = Process::start("shell", command, &log).unwrap();
        (process, folder)
    }

    #[tokio::test]
    async fn a_child_outlives_the_thread_that_asked_for_it() {
        let asked = std::thread::spawn(|| shell("exec sleep 60")).join();
        let (process, _folder) = asked.unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(process.exited(), None);
        assert!(process.memory().is_some_and(|memory| memory.resident > 0));
    }

    #[tokio::test]
    async fn a_stop_reaches_a_frozen_child_and_lets_it_clean_up() {
        let (process, _folder) =
            shell("trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.02; done");
        let up = async || process.log_tail(1).contains("up").then_some(());
        crate::wait::eventually("the trap", SOON, up).await.unwrap();
        process.pause().unwrap();
        let status = process.stop(SOON).await.unwrap();
        assert_eq!(status.code(), Some(7));
        assert_eq!(process.log_tail(1), "bye");
    }

    #[tokio::test]
    async fn a_child_that_will_not_go_is_killed_after_the_grace() {
        let (process, _folder) = shell("trap '' TERM; echo up; while :; do sleep 0.02; done");
        let up = async || process.log_tail(1).contains("up").then_some(());
        crate::wait::eventually("the trap", SOON, up).await.unwrap();
        let status = process.stop(Duration::from_millis(200)).await.unwrap();
        assert_eq!(status.code(), None, "killed by a signal");
    }
}
