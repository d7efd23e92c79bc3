//! What is measured, one module for each scenario.

mod at_rest;
pub mod burst;
pub mod concurrency;
pub mod fairness;
pub mod lives;
pub mod memory;
pub mod noisy;
pub mod relist;
mod replay;
pub mod rest;
pub mod restart;
pub mod slow;
pub mod start;
mod starting;
pub mod steady;
pub mod users;

use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};

pub(crate) use memory::STORE;

use crate::report::Measured;

/// A scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// Many machines at once: time to all Running, beside the bare client.
    Burst,
    /// Whole lives one after the other: requests of each step, counted.
    Lives,
    /// Creates by a schedule that waits for nobody.
    Steady,
    /// One quiet tenant's create during another's storm.
    Noisy,
    /// The same, with more and fewer objects worked on at the same time.
    Concurrency,
    /// The same on a server that admits few requests, without and with the charts' FlowSchemas.
    Fairness,
    /// Every answer of the API server comes later.
    Slow,
    /// Many users at once.
    Users,
    /// From the start of a process until it is ready.
    Start,
    /// Memory of the six with settled machines.
    Memory,
    /// Nothing happens: what is asked all the same.
    Rest,
    /// All six killed and started again with everything settled.
    Restart,
    /// The store forgets what the watches know, and everything is listed again.
    Relist,
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
            Self::Lives => "lives",
            Self::Steady => "steady",
            Self::Noisy => "noisy",
            Self::Concurrency => "concurrency",
            Self::Fairness => "fairness",
            Self::Slow => "slow",
            Self::Users => "users",
            Self::Start => "start",
            Self::Memory => "memory",
            Self::Rest => "rest",
            Self::Restart => "restart",
            Self::Relist => "relist",
        }
    }

    /// The numbers of machines that it is run with unless told otherwise.
    const fn machines(self) -> &'static [usize] {
        match self {
            Self::Burst | Self::Lives | Self::Users => &[100, 1000],
            Self::Steady | Self::Slow | Self::Concurrency | Self::Fairness => &[200],
            Self::Noisy | Self::Relist => &[1000],
            Self::Start => &[0],
            Self::Memory | Self::Restart => &[0, 1000, 10_000],
            Self::Rest => &[0, 100, 1000, 10_000],
        }
    }

    /// Runs it.
    pub async fn run(self, machines: usize, sizes: &Sizes) -> Result<Vec<Measured>> {
        match self {
            Self::Burst => burst::run(machines, sizes.rounds).await,
            Self::Lives => lives::run(machines).await,
            Self::Steady => Box::pin(steady::run(machines, sizes.rounds)).await,
            Self::Noisy => noisy::run(machines).await,
            Self::Concurrency => concurrency::run(machines).await,
            Self::Fairness => fairness::run(machines).await,
            Self::Slow => Box::pin(slow::run(machines, sizes.rounds)).await,
            Self::Users => users::run(machines).await,
            Self::Start => start::run(sizes.rounds).await,
            Self::Memory => memory::run(machines).await,
            Self::Rest => rest::run(machines, sizes.rest).await,
            Self::Restart => restart::run(machines).await,
            Self::Relist => relist::run(machines).await,
        }
    }
}
