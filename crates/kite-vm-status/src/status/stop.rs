//! `lastStop`: how the machine last stopped, from its next stop back to its last start (rule S-2).
//!
//! It is what tells a guest that is to stay down from one that is to come back,
//! so it stands in the status, where a restart of this process finds it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kite_api::KiteVirtualMachineStatus;
use kite_api::machine::{LastStop, OnGuestShutdown, PowerState};

use crate::observe::reading::{Reading, State};
use crate::status::vigil::End;

/// The word for a machine that was switched off by its specification.
pub const SWITCHED_OFF: &str = "SwitchedOff";
/// The word for a machine that stopped while nobody looked.
pub const NOT_SEEN: &str = "NotSeen";

/// Adds how the machine last stopped, and what follows from that.
///
/// A guest that has shut itself down, or may have, stays down with `StayOff` until the machine is
/// off by its specification; from then on it is switched off like any other, and On starts it.
#[must_use]
pub fn judged(mut reading: Reading, before: &KiteVirtualMachineStatus, now: &Time) -> Reading {
    reading.last_stop = last_stop(&reading, before, now);
    let is_down = reading.state == State::Off && reading.wanted == PowerState::On;
    if let Some(stop) = &reading.last_stop
        && is_down
        && reading.on_guest_shutdown == OnGuestShutdown::StayOff
    {
        let seen = stop.is_guest_shut_down();
        if seen || stop.reason == NOT_SEEN {
            reading.state = State::ShutDown { seen };
        }
    }
    reading
}

fn last_stop(reading: &Reading, before: &KiteVirtualMachineStatus, now: &Time) -> Option<LastStop> {
    if is_started(reading) {
        return None;
    }
    let stop = |uid: Option<&String>, reason: &str| LastStop {
        instance_uid: uid.cloned(),
        reason: reason.to_owned(),
        time: Some(now.clone()),
    };
    let kept = before.last_stop.clone();
    let told = kept.as_ref().and_then(|k| k.instance_uid.as_ref());
    let off = reading.wanted == PowerState::Off;
    let is_off = matches!(reading.state, State::Off | State::NeverRan);
    let was_on = before.current_power_state == Some(PowerState::On);
    // On its way down, as asked for: the write that says so is soon to come, and tells this too.
    let on_the_way = off && !is_off;
    let last = match &reading.ended {
        Some(ended) if told != Some(&ended.uid) && !on_the_way => {
            Some(stop(Some(&ended.uid), ended.end.reason()))
        }
        None if kept.is_none() && is_off && was_on => Some(stop(None, NOT_SEEN)),
        Some(_) | None => kept,
    };
    last.map(|last| {
        // Whatever stopped it, it is off as asked for, in whichever order the two were seen.
        if off && is_off && is_by_wish(&last.reason) {
            stop(last.instance_uid.as_ref(), SWITCHED_OFF)
        } else {
            last
        }
    })
}

/// Whether a machine that was to be switched off would have come to this.
fn is_by_wish(reason: &str) -> bool {
    let ends = [End::ShutDown, End::Evicted, End::TakenAway].map(End::reason);
    reason == NOT_SEEN || ends.contains(&reason)
}

/// A start ends the stop before it. KubeVirt's machine is still said to run for a moment when
/// its guest has ended.
const fn is_started(reading: &Reading) -> bool {
    match reading.state {
        State::Starting => true,
        State::Running(_) | State::Migrating | State::Paused | State::NodeLost { .. } => {
            reading.ended.is_none()
        }
        _ => false,
    }
}
