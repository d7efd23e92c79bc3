//! How a machine's guests have ended, from every look that the watch had at them
//! (rules S-2, V-16, F-24).
//!
//! An end takes several steps within a moment, and the last of them look alike
//! however it came about; so each event is noted as it comes, not only what a
//! pass happens to find. In memory only: what ended while nobody looked is told
//! of as far as what is left of it shows. Nothing is decided here.

use k8s_openapi::jiff::Timestamp;
use kite_api::condition::GUEST_SHUT_DOWN;
use kite_api::machine::{OnGuestShutdown, PowerState};
use kite_kubevirt::VirtualMachineInstance;
use kube::core::ObjectMeta;

/// How a guest ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It shut itself down.
    ShutDown,
    /// It crashed.
    Crashed,
    /// Its node had to be cleared.
    Evicted,
    /// Its node was lost, and KubeVirt has given it up.
    NodeLost,
    /// Somebody took it away.
    TakenAway,
}

impl End {
    /// One CamelCase word for events and for `lastStop`.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::ShutDown => GUEST_SHUT_DOWN,
            Self::Crashed => "GuestCrashed",
            Self::Evicted => "GuestEvicted",
            Self::NodeLost => "NodeUnreachable",
            Self::TakenAway => "GuestStopped",
        }
    }

    /// What happened, what comes of it, and how to really switch the machine off, or on.
    pub const fn note(self, policy: OnGuestShutdown) -> &'static str {
        match (self, policy) {
            (Self::ShutDown, OnGuestShutdown::StayOff) => {
                "the guest has shut itself down and stays down, since spec.onGuestShutdown is StayOff; to start it, set spec.powerState: Off, wait until that is reached, and set it to On"
            }
            (Self::ShutDown, OnGuestShutdown::Restart) => {
                "the guest has shut itself down; spec.powerState is On, so the machine is started again; to switch it off, set spec.powerState: Off"
            }
            (Self::Crashed, _) => {
                "the guest has crashed; spec.powerState is On, so the machine is started again; to switch it off, set spec.powerState: Off"
            }
            (Self::Evicted, _) => {
                "the guest had to leave its node and could not be moved while it ran; spec.powerState is On, so the machine is started again; to switch it off, set spec.powerState: Off"
            }
            (Self::NodeLost, _) => {
                "the guest's node was lost and KubeVirt has given the guest up; spec.powerState is On, so the machine is started again elsewhere; to switch it off, set spec.powerState: Off"
            }
            (Self::TakenAway, _) => {
                "the guest was stopped from outside of Kite, as by virtctl, a drain or the deletion of its VirtualMachineInstance; spec.powerState is On, so the machine is started again; to switch it off, set spec.powerState: Off"
            }
        }
    }
}

/// A guest that ended, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// UID of its instance.
    pub uid: String,
    /// How.
    pub end: End,
}

/// What was seen of one guest.
#[derive(Clone, Debug)]
struct Guest {
    uid: Box<str>,
    /// UID of the VirtualMachine that it is of.
    vm: Option<Box<str>>,
    /// It got as far as to run.
    ran: bool,
    /// It was told to go before it ended.
    going: bool,
    /// It had to leave its node when it was last seen alive.
    evicted: bool,
    end: Option<End>,
}

/// What was seen of a machine's guests. There is one for each machine, so it is kept small.
#[derive(Clone, Debug, Default)]
pub struct Vigil {
    /// The last few, in the order in which they came.
    guests: Vec<Guest>,
    /// UID of a guest that is to go on.
    expected: Option<Box<str>>,
    /// UID of the guest whose end was told last: KubeVirt's machine may still call it ready.
    told: Option<Box<str>>,
}

/// The one that is and the one before it; one more for somebody else's of the same name.
const REMEMBERED: usize = 3;

impl Vigil {
    /// Notes a look at a guest.
    pub fn look(&mut self, guest: &VirtualMachineInstance) {
        let Some(uid) = &guest.metadata.uid else {
            return;
        };
        let at = self.guests.iter().position(|g| *g.uid == **uid);
        let known = at.map(|at| self.guests.remove(at));
        let mut seen = known.unwrap_or_else(|| Guest {
            uid: uid.as_str().into(),
            vm: controller(&guest.metadata),
            ran: false,
            going: was_told_to_go(guest),
            evicted: false,
            end: None,
        });
        seen.ran |= has_run(guest);
        match guest.phase() {
            "Succeeded" | "Failed" => {
                let end = end_of(guest, &seen);
                seen.end.get_or_insert(end);
            }
            _ => {
                seen.going |= guest.metadata.deletion_timestamp.is_some();
                seen.evicted = is_evicted(guest);
            }
        }
        if let Some(at) = at {
            self.guests.insert(at, seen);
        } else {
            self.guests.reserve_exact(1);
            self.guests.push(seen);
        }
        if self.guests.len() > REMEMBERED {
            self.guests.remove(0);
        }
    }

