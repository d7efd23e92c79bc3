//! `lastStop`: how the machine last stopped, from its next stop back to its last start (rule S-2).
//!
//! It is what tells a guest that is to stay down from one that is to come back,
//! so it stands in the status, where a restart of this process finds it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kite_api::KiteVirtualMachineStatus;
use kite_api::condition::GUEST_SHUT_DOWN;
use kite_api::machine::{LastStop, OnGuestShutdown, PowerState};

use crate::observe::reading::{Reading, State};

/// The word for a machine that was switched off by its specification.
pub const SWITCHED_OFF: &str = "SwitchedOff";
/// The word for a machine that stopped while nobody looked.
pub const NOT_SEEN: &str = "NotSeen";

/// Adds how the machine last stopped, and what follows from that.
///
/// A guest that has shut itself down stays down with `StayOff`, until the machine is off by its
/// specification; from then on it is switched off like any other, and On starts it.
#[must_use]
pub fn judged(mut reading: Reading, before: &KiteVirtualMachineStatus, now: &Time) -> Reading {
    reading.last_stop = last_stop(&reading, before, now);
    let stop = reading.last_stop.as_ref();
    let clean = stop.is_some_and(|s| s.reason == GUEST_SHUT_DOWN);
    if reading.state == State::Off
        && reading.wanted == PowerState::On
        && reading.on_guest_shutdown == OnGuestShutdown::StayOff
        && clean
    {
        reading.state = State::ShutDown;
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
    let last = match &reading.ended {
        Some(ended) if told != Some(&ended.uid) => {
            let reason = if off && ended.end.is_by_wish() {
                SWITCHED_OFF
            } else {
                ended.end.reason()
            };
            Some(stop(Some(&ended.uid), reason))
        }
        None if kept.is_none() && is_off && was_on => {
            Some(stop(None, if off { SWITCHED_OFF } else { NOT_SEEN }))
        }
        Some(_) | None => kept,
    };
    last.map(|last| {
        if off && is_off && last.reason == GUEST_SHUT_DOWN {
            stop(last.instance_uid.as_ref(), SWITCHED_OFF)
        } else {
            last
        }
    })
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
