//! The steps of a machine.

use super::{
    CLAIM, DATA_VOLUME, DISK, GUEST, HOST_CLAIM, INGRESS, KUBEVIRT_VM, MACHINE, MACHINE_STATUS,
    POLICY, SERVICE, Step, USER, VM, VM_STATUS, between, exactly,
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
                7,
                VM_STATUS,
                "patch",
                MACHINE_STATUS,
                "UID with generation, Starting, Running; three when no event is late, more when \
                 conditions and the guest's addresses come seconds after their phase",
            ),
            between(1, 3, SERVICE, "patch", MACHINE_STATUS, "in sync, then endpoints; one when they merge"),
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
            2,
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
            4,
            VM_STATUS,
            "patch",
            MACHINE_STATUS,
            "the generation with Stopping, Stopped; each of it alone, and the guest's end, when the guest takes its time",
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
            5,
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
