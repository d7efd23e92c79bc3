//! Programs that a person runs in a terminal: started, given something to read,
//! waited for. What they said is kept whole, for tests that read it as a person would.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;

/// No command of a test takes longer; those that wait have limits of their own.
const LIMIT: Duration = Duration::from_mins(10);

/// What a program said.
#[derive(Clone, Debug)]
pub struct Output {
    /// Whether it exited with 0.
    pub success: bool,
    /// Standard output.
    pub stdout: String,
    /// Error output.
    pub stderr: String,
}

impl Output {
    /// The standard output, or an error with the error output.
    pub fn ok(self) -> Result<String> {
        if self.success {
            return Ok(self.stdout);
        }
        bail!("{}", self.stderr.trim())
    }

    /// The error output of a program that was to fail.
    pub fn refused(self) -> Result<String> {
        if self.success {
            bail!("it was to fail, and said: {}", self.stdout.trim());
        }
        Ok(self.stderr)
    }
}

/// Runs `command` to its end with `input` to read.
pub async fn run(mut command: Command, input: &str) -> Result<Output> {
    let program = Path::new(command.as_std().get_program());
    let name = program.file_name().unwrap_or_default().to_owned();
    let name = name.to_string_lossy();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot start {name}"))?;
    let mut stdin = child.stdin.take().context("the program has no input")?;
    let write = async {
        // It may end without reading.
        stdin.write_all(input.as_bytes()).await.ok();
        drop(stdin);
    };
    let run = async { tokio::join!(write, child.wait_with_output()).1 };
    let output = timeout(LIMIT, run)
        .await
        .with_context(|| format!("{name} did not end"))??;
    Ok(Output {
        success: output.status.success(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}
