//! `cargo xtask bench`: builds Kite and what measures it as they are shipped, and starts the
//! latter. What is measured, and how, is kite-bench's own, or kite-pass's where the first word
//! is `pass`.

use std::env;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};

use anyhow::{Context, Result, bail};
use clap::Args;
use kite_api::labels::Controller;

use crate::workspace::root;

/// What is built besides the six controllers.
const TOOLS: [&str; 2] = ["kite-bench", "kite-testkit"];

/// What counts the instructions of a pass. It knows functions by their names, so it has a profile
/// of its own.
const PASS: [&str; 5] = ["run", "--profile", "measure", "--package", "kite-pass"];

/// How to measure.
#[derive(Args)]
pub(crate) struct BenchOptions {
    /// Cargo's profile: `release` for figures that are published, `measure` builds faster and keeps
    /// names for a profiler. Comes before everything else.
    #[arg(long, default_value = "release", value_name = "NAME")]
    profile: String,
    /// Scenarios and their options; `cargo xtask bench -- --help` shows them. Or `pass`, which
    /// counts instructions, and its options; `cargo xtask bench pass --help` shows them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Builds and measures.
pub(crate) fn run(options: &BenchOptions) -> Result<()> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    if let [first, rest @ ..] = options.arguments.as_slice()
        && first == "pass"
    {
        let mut pass = Command::new(cargo);
        let status = pass
            .args(PASS)
            .arg("--")
            .args(rest)
            .current_dir(root())
            .status();
        return ended("kite-pass", status.context("cannot start cargo")?);
    }
    let mut build = Command::new(cargo);
    build.args(["build", "--profile", &options.profile, "--bins"]);
    for package in Controller::ALL.map(Controller::name).iter().chain(&TOOLS) {
        build.args(["--package", package]);
    }
    println!("building with the profile {}", options.profile);
    let status = build.current_dir(root()).status();
    ended("cargo build", status.context("cannot start cargo")?)?;
    let program = target_folder()?.join(&options.profile).join("kite-bench");
    let mut bench = Command::new(&program);
    let status = bench.args(&options.arguments).status();
    let status = status.with_context(|| format!("cannot start {}", program.display()))?;
    ended("kite-bench", status)
}

fn ended(what: &str, status: ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("{what} ended with {status}; its messages are above");
    }
    Ok(())
}

/// The folder with a folder for each profile: this program is in one of them.
fn target_folder() -> Result<PathBuf> {
    let own = env::current_exe()?;
    let target = own.ancestors().nth(2);
    Ok(target.context("this program is in a folder")?.to_owned())
}
