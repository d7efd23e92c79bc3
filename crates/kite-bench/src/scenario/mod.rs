//! What is measured, one module for each scenario.

pub mod burst;

use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::report::Measured;

/// A scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// Many machines at once: time to all Running, beside the bare client.
    Burst,
}

/// What every scenario can be told.
#[derive(Args, Clone, Debug)]
pub struct Sizes {
    /// How many machines; each scenario has sizes of its own when none is given.
    #[arg(long, value_name = "N")]
    pub vms: Vec<usize>,
    /// How often a timed part is repeated for each contestant.
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub rounds: usize,
    /// How long rest is measured.
    #[arg(long, default_value = "10m", value_parser = time, value_name = "TIME")]
    pub rest: Duration,
}

impl Sizes {
    /// The numbers of machines that a scenario is run with.
    pub fn of(&self, scenario: Scenario) -> Vec<usize> {
        if self.vms.is_empty() {
            scenario.machines().to_vec()
        } else {
            self.vms.clone()
        }
    }
}

fn time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a time; write for instance 30s or 10m");
    let parsed: k8s_openapi::jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    Duration::try_from(parsed).map_err(|_| wrong())
}

impl Scenario {
    /// All of them, in the order in which they are run.
    pub fn all() -> Vec<Self> {
        Self::value_variants().to_vec()
    }

    /// As it is called on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Burst => "burst",
        }
    }

    /// The numbers of machines that it is run with unless told otherwise.
    const fn machines(self) -> &'static [usize] {
        match self {
            Self::Burst => &[100, 1000],
        }
    }

    /// Runs it.
    pub async fn run(self, machines: usize, sizes: &Sizes) -> Result<Vec<Measured>> {
        match self {
            Self::Burst => burst::run(machines, sizes.rounds).await,
        }
    }
}
