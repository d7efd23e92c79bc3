//! The alerts of one controller each, about users, namespaces, machines and disks.

use kite_api::labels::Controller;

use super::Alert;
use super::Severity::{Critical, Warning};

/// They stand in the chart of the controller that sees it.
pub(super) const ALERTS: &[Alert] = &[
    Alert {
        name: "KiteUsersNotReady",
        severity: Warning,
        of: &[Controller::User],
        // One user alone is told by its conditions; several at once have a common cause.
        expr: "\
sum by (cluster, namespace) (controller:kite_object_conditions:max{controller=\"$controller\", kind=\"KiteUser\", condition=\"Ready\", status!=\"True\"}) >= 2
and
sum by (cluster, namespace) (controller:kite_object_conditions:max{controller=\"$controller\", kind=\"KiteUser\", condition=\"Ready\", status!=\"True\"})
  > 0.2 * sum by (cluster, namespace) (controller:kite_objects:max{controller=\"$controller\", kind=\"KiteUser\"})",
        hold: "30m",
        summary: "{{ $value }} KiteUsers have not been ready for half an hour",
        description: "More than a fifth of all KiteUsers are not ready, so no machine starts in their namespaces. Their conditions name the cause.",
    },
    Alert {
        name: "KiteIsolationMissing",
        severity: Critical,
        of: &[Controller::User],
        expr: "sum by (cluster, namespace, reason) (controller:kite_object_conditions:max{controller=\"$controller\", kind=\"KiteUser\", condition=\"IsolationReady\", status=\"False\", reason=~\"NotInForce|Rejected|Forbidden\"}) > 0",
        hold: "10m",
        summary: "The isolation of {{ $value }} namespaces is not in force: {{ $labels.reason }}",
        description: "The network policies of a user's namespace are not as declared and Kite cannot make them so. No new machine starts there; those that run may reach, or be reached by, what they should not.",
    },
    Alert {
        name: "KiteBrakeEngaged",
        severity: Critical,
        of: &[Controller::Namespace],
        expr: "max by (cluster, namespace) (kite_brake_engaged{controller=\"$controller\"}) == 1",
        hold: "1m",
        summary: "So many namespaces are due for deletion at once that none is deleted",
        description: "Many KiteUsers went within a short time, which looks like a mistake. Their namespaces and machines are still there and stay until an administrator decides.",
    },
    Alert {
        name: "KiteNamespaceDeletionBlocked",
        severity: Warning,
        of: &[Controller::Namespace],
        expr: "sum by (cluster, namespace) (kite_namespaces_deletion_blocked{controller=\"$controller\"}) > 0",
        hold: "5m",
        summary: "Namespaces of former users do not go",
        description: "Namespaces are being deleted and something in them does not go; events on each name the kinds and finalizers.",
    },
    Alert {
        name: "KiteNamespaceDeletionsSuppressed",
        severity: Warning,
        of: &[Controller::Namespace],
        // The brake has an alert of its own.
        expr: "sum by (cluster, namespace, reason) (increase(kite_namespace_deletions_suppressed_total{controller=\"$controller\", reason!=\"brake\"}[15m])) > 0",
        hold: "30m",
        summary: "Deletions of namespaces are held back: {{ $labels.reason }}",
        description: "Namespaces are due for deletion and are kept, because it cannot be told for certain that nobody needs them: the kind KiteUser is missing, is going or has only just come.",
    },
    Alert {
        name: "KiteDeletionBlocked",
        severity: Warning,
        of: &[Controller::Vm],
        expr: "max by (cluster, namespace, kind) (kite_deletions_blocked{controller=\"$controller\"}) > 0",
        hold: "10m",
        summary: "{{ $value }} machines cannot be deleted, since a {{ $labels.kind }} does not go",
        description: "Deletions of machines stand still; the condition Deleting of each names the object and its finalizers. Kite never removes a finalizer that is not its own.",
    },
    Alert {
        name: "KiteKindBeingRemoved",
        severity: Critical,
        of: &[Controller::Vm],
        expr: "sum by (cluster, namespace) (controller:kite_object_conditions:max{controller=\"$controller\", condition=\"Deleting\", reason=\"RemovalHeld\"}) > 0",
        hold: "0m",
        summary: "Somebody is removing the kind KiteVirtualMachine; {{ $value }} machines are held",
        description: "The CustomResourceDefinition of machines is being deleted, which would take every machine and disk. Kite holds all of them until an administrator says that it is meant.",
    },
    Alert {
        name: "KiteClonesQueued",
        severity: Warning,
        of: &[Controller::Vm],
        expr: "sum by (cluster, namespace) (controller:kite_object_conditions:max{controller=\"$controller\", condition=\"ResourcesApplied\", reason=\"WaitingForClones\"}) > 0",
        hold: "1h",
        summary: "{{ $value }} machines have been waiting for their turn to be cloned",
        description: "For an hour there have always been machines that wait because as many disks as allowed are being cloned: clones are slow or stand still, or the limit is low for what is asked.",
    },
    Alert {
        name: "KiteAdministratorNeeded",
        severity: Warning,
        of: &[Controller::Vm],
        expr: "sum by (cluster, namespace, reason) (controller:kite_object_conditions:max{controller=\"$controller\", condition=~\"Accepted|ResourcesApplied\", status=\"False\", reason=~\"CloneForbidden|Forbidden|NamespaceNotPrepared\"}) > 0",
        hold: "30m",
        summary: "{{ $value }} machines wait for an administrator: {{ $labels.reason }}",
        description: "Machines cannot be made because Kite lacks a right that only an administrator can give; the message of each holds the command.",
    },
    Alert {
        name: "KiteDiskLost",
        severity: Critical,
        of: &[Controller::Vm, Controller::DataVolume],
        expr: "sum by (cluster, namespace) (controller:kite_object_conditions:max{controller=\"$controller\", condition=~\"ResourcesApplied|DiskReady\", reason=\"DiskLost\"}) > 0",
        hold: "1m",
        summary: "The disks of {{ $value }} machines are gone",
        description: "The claim of a machine's disk, or the volume behind it, is gone, and its data with it. Kite makes no empty disk in its place by itself.",
    },
    Alert {
        name: "KiteMachinesNotReady",
        severity: Warning,
        of: &[Controller::VmStatus],
        // What a tenant did on purpose, or has to see to alone, does not count.
        expr: "\
sum by (cluster, namespace) (controller:kite_object_conditions:max{controller=\"$controller\", condition=\"Ready\", status!=\"True\", reason!~\"GuestShutDown|LastStopUnknown|Paused|QuotaExceeded\"}) >= 3
and
sum by (cluster, namespace) (controller:kite_object_conditions:max{controller=\"$controller\", condition=\"Ready\", status!=\"True\", reason!~\"GuestShutDown|LastStopUnknown|Paused|QuotaExceeded\"})
  > 0.2 * sum by (cluster, namespace) (controller:kite_objects:max{controller=\"$controller\"})",
        hold: "30m",
        summary: "{{ $value }} machines have not been ready for half an hour",
        description: "More than a fifth of all machines are not what their owners ask for, for reasons that are not the owners'. Storage, scheduling or KubeVirt is in trouble.",
    },
    Alert {
        name: "KiteNodeUnreachable",
        severity: Critical,
        of: &[Controller::VmStatus],
        expr: "sum by (cluster, namespace) (controller:kite_object_conditions:max{controller=\"$controller\", condition=\"Ready\", reason=\"NodeUnreachable\"}) > 0",
        hold: "5m",
        summary: "{{ $value }} machines are on nodes that do not answer",
        description: "Nobody knows whether these machines run. They are not started elsewhere until the node is back or has been fenced by an administrator.",
    },
    Alert {
        name: "KiteServicesNotRepaired",
        severity: Warning,
        of: &[Controller::Service],
        expr: "sum by (cluster, namespace, reason) (controller:kite_object_conditions:max{controller=\"$controller\", condition=\"ServiceReady\", reason=~\"Drifted|Missing\"}) > 0",
        hold: "10m",
        summary: "The Services of {{ $value }} machines are not as declared: {{ $labels.reason }}",
        description: "Services of machines are missing or changed, and nobody repairs them, so the machines may not be reached. kite-vm repairs within seconds where it runs.",
    },
    Alert {
        name: "KiteCloneStuck",
        severity: Warning,
        of: &[Controller::DataVolume],
        expr: "sum by (cluster, namespace, reason) (controller:kite_object_conditions:max{controller=\"$controller\", condition=\"DiskReady\", reason=~\"CloneFailed|Retrying|Stuck\"}) > 0",
        hold: "10m",
        summary: "The disks of {{ $value }} machines are not being filled: {{ $labels.reason }}",
        description: "CDI does not get on with filling disks; the condition DiskReady of each machine has CDI's own words.",
    },
];
