//! Starts the six one after the other, each until it has listed everything and looked at every object,
//! and tells how long that took.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use kite_testkit::cluster::CONTROLLERS;
use kite_testkit::kite_process::Metrics;
use kite_testkit::{KiteProcess, http_get};
use tokio::time::sleep;

use crate::ground::Ground;

/// Between two looks at a process: a start takes some ten milliseconds where there is nothing.
const POLL: Duration = Duration::from_millis(10);

/// Passes that have not come by then never will.
const LIMIT: Duration = Duration::from_mins(5);

/// How long one process took since its start.
pub(super) struct Started {
    pub(super) name: &'static str,
    /// Until it led and had listed everything, so that a pass was possible.
    pub(super) ready: Duration,
    /// Until the first pass was over.
    pub(super) first: Duration,
    /// Until every object had a pass.
    pub(super) all: Duration,
}

/// Starts them, each alone at its work.
pub(super) async fn start_all(ground: &Ground, args: &[&str]) -> Result<Vec<Started>> {
    let mut started = Vec::new();
    for name in CONTROLLERS {
        started.push(start(ground, name, args).await?);
    }
    Ok(started)
}

async fn start(ground: &Ground, name: &'static str, args: &[&str]) -> Result<Started> {
    let began = Instant::now();
    ground.cluster.run(name, name, args).await?;
    let address = ground.cluster.with(name, KiteProcess::address);
    while !leads(address).await {
        ensure!(began.elapsed() < LIMIT, "{name} does not lead");
        sleep(POLL).await;
    }
    let ready = began.elapsed();
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
    })
}

/// Whether a process leads and has listed everything. A standby is ready too, and lists nothing.
async fn leads(address: SocketAddr) -> bool {
    let answer = http_get::get(address, "/readyz?verbose").await;
    answer.is_ok_and(|(status, text)| {
        status == 200 && text.contains("Leader") && text.contains("watch ")
    })
}

/// How many passes a process has made, and for how many objects.
async fn passes(address: SocketAddr) -> Result<(f64, f64)> {
    let (_, text) = http_get::get(address, "/metrics").await?;
    let metrics = Metrics::parse(&text)?;
    let passes = metrics.sum("controller_runtime_reconcile_total", &[]);
    Ok((passes, metrics.sum("kite_objects", &[])))
}
