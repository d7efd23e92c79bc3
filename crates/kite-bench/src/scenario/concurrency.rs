//! How many objects each process works on at the same time: what a storm and a quiet tenant beside
//! it notice of it.
//!
//! More at once than the server can do does not make it faster; it makes its row longer, in which
//! everybody waits, those too that have nothing to do with the storm.

use anyhow::Result;

use super::noisy::{P99, storm};
use crate::contest::Contestant;
use crate::ground::GroundOptions;
use crate::report::Measured;

/// From hardly anything to more than a small server can work on.
const AT_ONCE: [u16; 4] = [2, 4, 8, 16];

/// Runs it.
pub async fn run(machines: usize) -> Result<Vec<Measured>> {
    let mut found = Vec::new();
    for at_once in AT_ONCE {
        println!("-- {at_once} at once");
        let mut options = GroundOptions::timed();
        options
            .args
            .push(("all", format!("--concurrency={at_once}")));
        let storm = storm(options, machines, Contestant::Kite).await?;
        let contestant = format!("{at_once} at once");
        let measured = Measured::new("concurrency", &contestant, machines);
        found.push(storm.parts(storm.whole(measured), &[P99]));
    }
    Ok(found)
}
