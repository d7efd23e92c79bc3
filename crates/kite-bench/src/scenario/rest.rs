//! Nothing happens, for minutes: what is asked all the same.
//!
//! Leases are renewed and watches are opened again; everything else would be work for machines,
//! and there is none.

use std::time::Duration;

use anyhow::Result;
use kite_testkit::audit::Request;
use kite_testkit::cluster::CONTROLLERS;
use tokio::time::sleep;

use super::at_rest;
use super::starting;
use crate::numbers::number;
use crate::report::Measured;

const SECONDS_PER_MINUTE: f64 = 60.0;

/// Runs it.
pub async fn run(machines: usize, rest: Duration) -> Result<Vec<Measured>> {
    let ground = at_rest::ground(machines, true).await?;
    starting::start_all(&ground, &[]).await?;
    at_rest::quiet(&ground).await?;
    let mark = ground.mark().await?;
    let before = ground.usage();
    sleep(rest).await;
    let after = ground.usage();
    ground.mark().await?;
    let requests = at_rest::of_six(ground.audit()?.since(mark)?);
    let minutes = after.since(&before).as_secs_f64() / SECONDS_PER_MINUTE;
    let mut found = vec![asked(&requests, machines, minutes)];
    let spent = after.cpu_since(&before);
    for name in CONTROLLERS.into_iter().chain(["kube-apiserver", "etcd"]) {
        let cpu = spent.get(name).copied().unwrap_or_default() * 1000.0 / minutes;
        let own = requests.iter().filter(|r| r.is_by(name)).count();
        println!(
            "{name:16} {:6.1} requests and {cpu:7.1} ms of CPU a minute",
            number(own) / minutes
        );
        found.push(Measured::new("rest", name, machines).figure("CPU a minute", "ms", cpu));
    }
    ground.end().await;
    Ok(found)
}

fn asked(requests: &[Request], machines: usize, minutes: f64) -> Measured {
    let mut found = Measured::new("rest", "kite", machines);
    found.counts = at_rest::counts(requests);
    at_rest::print(&found.counts);
    let upkeep = |r: &&Request| r.is_lease() || (r.is_watch() && !r.streams_list());
    let others = requests.iter().filter(|r| !upkeep(r)).count();
    let whole = number(requests.len()) / minutes;
    println!("{whole:.1} requests a minute over {minutes:.1} min, {others} of machines in all");
    found
        .figure("time", "min", minutes)
        .figure("requests a minute", "requests/min", whole)
        .figure("of machines", "requests", number(others))
}
