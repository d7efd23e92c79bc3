//! How long something has waited to be told, in memory only.
//!
//! kite-vm repairs drift at once, and a guest answers some time after it was
//! switched on: what is over in a moment is not worth two writes (rule C-5).

use std::time::Duration;

use kite_api::condition::{self, SERVICE_READY};
use kite_api::ownership::says_the_same;
use kite_api::{KiteVirtualMachine, KiteVirtualMachineStatus};
use kite_runtime::mirror::{Awaited, Decision, Pulse, Unsaid};
use kite_runtime::since::Waits;
use tokio::time::Instant;

use crate::status::{DRIFTED, MISSING, NO_ENDPOINTS, NO_ENDPOINTS_STOPPED, standing};

/// How long drift is held back, for kite-vm to repair it first.
const REPAIR: Duration = Duration::from_secs(2);
/// How long the first word on a Service is held back after kite-vm's last word on another, for
/// kite-vm to make it and to note it first: a write before kite-vm's own would have that one
/// refused, since it is bound to what it was decided on.
const MAKE: Duration = Duration::from_secs(10);
/// How long a machine that was switched on may take until it answers.
const BOOT: Duration = Duration::from_secs(30);

/// What is remembered of one machine's Service.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clocks {
    /// Since when what should be told has had this reason and did not stand.
    unsaid: Unsaid<String>,
    /// Since when kite-vm has not noted a Service.
    unrecorded: Awaited<()>,
}

impl Clocks {
    /// Whether to write now.
    pub fn decide(
        &mut self,
        machine: &KiteVirtualMachine,
        told: KiteVirtualMachineStatus,
        kite_vm: &Pulse,
        now: Instant,
    ) -> Decision<KiteVirtualMachineStatus> {
        let stands = standing(machine);
        let (new, old) = (reason(&told), reason(&stands));
        let (recorded, mut waits) = (is_recorded(machine), Waits::at(now));
        let missing = (!recorded).then_some(());
        let missed = self.unrecorded.note(missing, MAKE, kite_vm, &mut waits);
        if old.is_empty() && !recorded && !missed {
            return Decision::Wait(waits.next());
        }
        let hold = hold(&new, &old, recorded);
        let news = (!says_the_same(&told, &stands)).then_some((new, told));
        self.unsaid
            .decide(news, None, now, |waits, since| waits.over(since, hold))
    }
}

/// Whether kite-vm has noted that the machine has a Service.
pub fn is_recorded(machine: &KiteVirtualMachine) -> bool {
    let status = machine.status.as_ref();
    status.is_some_and(|s| s.service_name.is_some())
}

fn reason(status: &KiteVirtualMachineStatus) -> String {
    let ready = condition::find(&status.conditions, SERVICE_READY);
    ready.map(|c| c.reason.clone()).unwrap_or_default()
}

fn hold(new: &str, old: &str, recorded: bool) -> Duration {
    match (new, old) {
        // For kite-vm's word there was time.
        (_, "") if !recorded => Duration::ZERO,
        (MISSING | DRIFTED, _) => REPAIR,
        (NO_ENDPOINTS, NO_ENDPOINTS_STOPPED) => BOOT,
        // A guest that is gone for a moment, as between two instances.
        (NO_ENDPOINTS, old) if !old.is_empty() => REPAIR,
        _ => Duration::ZERO,
    }
}
