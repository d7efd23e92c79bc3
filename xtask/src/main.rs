//! Everything a developer runs, as `cargo xtask <command>`.
//!
//! The same commands run in continuous integration; there is no second script
//! that could disagree. What a command needs beyond cargo it finds or builds
//! itself and says so. Nothing here is shipped.

#![allow(
    clippy::print_stdout,
    reason = "a developer's tool talks to its terminal"
)]

mod bench;
mod demo;
mod generate;
mod image;
mod mutants;
mod release;
mod rights;
mod rules;
mod test;
mod tidy;
mod up;
#[cfg(test)]
mod workflows;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Everything a developer of Kite runs.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write the files that are made from the code: CRDs, roles, reference pages.
    Generate {
        /// Write nothing; fail when a file is not what the code says.
        #[arg(long)]
        check: bool,
    },
    /// Check what no compiler checks: who may depend on whom, file length, links, named rules.
    Tidy,
    /// Show each rule of docs/reference/rules.md with the tests that name it.
    Rules {
        /// Only this one, for instance `V-15`, or `CR1` for a fault.
        name: Option<String>,
    },
    /// Change the code that decides, one place at a time, and see whether a test notices.
    Mutants {
        /// Only the mutants of these crates.
        crates: Vec<String>,
    },
    /// Run every check and every test.
    Test {
        /// Run only the tests whose name contains this.
        name: Option<String>,
    },
    /// Measure what Kite costs: requests, time beside a bare client, memory.
    Bench(bench::BenchOptions),
    /// Build the controllers' images, and keep or push them.
    Image(image::ImageOptions),
    /// Build the programs as they are shipped, and show how large they are.
    ReleaseBuild,
    /// Check a version before it is published, or show what is said about it.
    #[command(subcommand)]
    Release(release::ReleaseCommand),
    /// Watch a user and a machine live their whole life on a real API server.
    Demo(demo::DemoOptions),
    /// Start a real control plane with Kite on it, to play with.
    Up(up::UpOptions),
    /// End what `up` started.
    Down,
    /// Show which controllers work, and which objects nobody keeps.
    Status,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Generate { check: true } => generate::check(),
        Command::Generate { check: false } => generate::write(),
        Command::Tidy => tidy::run(),
        Command::Mutants { crates } => mutants::run(&crates),
        Command::Rules { name } => rules::run(name.as_deref()),
        Command::Test { name } => test::run(name.as_deref()),
        Command::Bench(options) => bench::run(&options),
        Command::Image(options) => image::run(&options),
        Command::ReleaseBuild => image::release_build::run(),
        Command::Release(command) => release::run(&command),
        Command::Demo(options) => demo::run(&options),
        Command::Up(options) => up::run(&options),
        Command::Down => up::down(),
        Command::Status => up::status(),
    }
}
