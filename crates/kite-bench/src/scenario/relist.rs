//! The store forgets what the watches know, and the watches are cut: everything is listed again,
//! and nothing is written.
//!
//! The watches are cut by a restart of the API server, whose cache then begins behind them.

use std::fs;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use kite_testkit::audit::Request;
use kite_testkit::cluster::CONTROLLERS;

use super::at_rest::{self, number};
use super::replay;
use crate::ground::Ground;
use crate::report::Measured;
use crate::store::Store;

/// Written into `/proc/PID/clear_refs`, it lets the peak begin anew.
const FORGET_PEAK: &str = "5";

/// Runs it.
pub async fn run(machines: usize) -> Result<Vec<Measured>> {
    let ground = at_rest::ground(machines, true).await?;
    ground.start_kite().await?;
    at_rest::quiet(&ground).await?;
    let mark = ground.mark().await?;
    let before = ground.usage();
    for name in CONTROLLERS {
        let pid = ground.cluster.with(name, |kite| kite.process().pid());
        fs::write(format!("/proc/{pid}/clear_refs"), FORGET_PEAK)
            .with_context(|| format!("the peak of {name} cannot be forgotten"))?;
    }
    let gone = cut(&ground).await?;
    at_rest::quiet(&ground).await?;
    for name in CONTROLLERS {
        let ended = ground.cluster.with(name, |kite| kite.process().exited());
        ensure!(
            ended.is_none(),
            "{name} has not outlived {gone:.1} s without API server"
        );
    }
    let after = ground.usage();
    ground.mark().await?;
    let requests = at_rest::of_six(ground.audit()?.since(mark)?);
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

/// Takes the API server away, compacts, and gives it back; for how many seconds it was gone.
async fn cut(ground: &Ground) -> Result<f64> {
    let began = Instant::now();
    let plane = &ground.cluster.control_plane;
    let store = Store::of(plane)?;
    plane.stop_apiserver().await;
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
    let resumed = of(|r| r.is_watch() && !replay::lists(r) && !r.is_lease());
    let anew = of(|r| replay::lists(r) && !r.is_lease());
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
