//! The labels, annotations and finalizers of KubeVirt and CDI that Kite meets.
//!
//! Kite's own stand in `kite_api::labels`.

/// Annotation on a DataVolume: fill the disk now, whoever uses it first.
pub const BIND_IMMEDIATE: &str = "cdi.kubevirt.io/storage.bind.immediate.requested";
/// Annotation on a DataVolume: `false` keeps the DataVolume after it succeeded,
/// where a CDI that still collects them would not (rule V-15).
pub const DELETE_AFTER_COMPLETION: &str = "cdi.kubevirt.io/storage.deleteAfterCompletion";

/// Label on each pod that CDI works with; the value says which kind of worker it is.
pub const CDI_WORKER: &str = "cdi.kubevirt.io";
/// Value of [`CDI_WORKER`] on the pod that receives a clone's data.
pub const CDI_UPLOAD_SERVER: &str = "cdi-upload-server";
/// Value of [`CDI_WORKER`] on the pod that sends a clone's data, in the image's namespace.
pub const CDI_CLONE_SOURCE: &str = "cdi-clone-source";
/// Port on which the upload server listens.
pub const CDI_UPLOAD_PORT: u16 = 8443;

/// Label on each pod of KubeVirt's; on a launcher pod the value is [`LAUNCHER`].
pub const KUBEVIRT: &str = "kubevirt.io";
/// Value of [`KUBEVIRT`] on the pod in which a guest runs.
pub const LAUNCHER: &str = "virt-launcher";
/// Finalizer by which virt-controller shows that it has seen a VirtualMachine (rule S-2).
pub const VM_FINALIZER: &str = "kubevirt.io/virtualMachineControllerFinalize";
