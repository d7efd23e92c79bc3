//! How long something has waited to be told, in memory only.
//!
//! kite-vm repairs drift at once, and a guest answers some time after it was
//! switched on: what is over in a moment is not worth two writes (rule C-5).

use std::time::Duration;

use kite_api::condition::{self, SERVICE_READY};
use kite_api::ownership::says_the_same;
use kite_api::{KiteVirtualMachine, KiteVirtualMachineStatus};
use kite_runtime::since::{Since, Waits};
use tokio::time::Instant;

use crate::status::{DRIFTED, MISSING, NO_ENDPOINTS, NO_ENDPOINTS_STOPPED};

/// How long drift is held back, for kite-vm to repair it first.
const REPAIR: Duration = Duration::from_secs(2);
/// How long a Service that never was is held back, for kite-vm to make it first.
const MAKE: Duration = Duration::from_secs(10);
/// How long a machine that was switched on may take until it answers.
const BOOT: Duration = Duration::from_secs(30);

/// What is remembered of one machine's Service.
#[derive(Clone, Debug, Default)]
pub struct Clocks {
    /// The machine's UID: a successor of the same name starts anew.
    uid: Option<String>,
    /// Since when what should be told has had this reason and did not stand.
    unsaid: Since<String>,
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
    /// Whether to write now. `recorded` tells that kite-vm has noted a Service.
    pub fn decide(
        &mut self,
        machine: &KiteVirtualMachine,
        told: KiteVirtualMachineStatus,
        stands: &KiteVirtualMachineStatus,
        now: Instant,
    ) -> Decision {
        if self.uid != machine.metadata.uid {
            *self = Self {
                uid: machine.metadata.uid.clone(),
                ..Self::default()
            };
        }
        if says_the_same(&told, stands) {
            self.unsaid.note(None, now);
            return Decision::Wait(None);
        }
        let recorded = machine
            .status
            .as_ref()
            .is_some_and(|s| s.service_name.is_some());
        let (new, old) = (reason(&told), reason(stands));
        let since = self.unsaid.note(Some(new.clone()), now);
        let mut waits = Waits::at(now);
        if !waits.over(since, hold(&new, &old, recorded)) {
            return Decision::Wait(waits.next());
        }
        self.unsaid.note(None, now);
        Decision::Write(Box::new(told))
    }
}

fn reason(status: &KiteVirtualMachineStatus) -> String {
    let ready = condition::find(&status.conditions, SERVICE_READY);
    ready.map(|c| c.reason.clone()).unwrap_or_default()
}

fn hold(new: &str, old: &str, recorded: bool) -> Duration {
    match (new, old) {
        (MISSING, "") if !recorded => MAKE,
        (MISSING | DRIFTED, _) => REPAIR,
        (NO_ENDPOINTS, NO_ENDPOINTS_STOPPED) => BOOT,
        // A guest that is gone for a moment, as between two instances.
        (NO_ENDPOINTS, old) if !old.is_empty() => REPAIR,
        _ => Duration::ZERO,
    }
}
