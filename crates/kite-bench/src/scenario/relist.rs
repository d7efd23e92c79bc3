//! The store forgets what the watches know, and the watches are cut: everything is listed again,
//! and nothing is written.
//!
//! The watches are cut by a crash of the API server, whose cache then begins behind them. So that it
//! is no failover as well, the six are started without leader election here.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use kite_testkit::audit::Request;
use kite_testkit::cluster::CONTROLLERS;

use super::at_rest;
use super::starting;
use crate::ground::Ground;
use crate::numbers::number;
use crate::report::Measured;
use crate::store::{Entry, Store};

/// Written into `/proc/PID/clear_refs`, it lets the peak begin anew.
const FORGET_PEAK: &str = "5";

/// A watch that has not begun again by then does not know what it lacks.
const LIMIT: Duration = Duration::from_mins(3);

/// Runs it.
pub async fn run(machines: usize) -> Result<Vec<Measured>> {
    let ground = at_rest::ground(machines, true).await?;
    starting::start_all(&ground, &["--leader-election", "false"]).await?;
    at_rest::quiet(&ground).await?;
    let mark = ground.mark().await?;
    let before = ground.usage();
    for name in CONTROLLERS {
        let pid = ground.cluster.with(name, |kite| kite.process().pid());
        fs::write(format!("/proc/{pid}/clear_refs"), FORGET_PEAK)
            .with_context(|| format!("the peak of {name} cannot be forgotten"))?;
    }
    let gone = cut(&ground).await?;
    let began = Instant::now();
    let requests = loop {
        at_rest::quiet(&ground).await?;
        ground.mark().await?;
        let requests = at_rest::of_six(ground.audit()?.since(mark)?);
        if all_listed(&requests) {
            break requests;
        }
        ensure!(began.elapsed() < LIMIT, "not everything is listed again");
    };
    for name in CONTROLLERS {
        let ended = ground.cluster.with(name, |kite| kite.process().exited());
        ensure!(
            ended.is_none(),
            "{name} has not outlived {gone:.1} s without API server"
        );
    }
    let after = ground.usage();
    let mut found = vec![asked(&requests, machines, gone)];
    println!(
        "{:16} {:>12} {:>9} {:>6}",
        "", "resident MiB", "peak MiB", "CPU s"
    );
    let spent = after.cpu_since(&before);
    for name in CONTROLLERS {
        let (resident, peak) = (before.of(name).resident, after.of(name).peak);
        let cpu = spent.get(name).copied().unwrap_or_default();
        println!("{name:16} {resident:12.1} {peak:9.1} {cpu:6.2}");
        let measured = Measured::new("relist", name, machines)
            .figure("resident before", "MiB", resident)
            .figure("peak", "MiB", peak)
            .figure("peak against resident", "x", peak / resident)
            .figure("CPU", "s", cpu);
        found.push(measured);
    }
    ground.end().await;
    Ok(found)
}

/// Whether each watch that tried to go on has begun again with a list.
fn all_listed(requests: &[Request]) -> bool {
    let of = |wanted: fn(&Request) -> bool| -> BTreeSet<(&str, &str)> {
        let wanted = requests.iter().filter(|r| wanted(r) && !r.is_lease());
        wanted.map(|r| (&*r.user, &*r.resource)).collect()
    };
    let listed = of(Request::lists);
    of(Request::is_watch).is_subset(&listed)
}

/// Kills the API server, compacts, and starts it again; for how many seconds it was gone.
async fn cut(ground: &Ground) -> Result<f64> {
    let began = Instant::now();
    let plane = &ground.cluster.control_plane;
    let store = Store::of(plane)?;
    let server = plane.apiserver().context("there is no API server")?;
    server.kill();
    // Something must have happened that the watches do not know, or they may go on.
    let unknown = Entry {
        key: "/kite-bench/unknown".to_owned(),
        value: Vec::new(),
    };
    store.put_all(std::iter::once(unknown)).await?;
    let revision = store.compact().await?;
    plane.start_apiserver().await?;
    let gone = began.elapsed().as_secs_f64();
    println!("everything before revision {revision} is forgotten; {gone:.1} s without API server");
    Ok(gone)
}

fn asked(requests: &[Request], machines: usize, gone: f64) -> Measured {
    let mut found = Measured::new("relist", "kite", machines);
    found.counts = at_rest::counts(requests);
    at_rest::print(&found.counts);
    let of = |wanted: fn(&Request) -> bool| number(requests.iter().filter(|r| wanted(r)).count());
    let resumed = of(|r| r.is_watch() && !r.streams_list() && !r.is_lease());
    let anew = of(|r| r.streams_list() && !r.is_lease());
    let changes = of(at_rest::is_change);
    println!(
        "{resumed} watches tried to go on, {anew} began again with a list, {changes} writes but leases"
    );
    found
        .figure("without API server", "s", gone)
        .figure("watches that tried to go on", "requests", resumed)
        .figure("watches that list", "requests", anew)
        .figure("lists", "requests", of(|r| r.verb == "list"))
        .figure("writes", "requests", changes)
}
