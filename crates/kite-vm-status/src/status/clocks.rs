//! How long things have stood, for one machine, in memory only.
//!
//! A restart forgets it all; what already stands in the status is not held back
//! a second time, so a restart writes nothing.

use std::time::Duration;

use kite_api::{KiteVirtualMachine, KiteVirtualMachineStatus};
use kite_runtime::since::{Since, Waits};
use tokio::time::Instant;

use crate::observe::reading::{Reading, State};
use crate::status::blocked::service_trouble;
use crate::status::table::{PowerSync, row};
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

/// What is remembered of one machine.
#[derive(Clone, Debug, Default)]
pub struct Clocks {
    /// The machine's UID: a successor of the same name starts anew.
    uid: Option<String>,
    word: Since<String>,
    moving: Since<String>,
    behind: Since<(Option<i64>, Option<String>)>,
    service: Since<String>,
    unsaid: Since<()>,
}

/// What to do with what should stand.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// It stands already, or its time has not come; look again after this long, if at all.
    Wait(Option<Duration>),
    /// Write it.
    Write(Box<KiteVirtualMachineStatus>),
}

impl Clocks {
    /// Begins anew for a successor of the same name.
    pub fn meet(&mut self, machine: &KiteVirtualMachine) {
        if self.uid != machine.metadata.uid {
            *self = Self {
                uid: machine.metadata.uid.clone(),
                ..Self::default()
            };
        }
    }

    /// Notes what is, and tells what has stood long enough and when the next of it will have.
    pub fn note(
        &mut self,
        machine: &KiteVirtualMachine,
        reading: &Reading,
        holds: &Holds,
        now: Instant,
    ) -> (Elapsed, Option<Duration>) {
        let word = match &reading.state {
            State::Error(word) => Some(word.clone()),
            _ => None,
        };
        let moving = row(reading).power_sync == Some(PowerSync::Moving);
        let moving = moving.then(|| format!("{:?}", reading.wanted));
        let behind = Some((machine.metadata.generation, reading.vm_uid.clone()));
        let service = service_trouble(machine).map(ToOwned::to_owned);
        let mut waits = Waits::at(now);
        let elapsed = Elapsed {
            error: waits.over(self.word.note(word, now), holds.error),
            transition: waits.over(self.moving.note(moving, now), holds.transition),
            behind: waits.over(self.behind.note(behind, now), holds.settle),
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
    ) -> Decision {
        if told.status == *stands {
            self.unsaid.note(None, now);
            return Decision::Wait(next);
        }
        let since = self.unsaid.note(Some(()), now).unwrap_or(now);
        if told.provisional {
            let mut wait = Waits::at(now);
            if !wait.over(Some(since), holds.settle) {
                return Decision::Wait(next.into_iter().chain(wait.next()).min());
            }
        }
        self.unsaid.note(None, now);
        Decision::Write(Box::new(told.status))
    }
}
