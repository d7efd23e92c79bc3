//! Many machines made at once: how long until all are Running, beside the bare client.
//!
//! Rounds alternate on one API server, the first contestant of a pair changing from pair to pair,
//! and each round begins with the users and without a machine. Audit is off.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use kite_api::machine::Phase;
use tokio::time::sleep;

use crate::bare::{self, Bare, Sent, TICKS};
use crate::bystander::Bystander;
use crate::contest::{Contest, Contestant, PAUSE};
use crate::ground::GroundOptions;
use crate::load::{self, Made, Name};
use crate::numbers::{Spread, number, per};
use crate::report::{Measured, Series};
use crate::usage::Usage;

/// Above this many machines a life is short, two ticks instead of twenty, and what nobody is compared
/// with is left out: its rates are those of fewer machines, and it would take longer than the rounds.
const WHOLE_LIVES: usize = 1000;

/// The figure that is compared.
const ALL_RUNNING: &str = "time to all Running";

/// A round that takes longer has failed: two seconds for each machine, and a minute.
const LIMIT: Duration = Duration::from_mins(1);

/// Runs it.
pub async fn run(machines: usize, rounds: usize) -> Result<Vec<Measured>> {
    let options = GroundOptions {
        ticks: if machines > WHOLE_LIVES { 2 } else { 20 },
        ..GroundOptions::timed()
    };
    let bench = Burst(Contest::prepare(machines, options).await?);
    let mut found = if machines <= WHOLE_LIVES {
        bench.alone().await?
    } else {
        Vec::new()
    };
    for round in 1..=rounds {
        for contestant in Contestant::order(round) {
            found.push(bench.round(contestant, round).await?);
        }
    }
    tell_ratios(&found);
    bench.0.ground.end().await;
    Ok(found)
}

struct Burst(Contest);

impl Burst {
    fn limit(&self) -> Duration {
        LIMIT + Duration::from_secs(2) * u32::try_from(self.0.names.len()).unwrap_or(u32::MAX)
    }

    /// The loop that only sends, the bare client beside it, and the stand-ins by themselves.
    async fn alone(&self) -> Result<Vec<Measured>> {
        let Self(contest) = self;
        let (ground, machines) = (&contest.ground, contest.names.len());
        ground.cluster.end_stand_ins().await;
        let made = self.make(|_| {}).await?;
        let (loop_took, loop_sent) = bare::raw(&ground.bare, &contest.mould, &made.list()).await?;
        contest.clear().await?;
        // Without stand-ins nothing can be mirrored, so this is what the client sends by itself.
        let (bare_took, bare_sent) = self.bare_without_stand_ins().await?;
        contest.clear().await?;
        ground.cluster.start_stand_ins().await?;
        sleep(PAUSE).await;
        let playing = self.stand_ins().await?;
        contest.clear().await?;
        let rate = |sent: Sent, took: Duration| per(sent.good, took);
        let (raw, bare) = (rate(loop_sent, loop_took), rate(bare_sent, bare_took));
        println!(
            "a plain loop sends {raw:.0} writes a second, the bare client {bare:.0}: {:.0} %; the stand-ins by themselves play {machines} lives in {:.1} s",
            100.0 * bare / raw,
            playing.as_secs_f64()
        );
        Ok(vec![
            Measured::new("burst", "raw", machines)
                .figure("creates", "a second", per(machines, made.took))
                .figure("writes", "a second", raw),
            Measured::new("burst", "bare without stand-ins", machines)
                .figure("writes", "a second", bare)
                .figure("of the plain loop's rate", "%", 100.0 * bare / raw),
            Measured::new("burst", "stand-ins", machines).figure(
                "all lives played",
                "s",
                playing.as_secs_f64(),
            ),
        ])
    }

    async fn bare_without_stand_ins(&self) -> Result<(Duration, Sent)> {
        let Self(contest) = self;
        let made = self.make(|_| {}).await?;
        let mould = Arc::clone(&contest.mould);
        // The finalizer, the status, and that of the Service, which waits for nothing either.
        let wanted = made.all.len() * (mould.children() + 3);
        let client = Bare::start(&contest.ground.bare, mould, TICKS).await;
        let began = Instant::now();
        for made in made.all.values() {
            client.live(made);
        }
        while client.sent().good + client.sent().refused < wanted {
            sleep(Duration::from_millis(5)).await;
        }
        Ok((began.elapsed(), client.sent()))
    }

    /// How long the lives take when the objects are there at once and nobody mirrors anything.
    async fn stand_ins(&self) -> Result<Duration> {
        let Self(contest) = self;
        let bystander = Bystander::start(&contest.ground.admin).await;
        let made = self.make(|_| {}).await?;
        let began = Instant::now();
        bare::raw(&contest.ground.bare, &contest.mould, &made.list()).await?;
        while !contest
            .names
            .iter()
            .all(|name| bystander.runs(name).is_some())
        {
            ensure!(began.elapsed() < self.limit(), "the stand-ins do not end");
            sleep(Duration::from_millis(20)).await;
        }
        Ok(began.elapsed())
    }

