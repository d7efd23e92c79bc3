//! The VirtualMachine and its Service.

use kite_api::labels::LOGIN_HASH;
use kite_api::machine::PowerState;
use kite_kubevirt::read;
use kite_kubevirt::write::{RunStrategy, VirtualMachine};
use kite_render::machine::{Hardware, child_name, run_strategy, virtual_machine};
use kite_render::validate::ValidMachine;
use kite_runtime::apply::{Ensured, Place};
use kube::Api;

use super::login::Login;
use super::{Trouble, exactly};
use crate::observe::{Observed, annotation};
use crate::reconcile::VmPass;

/// The word of a machine that must not run.
const HALTED: &str = "Halted";

/// Whether this pass will have KubeVirt start the machine, or make it (rule C-20).
pub fn starts(seen: &Observed, machine: &ValidMachine) -> bool {
    machine.power == PowerState::On
        && seen
            .own_vm()
            .is_some_and(|vm| vm.run_strategy() == Some(HALTED))
}

fn place<'a>(pass: &'a VmPass, seen: &Observed) -> Place<'a, read::VirtualMachine> {
    Place {
        api: Api::namespaced(pass.writer.client().clone(), &seen.key.namespace),
        cache: &pass.world.vms,
        key: seen.key.clone(),
    }
}

/// Makes sure that the VirtualMachine is there and as wanted (rule V-16).
pub async fn vm(
    pass: &VmPass,
    seen: &Observed,
    machine: &ValidMachine,
    login: &Login,
) -> Result<(), Trouble> {
    let hardware = Hardware {
        limits: &seen.platform.limits,
        memory_grows: pass.flags.memory_grows,
        live: seen.own_vm().map(AsRef::as_ref),
        login_hash: &login.hash,
    };
    let wanted = virtual_machine(
        machine,
        run_strategy(machine.power, machine.on_guest_shutdown),
        &hardware,
    );
    let ensured = pass
        .writer
        .ensure(
            &place(pass, seen),
            &wanted,
            |m| seen.owns(m),
            |live| wanted.matches(live),
        )
        .await?;
    if let (Ensured::Updated(_), Some(before)) = (&ensured, seen.own_vm()) {
        tell_of_drift(pass, seen, &wanted, before).await;
    }
    Ok(())
}

/// A run strategy that others changed is set back, and they are told how to really switch (rule V-16).
async fn tell_of_drift(
    pass: &VmPass,
    seen: &Observed,
    wanted: &VirtualMachine,
    before: &read::VirtualMachine,
) {
    let strategy = wanted.spec.run_strategy.as_str();
    let found = before.run_strategy().unwrap_or("nothing");
    if found == strategy || !seen.is_settled() {
        return;
    }
    // Events of one action merge under their first note, so each way has its own.
    let (power, action) = if wanted.spec.run_strategy == RunStrategy::Halted {
        ("On", "SwitchOff")
    } else {
        ("Off", "SwitchOn")
    };
    let note = format!(
        "VirtualMachine {} was set to run strategy {found} by somebody else and is set back to {strategy}; to switch the machine {power}, set spec.powerState: {power} of the KiteVirtualMachine",
        child_name(&seen.owner)
    );
    pass.events
        .warning(seen.machine.as_ref(), "PowerRestored", action, note)
        .await;
}

/// Changes the run strategy and nothing else of a VirtualMachine that is there (rule V-5).
///
/// The rest of our fields are sent as they are, since an apply that left them out would remove them.
pub async fn power(
    pass: &VmPass,
    seen: &Observed,
    vm: &read::VirtualMachine,
    wanted: RunStrategy,
) -> Result<(), Trouble> {
    if vm.run_strategy() == Some(wanted.as_str()) {
        return Ok(());
    }
    let place = place(pass, seen);
    let operations = serde_json::json!([
        {"op": "test", "path": "/metadata/uid", "value": vm.metadata.uid},
        {"op": "replace", "path": "/spec/runStrategy", "value": wanted.as_str()},
    ]);
    pass.writer.patch(&place, "switch", operations).await?;
    Ok(())
}

/// Makes sure that the Service is there and as wanted, and takes away what changes where it leads (rule E-1).
pub async fn service(pass: &VmPass, seen: &Observed) -> Result<(), Trouble> {
    let wanted = kite_render::machine::service(&seen.owner);
    let place = Place {
        api: Api::namespaced(pass.writer.client().clone(), &seen.key.namespace),
        cache: &pass.world.services,
        key: seen.key.clone(),
    };
    exactly(pass, seen, &place, &wanted).await?;
    Ok(())
}

/// The login that a VirtualMachine was last started with.
pub fn login_hash(vm: &read::VirtualMachine) -> Option<&str> {
    annotation(&vm.metadata, LOGIN_HASH)
}
