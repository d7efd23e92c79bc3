//! `cargo xtask mutants`: what would have to break for a test to fail.
//!
//! cargo-mutants changes one place at a time in the code that decides (rendering,
//! and the steps validate, plan and status of each controller) and runs the tests
//! that need no cluster. A change that no test notices is a gap, or stands in
//! docs/reference/mutants.md with the reason why it may live. It takes hours, so
//! it runs each night and by hand, and in no test run.

mod allowed;
mod pure;

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use kite_api::labels::Controller;

use crate::workspace::{self, Source, root};

/// What came of the mutants of one crate; the lines of cargo-mutants' files.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    caught: Vec<String>,
    missed: Vec<String>,
    timeout: Vec<String>,
    unviable: Vec<String>,
}

/// Tries the mutants of the named crates, or of all.
pub(crate) fn run(only: &[String]) -> Result<()> {
    let crates = chosen(only)?;
    let page = allowed::page()?;
    let allowed = allowed::entries(&page);
    let mut gaps = Vec::new();
    for name in crates {
        println!("\n== {name}");
        let outcome = try_crate(name)?;
        println!(
            "{name}: {} caught, {} missed, {} timed out, {} do not compile",
            outcome.caught.len(),
            outcome.missed.len(),
            outcome.timeout.len(),
            outcome.unviable.len()
        );
        gaps.extend(allowed::gaps(&outcome.missed, &allowed));
        for entry in allowed::caught(&outcome.caught, &allowed) {
            println!(
                "a test notices it by now, so take it off {}: {entry}",
                allowed::PAGE
            );
        }
    }
    if gaps.is_empty() {
        println!("\nno mutant lives but those that {} allows", allowed::PAGE);
        return Ok(());
    }
    bail!(
        "no test notices these {} changes:\n  {}\nwrite a test that does, or put them into {} with the reason why they may live",
        gaps.len(),
        gaps.join("\n  "),
        allowed::PAGE
    )
}

/// The crates that decide something.
fn all() -> Vec<&'static str> {
    let controllers = Controller::ALL.iter().map(|c| c.name());
    ["kite-render"].into_iter().chain(controllers).collect()
}

fn chosen(only: &[String]) -> Result<Vec<&'static str>> {
    let all = all();
    if let Some(unknown) = only.iter().find(|name| !all.contains(&name.as_str())) {
        bail!("{unknown} has no mutants; choose among {}", all.join(", "));
    }
    let wanted = |name: &&str| only.is_empty() || only.iter().any(|o| o == name);
    Ok(all.into_iter().filter(wanted).collect())
}

fn try_crate(name: &str) -> Result<Outcome> {
    let sources = workspace::sources()?;
    let files = pure::files(name, &sources);
    if files.is_empty() {
        println!("{name} has no step that only decides");
        return Ok(Outcome::default());
    }
    let output = root().join("target/mutants").join(name);
    fs::create_dir_all(&output)?;
    let mut command = command(name, &files, &pure::tests(name, &sources));
    command.arg("--output").arg(&output);
    let status = command.current_dir(root()).status().context(
        "cannot start cargo mutants; install it with `cargo install cargo-mutants --locked`",
    )?;
    // 0: all caught; 2 and 3: some missed or too slow. Others: nothing was tried.
    if !matches!(status.code(), Some(0 | 2 | 3)) {
        bail!(
            "cargo mutants ended with {status}; see {}",
            output.display()
        );
    }
    read(&output.join("mutants.out"))
}

fn command(name: &str, files: &[&Source], tests: &[String]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Line numbers of a backtrace are no use here, and linking is most of the time.
    command.env("CARGO_PROFILE_DEV_DEBUG", "none");
    command.args(["mutants", "--package", name, "--no-times", "--colors=never"]);
    for file in files {
        command.arg("--file").arg(&file.path);
    }
    for test in tests {
        command.arg(format!("--cargo-arg={test}"));
    }
    command
}

fn read(folder: &Path) -> Result<Outcome> {
    let lines = |file: &str| -> Result<Vec<String>> {
        let text = workspace::read(&folder.join(file))?;
        Ok(text.lines().map(str::to_owned).collect())
    };
    Ok(Outcome {
        caught: lines("caught.txt")?,
        missed: lines("missed.txt")?,
        timeout: lines("timeout.txt")?,
        unviable: lines("unviable.txt")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_that_decides_has_files_to_change_and_tests_to_notice() {
        let sources = workspace::sources().unwrap();
        for name in all() {
            let tests = pure::tests(name, &sources);
            assert!(tests.contains(&"--lib".to_owned()), "{name}: {tests:?}");
            // kite-service and the others that only tell have no plan; each has a status.
            assert!(!pure::files(name, &sources).is_empty(), "{name}");
        }
    }

    #[test]
    fn each_crate_has_its_job_at_night() {
        let path = root().join(".github/workflows/nightly.yml");
        let workflow: serde_json::Value =
            serde_saphyr::from_str(&workspace::read(&path).unwrap()).unwrap();
        let jobs = &workflow["jobs"]["mutants"]["strategy"]["matrix"]["crate"];
        assert_eq!(jobs, &serde_json::json!(all()));
    }

    #[test]
    fn a_crate_without_mutants_is_refused_with_the_choice() {
        let error = chosen(&["kite-api".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("kite-render, kite-user"), "{error}");
        assert_eq!(chosen(&["kite-vm".to_owned()]).unwrap(), ["kite-vm"]);
    }
}
