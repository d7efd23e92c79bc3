//! How long things have stood for one disk, and how often it is told of, in memory only.
//!
//! A restart forgets it all; a trouble that already stands in the status is not
//! held back a second time, so a restart writes nothing.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kite_api::condition::{self, DISK_READY};
use kite_api::ownership::says_the_same;
use kite_api::{KiteVirtualMachine, KiteVirtualMachineStatus};
use kite_runtime::mirror::{Decision, Unsaid};
use kite_runtime::since::{Since, Waits};
use tokio::time::Instant;

use crate::observe::reading::{Reading, State, Trouble};
use crate::observe::{Doubt, Found};
use crate::status::{Disk, Elapsed, standing};

/// The times that are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holds {
    /// How long a trouble must have stood.
    pub error: Duration,
    /// Least time between two writes that tell of no more than progress; zero tells each.
    pub tick: Duration,
    /// When a disk on which nothing moves counts as stuck.
    pub stuck: Duration,
}

/// How long a phase is held back that is likely to be followed at once by the next one.
const SETTLE: Duration = Duration::from_secs(1);

/// How long the answer of a live look stands; the longest back-off of rule C-7.
const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// What is remembered of one machine's disk.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clocks {
    /// The looks for a claim that no watch shows.
    pub looks: Looks,
    trouble: Since<Trouble>,
    movement: Since<String>,
    restarts: Since<i64>,
    first_look: Option<FirstLook>,
    unsaid: Unsaid<()>,
    /// When this process last wrote.
    written: Option<Instant>,
}

/// How a DataVolume was when this process first saw it.
#[derive(Clone, Debug, PartialEq)]
struct FirstLook {
    /// Only what comes on top of these is growth.
    restarts: i64,
    /// Where it was stuck already, as the status says: it stays stuck until it moves.
    stuck_at: Option<String>,
}

/// The live looks for a claim that no watch shows (rules D-5, D-7), and what the last one met.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Looks {
    doubt: Since<Doubt>,
    /// When, in which doubt, and what there was.
    last: Option<(Instant, Doubt, Option<Arc<PersistentVolumeClaim>>)>,
}

impl Looks {
    /// Notes whether there is a doubt. True when it is time to look; and when it will be.
    pub fn due(
        &mut self,
        doubt: Option<&Doubt>,
        holds: &Holds,
        now: Instant,
    ) -> (bool, Option<Duration>) {
        let Some(doubt) = doubt else {
            *self = Self::default();
            return (false, None);
        };
        self.last = self.last.take().filter(|(_, last, _)| last == doubt);
        let hold = match doubt {
            // Two watches may not be in step, and in an ordinary life nothing is asked.
            Doubt::Recorded(_) => 2 * SETTLE,
            Doubt::Planted => holds.error,
        };
        let mut waits = Waits::at(now);
        let since = self.doubt.note(Some(doubt.clone()), now);
        let due = match &self.last {
            None => waits.over(since, hold),
            Some((at, ..)) => waits.over(Some(*at), LOOK_AGAIN),
        };
        (due, waits.next())
    }

    /// Notes what a look met.
    pub fn met(&mut self, doubt: Doubt, claim: Option<Arc<PersistentVolumeClaim>>, now: Instant) {
        self.last = Some((now, doubt, claim));
    }

    /// What the watches show, with what the last look met where they show nothing.
    pub fn complete(&self, found: Found) -> Found {
        match &self.last {
            Some((_, _, claim)) if found.claim.is_none() => found.asked(claim.clone()),
            _ => found,
        }
    }
}

