//! `--detach`: a second copy of this program keeps the cluster, in a session of
//! its own, so that it outlives the terminal and the shell that started it.
//!
//! The children die with the process that started them, so that process has to
//! stay; it cannot be the one that returns.

use std::env;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use kite_testkit::kite_process::BINARIES_VARIABLE;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

use super::build::prepare;
use super::files::Files;
use super::options::UpOptions;
use super::report::{Interrupts, Report};

/// The log of the process that keeps the cluster, among those of the others.
pub(super) const LOG: &str = "xtask.log";

/// How often its output is passed on.
const POLL: Duration = Duration::from_millis(100);

/// Builds in the foreground, then starts the keeper and returns once all is ready.
pub(super) async fn run(options: &UpOptions, files: &Files) -> Result<()> {
    let report = Report::new();
    let mut interrupts = Interrupts::new()?;
    let binaries = tokio::select! {
        binaries = prepare(options.profile(), false, &report) => binaries?,
        () = interrupts.next() => bail!("stopped before anything was started"),
    };
    files.remove_running()?;
    let log = files.logs().join(LOG);
    fs::create_dir_all(files.logs())?;
    let output = File::create(&log)?;
    let own = env::current_exe().context("where this program is")?;
    let mut child = Command::new(own)
        .args(options.supervised_arguments())
        .env(BINARIES_VARIABLE, &binaries)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
        .context("cannot start the process that keeps the cluster")?;
    let mut shown = Shown {
        file: File::open(&log)?,
    };
    tokio::select! {
        result = ready(&mut child, &mut shown, files) => result,
        () = interrupts.next() => {
            stop(&mut child).await?;
            // It says itself what it left.
            shown.more()?;
            bail!("interrupted")
        }
    }
}

/// Called by the keeper before anything else.
pub(super) fn become_independent() -> Result<()> {
    nix::unistd::setsid().context("cannot begin a session")?;
    Ok(())
}

/// Waits for the last file that the keeper writes.
async fn ready(child: &mut Child, shown: &mut Shown, files: &Files) -> Result<()> {
    loop {
        shown.more()?;
        if files.processes().is_file() {
            return shown.more();
        }
        if let Some(status) = child.try_wait()? {
            shown.more()?;
            bail!("the cluster did not start ({status})");
        }
        tokio::time::sleep(POLL).await;
    }
}

async fn stop(child: &mut Child) -> Result<()> {
    if let Some(pid) = child.id() {
        kill(Pid::from_raw(i32::try_from(pid)?), Signal::SIGTERM)?;
        child.wait().await?;
    }
    Ok(())
}

/// The keeper's output, passed on as it grows.
struct Shown {
    file: File,
}

impl Shown {
    fn more(&mut self) -> Result<()> {
        let mut text = String::new();
        let begin = self.file.stream_position()?;
        self.file.read_to_string(&mut text)?;
        // The rest of a half-written line comes with the next look.
        let complete = text.rfind('\n').map_or(0, |end| end + 1);
        self.file
            .seek(SeekFrom::Start(begin + u64::try_from(complete)?))?;
        // Whoever stopped reading has the log.
        let mut output = std::io::stdout();
        output.write_all(&text.as_bytes()[..complete]).ok();
        output.flush().ok();
        Ok(())
    }
}
