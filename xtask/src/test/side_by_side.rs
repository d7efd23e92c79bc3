//! Runs the test programs of the workspace, some at a time.
//!
//! `cargo test` runs them one after the other, and most of a scenario's time is
//! waiting: for a clone, a lease, a grace period. Each program keeps its tests
//! in one process, since they share a control plane. What a program prints is
//! passed on whole when it ends, so that no two are mixed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{AuditFolder, Tally, command, logs};
use crate::workspace::root;

/// A program that runs longer hangs; the longest takes about five minutes.
const LIMIT: Duration = Duration::from_secs(20 * 60);
/// How often the ends are looked for.
const GLANCE: Duration = Duration::from_millis(50);
/// A control plane with six controllers keeps about a sixth of two cores busy, so each core
/// carries more than one program.
const EACH_CORE: usize = 2;
/// One program's processes ask for up to two gigabytes.
const MOST: usize = 8;

/// One test program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    /// Crate and file, for instance `kite-vm life`.
    pub(super) name: String,
    pub(super) executable: PathBuf,
    /// Where cargo would run it.
    folder: PathBuf,
}

/// Programs that belong together under the name of the first: what Helm, the scheduler and
/// Prometheus do with the charts.
const TOGETHER: [&str; 5] = ["charts", "installed", "guide", "alerts", "node_agent"];

impl Program {
    /// Whether a name means the whole program, and not tests in it.
    fn is_called(&self, name: &str) -> bool {
        let own = self.name.rsplit(' ').next().unwrap_or_default();
        own == name || (name == TOGETHER[0] && TOGETHER.contains(&own))
    }
}

