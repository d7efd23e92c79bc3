//! What the three controllers that tell say of machines.

use super::{DISK, EVENT, INSTALL, LAST_STOP, NOTHING, POWER, READY, Reason, SERVICE, WAIT, r};

/// Of `kite-vm-status`.
pub(in super::super) const VM_STATUS: &[Reason] = &[
    r(
        "AgentAnswers",
        "`AgentConnected`",
        "the guest agent answers",
        NOTHING,
    ),
    r(
        "ChangesWaitForRestart",
        "`RestartRequired`",
        "KubeVirt holds changes back until the machine starts again",
        "Switch the machine off and on when it suits.",
    ),
    r("DependencyMissing", READY, "", INSTALL),
    r(
        "GuestCrashed",
        LAST_STOP,
        "the guest's process ended with an error",
        "Look at the guest's console and logs.",
    ),
    r(
        "GuestEvicted",
        LAST_STOP,
        "the guest left its node, for a drain for instance",
        WAIT,
    ),
    r(
        "GuestNotReady",
        READY,
        "the machine runs and is not ready yet",
        WAIT,
    ),
    r(
        "GuestShutDown",
        "`Ready`, `status.lastStop`",
        "",
        "Set `powerState` to Off, and to On when that is reached.",
    ),
    r(
        "GuestStopped",
        LAST_STOP,
        "the guest ended, and nothing more is known",
        WAIT,
    ),
    r("InSync", POWER, "", NOTHING),
    r("InTransition", POWER, "", WAIT),
    r("Migrating", READY, "", NOTHING),
    r(
        "NodeUnreachable",
        "`Ready`, `status.lastStop`",
        "",
        "Look at the node, and fence it before the machine is started elsewhere.",
    ),
    r(
        "NotSeen",
        "`status.lastStop`",
        "the guest is gone and nobody saw how it ended",
        NOTHING,
    ),
    r(
        "NotStarted",
        POWER,
        "the machine should run and does not",
        "Look at `Ready` and at KubeVirt's VirtualMachine.",
    ),
    r(
        "NotStopped",
        POWER,
        "the machine should be off and still runs",
        "Look at KubeVirt's VirtualMachine; a guest may refuse to shut down.",
    ),
    r("Paused", READY, "", "`virtctl unpause vm <name>`"),
    r(
        "PausedByUser",
        "`Paused`",
        "KubeVirt has paused the machine",
        "`virtctl unpause vm <name>`",
    ),
    r("Provisioning", READY, "", WAIT),
    r(
        "Recovered",
        EVENT,
        "the machine was in trouble and no longer is",
        NOTHING,
    ),
    r("Running", READY, "", NOTHING),
    r("StartNeeded", POWER, "", WAIT),
    r("StartPending", READY, "", WAIT),
    r("Starting", READY, "", WAIT),
    r("StopPending", READY, "", WAIT),
    r("Stopped", READY, "", NOTHING),
    r("Stopping", READY, "", WAIT),
    r(
        "SwitchedOff",
        "`status.lastStop`",
        "the machine was switched off, as asked for",
        NOTHING,
    ),
    r(
        "ToldByKubeVirt",
        "`LiveMigratable`",
        "KubeVirt says whether the machine can move to another node",
        NOTHING,
    ),
    r(
        "Unknown",
        READY,
        "KubeVirt says something that this version does not know, or nothing",
        "Look at the VirtualMachine; a newer Kite may know the word.",
    ),
    r("VirtualMachineMissing", READY, "", WAIT),
    r(
        "Waiting",
        POWER,
        "",
        "Look at `Ready`: something else has to come first.",
    ),
    r(
        "WaitingForKubeVirt",
        READY,
        "",
        "Wait; if it lasts, KubeVirt's controller does not run.",
    ),
];

/// Of `kite-service`.
pub(in super::super) const SERVICES: &[Reason] = &[
    r(
        "Drifted",
        SERVICE,
        "the Service is not as Kite renders it; the message lists the fields",
        "Undo the edit; `kite-vm` does so within seconds where it runs.",
    ),
    r(
        "Missing",
        SERVICE,
        "",
        "Wait; `kite-vm` makes it where it runs.",
    ),
    r(
        "NoEndpoints",
        SERVICE,
        "",
        "Wait for the guest; look at `Ready`.",
    ),
    r("NoEndpointsStopped", SERVICE, "", NOTHING),
    r("Reachable", SERVICE, "", NOTHING),
    r(
        "ServiceRepaired",
        EVENT,
        "the Service is as declared again",
        NOTHING,
    ),
];

/// Of `kite-datavolume`.
pub(in super::super) const DATAVOLUME: &[Reason] = &[
    r("ClaimOnly", DISK, "", NOTHING),
    r(
        "CloneFailed",
        DISK,
        "the disk cannot be filled; CDI's words say why",
        "Look at the DataVolume; often the image is gone. Delete the machine and make it again when it is there.",
    ),
    r("DependencyMissing", DISK, "", INSTALL),
    r("DiskLost", DISK, "", "See the same reason of `kite-vm`."),
    r(
        "DiskRecovered",
        EVENT,
        "the disk was in trouble and no longer is",
        NOTHING,
    ),
    r("Expanded", EVENT, "the disk has its new size", NOTHING),
    r(
        "Expanding",
        DISK,
        "the claim grows, or waits for its file system to",
        WAIT,
    ),
    r("InProgress", DISK, "", WAIT),
    r(
        "Missing",
        DISK,
        "",
        "Wait; `kite-vm` makes it where it runs.",
    ),
    r(
        "QuotaExceeded",
        DISK,
        "a quota leaves no room for the disk",
        "Remove or shrink a machine, or ask for a larger quota.",
    ),
    r(
        "Retrying",
        DISK,
        "CDI's worker fails and is started again and again",
        "Look at the DataVolume and at CDI's pods.",
    ),
    r(
        "Stuck",
        DISK,
        "nothing has moved for a long time",
        "Look at the DataVolume and at CDI's pods.",
    ),
    r("Succeeded", DISK, "", NOTHING),
    r(
        "Unknown",
        DISK,
        "",
        "Look at the DataVolume; a newer Kite may know its shape.",
    ),
    r("WaitingForFirstBoot", DISK, "", NOTHING),
];
