//! How soon a process is ready on an empty cluster, how much memory it takes there, and how large
//! the programs are.

use anyhow::Result;
use kite_testkit::cluster::CONTROLLERS;
use kite_testkit::kite_process::binary;

use crate::ground::{Ground, GroundOptions};
use crate::report::Measured;
use crate::scenario::lives::share;

const KIB: usize = 1024;

/// Runs it. The first start of each is not counted: it reads the program from the disk.
pub async fn run(rounds: usize) -> Result<Vec<Measured>> {
    let ground = Ground::start(GroundOptions {
        audit: false,
        ..GroundOptions::default()
    })
    .await?;
    ground.start_kite().await?;
    let mut found = Vec::new();
    for round in 1..=rounds {
        ground.stop_kite().await;
        for (name, took) in ground.start_kite().await? {
            println!(
                "round {round}: {name} was ready after {:.0} ms",
                took.as_secs_f64() * 1000.0
            );
            let mut start =
                Measured::new("start", name, 0).figure("start to ready", "s", took.as_secs_f64());
            start.round = round;
            found.push(start);
        }
    }
    ground.end().await;
    for name in CONTROLLERS {
        let bytes = std::fs::metadata(binary(name)?)?.len();
        let mib = share(usize::try_from(bytes)? / KIB, KIB);
        println!("{name}: {mib:.1} MiB");
        found.push(Measured::new("sizes", name, 0).figure("stripped", "MiB", mib));
    }
    Ok(found)
}
