//! How long things have stood, for one machine, in memory only.
//!
//! A restart forgets it all; what already stands in the status is not held back
//! a second time, so a restart writes nothing.

use std::time::Duration;

use kite_api::{KiteVirtualMachine, KiteVirtualMachineStatus};
use kite_runtime::mirror::{Awaited, Decision, Pulse, Unsaid};
use kite_runtime::since::{Since, Waits};
use tokio::time::Instant;

use crate::observe::reading::{Reading, State};
use crate::status::blocked::service_trouble;
use crate::status::table::{PowerSync, row};
use crate::status::verdict::Verdict;
use crate::status::{Elapsed, Told};

/// The times that are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holds {
    /// How long an error word must have stood.
    pub error: Duration,
    /// How long what may be followed at once by something better is held back.
    pub settle: Duration,
    /// How long a machine may take to change its power.
    pub transition: Duration,
}

/// For how many times `settle` kite-vm's word on a new generation is waited for after its last word
/// on another: a create takes a busy API server seconds, and who writes first has kite-vm's write
/// refused.
const PATIENCE: u32 = 5;

/// What is remembered of one machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clocks {
    word: Since<String>,
    moving: Since<String>,
    behind: Awaited<(Option<i64>, Option<String>)>,
    service: Since<String>,
    unsaid: Unsaid<()>,
}

impl Clocks {
    /// Notes what is, and tells what has stood long enough and when the next of it will have.
    pub fn note(
        &mut self,
        machine: &KiteVirtualMachine,
        reading: &Reading,
        holds: &Holds,
        kite_vm: &Pulse,
        now: Instant,
    ) -> (Elapsed, Option<Duration>) {
        let word = match &reading.state {
            State::Error(word) => Some(word.clone()),
            _ => None,
        };
        let moving = row(reading).power_sync == Some(PowerSync::Moving);
        let moving = moving.then(|| format!("{:?}", reading.wanted));
        let is_behind = Verdict::of(machine) == Verdict::Behind;
        let behind = is_behind.then(|| (machine.metadata.generation, reading.vm_uid.clone()));
        let service = service_trouble(machine).map(ToOwned::to_owned);
        let mut waits = Waits::at(now);
        let patience = PATIENCE * holds.settle;
        let elapsed = Elapsed {
            error: waits.over(self.word.note(word, now), holds.error),
            transition: waits.over(self.moving.note(moving, now), holds.transition),
            behind: self.behind.note(behind, patience, kite_vm, &mut waits),
            service: waits.over(self.service.note(service, now), holds.error),
        };
        (elapsed, waits.next())
    }

    /// Whether to write now.
    pub fn decide(
        &mut self,
        told: Told,
        stands: &KiteVirtualMachineStatus,
        next: Option<Duration>,
        holds: &Holds,
        now: Instant,
    ) -> Decision<KiteVirtualMachineStatus> {
        let hold = if told.provisional {
            holds.settle
        } else {
            Duration::ZERO
        };
        let news = (told.status != *stands).then_some(((), told.status));
        self.unsaid
            .decide(news, next, now, |waits, since| waits.over(since, hold))
    }
}
