//! What each step may cost for each object, as data: the one place where a budget is changed.
//!
//! Everything is `a + b·N` with `a` = 0: no step asks anything that is not about one of its
//! objects. What a step asks and no row names is a failure. Refused requests are not in here; how
//! many there may be is told where they are counted.

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

pub(crate) const USER_CREATE: Step = Step {
    name: "user: create",
    floor: 7,
    limit: 9,
    of: "",
    rows: &[
        exactly(1, USER, "patch", KITE_USER, "the finalizer"),
        exactly(1, USER, "create", "namespaces", "the namespace"),
        exactly(2, USER, "create", POLICY, "isolation, and what it allows"),
        exactly(1, USER, "create", "resourcequotas", "the quota"),
        exactly(
            2,
            USER,
            "create",
            BINDING,
            "the tenant's rights, and kite-vm's on Secrets",
        ),
        exactly(
            1,
            USER,
            "patch",
            KITE_USER_STATUS,
            "one for all: it waits two seconds for the server to fill the quota in; a second one \
             when that takes longer is taken off before this is judged",
        ),
    ],
};

/// kite-vm's part of a creation, with and without a host name.
macro_rules! creation {
    ($($more:expr),*) => {
        &[
            exactly(1, VM, "patch", MACHINE, "the finalizer"),
            exactly(2, VM, "create", "secrets", "the SSH key and the cloud-init data"),
            exactly(1, VM, "create", DISK, "the disk"),
            exactly(1, VM, "create", KUBEVIRT_VM, "the machine, once its claim is there"),
            exactly(1, VM, "create", "services", "the Service"),
            exactly(
                1,
                VM,
                "patch",
                MACHINE_STATUS,
                "one for all children, as long as the machine need not wait for others' clones \
                 (V-14), which costs one more; so does a claim that has not come after two seconds, \
                 which is taken off before this is judged",
            ),
            between(
                2,
                5,
                VM_STATUS,
                "patch",
                MACHINE_STATUS,
                "UID with generation, Starting, Running; three when no event is late, more when the \
                 agent or a condition comes after its phase",
            ),
            between(1, 2, SERVICE, "patch", MACHINE_STATUS, "in sync, then endpoints; one when they merge"),
            between(
                3,
                23,
                DATA_VOLUME,
                "patch",
                MACHINE_STATUS,
                "CloneScheduled, the first tick, one each ten seconds, Succeeded: eight in the sixty \
                 seconds that a clone takes here, more when it takes longer (D-2, judged by time)",
            ),
            between(
                0,
                2,
                DATA_VOLUME,
                "get",
                CLAIM,
                "a claim that its watch does not show is looked for before it is called lost (D-5)",
            ),
            $($more),*
        ]
    };
}

pub(crate) const CREATE: Step = Step {
    name: "create to Running, 20 ticks",
    floor: 19,
    limit: 23,
    of: "",
    rows: creation!(),
};

pub(crate) const CREATE_WITH_DOMAIN: Step = Step {
    name: "the same with a domain",
    floor: 21,
    limit: 25,
    of: "",
    rows: creation!(
        exactly(
            1,
            VM,
            "create",
            HOST_CLAIM,
            "the host name is this machine's"
        ),
        exactly(1, VM, "create", INGRESS, "the Ingress")
    ),
};

pub(crate) const REST: Step = Step {
    name: "at rest",
    floor: 0,
    limit: 0,
    of: "",
    rows: &[],
};

pub(crate) const DRIFT: Step = Step {
    name: "drift of three children",
    floor: 3,
    limit: 6,
    of: "",
    rows: &[
        exactly(
            1,
            USER,
            "create",
            POLICY,
            "the NetworkPolicy that was deleted",
        ),
        exactly(1, VM, "create", "services", "the Service that was deleted"),
        exactly(
            1,
            VM,
            "patch",
            KUBEVIRT_VM,
            "the run strategy that was edited",
        ),
        between(
            0,
            2,
            SERVICE,
            "patch",
            MACHINE_STATUS,
            "gone and back, where it was gone for longer than is held back",
        ),
        between(
            0,
            1,
            VM_STATUS,
            "patch",
            MACHINE_STATUS,
            "the other strategy, if it is seen in between",
        ),
    ],
};

pub(crate) const POWER_OFF: Step = Step {
    name: "power off",
    floor: 5,
    limit: 6,
    of: "",
    rows: &[
        exactly(1, VM, "patch", KUBEVIRT_VM, "the run strategy"),
        exactly(1, VM, "patch", MACHINE_STATUS, "the generation"),
        between(
            1,
            3,
            VM_STATUS,
            "patch",
            MACHINE_STATUS,
            "Stopping, Stopped, and the guest's end beside them",
        ),
        between(
            1,
            2,
            SERVICE,
            "patch",
            MACHINE_STATUS,
            "no endpoints any more",
        ),
    ],
};

