//! A crash at every write of every process in every operation, and what comes
//! of it: the same as without.
//!
//! Many lives run side by side, each with a crash point of its own. A request
//! that has come to its point waits there; when all lives wait at theirs, the
//! process is killed, once, and started again. So each life sees exactly one
//! crash in an operation, exactly at its point. When the successor is done, the
//! requests that waited are delivered after all, as a slow network does.

mod batch;
mod lives;
mod state;
mod world;

use std::collections::BTreeMap;
use std::time::Instant;

use kite_testkit::cluster::CONTROLLERS;
use kite_testkit::{bystander, snapshot};

use crate::batch::{Calm, Tried};
use crate::lives::{Kind, Lives, Step};
use crate::world::World;

/// Lives without a crash; several, to see that they are alike.
const CALM: usize = 4;

// CR1, CR2, CR4, CR6, C-1, C-6, C-7, U-3, V-17, V-18, F-12, F-13
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_crash_at_any_write_a_life_goes_on_and_ends_as_without_it() {
    let world = World::start().await;
    let bystander = bystander::make(&world.cluster).await;
    world.quiet().await;
    let before = snapshot::exact(&world.client, bystander::NAME).await;

    let mut table = BTreeMap::new();
    for kind in [Kind::Machines, Kind::Users] {
        let began = Instant::now();
        let calm = Calm::of(&world, &Lives::new(kind, "calm", CALM)).await;
        println!("{kind:?} without a crash: {:.1?}\n{calm}", began.elapsed());
        for process in CONTROLLERS {
            let began = Instant::now();
            let tried = batch::crash_everywhere(&world, kind, process, &calm).await;
            println!(
                "{kind:?} with crashes of {process}: {:.1?}",
                began.elapsed()
            );
            for (step, tried) in tried {
                table.insert((process, kind, step), tried);
            }
        }
    }
    print(&table);
    let total: usize = table.values().map(|t| t.before + t.after).sum();
    assert!(total >= 60, "only {total} crash points were tried");
    let after = snapshot::exact(&world.client, bystander::NAME).await;
    snapshot::assert_same("what belongs to others", &before, &after);
    drop(bystander);
}

fn print(table: &BTreeMap<(&str, Kind, Step), Tried>) {
    println!(
        "crash points: before a write, after it was applied (writes of a life without a crash)"
    );
    for process in CONTROLLERS {
        let mut cells = Vec::new();
        for ((_, kind, step), tried) in table.iter().filter(|((p, ..), _)| *p == process) {
            if tried.most > 0 {
                cells.push(format!("{} {tried}", step.named(*kind)));
            }
        }
        println!("{process:16} {}", cells.join("; "));
    }
    let all = |of: fn(&Tried) -> usize| table.values().map(of).sum::<usize>();
    println!(
        "in all: {} before a write, {} after it was applied, {} not reached",
        all(|t| t.before),
        all(|t| t.after),
        all(|t| t.missed)
    );
}
