//! Counts the instructions of a pass: one machine through validation, plan, rendering, comparison
//! and status, as the controllers do it, on objects that a control plane had.
//!
//! Instructions are counted by callgrind, so the same program gives the same figure however busy
//! the machine is. They say nothing of the time that memory takes, and nothing of the kernel.

#![allow(
    clippy::print_stdout,
    reason = "a measuring program talks to its terminal"
)]

mod callgrind;
mod cases;
mod record;
mod recorded;
mod region;
mod server;
mod table;
mod worlds;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// That of the controllers, so that what is counted is theirs.
#[global_allocator]
static ALLOCATOR: kite_runtime::Allocator = kite_runtime::Allocator;

/// Counts the instructions and allocations of a pass.
#[derive(Parser)]
#[command(name = "kite-pass")]
struct Line {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Subcommand)]
enum What {
    /// Counts each case and prints what has changed since it was recorded (the default).
    Count {
        /// Fail when a case takes over 3 % more than recorded, by the same compiler on the same kind
        /// of processor.
        #[arg(long)]
        check: bool,
        /// Write what was counted to docs/benchmarks/instructions.md.
        #[arg(long, conflicts_with = "check")]
        write: bool,
        /// Where to leave the profile of each case, for callgrind_annotate.
        #[arg(long, value_name = "FOLDER")]
        profiles: Option<String>,
        /// The cases; all if none is named.
        cases: Vec<String>,
    },
    /// Runs one case; under callgrind this is what is counted.
    Case {
        /// Its name.
        name: String,
    },
    /// Makes the recording of settled machines anew, on a control plane.
    Record,
}

fn main() -> Result<()> {
    let count = What::Count {
        check: false,
        write: false,
        profiles: None,
        cases: Vec::new(),
    };
    match Line::parse().what.unwrap_or(count) {
        What::Count {
            check,
            write,
            profiles,
            cases,
        } => table::count(check, write, profiles.as_deref(), &cases),
        What::Case { name } => cases::run(&name),
        What::Record => {
            let _ = rustls::crypto::ring::default_provider().install_default();
            let runtime = tokio::runtime::Runtime::new()?;
            runtime.block_on(record::record())
        }
    }
}
