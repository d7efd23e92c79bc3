//! One tenant's storm, and what a quiet tenant notices of it.
//!
//! The quiet one makes single machines on a schedule that waits for nothing: first alone, then
//! while the noisy one has made all of its own at once. Beside the whole time until a machine runs,
//! which holds what others do for it, stand the two parts of it that are Kite's alone. Beside Kite
//! stands the bare client, two of it: one for the storm, and one that has nothing to do but the
//! quiet tenant's machines, so what these wait for is the server and the stand-ins.

use std::time::Duration;

use anyhow::Result;
use futures::future::try_join_all;
use kite_api::machine::Phase;
use tokio::time::{Instant, sleep, sleep_until};

use crate::bare::Bare;
use crate::bystander::Bystander;
use crate::contest::{Contestant, bare, take_mould};
use crate::ground::{Ground, GroundOptions};
use crate::load::{self, Name};
use crate::numbers::Spread;
use crate::onlooker::Onlooker;
use crate::report::Measured;

/// How many machines the quiet tenant makes in each part.
const SINGLE: usize = 40;

/// Between two of them: they are over before the storm is.
const BETWEEN: Duration = Duration::from_millis(500);

/// A machine that takes longer has failed.
const LIMIT: Duration = Duration::from_mins(30);

/// Between making users and measuring.
const SETTLING: Duration = Duration::from_secs(5);

/// Runs it.
pub async fn run(machines: usize) -> Result<Vec<Measured>> {
    let mut found = Vec::new();
    for contestant in [Contestant::Bare, Contestant::Kite] {
        let name = contestant.name();
        println!("-- {name}");
        let storm = storm(GroundOptions::timed(), machines, contestant).await?;
        let measured = storm.whole(Measured::new("noisy", name, machines));
        found.push(storm.parts(measured, &[("p50", 0.5), P99]));
    }
    Ok(found)
}

/// A rank's name, and the share of all that is not above it.
pub(super) type Rank = (&'static str, f64);

/// What the slow ones take.
pub(super) const P99: Rank = ("p99", 0.99);

/// A storm, and the single creates before it and in it.
pub(super) struct Storm {
    alone: Singles,
    meanwhile: Singles,
    /// From its first create until all of it was Running.
    took: Duration,
}

/// Has one tenant make machines at once while another makes single ones.
pub(super) async fn storm(
    options: GroundOptions,
    machines: usize,
    contestant: Contestant,
) -> Result<Storm> {
    let ground = Ground::start(options).await?;
    ground.start_kite().await?;
    let users = ["noisy", "quiet-alone", "quiet-meanwhile"].map(str::to_owned);
    load::users_named(&ground.load, &users).await?;
    let onlooker = Onlooker::start(&ground.admin).await;
    let served = Served::by(contestant, &ground, &onlooker).await?;
    sleep(SETTLING).await;
    let quiet = served.quiet.as_ref();
    let alone = singles(&ground, &onlooker, &users[1], quiet).await?;
    let names = numbered(&users[0], machines);
    let making = async {
        let began = Instant::now();
        load::machines(&ground.load, &names, |made| {
            live(served.noisy.as_ref(), made);
        })
        .await?;
        onlooker.all_in(Phase::Running, &names, LIMIT).await?;
        Ok(began.elapsed())
    };
    let (took, meanwhile) =
        tokio::try_join!(making, singles(&ground, &onlooker, &users[2], quiet))?;
    ground.end().await;
    Ok(Storm {
        alone,
        meanwhile,
        took,
    })
}

/// Who serves the two tenants where Kite does not.
#[derive(Default)]
struct Served {
    noisy: Option<Bare>,
    quiet: Option<Bare>,
}

impl Served {
    /// Kite has made the users; for the bare client it gives the mould and ends.
    async fn by(contestant: Contestant, ground: &Ground, onlooker: &Onlooker) -> Result<Self> {
        if contestant == Contestant::Kite {
            return Ok(Self::default());
        }
        let mould = take_mould(ground, onlooker).await?;
        Ok(Self {
            noisy: Some(bare(ground, &mould).await),
            quiet: Some(bare(ground, &mould).await),
        })
    }
}

fn live(bare: Option<&Bare>, made: &load::Made) {
    if let Some(bare) = bare {
        bare.live(made);
    }
}

impl Storm {
    /// How long the storm itself took.
    pub(super) fn whole(&self, found: Measured) -> Measured {
        let all = self.took.as_secs_f64();
        println!("the storm took {all:.1} s");
        found.figure("the storm, time to all Running", "s", all)
    }

    /// The whole time of a quiet create, and the parts of it that are Kite's alone.
    pub(super) fn parts(&self, found: Measured, ranks: &[Rank]) -> Measured {
        [
            ("", &self.alone.running, &self.meanwhile.running),
            (
                " until the disk is made",
                &self.alone.disk,
                &self.meanwhile.disk,
            ),
            (
                " from KubeVirt's word to Kite's",
                &self.alone.told,
                &self.meanwhile.told,
            ),
        ]
        .into_iter()
        .fold(found, |found, (part, alone, meanwhile)| {
            compared(found, part, alone, meanwhile, ranks)
        })
    }
}

fn compared(
    mut found: Measured,
    part: &str,
    alone: &Spread,
    meanwhile: &Spread,
    ranks: &[Rank],
) -> Measured {
    for (rank, share) in ranks {
        let (before, now) = (alone.at(*share), meanwhile.at(*share));
        println!(
            "{rank}{part}: {before:.3} s alone, {now:.3} s meanwhile, {:.2} x",
            now / before
        );
        found = found
            .figure(&format!("{rank}{part} alone"), "s", before)
            .figure(&format!("{rank}{part} meanwhile"), "s", now)
            .figure(&format!("{rank}{part} against alone"), "x", now / before);
    }
    found
}

/// How long the parts of single creates took.
struct Singles {
    /// Until the machine was Running.
    running: Spread,
    /// Until its disk was made.
    disk: Spread,
    /// From KubeVirt's word that it runs to Kite's.
    told: Spread,
}

/// Makes single machines in a namespace.
async fn singles(
    ground: &Ground,
    onlooker: &Onlooker,
    namespace: &str,
    bare: Option<&Bare>,
) -> Result<Singles> {
    let bystander = Bystander::start(&ground.admin).await;
    let began = Instant::now();
    let names = numbered(namespace, SINGLE);
    let made = (0_u32..).zip(&names).map(async |(turn, name)| {
        sleep_until(began + BETWEEN * turn).await;
        let made = load::machine(&ground.load, name).await?;
        live(bare, &made);
        anyhow::Ok(made)
    });
    let made = try_join_all(made).await?;
    let running = onlooker.all_in(Phase::Running, &names, LIMIT).await?;
    let between = |from: Option<std::time::Instant>, to: Option<std::time::Instant>| {
        Some(to?.saturating_duration_since(from?).as_secs_f64())
    };
    let spread =
        |took: &dyn Fn(&load::Made) -> Option<f64>| Spread::of(made.iter().filter_map(took));
    let runs = |made: &load::Made| running.get(&made.name).copied();
    Ok(Singles {
        running: spread(&|made| between(Some(made.at), runs(made))),
        disk: spread(&|made| between(Some(made.at), bystander.disk_made(&made.name))),
        told: spread(&|made| between(bystander.runs(&made.name), runs(made))),
    })
}

fn numbered(namespace: &str, count: usize) -> Vec<Name> {
    let name = |number: usize| Name {
        namespace: namespace.to_owned(),
        name: format!("m{number:04}"),
    };
    (0..count).map(name).collect()
}
