//! One tenant's storm, and what a quiet tenant notices of it.
//!
//! The quiet one makes single machines on a schedule that waits for nothing: first alone, then
//! while the noisy one has made all of its own at once.

use std::time::Duration;

use anyhow::Result;
use futures::future::try_join_all;
use kite_api::machine::Phase;
use tokio::time::{Instant, sleep, sleep_until};

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
    let ground = Ground::start(GroundOptions::timed()).await?;
    ground.start_kite().await?;
    let users = ["noisy", "quiet-alone", "quiet-meanwhile"].map(str::to_owned);
    load::users_named(&ground.load, &users).await?;
    sleep(SETTLING).await;
    let onlooker = Onlooker::start(&ground.admin).await;
    let alone = singles(&ground, &onlooker, &users[1]).await?;
    let storm = numbered(&users[0], machines);
    let making = async {
        load::machines(&ground.load, &storm, |_| {}).await?;
        onlooker.all_in(Phase::Running, &storm, LIMIT).await
    };
    let (_, meanwhile) = tokio::try_join!(making, singles(&ground, &onlooker, &users[2]))?;
    println!(
        "a storm of {machines}; a quiet create takes {:.2} s (p99 {:.2}) alone and {:.2} s (p99 {:.2}) meanwhile: {:.2} x (p99)",
        alone.at(0.5),
        alone.at(0.99),
        meanwhile.at(0.5),
        meanwhile.at(0.99),
        meanwhile.at(0.99) / alone.at(0.99)
    );
    ground.end().await;
    let found = Measured::new("noisy", "kite", machines)
        .figure("p50 alone", "s", alone.at(0.5))
        .figure("p99 alone", "s", alone.at(0.99))
        .figure("p50 meanwhile", "s", meanwhile.at(0.5))
        .figure("p99 meanwhile", "s", meanwhile.at(0.99))
        .figure("p50 against alone", "x", meanwhile.at(0.5) / alone.at(0.5))
        .figure(
            "p99 against alone",
            "x",
            meanwhile.at(0.99) / alone.at(0.99),
        );
    Ok(vec![found])
}

/// Makes single machines in a namespace, and returns how long each took until it was Running.
async fn singles(ground: &Ground, onlooker: &Onlooker, namespace: &str) -> Result<Spread> {
    let began = Instant::now();
    let names = numbered(namespace, SINGLE);
    let made = (0_u32..).zip(&names).map(async |(turn, name)| {
        sleep_until(began + BETWEEN * turn).await;
        load::machine(&ground.load, name).await
    });
    let made = try_join_all(made).await?;
    let running = onlooker.all_in(Phase::Running, &names, LIMIT).await?;
    let took = made.iter().filter_map(|made| {
        let at = running.get(&made.name)?;
        Some(at.saturating_duration_since(made.at).as_secs_f64())
    });
    Ok(Spread::of(took))
}

fn numbered(namespace: &str, count: usize) -> Vec<Name> {
    let name = |number: usize| Name {
        namespace: namespace.to_owned(),
        name: format!("m{number:04}"),
    };
    (0..count).map(name).collect()
}
