//! Memory of the six with machines that have settled: at rest, and at most.
//!
//! All six run on one node here, one replica each. The audit log is off.

use std::fs;
use std::time::Duration;

use anyhow::Result;
use kite_testkit::cluster::CONTROLLERS;
use tokio::time::sleep;

use super::{at_rest, starting};
use crate::ground::Ground;
use crate::numbers::number;
use crate::report::Measured;
use crate::settled::Settled;
use crate::usage::bytes_in_mib;

/// How long nothing happens before memory is read: allocators give back late.
const QUIET: Duration = Duration::from_mins(1);

const KIB_PER_MIB: f64 = 1024.0;

/// Who the store's own figures are of.
pub(crate) const STORE: &str = "the store";

/// Runs it.
pub async fn run(machines: usize) -> Result<Vec<Measured>> {
    let (ground, stored) = at_rest::ground_and_store(machines, false).await?;
    starting::start_all(&ground, &[]).await?;
    at_rest::quiet(&ground).await?;
    sleep(QUIET).await;
    let mut found = look(&ground, machines);
    found.extend(stored.map(|stored| in_store(&stored, machines)));
    ground.end().await;
    Ok(found)
}

fn look(ground: &Ground, machines: usize) -> Vec<Measured> {
    let usage = ground.usage();
    println!(
        "{:24} {:>9} {:>9} {:>9}",
        "MiB, a minute after rest", "resident", "private", "peak"
    );
    let mut found = Vec::new();
    let mut add = |name: &str, resident: f64, private: f64, peak: f64| {
        println!("{name:24} {resident:9.1} {private:9.1} {peak:9.1}");
        let measured = Measured::new("memory", name, machines)
            .figure("resident", "MiB", resident)
            .figure("private", "MiB", private)
            .figure("peak", "MiB", peak);
        found.push(measured);
    };
    let mut all = 0.0;
    for name in CONTROLLERS {
        let used = usage.of(name);
        let own = ground
            .cluster
            .with(name, |kite| private(kite.process().pid()));
        let own = own.unwrap_or_default();
        all += own;
        add(name, used.resident, own, used.peak);
    }
    let six = usage.six();
    add("six processes", six.resident, all, six.peak);
    for name in ["kube-apiserver", "etcd"] {
        let used = usage.of(name);
        println!(
            "{name:24} {:9.1} {:>9} {:9.1}",
            used.resident, "", used.peak
        );
        let measured = Measured::new("memory", name, machines)
            .figure("resident", "MiB", used.resident)
            .figure("peak", "MiB", used.peak);
        found.push(measured);
    }
    found
}

/// All objects of the machines and their users, and the size of the whole store with them.
fn in_store(stored: &Settled, machines: usize) -> Measured {
    Measured::new("memory", STORE, machines)
        .figure("objects", "objects", number(stored.objects))
        .figure("users", "users", number(stored.wanted.users))
        .figure("size", "MiB", bytes_in_mib(stored.stored))
}

/// What is in memory for this process alone, MiB: its program's code is shared with its replicas.
fn private(pid: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let field = |line: &str| line.split_whitespace().nth(1)?.parse::<f64>().ok();
    let own = text.lines().filter(|line| line.starts_with("Private_"));
    Some(own.filter_map(field).sum::<f64>() / KIB_PER_MIB)
}
