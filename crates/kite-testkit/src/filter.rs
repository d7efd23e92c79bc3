//! A judge as a child process: a line of JSON in, a line of JSON out.
//!
//! What is asked and answered is the judges' own; here are the pipes only.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::process::Process;
use crate::programs::{self, Program};

/// A running filter; many threads may ask it. Dropping it ends it.
pub(crate) struct Filter {
    name: &'static str,
    pipes: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
    _process: Process,
    _folder: tempfile::TempDir,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Answer<A> {
    Refused { error: String },
    Given(A),
}

impl Filter {
    /// Starts the filter, which is built first when it is nowhere.
    pub(crate) async fn start(program: Program) -> Result<Self> {
        let found = programs::find_all(&[program]).await?;
        let name = program.file_name();
        let folder = tempfile::tempdir()?;
        let log = folder.path().join("log");
        let (process, input, output) = Process::start_piped(name, Command::new(&found[0]), &log)?;
        Ok(Self {
            name,
            pipes: Mutex::new((input, BufReader::new(output))),
            _process: process,
            _folder: folder,
        })
    }

    /// Asks one question. Fails when the filter ended, or cannot judge it.
    pub(crate) fn ask<A: DeserializeOwned>(&self, question: &impl Serialize) -> Result<A> {
        let mut line = serde_json::to_string(question)?;
        line.push('\n');
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        let (input, output) = &mut *pipes;
        input.write_all(line.as_bytes())?;
        input.flush()?;
        line.clear();
        output.read_line(&mut line)?;
        let answer = serde_json::from_str(&line);
        match answer.with_context(|| format!("{} gave no answer", self.name))? {
            Answer::Given(answer) => Ok(answer),
            Answer::Refused { error } => bail!("{}: {error}", self.name),
        }
    }
}