/// A program at work.
struct Running {
    program: Program,
    child: Child,
    output: PathBuf,
    began: Instant,
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended cannot be killed, and need not be.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs all programs, or of each the tests whose name contains `name`, and adds up how they ended.
pub(super) fn run(name: Option<&str>, audit: &AuditFolder, tally: &mut Tally) -> Result<()> {
    let times = root().join("target").join("test-times.json");
    let mut took = read_times(&times);
    let mut waiting = programs()?;
    longest_last(&mut waiting, &took);
    let outputs = tempfile::tempdir().context("no folder for what the tests print")?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let at_once = (cores * EACH_CORE).min(MOST);
    let (mut running, mut passed, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    println!("{} programs, {at_once} at a time", waiting.len());
    loop {
        while running.len() < at_once
            && let Some(program) = waiting.pop()
        {
            running.push(start(program, name, audit, outputs.path())?);
        }
        let Some((ended, ok)) = next_end(&mut running)? else {
            break;
        };
        let seconds = ended.began.elapsed().as_secs_f64();
        let text = fs::read(&ended.output)?;
        let text = String::from_utf8_lossy(&text);
        println!("\n-- {} ({seconds:.1} s)\n{text}", ended.program.name);
        text.lines().for_each(|line| tally.add(line));
        let name = ended.program.name.clone();
        if ok {
            took.insert(name, seconds);
            passed.push(ended.program.clone());
        } else {
            let kept = logs::keep(&ended.program, audit)?;
            println!("logs of {name}: {}", kept.display());
            failed.push(name);
        }
    }
    // Not when each ends: its clusters' logs come a moment later.
    passed.iter().try_for_each(logs::forget)?;
    if name.is_none() {
        // Only an order depends on it.
        let _ = fs::write(&times, serde_json::to_vec_pretty(&took)?);
    }
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

/// Builds the programs and asks cargo what they are.
fn programs() -> Result<Vec<Program>> {
    let answer = command(&[
        "test",
        "--workspace",
        "--no-run",
        "--message-format=json-render-diagnostics",
    ])
    .stderr(Stdio::inherit())
    .output()
    .context("cannot start cargo")?;
    if !answer.status.success() {
        bail!("the tests do not build: cargo ended with {}", answer.status);
    }
    let messages = String::from_utf8_lossy(&answer.stdout);
    Ok(messages.lines().filter_map(program).collect())
}

/// What a message of cargo's says of a test program; other messages say nothing.
fn program(message: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(message).ok()?;
    let executable = message["executable"].as_str()?;
    if message["profile"]["test"] != true {
        return None;
    }
    let manifest = Path::new(message["manifest_path"].as_str()?);
    let folder = manifest.parent()?;
    let target = message["target"]["name"].as_str()?;
    let kind = message["target"]["kind"][0].as_str()?;
    let package = folder.file_name()?.to_str()?;
    let name = match kind {
        "test" => format!("{package} {target}"),
        _ => format!("{package} ({kind} {target})"),
    };
    Some(Program {
        name,
        executable: executable.into(),
        folder: folder.to_owned(),
    })
}

/// The last is taken first: the longest must not be alone at the end, and one
/// of unknown length may be the longest.
fn longest_last(programs: &mut [Program], took: &BTreeMap<String, f64>) {
    let time = |program: &Program| took.get(&program.name).copied().unwrap_or(f64::MAX);
    programs.sort_by(|a, b| time(a).total_cmp(&time(b)));
}

fn read_times(file: &Path) -> BTreeMap<String, f64> {
    let text = fs::read(file).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

fn start(
    program: Program,
    name: Option<&str>,
    audit: &AuditFolder,
    outputs: &Path,
) -> Result<Running> {
    let output = outputs.join(program.executable.file_name().unwrap_or_default());
    logs::forget(&program)?;
    let file = File::create(&output)?;
    let child = Command::new(&program.executable)
        .args(name.filter(|name| !program.is_called(name)))
        // The figures that a passing scenario prints are part of the result.
        .arg("--show-output")
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .env("KITE_AUDIT_DIR", &audit.0)
        .env("KITE_LOGS_DIR", logs::folder(&program))
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .spawn()
        .with_context(|| format!("cannot start {}", program.executable.display()))?;
    Ok(Running {
        program,
        child,
        output,
        began: Instant::now(),
    })
}

/// Waits for the end of one program, and says whether it ended well; nothing runs → `None`.
fn next_end(running: &mut Vec<Running>) -> Result<Option<(Running, bool)>> {
    while !running.is_empty() {
        for index in 0..running.len() {
            let one = &mut running[index];
            let status = one.child.try_wait()?;
            let hangs = status.is_none() && one.began.elapsed() > LIMIT;
            if hangs {
                println!("{} does not end and is ended", one.program.name);
                one.child.kill()?;
                one.child.wait()?;
            }
            if hangs || status.is_some() {
                let ok = status.is_some_and(|status: ExitStatus| status.success());
                return Ok(Some((running.swap_remove(index), ok)));
            }
        }
        sleep(GLANCE);
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Program {
        Program {
            name: name.to_owned(),
            executable: PathBuf::new(),
            folder: PathBuf::new(),
        }
    }

    #[test]
    fn only_the_programs_that_hold_tests_are_run() {
        let test = r#"{"reason":"compiler-artifact","manifest_path":"/w/crates/kite-vm/Cargo.toml",
            "target":{"kind":["test"],"name":"life"},"profile":{"test":true},"executable":"/t/life-1"}"#;
        let shipped = test.replace(r#""test":true"#, r#""test":false"#);
        let found = program(test).unwrap();
        assert_eq!(found.name, "kite-vm life");
        assert_eq!(found.folder, Path::new("/w/crates/kite-vm"));
        assert_eq!(program(&shipped), None);
        assert_eq!(
            program(r#"{"reason":"build-finished","success":true}"#),
            None
        );
    }

    #[test]
    fn a_program_is_run_whole_by_its_name_and_the_charts_with_what_is_tried_on_them() {
        assert!(named("kite-vm life").is_called("life"));
        assert!(named("kite-testkit installed").is_called("charts"));
        assert!(!named("kite-testkit installed").is_called("install"));
        assert!(!named("kite-testkit life").is_called("charts"));
    }

    #[test]
    fn the_longest_and_the_unknown_are_taken_first() {
        let mut programs = vec![named("new"), named("short"), named("long")];
        let took = BTreeMap::from([("short".to_owned(), 1.0), ("long".to_owned(), 9.0)]);
        longest_last(&mut programs, &took);
        let taken: Vec<_> = programs.iter().rev().map(|p| p.name.as_str()).collect();
        assert_eq!(taken, ["new", "long", "short"]);
    }
}
