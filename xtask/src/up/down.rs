//! `cargo xtask down`: ends the cluster that `up` started, and what a killed one left behind.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::files::{Files, Running};
use super::lock::Lock;
use super::report::tell;

/// Longer than each part may take to stop, one after the other.
const LIMIT: Duration = Duration::from_secs(60);
/// The rest goes with its parent at once.
const AFTER_KILL: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(100);

/// `cargo xtask down`.
pub(crate) fn run() -> Result<()> {
    let files = Files::of_up();
    let running = files.read_processes()?;
    match Lock::holder(&files)? {
        Some(keeper) => stop(&files, keeper)?,
        None if running.is_empty() => {
            tell("no cluster runs");
            return Ok(());
        }
        None => tell("the process that kept the cluster is gone already"),
    }
    // On Linux they went with their parent; elsewhere nobody told them.
    until(AFTER_KILL, || Ok(!running.iter().any(is_alive)))?;
    let left = running.iter().filter(|process| is_alive(process));
    for process in left {
        tell(&format!("ending {}, which was left behind", process.name));
        signal(process.pid, Signal::SIGKILL)?;
    }
    files.remove_running()?;
    tell("nothing runs any more; the logs are kept in target/up");
    Ok(())
}

fn stop(files: &Files, keeper: u32) -> Result<()> {
    tell(&format!("ending the cluster of process {keeper}"));
    signal(keeper, Signal::SIGTERM)?;
    if released(files, LIMIT)? {
        return Ok(());
    }
    tell(&format!(
        "it did not end within {} s; killing it",
        LIMIT.as_secs()
    ));
    signal(keeper, Signal::SIGKILL)?;
    if released(files, AFTER_KILL)? {
        return Ok(());
    }
    bail!("process {keeper} cannot be ended")
}

fn released(files: &Files, limit: Duration) -> Result<bool> {
    until(limit, || Ok(Lock::holder(files)?.is_none()))
}

fn until(limit: Duration, mut holds: impl FnMut() -> Result<bool>) -> Result<bool> {
    let deadline = Instant::now() + limit;
    while !holds()? {
        if Instant::now() >= deadline {
            return Ok(false);
        }
        std::thread::sleep(POLL);
    }
    Ok(true)
}

fn signal(pid: u32, signal: Signal) -> Result<()> {
    kill(Pid::from_raw(i32::try_from(pid)?), signal)?;
    Ok(())
}

/// Whether the process is there and still the one that was started: ids are used again.
pub(super) fn is_alive(process: &Running) -> bool {
    let name = match fs::exists("/proc/self") {
        Ok(true) => fs::read_to_string(format!("/proc/{}/comm", process.pid)).ok(),
        _ => asked_of_ps(process.pid),
    };
    name.is_some_and(|name| is_named(&name, &process.name))
}

fn asked_of_ps(pid: u32) -> Option<String> {
    let mut command = Command::new("ps");
    command.args(["-o", "comm=", "-p", &pid.to_string()]);
    String::from_utf8(command.output().ok()?.stdout).ok()
}

/// Linux shows at most fifteen bytes of a name, other systems the whole path.
fn is_named(shown: &str, name: &str) -> bool {
    let shown = shown.trim().rsplit('/').next().unwrap_or_default();
    shown == name || (shown.len() == 15 && name.starts_with(shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_another_program_has_now_is_not_ours() {
        assert!(is_named("kube-controller\n", "kube-controller-manager"));
        assert!(is_named("/usr/bin/etcd\n", "etcd"));
        assert!(!is_named("bash\n", "etcd"));
        assert!(!is_named("kite-vm\n", "kite-vm-status"));
        assert!(!is_named("", "etcd"));
    }
}
