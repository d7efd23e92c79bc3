//! How many objects each process works on at the same time: what a storm and a quiet tenant beside
//! it notice of it.
//!
//! More at once than the server can do does not make it faster; it makes its row longer, in which
//! everybody waits, those too that have nothing to do with the storm.

use std::time::Duration;

use anyhow::Result;

use super::noisy::{P99, storm};
use crate::ground::GroundOptions;
use crate::report::Measured;

/// From one after the other to the most that a flag takes without a thought.
const AT_ONCE: [u16; 5] = [2, 4, 8, 16, 32];

/// Runs it.
pub async fn run(machines: usize) -> Result<Vec<Measured>> {
    let mut found = Vec::new();
    for at_once in AT_ONCE {
        println!("-- {at_once} at once");
        let mut options = GroundOptions::timed();
        options
            .args
            .push(("all", format!("--concurrency={at_once}")));
        let storm = storm(options, machines).await?;
        let all = Duration::as_secs_f64(&storm.took);
        println!("the storm took {all:.1} s");
        let contestant = format!("{at_once} at once");
        let measured = Measured::new("concurrency", &contestant, machines).figure(
            "the storm, time to all Running",
            "s",
            all,
        );
        found.push(storm.parts(measured, &[P99]));
    }
    Ok(found)
}