impl Clocks {
    /// Notes what is, and tells what has stood long enough and when the next of it will have.
    pub fn note(
        &mut self,
        machine: &KiteVirtualMachine,
        disk: &Disk,
        holds: &Holds,
        now: Instant,
    ) -> (Elapsed, Option<Duration>) {
        let filling = match disk {
            Disk::DataVolume(reading, _) if reading.state != State::Filled => Some(reading),
            _ => None,
        };
        // A disk that is full moves no more, and nothing is kept of it.
        let Some(reading) = filling else {
            self.trouble = Since::default();
            self.movement = Since::default();
            self.restarts = Since::default();
            self.first_look = None;
            return (Elapsed::default(), None);
        };
        let stands = standing(machine);
        let said = condition::find(&stands.conditions, DISK_READY).map(|c| c.reason.clone());
        let says = |trouble: Trouble| said.as_deref() == Some(trouble.reason());
        let trouble = match reading.state {
            State::Trouble(trouble) => Some(trouble),
            State::Filled | State::WaitingForFirstBoot | State::Filling => None,
        };
        let can_be_stuck = matches!(reading.state, State::Filling | State::Trouble(_));
        let first = self.first_look.get_or_insert_with(|| FirstLook {
            restarts: reading.restarts,
            stuck_at: says(Trouble::Stuck).then(|| reading.movement.clone()),
        });
        let (first_restarts, was_stuck) = (
            first.restarts,
            first.stuck_at.as_ref() == Some(&reading.movement),
        );
        let mut waits = Waits::at(now);
        let since = self
            .movement
            .note(can_be_stuck.then(|| reading.movement.clone()), now);
        let stuck = waits.over(since, holds.stuck) || was_stuck;
        let since = self.trouble.note(trouble, now);
        let elapsed = Elapsed {
            trouble: waits.over(since, holds.error) || trouble.is_some_and(says),
            stuck,
            restarting: self.restarting(
                reading,
                first_restarts,
                says(Trouble::Retrying),
                holds,
                &mut waits,
                now,
            ),
        };
        (elapsed, waits.next())
    }

    /// A growing restart count is the sign of a worker that fails; one that stops growing is forgiven.
    fn restarting(
        &mut self,
        reading: &Reading,
        first: i64,
        said: bool,
        holds: &Holds,
        waits: &mut Waits,
        now: Instant,
    ) -> bool {
        // Between two restarts the worker's error comes and goes.
        let filling = matches!(
            reading.state,
            State::Filling | State::Trouble(Trouble::Retrying)
        );
        let grown = filling && (reading.restarts > first || (said && reading.restarts > 0));
        let since = self.restarts.note(grown.then_some(reading.restarts), now);
        grown && !waits.over(since, holds.stuck)
    }

    /// Whether to write now.
    pub fn decide(
        &mut self,
        told: KiteVirtualMachineStatus,
        stands: &KiteVirtualMachineStatus,
        next: Option<Duration>,
        holds: &Holds,
        now: Instant,
    ) -> Decision<KiteVirtualMachineStatus> {
        let urgency = urgency(&told, stands);
        if condition::is_true(&stands.conditions, DISK_READY) && says_the_same(&told, stands) {
            // No more ticks will come.
            self.written = None;
        }
        let written = self.written;
        let news = (!says_the_same(&told, stands)).then_some(((), told));
        let decision = self
            .unsaid
            .decide(news, next, now, |waits, unsaid| match urgency {
                Urgency::Now => true,
                Urgency::Soon => waits.over(unsaid, SETTLE),
                Urgency::Tick if holds.tick.is_zero() => true,
                // A little later than the interval, so that a last tick and the end that follows it are one write.
                Urgency::Tick => {
                    waits.over(unsaid, SETTLE)
                        & written.is_none_or(|w| waits.over(Some(w), holds.tick * 11 / 10))
                }
            });
        if matches!(decision, Decision::Write(_)) {
            self.written = Some(now);
        }
        decision
    }
}

/// How soon something should be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Urgency {
    /// The first number, the end, a trouble that has stood.
    Now,
    /// Something new that may be over in a moment.
    Soon,
    /// Progress.
    Tick,
}

/// What may be over in a moment: other controllers are at work, or two watches are not in step.
const PASSING: [&str; 6] = [
    "InProgress",
    "WaitingForFirstBoot",
    "Missing",
    "DiskLost",
    condition::NAME_CONFLICT,
    "Expanding",
];

fn urgency(told: &KiteVirtualMachineStatus, stands: &KiteVirtualMachineStatus) -> Urgency {
    let ready = |status: &KiteVirtualMachineStatus| {
        condition::find(&status.conditions, DISK_READY)
            .map(|c| (c.status.clone(), c.reason.clone()))
    };
    let (new, old) = (ready(told), ready(stands));
    let moves = new != old;
    match new {
        Some((_, reason)) if moves && PASSING.contains(&reason.as_str()) => Urgency::Soon,
        _ if moves => Urgency::Now,
        _ if stands.data_volume_progress.is_none() && told.data_volume_progress.is_some() => {
            Urgency::Now
        }
        _ => Urgency::Tick,
    }
}