    async fn make(&self, then: impl Fn(&Made)) -> Result<AllMade> {
        let began = Instant::now();
        let all = load::machines(&self.0.ground.load, &self.0.names, then).await?;
        Ok(AllMade {
            all,
            took: began.elapsed(),
        })
    }

    async fn round(&self, contestant: Contestant, round: usize) -> Result<Measured> {
        let Self(contest) = self;
        let bare = contest.enter(contestant).await?;
        let before = contest.ground.usage();
        let began = Instant::now();
        let made = self.make(|made| {
            if let Some(bare) = &bare {
                bare.live(made);
            }
        });
        let made = made.await?;
        let running = contest
            .onlooker
            .all_in(Phase::Running, &contest.names, self.limit());
        let running = running.await;
        let running = running.with_context(|| format!("{}, round {round}", contestant.name()))?;
        let after = contest.ground.usage();
        let found = self.measured(contestant, round, began, &made, &running);
        let found = with_usage(found, &before, &after);
        if let Some(bare) = &bare {
            println!("  the bare client sent {:?}", bare.sent());
        }
        contest.leave(bare).await?;
        Ok(found)
    }

    fn measured(
        &self,
        contestant: Contestant,
        round: usize,
        began: Instant,
        made: &AllMade,
        running: &HashMap<Name, Instant>,
    ) -> Measured {
        let last = running.values().max().copied().unwrap_or(began);
        let since = |(name, at): (&Name, &Instant)| {
            let made = made.all.get(name).map_or(began, |made| made.at);
            at.saturating_duration_since(made).as_secs_f64()
        };
        let spread = Spread::of(running.iter().map(since));
        let took = (last - began).as_secs_f64();
        println!(
            "round {round}, {:5} {} machines: all made after {:.1} s, all Running after {took:.1} s (p50 {:.2}, p99 {:.2})",
            contestant.name(),
            self.0.names.len(),
            made.took.as_secs_f64(),
            spread.at(0.5),
            spread.at(0.99)
        );
        let mut found = Measured::new("burst", contestant.name(), self.0.names.len())
            .figure(ALL_RUNNING, "s", took)
            .figure("time until all are made", "s", made.took.as_secs_f64())
            .figure("p50", "s", spread.at(0.5))
            .figure("p99", "s", spread.at(0.99));
        found.round = round;
        let times = Series::of_times("time to Running", &spread);
        found.series.push(times);
        found
    }
}

struct AllMade {
    all: HashMap<Name, Made>,
    took: Duration,
}

impl AllMade {
    fn list(&self) -> Vec<Made> {
        self.all.values().cloned().collect()
    }
}

/// Adds what the processes used to what was measured.
fn with_usage(mut found: Measured, before: &Usage, after: &Usage) -> Measured {
    let spent = after.cpu_since(before);
    let all: f64 = spent.values().sum();
    let six = after.six().cpu - before.six().cpu;
    for (name, seconds) in &spent {
        found = found.figure(&format!("CPU of {name}"), "s", *seconds);
    }
    if six > 0.0 {
        for (name, used) in after.each().filter(|(name, _)| name.starts_with("kite-")) {
            found = found.figure(&format!("peak memory of {name}"), "MiB", used.peak);
        }
        let each = six * 1000.0 / number(found.machines);
        found = found.figure("CPU of the six per machine", "ms", each);
    }
    let stand_ins = spent.get("stand-ins").copied().unwrap_or_default();
    println!(
        "  CPU: six {six:.1} s, API server {:.1} s, stand-ins {stand_ins:.1} s ({:.0} % of all)",
        spent.get("kube-apiserver").copied().unwrap_or_default(),
        100.0 * stand_ins / all
    );
    found.figure(
        "the stand-ins' share of all CPU",
        "%",
        100.0 * stand_ins / all,
    )
}

/// Prints Kite's figures over the bare client's, round by round.
fn tell_ratios(found: &[Measured]) {
    for figure in [ALL_RUNNING, "p50", "p99", "CPU of kube-apiserver"] {
        let of = |contestant: Contestant, round: usize| {
            let own = |m: &&Measured| m.contestant == contestant.name() && m.round == round;
            found.iter().find(own).and_then(|m| m.value(figure))
        };
        let rounds = found.iter().map(|m| m.round).max().unwrap_or_default();
        let pair = |round| Some(of(Contestant::Kite, round)? / of(Contestant::Bare, round)?);
        let spread = Spread::of((1..=rounds).filter_map(pair));
        if !spread.is_empty() {
            println!(
                "{figure}: Kite over bare {:.2} (min {:.2}, max {:.2})",
                spread.at(0.5),
                spread.at(0.0),
                spread.at(1.0)
            );
        }
    }
}
