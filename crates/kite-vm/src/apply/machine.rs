//! The VirtualMachine and its Service.

use kite_api::labels::LOGIN_HASH;
use kite_kubevirt::read;
use kite_render::machine::{Hardware, virtual_machine};
use kite_render::validate::ValidMachine;
use kite_runtime::apply::Place;
use kube::Api;

use super::login::Login;
use super::power::Switch;
use super::{Trouble, exactly};
use crate::observe::{Observed, annotation};
use crate::reconcile::VmPass;

/// Where the VirtualMachine is.
pub(super) fn place<'a>(pass: &'a VmPass, seen: &Observed) -> Place<'a, read::VirtualMachine> {
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
    switch: &Switch,
) -> Result<(), Trouble> {
    let hardware = Hardware {
        limits: &seen.platform.limits,
        memory_grows: pass.flags.memory_grows,
        live: seen.own_vm().map(AsRef::as_ref),
        login_hash: &login.hash,
    };
    let mut wanted = virtual_machine(machine, switch.strategy(), &hardware);
    switch.annotate(&mut wanted);
    pass.writer
        .ensure(
            &place(pass, seen),
            &wanted,
            |m| seen.owns(m),
            |live| wanted.matches(live),
        )
        .await?;
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
