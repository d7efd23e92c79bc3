//! `cargo xtask test`: every check and every test, step by step.
//!
//! All steps run even when one fails, so that one run tells everything that is
//! wrong. What the runners print is passed on; at the end stands a table of the
//! steps and one line that counts the tests.

mod logs;
mod side_by_side;

use std::fmt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kite_testkit::programs::{self, Program};

use crate::workspace::root;
use crate::{generate, rights, tidy};

/// Everything that any test starts.
const PROGRAMS: [Program; 14] = [
    Program::Etcd,
    Program::ApiServer,
    Program::ControllerManager,
    Program::Scheduler,
    Program::Kubectl,
    Program::Kstatus,
    Program::Cyclonus,
    Program::Helm,
    Program::Helm3,
    Program::Prometheus,
    Program::Promtool,
    Program::Actionlint,
    Program::Dockerfile,
    Program::OldestApiServer,
];

/// How many tests ran, and how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: usize,
    failed: usize,
    ignored: usize,
}

impl Tally {
    /// Adds what a closing line of a test runner says; other lines add nothing.
    fn add(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else {
            return;
        };
        let Some((_, counts)) = result.split_once(". ") else {
            return;
        };
        for count in counts.split("; ") {
            let mut words = count.split(' ');
            let number = words.next().and_then(|n| n.parse::<usize>().ok());
            match (number, words.next()) {
                (Some(n), Some("passed")) => self.passed += n,
                (Some(n), Some("failed")) => self.failed += n,
                (Some(n), Some("ignored")) => self.ignored += n,
                _ => {}
            }
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.ignored > 0 {
            write!(f, ", {} skipped", self.ignored)?;
        }
        Ok(())
    }
}

/// What became of a step.
struct Outcome {
    name: &'static str,
    took: Duration,
    result: Result<()>,
}

/// The steps so far.
#[derive(Default)]
struct Report {
    outcomes: Vec<Outcome>,
    tally: Tally,
}

impl Report {
    fn step(&mut self, name: &'static str, work: impl FnOnce(&mut Tally) -> Result<()>) {
        println!("\n== {name}");
        let started = Instant::now();
        let result = work(&mut self.tally);
        if let Err(error) = &result {
            println!("{name} failed: {error:#}");
        }
        self.outcomes.push(Outcome {
            name,
            took: started.elapsed(),
            result,
        });
    }

    /// Prints the table; fails when a step failed or no test ran.
    fn close(self) -> Result<()> {
        println!("\n== summary");
        for outcome in &self.outcomes {
            let word = if outcome.result.is_ok() {
                "ok"
            } else {
                "FAILED"
            };
            println!(
                "{:<24} {:>6.1} s  {word}",
                outcome.name,
                outcome.took.as_secs_f64()
            );
        }
        println!("{}", self.tally);
        let failed: Vec<_> = self
            .outcomes
            .iter()
            .filter(|outcome| outcome.result.is_err())
            .map(|outcome| outcome.name)
            .collect();
        if failed.is_empty() {
            return Ok(());
        }
        bail!("failed: {}", failed.join(", "))
    }
}

/// Where the control planes of all tests leave their audit logs; gone with this value.
struct AuditFolder(PathBuf);

impl AuditFolder {
    fn new() -> Result<Self> {
        let folder = root()
            .join("target")
            .join(format!("audit-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for AuditFolder {
    fn drop(&mut self) {
        // Nothing depends on it; `target` is thrown away at will.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs everything, or only the tests whose name contains `name`.
pub(crate) fn run(name: Option<&str>) -> Result<()> {
    let mut report = Report::default();
    report.step("control plane programs", |_| find_programs());
    if name.is_none() {
        report.step("format", |_| cargo(&["fmt", "--all", "--check"]));
        report.step("clippy", |_| {
            cargo(&[
                "clippy",
                "--workspace",
                "--all-targets",
                "--",
                "-D",
                "warnings",
            ])
        });
    }
    // Scenarios start Kite's binaries as processes, so they must be there first.
    report.step("build", |_| cargo(&["build", "--workspace", "--bins"]));
    let audit = AuditFolder::new()?;
    report.step("tests", |tally| tests(name, &audit, tally));
    if name.is_none() {
        report.step("doc tests", doc_tests);
        report.step("rights", |_| rights::check(&audit.0));
        report.step("generate --check", |_| generate::check());
        report.step("tidy", |_| tidy::run());
    }
    report.close()
}

/// The tests find the programs by the same search, so finding them once is enough.
fn find_programs() -> Result<()> {
    for program in PROGRAMS {
        let path = programs::find(program)?;
        println!("{:<24} {}", program.file_name(), path.display());
    }
    Ok(())
}

fn tests(name: Option<&str>, audit: &AuditFolder, tally: &mut Tally) -> Result<()> {
    side_by_side::run(name, audit, tally)?;
    if let Some(name) = name
        && tally.passed == 0
    {
        bail!(
            "no test has {name:?} in its name; `cargo test --workspace -- --list` shows all names"
        );
    }
    Ok(())
}

/// The examples in the documentation, each a program that cargo makes and runs.
fn doc_tests(tally: &mut Tally) -> Result<()> {
    let run = command(&["test", "--workspace", "--doc"])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    let text = String::from_utf8_lossy(&run.stdout);
    print!("{text}");
    text.lines().for_each(|line| tally.add(line));
    if !run.status.success() {
        bail!("cargo test --doc ended with {}", run.status);
    }
    Ok(())
}

fn command(arguments: &[&str]) -> Command {
    // Cargo tells its children which cargo runs them.
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(arguments)
        .current_dir(root())
        .stdin(Stdio::null());
    command
}

fn cargo(arguments: &[&str]) -> Result<()> {
    let status = command(arguments).status().context("cannot start cargo")?;
    if !status.success() {
        bail!("cargo {} ended with {status}", arguments.join(" "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_lines_of_all_runners_are_added_up() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test a ... ok",
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        ] {
            tally.add(line);
        }
        assert_eq!(tally.to_string(), "14 passed, 3 failed, 1 skipped");
    }

    #[test]
    fn one_failed_step_fails_the_run_and_does_not_hide_the_next() {
        let mut report = Report::default();
        report.step("first", |_| bail!("broken"));
        report.step("second", |_| Ok(()));
        assert_eq!(report.outcomes.len(), 2);
        assert_eq!(report.close().unwrap_err().to_string(), "failed: first");
    }
}