pub(crate) const SPEC: Step = Step {
    name: "a change that no child shows",
    floor: 2,
    limit: 2,
    of: "",
    rows: &[
        exactly(
            1,
            VM,
            "patch",
            MACHINE_STATUS,
            "the generation of its conditions",
        ),
        exactly(
            1,
            VM_STATUS,
            "patch",
            MACHINE_STATUS,
            "the generation, once kite-vm has said it",
        ),
    ],
};

pub(crate) const POWER_ON: Step = Step {
    name: "power on",
    floor: 7,
    limit: 9,
    of: "",
    rows: &[
        exactly(
            2,
            VM,
            "get",
            "secrets",
            "no watch shows Secrets, and a start needs both (C-20)",
        ),
        exactly(1, VM, "patch", KUBEVIRT_VM, "the run strategy"),
        exactly(1, VM, "patch", MACHINE_STATUS, "the generation"),
        between(
            2,
            4,
            VM_STATUS,
            "patch",
            MACHINE_STATUS,
            "Starting, Running, and the agent when it is late",
        ),
        between(1, 2, SERVICE, "patch", MACHINE_STATUS, "endpoints"),
    ],
};

/// The deletion of a machine, with more for one with a host name.
macro_rules! deletion {
    ($($more:expr),*) => {
        &[
            exactly(1, VM, "patch", MACHINE_STATUS, "Deleting"),
            exactly(1, VM, "delete", "services", "the Service"),
            exactly(1, VM, "delete", KUBEVIRT_VM, "the machine"),
            exactly(1, VM, "get", KUBEVIRT_VM, "the disk never goes under a machine (C-6)"),
            exactly(1, VM, "get", GUEST, "nor under a guest (C-6)"),
            exactly(1, VM, "delete", DISK, "the disk, and with it the claim"),
            exactly(2, VM, "delete", "secrets", "both Secrets"),
            exactly(1, VM, "delete", MACHINE, "the KiteVirtualMachine"),
            exactly(1, VM, "patch", MACHINE, "the finalizer"),
            between(1, 2, VM_STATUS, "patch", MACHINE_STATUS, "its part is cleared"),
            between(0, 1, SERVICE, "patch", MACHINE_STATUS, "nothing, unless it hears late of the deletion"),
            between(0, 1, DATA_VOLUME, "patch", MACHINE_STATUS, "nothing, unless it hears late of the deletion"),
            $($more),*
        ]
    };
}

pub(crate) const DELETE: Step = Step {
    name: "delete",
    floor: 11,
    limit: 12,
    of: "",
    rows: deletion!(),
};

pub(crate) const DELETE_WITH_DOMAIN: Step = Step {
    name: "the same with a domain, after a restart",
    floor: 13,
    limit: 16,
    of: "",
    rows: deletion!(
        exactly(1, VM, "delete", HOST_CLAIM, "the host name is free again"),
        exactly(1, VM, "delete", INGRESS, "the Ingress"),
        exactly(
            2,
            VM,
            "get",
            "secrets",
            "a process that has not looked at them since it began knows no version to delete by \
             (C-6, C-20)",
        )
    ),
};

pub(crate) const USER_DELETE: Step = Step {
    name: "user: delete, nothing left",
    floor: 8,
    limit: 10,
    of: USER,
    rows: &[
        exactly(
            1,
            USER,
            "patch",
            "resourcequotas",
            "no machine can come any more",
        ),
        exactly(
            1,
            USER,
            "list",
            KITE_USER,
            "whether somebody shares the namespace",
        ),
        exactly(1, USER, "list", MACHINE, "whether a machine is left"),
        exactly(1, USER, "list", "pods", "whether something runs"),
        exactly(2, USER, "delete", POLICY, "isolation"),
        exactly(
            2,
            USER,
            "delete",
            BINDING,
            "the tenant's rights, and kite-vm's",
        ),
        exactly(1, USER, "delete", "resourcequotas", "the quota"),
        exactly(1, USER, "patch", KITE_USER, "the finalizer"),
        exactly(
            2,
            NAMESPACE,
            "patch",
            "namespaces",
            "since when nobody needs it, and the brake's record",
        ),
        exactly(
            4,
            NAMESPACE,
            "get",
            CRD,
            "whether Kite's kinds are there and stay (N-2, N-6)",
        ),
        exactly(
            1,
            NAMESPACE,
            "list",
            KITE_USER,
            "whether somebody needs it (N-2)",
        ),
        exactly(
            1,
            NAMESPACE,
            "list",
            CLAIM,
            "whether a retained disk is in it (N-5)",
        ),
        exactly(
            1,
            NAMESPACE,
            "get",
            "namespaces",
            "the brake's record (N-6)",
        ),
        exactly(1, NAMESPACE, "delete", "namespaces", "the namespace"),
    ],
};
