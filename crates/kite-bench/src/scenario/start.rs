//! How soon a process is ready to work on an empty cluster, and how large the programs are.

use anyhow::Result;
use kite_testkit::cluster::CONTROLLERS;
use kite_testkit::kite_process::binary;

use crate::ground::{Ground, GroundOptions};
use crate::numbers::share;
use crate::report::Measured;
use crate::scenario::starting;

const KIB: usize = 1024;

/// Runs it. The first start of each is not counted: it reads the program from the disk.
pub async fn run(rounds: usize) -> Result<Vec<Measured>> {
    let ground = Ground::start(GroundOptions::timed()).await?;
    ground.start_kite().await?;
    let mut found = Vec::new();
    for round in 1..=rounds {
        ground.stop_kite().await;
        for started in starting::start_all(&ground, &[]).await? {
            let (name, took) = (started.name, started.ready.as_secs_f64());
            println!(
                "round {round}: {name} was ready to work after {:.0} ms",
                took * 1000.0
            );
            let mut start = Measured::new("start", name, 0).figure("start to ready", "s", took);
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
