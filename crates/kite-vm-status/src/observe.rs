//! Step 1: a machine and what KubeVirt has of it, from the watches alone.

pub mod guests;
pub mod mirrored;
pub mod reading;
pub mod refusal;

use std::sync::Arc;

use kite_api::KiteVirtualMachine;
use kite_kubevirt::{VirtualMachine, VirtualMachineInstance};
use kite_runtime::{Cache, Key};
use kube::core::ObjectMeta;

use crate::observe::reading::{Found, Reading, read};

/// Everything that is watched.
#[derive(Clone)]
pub struct World {
    /// The machines.
    pub machines: Cache<KiteVirtualMachine>,
    /// KubeVirt's machines of these.
    pub vms: Cache<VirtualMachine>,
    /// Their guests.
    pub instances: Cache<VirtualMachineInstance>,
}

impl World {
    /// Reads what there is of a machine. Its children have its name.
    pub fn reading(&self, key: &Key, machine: &KiteVirtualMachine) -> Reading {
        let uid = machine.metadata.uid.as_deref().unwrap_or_default();
        let vm = self.vm(key, uid);
        read(machine, &vm, self.instance(key, &vm).as_deref())
    }

    /// UID of the instance that is there now.
    pub fn present(&self, key: &Key, machine: &KiteVirtualMachine) -> Option<String> {
        let uid = machine.metadata.uid.as_deref().unwrap_or_default();
        let instance = self.instance(key, &self.vm(key, uid))?;
        instance.metadata.uid.clone()
    }

    /// Whether it can be told if there is an instance: the kinds are served, and the machine can be read.
    pub fn is_seen(&self, key: &Key, machine: &KiteVirtualMachine) -> bool {
        let uid = machine.metadata.uid.as_deref().unwrap_or_default();
        let vm = self.vm(key, uid);
        self.instances.is_served() && matches!(vm, Found::Absent | Found::Ours(_))
    }

    fn instance(
        &self,
        key: &Key,
        vm: &Found<Arc<VirtualMachine>>,
    ) -> Option<Arc<VirtualMachineInstance>> {
        let Found::Ours(vm) = vm else { return None };
        let uid = vm.metadata.uid.as_deref().unwrap_or_default();
        let instance = self.instances.get(key);
        instance.filter(|i| is_owned_by(&i.metadata, uid))
    }

    fn vm(&self, key: &Key, uid: &str) -> Found<Arc<VirtualMachine>> {
        if !self.vms.is_served() {
            return Found::KindMissing;
        }
        if let Some(vm) = self.vms.get(key) {
            // Somebody else's of the same name is as good as none.
            let ours = is_owned_by(&vm.metadata, uid);
            return if ours { Found::Ours(vm) } else { Found::Absent };
        }
        match self.vms.malformed(key) {
            Some(object) if is_owned_by(&object.metadata, uid) => Found::Unreadable(
                "the VirtualMachine has a shape that this version does not know".to_owned(),
            ),
            Some(_) | None => Found::Absent,
        }
    }
}

/// Whether an object's controller is the one with this UID (rule C-7).
fn is_owned_by(meta: &ObjectMeta, uid: &str) -> bool {
    let mut owners = meta.owner_references.iter().flatten();
    owners.any(|o| o.controller == Some(true) && o.uid == uid)
}
