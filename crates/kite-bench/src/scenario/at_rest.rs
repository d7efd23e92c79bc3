//! What the scenarios of rest have in common: a ground with settled machines, waiting until nobody
//! works, and requests as a report has them.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use kite_testkit::audit::Request;
use kite_testkit::cluster::CONTROLLERS;
use kite_testkit::fit::Counts;
use tokio::time::sleep;

use crate::ground::{Ground, GroundOptions};
use crate::report::Count;
use crate::settled::{self, Settled, Wanted};

/// The original's life is played this much faster; nothing that is measured depends on it.
const SPEED: f64 = 50.0;

/// Over so long the six may use no more than [`BUSY`] of a processor to count as quiet.
const LOOK: Duration = Duration::from_secs(5);

/// Leases, probes and metrics take a hundredth of a processor.
const BUSY: f64 = 0.05;

/// Longer than six processes take for ten thousand machines on one processor.
const LIMIT: Duration = Duration::from_mins(10);

/// A ground with so many settled machines, on which only the store and the API server run.
pub(super) async fn ground(machines: usize, audit: bool) -> Result<Ground> {
    let (ground, _) = ground_and_store(machines, audit).await?;
    Ok(ground)
}

/// The same, and what was put in the store, if anything was.
pub(super) async fn ground_and_store(
    machines: usize,
    audit: bool,
) -> Result<(Ground, Option<Settled>)> {
    let ground = Ground::start(GroundOptions {
        audit,
        speed: SPEED,
        ticks: 2,
        args: vec![("all", "--log-level=warn".to_owned())],
        apiserver_args: settled::APISERVER_ARGS.map(str::to_owned).to_vec(),
        more: Vec::new(),
    })
    .await?;
    let mut stored = None;
    if machines > 0 {
        let settled = settled::settle(&ground.cluster, Wanted::machines(machines)).await?;
        println!(
            "{} users with {} machines in {} objects, {} MiB in the store, lived in {:.0} s and copied in {:.0} s",
            settled.wanted.users,
            settled.wanted.total(),
            settled.objects,
            settled.stored >> 20,
            settled.living.as_secs_f64(),
            settled.copying.as_secs_f64()
        );
        stored = Some(settled);
    }
    Ok((ground, stored))
}

/// Waits until the six do nothing but be there.
pub(super) async fn quiet(ground: &Ground) -> Result<()> {
    let deadline = Instant::now() + LIMIT;
    loop {
        let before = ground.usage();
        sleep(LOOK).await;
        let after = ground.usage();
        let busy = (after.six().cpu - before.six().cpu) / after.since(&before).as_secs_f64();
        if busy < BUSY {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("the six still use {busy:.2} of a processor");
        }
    }
}

/// Whether one of the six sent it.
pub(super) fn by_six(request: &Request) -> bool {
    CONTROLLERS.iter().any(|name| request.is_by(name))
}

/// The requests of the six among all.
pub(super) fn of_six(requests: Vec<Request>) -> Vec<Request> {
    requests.into_iter().filter(by_six).collect()
}

/// Requests as a report has them, watches among them.
pub(super) fn counts(requests: &[Request]) -> Vec<Count> {
    let count = |(asked, count): (&kite_testkit::fit::Asked, usize)| Count {
        controller: asked.controller.clone(),
        verb: asked.verb.clone(),
        resource: asked.resource.clone(),
        count,
    };
    Counts::of(requests).rows().map(count).collect()
}

/// Whether a request changes something; taking a lease is taking part.
pub(super) fn is_change(request: &Request) -> bool {
    request.is_write() && !request.is_lease()
}

/// Prints how many lists, watches and writes of a lease each of the six sent, and all else by name.
pub(super) fn print(counts: &[Count]) {
    for name in CONTROLLERS {
        let own = || counts.iter().filter(move |count| count.controller == name);
        let sum = |wanted: fn(&Count) -> bool| -> usize {
            own().filter(|c| wanted(c)).map(|c| c.count).sum()
        };
        println!(
            "  {name:16} {:4} lists {:4} watches {:4} for its lease",
            sum(|c| c.verb == "list"),
            sum(|c| c.verb == "watch"),
            sum(is_lease)
        );
        let others = own().filter(|c| !matches!(&*c.verb, "list" | "watch") && !is_lease(c));
        for other in others {
            println!("    {} {} {}", other.verb, other.resource, other.count);
        }
    }
}

fn is_lease(count: &Count) -> bool {
    count.resource.ends_with("/leases") && count.verb != "watch"
}
