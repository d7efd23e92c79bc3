//! Whether a guest that was to run has ended, and how (rule V-16, fault 24).
//!
//! Pure, and in memory only: a guest that ended while nobody looked is not told
//! of. Nothing is decided here; that it runs again is KubeVirt's doing, or
//! kite-vm's.

use kite_api::machine::PowerState;
use kite_kubevirt::VirtualMachineInstance;

/// How a guest ended that was to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It shut itself down.
    ShutDown,
    /// It crashed.
    Crashed,
    /// Somebody took it away.
    TakenAway,
}

impl End {
    /// One CamelCase word for the event.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::ShutDown => "GuestShutDown",
            Self::Crashed => "GuestCrashed",
            Self::TakenAway => "GuestStopped",
        }
    }

    /// What happened, why the machine comes back, and how to really switch it off.
    pub const fn note(self) -> &'static str {
        match self {
            Self::ShutDown => {
                "the guest has shut itself down; spec.powerState is On, so the machine is started again; to switch it off, set spec.powerState: Off"
            }
            Self::Crashed => {
                "the guest has crashed; spec.powerState is On, so the machine is started again; to switch it off, set spec.powerState: Off"
            }
            Self::TakenAway => {
                "the guest was stopped from outside of Kite, as by virtctl, a drain or the deletion of its VirtualMachineInstance; spec.powerState is On, so the machine is started again; to switch it off, set spec.powerState: Off"
            }
        }
    }
}

/// The guest that is being watched.
#[derive(Clone, Debug, Default)]
pub struct Vigil {
    /// UID of a guest that is to go on.
    uid: Option<String>,
    /// UID of the guest whose end was told last: KubeVirt's machine may still call it ready.
    told: Option<String>,
}

impl Vigil {
    /// Notes how a guest is. Tells the end of one that was ready, once.
    ///
    /// `ready` is whether the machine is known to run as asked for.
    pub fn note(
        &mut self,
        wanted: PowerState,
        ready: bool,
        guest: Option<&VirtualMachineInstance>,
    ) -> Option<End> {
        if wanted == PowerState::Off {
            self.uid = None;
            return None;
        }
        let uid = guest.and_then(|g| g.metadata.uid.clone());
        if self.uid.is_none() && ready && uid != self.told {
            // Also after a restart of this process, which may find a guest that has just ended.
            self.uid.clone_from(&uid);
        }
        let watched = self.uid.as_ref()?;
        let end = if uid.as_ref() == Some(watched) {
            guest.and_then(end_of)
        } else {
            Some(End::TakenAway)
        };
        if end.is_some() {
            self.told = self.uid.take();
        }
        end
    }
}

/// A guest that is told to go is seen going for a while before it has ended; one that has ended
/// by itself is cleared away at once, so that both may be seen together.
fn end_of(guest: &VirtualMachineInstance) -> Option<End> {
    match guest.phase() {
        "Succeeded" => Some(End::ShutDown),
        "Failed" => Some(End::Crashed),
        _ if guest.metadata.deletion_timestamp.is_some() => Some(End::TakenAway),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use kite_api::machine::PowerState::{Off, On};
    use serde_json::json;

    use super::*;

    fn guest(uid: &str, phase: &str, going: bool) -> VirtualMachineInstance {
        let deletion = going.then_some("2026-01-01T00:00:00Z");
        serde_json::from_value(json!({
            "metadata": {"name": "web", "uid": uid, "deletionTimestamp": deletion},
            "status": {"phase": phase},
        }))
        .unwrap()
    }

    // V-16, F-24
    #[test]
    fn the_end_of_a_guest_that_was_to_run_is_told_once_and_by_its_kind() {
        for (ended, end) in [
            (guest("a", "Succeeded", false), End::ShutDown),
            (guest("a", "Succeeded", true), End::ShutDown),
            (guest("a", "Failed", false), End::Crashed),
            (guest("a", "Running", true), End::TakenAway),
        ] {
            let mut vigil = Vigil::default();
            let running = guest("a", "Running", false);
            assert_eq!(vigil.note(On, true, Some(&running)), None);
            assert_eq!(vigil.note(On, true, Some(&ended)), Some(end));
            // KubeVirt's word for the machine comes a moment later than the guest's.
            let gone = guest("a", "Succeeded", true);
            assert_eq!(vigil.note(On, true, Some(&gone)), None);
            assert_eq!(vigil.note(On, false, None), None);
            let next = guest("b", "Running", false);
            assert_eq!(vigil.note(On, false, Some(&next)), None);
        }
    }

    // V-16
    #[test]
    fn a_guest_that_vanished_between_two_looks_was_taken_away() {
        let mut vigil = Vigil::default();
        assert_eq!(
            vigil.note(On, true, Some(&guest("a", "Running", false))),
            None
        );
        let next = guest("b", "Scheduling", false);
        assert_eq!(vigil.note(On, true, Some(&next)), Some(End::TakenAway));
        assert_eq!(vigil.note(On, false, Some(&next)), None);
    }

    // V-16
    #[test]
    fn a_guest_that_was_to_end_or_was_never_ready_is_not_news() {
        let mut vigil = Vigil::default();
        assert_eq!(
            vigil.note(On, true, Some(&guest("a", "Running", false))),
            None
        );
        assert_eq!(
            vigil.note(Off, true, Some(&guest("a", "Running", false))),
            None
        );
        assert_eq!(
            vigil.note(Off, false, Some(&guest("a", "Succeeded", true))),
            None
        );
        assert_eq!(vigil.note(On, false, None), None);
        assert_eq!(
            vigil.note(On, false, Some(&guest("b", "Failed", false))),
            None
        );
    }
}
