//! What each step may cost for each object, as data: the one place where a budget is changed.
//!
//! Everything is `a + b·N` with `a` = 0: no step asks anything that is not about one of its
//! objects. What a step asks and no row names is a failure. Refused requests are not in here; how
//! many there may be is told where they are counted.

mod machines;
mod users;

pub(crate) use machines::{
    CREATE, CREATE_WITH_DOMAIN, DELETE, DELETE_WITH_DOMAIN, DRIFT, POWER_OFF, POWER_ON, REST, SPEC,
};
pub(crate) use users::{USER_CREATE, USER_DELETE};

/// How often a controller asks something for each object of a step.
pub(crate) struct Row {
    pub(crate) controller: &'static str,
    pub(crate) verb: &'static str,
    pub(crate) resource: &'static str,
    /// At least so often; equal to `most` where nothing can merge.
    pub(crate) least: usize,
    pub(crate) most: usize,
    /// What it is for, and where it is a range, why.
    pub(crate) why: &'static str,
}

/// One step.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    /// The least for each object that the same visible result can be had with.
    pub(crate) floor: usize,
    /// The most for each object, with all merging gone wrong.
    pub(crate) limit: usize,
    /// Whose requests floor and limit are about; empty for all.
    pub(crate) of: &'static str,
    pub(crate) rows: &'static [Row],
}

const USER: &str = "kite-user";
const NAMESPACE: &str = "kite-namespace";
const VM: &str = "kite-vm";
const VM_STATUS: &str = "kite-vm-status";
const SERVICE: &str = "kite-service";
const DATA_VOLUME: &str = "kite-datavolume";

const MACHINE: &str = "kite.dev/kitevirtualmachines";
const MACHINE_STATUS: &str = "kite.dev/kitevirtualmachines/status";
const KITE_USER: &str = "kite.dev/kiteusers";
const KITE_USER_STATUS: &str = "kite.dev/kiteusers/status";
const HOST_CLAIM: &str = "kite.dev/kitehostclaims";
const KUBEVIRT_VM: &str = "kubevirt.io/virtualmachines";
const GUEST: &str = "kubevirt.io/virtualmachineinstances";
const DISK: &str = "cdi.kubevirt.io/datavolumes";
const CLAIM: &str = "persistentvolumeclaims";
const POLICY: &str = "networking.k8s.io/networkpolicies";
const INGRESS: &str = "networking.k8s.io/ingresses";
const BINDING: &str = "rbac.authorization.k8s.io/rolebindings";
const CRD: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// Nothing can merge: each object needs exactly so many.
const fn exactly(
    each: usize,
    controller: &'static str,
    verb: &'static str,
    resource: &'static str,
    why: &'static str,
) -> Row {
    between(each, each, controller, verb, resource, why)
}

/// Events may merge, or come one by one.
const fn between(
    least: usize,
    most: usize,
    controller: &'static str,
    verb: &'static str,
    resource: &'static str,
    why: &'static str,
) -> Row {
    Row {
        controller,
        verb,
        resource,
        least,
        most,
        why,
    }
}
