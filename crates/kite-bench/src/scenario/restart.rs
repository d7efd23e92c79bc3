//! All six are killed and started again with everything settled: what they ask, and how long it
//! takes until they could do something.
//!
//! They are started one after the other, so that the times are those of one process on an idle
//! machine. Each time stands beside that of a client that opens the same watches and keeps nothing.

use std::time::Duration;

use anyhow::Result;
use kite_testkit::audit::Request;
use kite_testkit::cluster::CONTROLLERS;

use super::at_rest;
use super::replay::{self, Replayed};
use super::starting::{self, Started};
use crate::numbers::number;
use crate::report::Measured;
use crate::usage::Used;

const MIB: f64 = 1024.0 * 1024.0;

/// Runs it.
pub async fn run(machines: usize) -> Result<Vec<Measured>> {
    let ground = at_rest::ground(machines, true).await?;
    starting::start_all(&ground, &[]).await?;
    at_rest::quiet(&ground).await?;
    for name in CONTROLLERS {
        ground.cluster.take(name).kill();
    }
    let mark = ground.mark().await?;
    let started = starting::start_all(&ground, &[]).await?;
    at_rest::quiet(&ground).await?;
    let usage = ground.usage();
    ground.mark().await?;
    let requests = at_rest::of_six(ground.audit()?.since(mark)?);
    let mut found = vec![asked(&requests, machines)];
    println!(
        "{:16} {:>8} {:>8} {:>8} {:>9} {:>7} {:>8} {:>8} {:>8}",
        "", "ready s", "first s", "all s", "bare s", "x", "MiB", "CPU s", "peak MiB"
    );
    for process in &started {
        let bare = replay::replay(&ground.bare.own, process.name, &requests).await?;
        let used = usage.of(process.name);
        found.push(told(process, bare, machines, used));
    }
    ground.end().await;
    Ok(found)
}

/// All requests, which are to be watches and the taking of leases.
fn asked(requests: &[Request], machines: usize) -> Measured {
    let mut found = Measured::new("restart", "kite", machines);
    found.counts = at_rest::counts(requests);
    at_rest::print(&found.counts);
    let of = |wanted: fn(&Request) -> bool| number(requests.iter().filter(|r| wanted(r)).count());
    let changes = of(at_rest::is_change);
    println!("{changes} writes but leases");
    found
        .figure("writes", "requests", changes)
        .figure("lists", "requests", of(|r| r.verb == "list"))
        .figure("watches that list", "requests", of(Request::streams_list))
}

fn told(process: &Started, bare: Replayed, machines: usize, used: Used) -> Measured {
    let seconds = |time: Duration| time.as_secs_f64();
    let mib = number(bare.bytes) / MIB;
    let ratio = seconds(process.ready) / seconds(bare.took);
    println!(
        "{:16} {:8.2} {:8.2} {:8.2} {:9.2} {ratio:7.2} {mib:8.1} {:8.2} {:8.1}",
        process.name,
        seconds(process.ready),
        seconds(process.first),
        seconds(process.all),
        seconds(bare.took),
        used.cpu,
        used.peak
    );
    Measured::new("restart", process.name, machines)
        .figure("start to ready", "s", seconds(process.ready))
        .figure("start to first pass", "s", seconds(process.first))
        .figure("start to a pass for each object", "s", seconds(process.all))
        .figure("bare list and watch", "s", seconds(bare.took))
        .figure("bytes listed", "MiB", mib)
        .figure("ready against the bare list", "x", ratio)
        .figure("CPU", "s", used.cpu)
        .figure("peak", "MiB", used.peak)
}
