//! Power with kite-vm as the only controller: guests that shut themselves down,
//! starts that fail, edits that cannot be carried out, and what people are told.
#![allow(clippy::unwrap_used, missing_docs)]

mod bad_edits;
mod chosen;
#[path = "../common/mod.rs"]
mod common;
mod stay_off;
mod told;

use common::{LONG, Place, uid};
use kite_api::KiteVirtualMachine;
use kite_kubevirt::{VirtualMachine, VirtualMachineInstance};
use kite_testkit::followed::Followed;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

impl Place {
    /// The guest that runs now.
    pub(crate) async fn guest(&self, name: &str) -> VirtualMachineInstance {
        let runs = |i: &VirtualMachineInstance| i.phase() == "Running";
        self.until(name, LONG, runs).await
    }

    /// The guest that runs after this one.
    pub(crate) async fn next_guest(
        &self,
        name: &str,
        before: &VirtualMachineInstance,
    ) -> VirtualMachineInstance {
        let next = |i: &VirtualMachineInstance| uid(i) != uid(before) && i.phase() == "Running";
        self.until(name, LONG, next).await
    }

    /// Switches, and does so by itself.
    pub(crate) async fn switch(&self, name: &str, power: &str) {
        let edit = json!({"spec": {"powerState": power}});
        self.edit::<KiteVirtualMachine>(name, edit).await;
    }

    pub(crate) async fn off(&self, name: &str) {
        self.gone::<VirtualMachineInstance>(name, LONG).await;
        let noted = |vm: &VirtualMachine| {
            let status = vm.status.as_ref();
            status.and_then(|s| s.run_strategy.as_deref()) == Some("Halted")
        };
        self.until(name, LONG, noted).await;
    }

    /// Says how the last guest ended, as kite-vm-status would.
    pub(crate) async fn last_stop(&self, name: &str, guest: &VirtualMachineInstance, reason: &str) {
        let object = json!({
            "apiVersion": "kite.dev/v1alpha1", "kind": "KiteVirtualMachine", "metadata": {"name": name},
            "status": {"lastStop": {"instanceUID": uid(guest), "reason": reason, "time": "2026-01-01T00:00:00Z"}},
        });
        let params = PatchParams::apply("kite-vm-status").force();
        self.api::<KiteVirtualMachine>()
            .patch_status(name, &params, &Patch::Apply(&object))
            .await
            .unwrap();
    }

    pub(crate) async fn deleted_guest(&self, name: &str) {
        self.api::<VirtualMachineInstance>()
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
        self.gone::<VirtualMachineInstance>(name, LONG).await;
    }
}

/// The run strategies that were seen, each once as it stood.
pub(crate) async fn strategies(
    seen: Followed<VirtualMachine>,
    last: &VirtualMachine,
) -> Vec<String> {
    let seen = seen.end(last).await;
    let mut words: Vec<_> = seen
        .iter()
        .map(|vm| vm.run_strategy().unwrap_or_default().to_owned())
        .collect();
    words.dedup();
    words
}

/// How many processors the template has.
pub(crate) fn sockets(vm: &VirtualMachine) -> Option<i64> {
    let domain = vm
        .spec
        .as_ref()?
        .template
        .as_ref()?
        .spec
        .as_ref()?
        .domain
        .as_ref()?;
    domain.cpu.as_ref()?.sockets
}
