//! How guests end, as this process sees it in KubeVirt's word for their machine.
//!
//! In memory only, and second to what kite-vm-status records: it is asked when
//! that process is absent. Under other run strategies nobody asks, and nothing
//! is kept.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kite_kubevirt::read::{Condition, VirtualMachine};
use kite_kubevirt::write::RunStrategy;
use kite_runtime::Key;

/// How a guest ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It shut itself down.
    ShutDown,
    /// It was taken away, or it crashed.
    Otherwise,
}

/// The ends that were seen. Locked for one map operation, by the watch and by passes.
#[derive(Debug, Default)]
pub struct Witness(Mutex<HashMap<Key, (Option<String>, End)>>);

impl Witness {
    /// Notes one view of a machine, in the order in which the watch shows them.
    pub fn note(&self, key: &Key, vm: Option<&VirtualMachine>) {
        let mut ends = self.ends();
        let known = ends.remove(key);
        let Some(vm) = vm.filter(|vm| reruns(vm)) else {
            return;
        };
        // A successor of the same name has had no guest yet.
        let before = known.filter(|(uid, _)| *uid == vm.metadata.uid);
        if let Some(end) = end(before.map(|(_, end)| end), vm) {
            ends.insert(key.clone(), (vm.metadata.uid.clone(), end));
        }
    }

    /// How the last guest of a machine ended, if that was seen.
    pub fn end(&self, key: &Key) -> Option<End> {
        self.ends().get(key).map(|(_, end)| *end)
    }

    fn ends(&self) -> MutexGuard<'_, HashMap<Key, (Option<String>, End)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the machine runs under the strategy for which ends matter, as it is or as KubeVirt has noted.
pub fn reruns(vm: &VirtualMachine) -> bool {
    let noted = vm.status.as_ref().and_then(|s| s.run_strategy.as_deref());
    [vm.run_strategy(), noted].contains(&Some(RunStrategy::RerunOnFailure.as_str()))
}

/// How the guest of a machine is ending or has ended, from what was seen before and what is now.
///
/// KubeVirt calls a machine `Stopping` while a guest that was told to go has not ended, and
/// `Stopped` as soon as it has, by itself or not; a guest that crashed is asked to start again.
pub fn end(before: Option<End>, vm: &VirtualMachine) -> Option<End> {
    if !vm.is_created() {
        return before;
    }
    let status = vm.status.as_ref();
    let requested =
        status.is_some_and(|s| s.state_change_requests.iter().flatten().next().is_some());
    let evicted = vm
        .condition("EvictionRequested")
        .is_some_and(Condition::is_true);
    match vm.printable_status() {
        "Stopping" | "Terminating" => Some(End::Otherwise),
        "Stopped" if before.is_none() && !requested && !evicted => Some(End::ShutDown),
        "Stopped" => before.or(Some(End::Otherwise)),
        _ => None,
    }
}
