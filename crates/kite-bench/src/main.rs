//! `kite-bench`: runs scenarios and writes down what they found. `cargo xtask bench` builds it
//! with everything it needs and starts it.

#![allow(
    clippy::print_stdout,
    reason = "a measuring program talks to its terminal"
)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Parser;
use kite_bench::report::Report;
use kite_bench::scenario::{Scenario, Sizes};
use kite_bench::surroundings;

/// What Kite costs, measured on a real control plane.
#[derive(Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench")]
struct Line {
    /// What to measure; everything when none is named.
    #[arg(value_enum)]
    scenarios: Vec<Scenario>,
    #[command(flatten)]
    sizes: Sizes,
    /// Write what was found into this file, added to what is in it.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    // More than one provider in the tree would make rustls panic.
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
    let line = Line::parse();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(run(line)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(line: Line) -> Result<()> {
    let mut report = match &line.json {
        Some(file) if file.exists() => read(file)?,
        _ => Report::default(),
    };
    surroundings::describe(&mut report);
    let scenarios = if line.scenarios.is_empty() {
        Scenario::all()
    } else {
        line.scenarios
    };
    for scenario in scenarios {
        for machines in line.sizes.of(scenario) {
            println!("\n== {}, {machines} machines", scenario.name());
            let found = scenario.run(machines, &line.sizes).await?;
            report.replace(found);
            if let Some(file) = &line.json {
                // After each, since a run may take an hour.
                let text = serde_json::to_string_pretty(&report)? + "\n";
                std::fs::write(file, text)
                    .with_context(|| format!("cannot write {}", file.display()))?;
            }
        }
    }
    Ok(())
}

fn read(file: &std::path::Path) -> Result<Report> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_str(&text).with_context(|| {
        format!(
            "{} is no report of the benchmark; name another file",
            file.display()
        )
    })
}
