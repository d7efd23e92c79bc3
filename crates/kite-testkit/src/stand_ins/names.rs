//! The names by which KubeVirt and CDI are known, and those the stand-ins add
//! to be told apart from them.
//!
//! Written down here and not taken from Kite's own crates: the stand-ins are
//! the other side, and a wrong word must not be wrong on both.

use kube::api::{ApiResource, GroupVersionKind};

/// Label on everything cluster-scoped that a stand-in registers.
pub const STAND_IN_LABEL: &str = "kite.dev/stand-in";
/// Prefix of the annotations by which a Namespace asks for failures.
pub const FAULT_PREFIX: &str = "stand-in.kite.dev/";
/// The StorageClass that the stand-in provisions.
pub const STORAGE_CLASS: &str = "stand-in";
/// The provisioner behind it.
pub const PROVISIONER: &str = "stand-in.kite.dev";
/// Nodes on which the invented machines run.
pub const NODES: [&str; 2] = ["stand-in-node-0", "stand-in-node-1"];
/// Label by which the platform's administrator publishes an image.
pub const PUBLISHED_LABEL: &str = "kite.dev/published";

/// virt-controller's finalizer, on machines and instances.
pub(super) const VM_FINALIZER: &str = "kubevirt.io/virtualMachineControllerFinalize";
/// Annotation of an instance: the generation of the machine it was made from.
pub(super) const VM_GENERATION: &str = "kubevirt.io/vm-generation";
/// Annotation of a launcher Pod: the instance it runs.
pub(super) const DOMAIN: &str = "kubevirt.io/domain";
/// Label of a launcher Pod.
pub(super) const LAUNCHER_LABEL: &str = "kubevirt.io";
/// Its value.
pub(super) const LAUNCHER: &str = "virt-launcher";
/// Annotation of an instance: a fingerprint of the template it was made from.
pub(super) const TEMPLATE_HASH: &str = "stand-in.kite.dev/template";

/// CDI's finalizer on a claim that is being populated.
pub(super) const POPULATOR_FINALIZER: &str = "cdi.kubevirt.io/clonePopulator";
/// CDI's finalizer on a DataVolume; the real one puts it on some clones only.
pub(super) const DISK_FINALIZER: &str = "cdi.kubevirt.io/dataVolumeFinalizer";
/// CDI's finalizer on the temporary claim.
pub(super) const SOURCE_FINALIZER: &str = "cdi.kubevirt.io/cloneSource";
/// Annotation of a claim: UID of its DataVolume.
pub(super) const CREATED_FOR: &str = "cdi.kubevirt.io/createdForDataVolume";
/// Annotation and label of a temporary claim: UID of the claim it fills.
pub(super) const OWNED_BY_UID: &str = "cdi.kubevirt.io/OwnedByUID";
/// Annotation of a temporary claim: name of the claim it fills.
pub(super) const FILLS: &str = "stand-in.kite.dev/fills";
/// Annotation: whether a populator fills the claim.
pub(super) const USE_POPULATOR: &str = "cdi.kubevirt.io/storage.usePopulator";
/// Annotation: do not wait for a consumer.
pub(super) const BIND_IMMEDIATELY: &str = "cdi.kubevirt.io/storage.bind.immediate.requested";
/// Annotation that the claim controller of Kubernetes sets for a provisioner.
pub(super) const CLAIM_PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";

/// A kind that the stand-ins watch or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Res {
    /// KubeVirt's VirtualMachine.
    Vm,
    /// KubeVirt's VirtualMachineInstance.
    Vmi,
    /// CDI's DataVolume.
    DataVolume,
    /// CDI's DataSource.
    DataSource,
    /// PersistentVolumeClaim.
    Claim,
    /// Launcher Pods.
    Pod,
    /// PersistentVolumes made by the stand-in.
    Volume,
    /// Namespaces, for the failures they ask for.
    Namespace,
}

impl Res {
    /// All of them, in the order of their numbers.
    pub(super) const ALL: [Self; 8] = [
        Self::Vm,
        Self::Vmi,
        Self::DataVolume,
        Self::DataSource,
        Self::Claim,
        Self::Pod,
        Self::Volume,
        Self::Namespace,
    ];

    /// How the server calls it.
    pub(super) fn api_resource(self) -> ApiResource {
        let (group, version, kind, plural) = match self {
            Self::Vm => ("kubevirt.io", "v1", "VirtualMachine", "virtualmachines"),
            Self::Vmi => (
                "kubevirt.io",
                "v1",
                "VirtualMachineInstance",
                "virtualmachineinstances",
            ),
            Self::DataVolume => ("cdi.kubevirt.io", "v1beta1", "DataVolume", "datavolumes"),
            Self::DataSource => ("cdi.kubevirt.io", "v1beta1", "DataSource", "datasources"),
            Self::Claim => ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
            Self::Pod => ("", "v1", "Pod", "pods"),
            Self::Volume => ("", "v1", "PersistentVolume", "persistentvolumes"),
            Self::Namespace => ("", "v1", "Namespace", "namespaces"),
        };
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
    }

    /// Whether objects of this kind live in a Namespace.
    pub(super) fn namespaced(self) -> bool {
        !matches!(self, Self::Volume | Self::Namespace)
    }
}

/// Field manager of what virt-controller and virt-handler write.
pub(super) const KUBEVIRT_MANAGER: &str = "stand-in-virt-controller";
/// Field manager of what cdi-controller and the provisioner write.
pub(super) const CDI_MANAGER: &str = "stand-in-cdi-controller";
