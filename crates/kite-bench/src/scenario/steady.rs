//! Creates by a schedule that waits for nobody, at a rate that leaves the server room: latency
//! beside the bare client's.
//!
//! Three times are told: from a machine's creation to that of its disk, which is Kite's first
//! object that somebody else acts on; from KubeVirt's word that it runs to Kite's; and from
//! creation to Running. All three are seen by watches of one process, on one clock.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use futures::future::try_join_all;
use kite_api::machine::Phase;

use crate::bare::Bare;
use crate::bystander::Bystander;
use crate::contest::{Contest, Contestant};
use crate::ground::GroundOptions;
use crate::load::{self, Made, Name};
use crate::numbers::Spread;
use crate::report::{Measured, Series};

/// Creates a second. A server on two processors takes several times as many.
const RATE: u32 = 5;

/// A machine that takes longer has failed.
const LIMIT: Duration = Duration::from_mins(10);

/// Runs it.
pub async fn run(machines: usize, rounds: usize) -> Result<Vec<Measured>> {
    let contest = Contest::prepare(machines, GroundOptions::timed()).await?;
    let steady = Steady {
        bystander: Bystander::start(&contest.ground.admin).await,
        contest,
    };
    let mut found = Vec::new();
    for round in 1..=rounds {
        for contestant in Contestant::order(round) {
            found.push(steady.round(contestant, round).await?);
        }
    }
    steady.contest.ground.end().await;
    Ok(found)
}

struct Steady {
    contest: Contest,
    bystander: Bystander,
}

impl Steady {
    async fn round(&self, contestant: Contestant, round: usize) -> Result<Measured> {
        self.bystander.forget();
        let Self { contest, .. } = self;
        let bare = contest.enter(contestant).await?;
        let made = self.make(bare.as_ref()).await?;
        let running = contest
            .onlooker
            .all_in(Phase::Running, &contest.names, LIMIT);
        let running = running.await?;
        let found = self.measured(contestant.name(), round, &made, &running);
        contest.leave(bare).await?;
        Ok(found)
    }

    async fn make(&self, bare: Option<&Bare>) -> Result<Vec<Made>> {
        let began = tokio::time::Instant::now();
        let made = (0_u32..)
            .zip(&self.contest.names)
            .map(async |(turn, name)| {
                tokio::time::sleep_until(began + Duration::from_secs(1) * turn / RATE).await;
                let made = load::machine(&self.contest.ground.load, name).await?;
                if let Some(bare) = bare {
                    bare.live(&made);
                }
                anyhow::Ok(made)
            });
        try_join_all(made).await
    }

    fn measured(
        &self,
        contestant: &str,
        round: usize,
        made: &[Made],
        running: &HashMap<Name, Instant>,
    ) -> Measured {
        let since = |from: Option<Instant>, to: Option<Instant>| {
            Some(to?.saturating_duration_since(from?).as_secs_f64())
        };
        let disk = |m: &Made| since(Some(m.at), self.bystander.disk_made(&m.name));
        let told = |m: &Made| {
            let runs = self.bystander.runs(&m.name);
            since(runs, running.get(&m.name).copied())
        };
        let all = |m: &Made| since(Some(m.at), running.get(&m.name).copied());
        let disk = Spread::of(made.iter().filter_map(disk));
        let told = Spread::of(made.iter().filter_map(told));
        let all = Spread::of(made.iter().filter_map(all));
        println!(
            "round {round}, {contestant:4} at {RATE} a second: disk made after {:.0} ms (p99 {:.0}), Running told after {:.0} ms (p99 {:.0}), Running after {:.2} s (p99 {:.2})",
            disk.at(0.5) * 1000.0,
            disk.at(0.99) * 1000.0,
            told.at(0.5) * 1000.0,
            told.at(0.99) * 1000.0,
            all.at(0.5),
            all.at(0.99)
        );
        let mut found = Measured::new("steady", contestant, self.contest.names.len()).figure(
            "creates",
            "a second",
            f64::from(RATE),
        );
        for (name, spread) in [
            ("create to disk made", &disk),
            ("KubeVirt's Running to Kite's", &told),
            ("create to Running", &all),
        ] {
            found = found
                .figure(&format!("{name}, p50"), "ms", spread.at(0.5) * 1000.0)
                .figure(&format!("{name}, p99"), "ms", spread.at(0.99) * 1000.0);
        }
        found.round = round;
        let times = Series::of_times("create to disk made", &disk);
        found.series.push(times);
        found
    }
}