    /// How the last guest of a VirtualMachine has ended; nothing while it goes on, or if it never
    /// got as far as to run. `present` is the UID of the instance that is there now.
    pub fn last_end(&self, vm: Option<&str>, present: Option<&str>) -> Option<Ended> {
        let own = |g: &&Guest| vm.is_some() && g.vm.as_deref() == vm;
        let last = self.guests.iter().rev().find(own)?;
        let vanished = present != Some(&*last.uid);
        if vanished && present.is_some() && !self.knows(present) {
            // A newer one is there already.
            return None;
        }
        let end = last.end.or_else(|| vanished.then(|| last.taken()))?;
        let uid = last.uid.to_string();
        last.ran.then_some(Ended { uid, end })
    }

    /// Tells the end of a guest that was ready and to go on, once.
    ///
    /// `ready` is whether the machine is known to run as asked for, `told` the instance whose
    /// end stands in the status.
    pub fn news(
        &mut self,
        wanted: PowerState,
        ready: bool,
        present: Option<&str>,
        told: Option<&str>,
    ) -> Option<End> {
        if wanted == PowerState::Off {
            self.expected = None;
            return None;
        }
        let is_told = present.is_some() && (present == self.told.as_deref() || present == told);
        if self.expected.is_none() && ready && !is_told {
            // Also after a restart of this process, which may find a guest that has just ended.
            self.expected = present.map(Into::into);
        }
        let expected = self.expected.as_deref()?;
        let guest = self.guests.iter().find(|g| *g.uid == *expected);
        let end = match guest {
            Some(guest) => {
                let over = guest.going || present != Some(expected);
                guest.end.or_else(|| over.then(|| guest.taken()))
            }
            None => (present != Some(expected)).then_some(End::TakenAway),
        };
        if end.is_some() {
            self.told = self.expected.take();
        }
        end
    }

    fn knows(&self, uid: Option<&str>) -> bool {
        self.guests.iter().any(|g| Some(&*g.uid) == uid)
    }
}

impl Guest {
    /// How it ended if it did not end by itself.
    const fn taken(&self) -> End {
        if self.evicted {
            End::Evicted
        } else {
            End::TakenAway
        }
    }
}

/// KubeVirt clears a guest away that has ended by itself, so a deletion that came later is not why.
fn end_of(guest: &VirtualMachineInstance, seen: &Guest) -> End {
    let reason = guest.status.as_ref().and_then(|s| s.reason.as_deref());
    if reason == Some(NODE_UNRESPONSIVE) {
        return End::NodeLost;
    }
    if seen.going || seen.evicted {
        return seen.taken();
    }
    match guest.phase() {
        "Succeeded" => End::ShutDown,
        // Its launcher was taken from under it.
        _ if ready_reason(guest) == POD_TERMINATING => End::TakenAway,
        _ => End::Crashed,
    }
}

/// The reason by which KubeVirt gives up the guests of a node that does not answer.
pub const NODE_UNRESPONSIVE: &str = "NodeUnresponsive";
/// The reason of the instance's `Ready` while its launcher is being deleted.
const POD_TERMINATING: &str = "PodTerminating";

/// A drain deletes the launcher through the eviction API; KubeVirt notes the node that is to be
/// left, or lets the launcher go where the guest's policy says so.
fn is_evicted(guest: &VirtualMachineInstance) -> bool {
    let leaving = guest
        .status
        .as_ref()
        .and_then(|s| s.evacuation_node_name.as_deref());
    let asked = guest.condition("EvictionRequested");
    leaving.is_some_and(|node| !node.is_empty())
        || asked.is_some_and(kite_kubevirt::read::Condition::is_true)
        || (guest.metadata.deletion_timestamp.is_none() && ready_reason(guest) == POD_TERMINATING)
}

fn ready_reason(guest: &VirtualMachineInstance) -> &str {
    guest.condition("Ready").map_or("", |c| c.reason())
}

fn has_run(guest: &VirtualMachineInstance) -> bool {
    matches!(guest.phase(), "Running" | "Succeeded" | "Unknown")
        || guest.reached("Running").is_some()
}

/// Whether a guest that is seen for the first time was told to go before it ended. Of two things
/// within one second the end is taken for the first: clearing away comes at once, an end that was
/// asked for takes a guest a while.
fn was_told_to_go(guest: &VirtualMachineInstance) -> bool {
    let Some(told) = &guest.metadata.deletion_timestamp else {
        return false;
    };
    let ended = guest.reached(guest.phase()).map(str::parse::<Timestamp>);
    match ended {
        Some(Ok(ended)) => told.0 < ended,
        Some(Err(_)) | None => false,
    }
}

fn controller(meta: &ObjectMeta) -> Option<Box<str>> {
    let mut owners = meta.owner_references.iter().flatten();
    let owner = owners.find(|o| o.controller == Some(true))?;
    Some(owner.uid.as_str().into())
}

#[cfg(test)]
mod tests;
