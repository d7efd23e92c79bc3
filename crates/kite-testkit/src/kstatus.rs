//! The real kstatus as judge of readiness, through a small Go filter.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::process::Process;
use crate::programs::{self, Program};

/// What kstatus makes of an object.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct KStatus {
    /// `Current`, `InProgress`, `Failed`, `Terminating`, `Unknown` or `NotFound`.
    pub status: String,
    /// Its reason in words.
    #[serde(default)]
    pub message: String,
}

/// A running filter; many threads may ask it.
pub struct Judge {
    pipes: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
    _process: Process,
    _folder: tempfile::TempDir,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Judged(KStatus),
    Refused { error: String },
}

impl Judge {
    /// Starts the filter, which is built first when it is nowhere.
    pub async fn start() -> Result<Self> {
        let program = programs::find_all(&[Program::Kstatus]).await?;
        let folder = tempfile::tempdir()?;
        let log = folder.path().join("kstatus.log");
        let command = Command::new(&program[0]);
        let (process, input, output) = Process::start_piped("kstatus", command, &log)?;
        Ok(Self {
            pipes: Mutex::new((input, BufReader::new(output))),
            _process: process,
            _folder: folder,
        })
    }

    /// The status of one object, which must carry apiVersion and kind.
    pub fn status_of(&self, object: &impl Serialize) -> Result<KStatus> {
        let mut line = serde_json::to_string(object)?;
        line.push('\n');
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        let (input, output) = &mut *pipes;
        input.write_all(line.as_bytes())?;
        input.flush()?;
        line.clear();
        output.read_line(&mut line)?;
        match serde_json::from_str(&line).context("kstatus gave no answer")? {
            Answer::Judged(status) => Ok(status),
            Answer::Refused { error } => bail!("kstatus: {error}"),
        }
    }
}
