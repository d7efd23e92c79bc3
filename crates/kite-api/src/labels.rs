//! The labels, annotations, finalizers and field managers that stand on objects.
//!
//! Labels make finding cheap and prove nothing: who owns an object is decided by
//! a UID in an owner reference or an annotation (rule C-7). Nothing here reads
//! or writes an object.

/// Label on every object that Kite made. Watches of foreign kinds select on it.
pub const MANAGED_BY: &str = "kite.dev/managed-by";
/// The one value of [`MANAGED_BY`].
pub const MANAGED_BY_VALUE: &str = "kite-controller";
/// The selector of every watch over kinds that are not Kite's own.
pub const MANAGED_SELECTOR: &str = "kite.dev/managed-by=kite-controller";
/// Label on a machine's children: the name of the KiteVirtualMachine.
pub const VM_NAME: &str = "kite.dev/vm-name";
/// Label and annotation on a machine's children: the UID of the KiteVirtualMachine.
pub const VM_UID: &str = "kite.dev/vm-uid";
/// Label on a user's namespace and what stands in it: the name of the KiteUser.
pub const USER: &str = "kite.dev/user";
/// Annotation that binds a Namespace, and what stands in it for the user, to a KiteUser's UID.
pub const USER_UID: &str = "kite.dev/user-uid";
/// Label by which an administrator publishes a DataSource as an image; the value is `true`.
pub const PUBLISHED: &str = "kite.dev/published";

/// Annotation on a KiteVirtualMachine: `true` stops reconciliation (rule V-4). Deletion goes on.
pub const PAUSED: &str = "kite.dev/paused";
/// Annotation by which a user accepts an empty disk in place of a lost one (rule V-15).
pub const CONFIRM_NEW_DISK: &str = "kite.dev/confirm-new-disk";
/// Annotation by which a user takes a retained disk into use again (rule V-19).
pub const ADOPT_RETAINED_DISK: &str = "kite.dev/adopt-retained-disk";
/// Annotation on a DataVolume: the deletion policy that holds should its machine vanish.
pub const DELETION_POLICY: &str = "kite.dev/deletion-policy";
/// Label on a disk that outlived its machine, on the claim and on the DataVolume as far as they
/// exist; the value is `true` (rule V-19).
///
/// A list of claims selected by [`RETAINED_SELECTOR`] finds every retained disk whose claim was
/// made: the DataVolume may have been collected long ago. One retained before CDI made the claim
/// is found among the DataVolumes, and CDI copies the label to the claim. The label goes when a
/// machine takes the disk into use again. While it stands the namespace is kept (rule N-5).
pub const RETAINED: &str = "kite.dev/retained";
/// The selector of retained disks, for lists and watches of claims and DataVolumes.
pub const RETAINED_SELECTOR: &str = "kite.dev/retained=true";
/// Annotation on a Namespace, written by kite-namespace only: since when nobody needs it.
pub const ORPHANED_SINCE: &str = "kite.dev/orphaned-since";
/// Annotation by which an administrator keeps an orphaned namespace (rule N-5).
pub const DELETION_PROTECTED: &str = "kite.dev/deletion-protected";
/// Annotation by which an administrator acknowledges a deletion that is held back, on the object
/// that is to be destroyed; its value is a time (rule N-6, [`crate::acknowledge`]).
pub const ACKNOWLEDGE_DELETION: &str = "kite.dev/acknowledge-deletion";
/// Annotation on a Namespace, written by kite-namespace only: why its deletion is held back (rules
/// N-5, N-6), or that it does not come to its end (rule N-8).
pub const DELETION_HELD: &str = "kite.dev/deletion-held";
/// Annotation on Kite's own Namespace, written by kite-namespace only: which namespaces it deleted
/// lately and when, so that no restart makes the brake forget (rule N-6).
pub const RECENT_DELETIONS: &str = "kite.dev/recent-deletions";
/// Annotation on a claim: the size of the disk it was last asked to hold, without overhead (rule V-13).
pub const DISK_SIZE: &str = "kite.dev/disk-size";
/// Annotation: the hash of an object's rendered form, for kinds whose fields are not compared.
pub const RENDERED_HASH: &str = "kite.dev/rendered-hash";
/// Annotation on the VirtualMachine: the hash of the login Secrets it was last started with (rule C-20).
pub const LOGIN_HASH: &str = "kite.dev/login-hash";
/// Annotation on the VirtualMachine: what was known when it was last started under
/// `RerunOnFailure` (rule V-16).
pub const START: &str = "kite.dev/start";

/// Finalizer on a KiteUser (rule U-1).
pub const USER_FINALIZER: &str = "kite.dev/user-cleanup";
/// Finalizer on a KiteVirtualMachine (rule V-2).
pub const VM_FINALIZER: &str = "kite.dev/vm-cleanup";

/// The ClusterRole that a user's subjects get in the user's namespace.
pub const TENANT_ROLE: &str = "kite-tenant";
/// The ClusterRole over Secrets that kite-vm gets, namespace by namespace (rule C-20).
pub const VM_SECRETS_ROLE: &str = "kite-vm-secrets";
/// The ClusterRole that becomes part of `view`, `edit` and `admin`.
pub const VIEW_ROLE: &str = "kite-view";
/// The ClusterRole that becomes part of `edit` and `admin`.
pub const EDIT_ROLE: &str = "kite-edit";

/// The six controllers. The name is the binary's, and its field manager for ever (rule C-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Controller {
    /// Makes a user's namespace safe to use.
    User,
    /// Removes a namespace that nobody needs.
    Namespace,
    /// Makes a machine exist, or cease to.
    Vm,
    /// Tells what the machine is really doing.
    VmStatus,
    /// Tells whether the machine can be reached.
    Service,
    /// Tells how the disk is coming along.
    DataVolume,
}

impl Controller {
    /// All six, in the order of the design's table.
    pub const ALL: [Self; 6] = [
        Self::User,
        Self::Namespace,
        Self::Vm,
        Self::VmStatus,
        Self::Service,
        Self::DataVolume,
    ];

    /// Name of the binary, the Lease, the ServiceAccount and the field manager.
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "kite-user",
            Self::Namespace => "kite-namespace",
            Self::Vm => "kite-vm",
            Self::VmStatus => "kite-vm-status",
            Self::Service => "kite-service",
            Self::DataVolume => "kite-datavolume",
        }
    }
}
