//! Creates by a schedule that waits for nobody, at a rate that leaves the server room: latency
//! beside the bare client's.
//!
//! Three times are told: from a machine's creation to that of its disk, which is Kite's first
//! object that somebody else acts on; from KubeVirt's word that it runs to Kite's; and from
//! creation to Running. All three are seen by watches of one process, on one clock.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use futures::future::try_join_all;
use kite_api::machine::Phase;
use tokio::time::sleep;

use crate::bare::{Bare, TICKS};
use crate::bystander::Bystander;
use crate::clean;
use crate::ground::{Ground, GroundOptions};
use crate::load::{self, Made, Name};
use crate::mould::Mould;
use crate::numbers::{Spread, distribution};
use crate::onlooker::Onlooker;
use crate::report::{Measured, Series};
use crate::scenario::burst::mould_of;

/// Creates a second. A server on two processors takes several times as many.
const RATE: u32 = 5;

/// A machine that takes longer has failed.
const LIMIT: Duration = Duration::from_mins(10);

/// Between two rounds.
const PAUSE: Duration = Duration::from_secs(5);

/// Runs it.
pub async fn run(machines: usize, rounds: usize) -> Result<Vec<Measured>> {
    let ground = Ground::start(GroundOptions {
        audit: false,
        args: vec![("all", "--log-level=warn".to_owned())],
        ..GroundOptions::default()
    })
    .await?;
    ground.start_kite().await?;
    load::users(&ground.load, load::users_of(machines)).await?;
    let mould = Arc::new(mould_of(&ground).await?);
    ground.stop_kite().await;
    let steady = Steady {
        onlooker: Onlooker::start(&ground.admin).await,
        bystander: Bystander::start(&ground.admin).await,
        names: load::names(machines),
        mould,
        ground,
    };
    let mut found = Vec::new();
    for round in 1..=rounds {
        found.push(steady.round(false, round).await?);
        found.push(steady.round(true, round).await?);
    }
    steady.ground.end().await;
    Ok(found)
}

struct Steady {
    ground: Ground,
    names: Vec<Name>,
    mould: Arc<Mould>,
    onlooker: Onlooker,
    bystander: Bystander,
}

impl Steady {
    async fn round(&self, kite: bool, round: usize) -> Result<Measured> {
        self.onlooker.forget();
        self.bystander.forget();
        let ground = &self.ground;
        let bare = if kite {
            ground.start_kite().await?;
            None
        } else {
            let between = ground.scaled(TICKS);
            Some(Bare::start(&ground.bare, Arc::clone(&self.mould), between).await)
        };
        sleep(PAUSE).await;
        let made = self.make(bare.as_ref()).await?;
        let running = self
            .onlooker
            .all_in(Phase::Running, &self.names, LIMIT)
            .await?;
        let found = self.measured(if kite { "kite" } else { "bare" }, round, &made, &running);
        ground.stop_kite().await;
        drop(bare);
        clean::machines(ground, &self.names).await?;
        sleep(PAUSE).await;
        Ok(found)
    }

    async fn make(&self, bare: Option<&Bare>) -> Result<Vec<Made>> {
        let began = tokio::time::Instant::now();
        let made = (0_u32..).zip(&self.names).map(async |(turn, name)| {
            tokio::time::sleep_until(began + Duration::from_secs(1) * turn / RATE).await;
            let made = load::machine(&self.ground.load, name).await?;
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
        let mut found = Measured::new("steady", contestant, self.names.len()).figure(
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
        found.series.push(Series {
            name: "create to disk made".to_owned(),
            x: "seconds after its creation".to_owned(),
            y: "share of machines".to_owned(),
            points: distribution(&disk),
        });
        found
    }
}
