//! CamelCase words in the controllers' source that are no reasons of Kite's.
//!
//! A word that is neither here nor among the reasons fails a test, so a new
//! reason cannot be forgotten on the page.

/// Kinds, and columns that `kubectl get` shows.
const KINDS: &[&str] = &[
    "Address",
    "Age",
    "Blocked",
    "CustomResourceDefinition",
    "DataSource",
    "DataVolume",
    "Disk",
    "Domain",
    "EndpointSlice",
    "Images",
    "Ingress",
    "KiteHostClaim",
    "KitePlatform",
    "KitePlatformStatus",
    "KiteUser",
    "KiteUserStatus",
    "KiteUsers",
    "KiteVirtualMachine",
    "KiteVirtualMachineStatus",
    "KiteVirtualMachines",
    "KubeVirt",
    "LimitRange",
    "Machine",
    "Machines",
    "Memory",
    "Message",
    "Namespace",
    "NetworkPolicy",
    "Node",
    "PartialEq",
    "PersistentVolumeClaim",
    "Phase",
    "Pods",
    "Power",
    "Quantity",
    "Reason",
    "ResourceQuota",
    "RoleBinding",
    "Secret",
    "Service",
    "StorageClass",
    "VirtualMachine",
    "VirtualMachineInstance",
];

/// Types of conditions and their values, of Kite and of others.
const CONDITIONS: &[&str] = &[
    "Accepted",
    "AgentConnected",
    "Bound",
    "DiskReady",
    "DomainReady",
    "Failure",
    "False",
    "FileSystemResizePending",
    "IsolationReady",
    "LiveMigratable",
    "NamespaceContentRemaining",
    "NamespaceFinalizersRemaining",
    "NamespaceReady",
    "PowerInSync",
    "QuotaReady",
    "Reconciling",
    "ResourcesApplied",
    "RestartRequired",
    "ServiceReady",
    "Stalled",
    "Synchronized",
    "True",
    "ControllerResizeError",
    "NodeResizeError",
    "Resizing",
    "NamespaceDeletionContentFailure",
];

/// What an event says was done.
const ACTIONS: &[&str] = &[
    "Apply", "Bind", "Delete", "Hold", "Keep", "Mark", "Remove", "Request", "Start", "Status",
    "Switch", "Watch", "Work",
];

/// Words of KubeVirt, CDI and Kubernetes. Those that become a reason as they are stand on the page as theirs.
const FOREIGN: &[&str] = &[
    "BackOff",
    "ClaimLost",
    "CloneWithoutSource",
    "CrashLoopBackOff",
    "DataVolumeError",
    "Err",
    "ErrExceededQuota",
    "ErrImagePull",
    "ErrorPvcNotFound",
    "ErrorUnschedulable",
    "EvictionRequested",
    "Fail",
    "Failed",
    "FailedCreate",
    "ImagePullBackOff",
    "Infeasible",
    "Invalid",
    "Lost",
    "NodeUnresponsive",
    "OOMKilled",
    "Off",
    "Pending",
    "PendingPopulation",
    "PodTerminating",
    "RerunOnFailure",
    "Terminating",
    "Unschedulable",
    "WaitForFirstConsumer",
    "WaitingForReceiver",
    "WaitingForVolumeBinding",
];

/// Whether a word is known not to be a reason of Kite's.
pub(super) fn is_no_reason(word: &str) -> bool {
    [KINDS, CONDITIONS, ACTIONS, FOREIGN]
        .iter()
        .any(|words| words.contains(&word))
}
