//! What kite-vm says of the current generation, as far as `Ready` depends on it (rule C-9).
//!
//! Pure. Nothing is added to kite-vm's words.

use kite_api::condition::{self, ACCEPTED, RESOURCES_APPLIED, STALLED};
use kite_api::{Condition, KiteVirtualMachine, KiteVirtualMachineStatus};

/// What kite-vm says of the specification.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Nothing about this generation yet.
    Behind,
    /// All of it is applied.
    Applied(i64),
    /// Not all of it is, with the reason and the words; whether a person must change something.
    Refused(i64, String, String, bool),
}

impl Verdict {
    /// The verdict on a machine's current generation.
    pub fn of(machine: &KiteVirtualMachine) -> Self {
        let conditions = machine
            .status
            .as_ref()
            .map(|s| s.conditions.as_slice())
            .unwrap_or_default();
        let generation = machine.metadata.generation;
        let applied = condition::find(conditions, RESOURCES_APPLIED);
        let (Some(applied), Some(generation)) = (
            applied.filter(|a| a.observed_generation == generation),
            generation,
        ) else {
            return Self::Behind;
        };
        // Both are written in one write; what is wrong with the specification explains more.
        let accepted = condition::find(conditions, ACCEPTED).filter(|a| a.status == "False");
        match accepted.or(Some(applied).filter(|a| a.status != "True")) {
            None => Self::Applied(generation),
            Some(Condition {
                reason, message, ..
            }) => Self::Refused(
                generation,
                reason.clone(),
                message.clone(),
                condition::is_true(conditions, STALLED),
            ),
        }
    }

    /// The generation that `Ready` speaks of (rule C-9).
    pub fn observed(&self, before: &KiteVirtualMachineStatus) -> Option<i64> {
        match self {
            Self::Behind => before.observed_generation,
            Self::Applied(generation) | Self::Refused(generation, ..) => Some(*generation),
        }
    }
}
