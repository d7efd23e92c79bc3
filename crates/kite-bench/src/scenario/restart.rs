//! All six are killed and started again with everything settled: what they ask, and how long it
//! takes until they could do something.
//!
//! They are started one after the other, so that the times are those of one process on an idle
//! machine. Each time stands beside that of a client that opens the same watches and keeps nothing.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use kite_testkit::KiteProcess;
use kite_testkit::audit::Request;
use kite_testkit::cluster::CONTROLLERS;
use tokio::time::sleep;

use super::at_rest::{self, number};
use super::replay::{self, Replayed};
use crate::ground::Ground;
use crate::report::Measured;

/// Between two looks at a process's metrics, which it has to count its objects for.
const POLL: Duration = Duration::from_millis(200);

/// Passes that have not come by then never will.
const LIMIT: Duration = Duration::from_mins(5);

const MIB: f64 = 1024.0 * 1024.0;

/// What one process took.
struct Started {
    name: &'static str,
    ready: Duration,
    /// Until the first pass was over, and until every object had one.
    first: Duration,
    all: Duration,
    bare: Replayed,
}

/// Runs it.
pub async fn run(machines: usize) -> Result<Vec<Measured>> {
    let ground = at_rest::ground(machines, true).await?;
    ground.start_kite().await?;
    at_rest::quiet(&ground).await?;
    for name in CONTROLLERS {
        ground.cluster.take(name).kill();
    }
    let mark = ground.mark().await?;
    let mut started = Vec::new();
    for name in CONTROLLERS {
        started.push(start(&ground, name).await?);
    }
    at_rest::quiet(&ground).await?;
    let usage = ground.usage();
    ground.mark().await?;
    let requests = at_rest::of_six(ground.audit()?.since(mark)?);
    for process in &mut started {
        process.bare = replay::replay(&ground.bare, process.name, &requests).await?;
    }
    let mut found = vec![asked(&requests, machines)];
    println!(
        "{:16} {:>8} {:>8} {:>8} {:>9} {:>7} {:>8} {:>8} {:>8}",
        "", "ready s", "first s", "all s", "bare s", "x", "MiB", "CPU s", "peak MiB"
    );
    for process in &started {
        let used = usage.of(process.name);
        found.push(told(process, machines, used.cpu, used.peak));
    }
    ground.end().await;
    Ok(found)
}

async fn start(ground: &Ground, name: &'static str) -> Result<Started> {
    let began = Instant::now();
    ground.cluster.run(name, name, &[]).await?;
    let ready = ground.cluster.with(name, KiteProcess::ready_after);
    let ready = ready.unwrap_or_default();
    let address = ground.cluster.with(name, KiteProcess::address);
    let mut first = None;
    loop {
        let (passes, objects) = passes(address).await?;
        if passes > 0.0 || objects == 0.0 {
            first.get_or_insert(began.elapsed());
        }
        if passes >= objects {
            break;
        }
        ensure!(
            began.elapsed() < LIMIT,
            "{name} made {passes} passes for {objects} objects"
        );
        sleep(POLL).await;
    }
    Ok(Started {
        name,
        ready,
        first: first.unwrap_or_default(),
        all: began.elapsed(),
        bare: Replayed::default(),
    })
}

/// How many passes a process has made, and for how many objects.
async fn passes(address: std::net::SocketAddr) -> Result<(f64, f64)> {
    let (_, text) = kite_testkit::http_get::get(address, "/metrics").await?;
    let metrics = kite_testkit::kite_process::Metrics::parse(&text)?;
    let passes = metrics.sum("controller_runtime_reconcile_total", &[]);
    Ok((passes, metrics.sum("kite_objects", &[])))
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
        .figure("watches that list", "requests", of(replay::lists))
}

fn told(process: &Started, machines: usize, cpu: f64, peak: f64) -> Measured {
    let seconds = |time: Duration| time.as_secs_f64();
    let mib = number(process.bare.bytes) / MIB;
    let ratio = seconds(process.ready) / seconds(process.bare.took);
    println!(
        "{:16} {:8.2} {:8.2} {:8.2} {:9.2} {ratio:7.2} {mib:8.1} {cpu:8.2} {peak:8.1}",
        process.name,
        seconds(process.ready),
        seconds(process.first),
        seconds(process.all),
        seconds(process.bare.took),
    );
    Measured::new("restart", process.name, machines)
        .figure("start to ready", "s", seconds(process.ready))
        .figure("start to first pass", "s", seconds(process.first))
        .figure("start to a pass for each object", "s", seconds(process.all))
        .figure("bare list and watch", "s", seconds(process.bare.took))
        .figure("bytes listed", "MiB", mib)
        .figure("ready against the bare list", "x", ratio)
        .figure("CPU", "s", cpu)
        .figure("peak", "MiB", peak)
}
