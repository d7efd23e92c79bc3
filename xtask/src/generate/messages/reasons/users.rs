//! What `kite-user` and `kite-namespace` say.

use super::{EVENT, NAMESPACE, NOTHING, READY, Reason, SERVER, USER, WAIT, r};

/// Of `kite-user`.
pub(in super::super) const USERS: &[Reason] = &[
    r(
        "Applied",
        "`NamespaceReady`, `IsolationReady`",
        "the part is as declared",
        NOTHING,
    ),
    r(
        "ChildTerminating",
        USER,
        "an object of that name is still going",
        WAIT,
    ),
    r("ClosingQuota", USER, "", WAIT),
    r(
        "DependencyMissing",
        USER,
        "the cluster does not serve a kind that is needed",
        SERVER,
    ),
    r("Enforced", "`QuotaReady`", "", NOTHING),
    r(
        "Forbidden",
        USER,
        "the server does not let Kite do what is needed",
        "Compare the roles with docs/reference/permissions.md; the charts bring them.",
    ),
    r(
        "HandedOver",
        EVENT,
        "the namespace belongs to another of its users now",
        NOTHING,
    ),
    r(
        "InvalidObject",
        EVENT,
        "the object cannot be read",
        "Correct what the message names.",
    ),
    r(
        "InvalidSpec",
        USER,
        "fields of the specification cannot stand; each is named with what it must be",
        "Correct the fields; see the refusals of values below.",
    ),
    r(
        "IsolationKept",
        EVENT,
        "machines are left in the namespace, so its policies stay",
        "Delete the machines that are left.",
    ),
    r(
        "NameConflict",
        USER,
        "an object of that name belongs to somebody else, and is left untouched",
        "Remove or rename the object that the message names.",
    ),
    r(
        "NamespaceNotManaged",
        USER,
        "",
        "Choose another namespace; `spec.namespace` cannot change, so make the KiteUser again.",
    ),
    r(
        "NamespaceOrphaned",
        USER,
        "",
        "Run the command in the message, if all that is in the namespace is to be this user's.",
    ),
    r("NamespaceTerminating", USER, "", WAIT),
    r(
        "NotInForce",
        USER,
        "",
        "Find what else changes the object, and end that.",
    ),
    r(
        "NotReady",
        USER,
        "the server could not carry out a request",
        WAIT,
    ),
    r("NotRequested", "`QuotaReady`", "", NOTHING),
    r(
        "PoliciesPending",
        USER,
        "the quota waits until the isolation is in force",
        WAIT,
    ),
    r(
        "QuotaPending",
        "`QuotaReady`, `Ready`",
        "the server has not taken in the quota yet",
        WAIT,
    ),
    r(
        "QuotaUncounted",
        "`QuotaReady`, `Ready`",
        "",
        "Wait a few minutes after the kinds were installed.",
    ),
    r(
        "Readopted",
        EVENT,
        "the namespace is the user's again, after a restore for instance",
        NOTHING,
    ),
    r("Ready", READY, "the namespace is safe to use", NOTHING),
    r(
        "Rejected",
        USER,
        "the server or a webhook refuses an object; its words are in the message",
        SERVER,
    ),
    r(
        "RemovalHeld",
        EVENT,
        "",
        "Set the annotation on the CustomResourceDefinition if it is meant; nothing is lost until then.",
    ),
    r(
        "Restored",
        EVENT,
        "what was edited or removed by hand is as declared again",
        "Change the KiteUser instead.",
    ),
    r(
        "SharedNamespace",
        USER,
        "the namespace belongs to another KiteUser, whose settings rule it",
        NOTHING,
    ),
];

/// Of `kite-namespace`.
pub(in super::super) const NAMESPACES: &[Reason] = &[
    r(
        "Brake",
        NAMESPACE,
        "so many namespaces are due at once that nothing is deleted",
        "Make the KiteUsers again; or, if it is meant, set `kite.dev/acknowledge-deletion` on each namespace.",
    ),
    r(
        "Deleted",
        EVENT,
        "the grace period is over and the namespace is deleted",
        NOTHING,
    ),
    r(
        "DeletionBlocked",
        NAMESPACE,
        "the namespace does not go; the event names the kinds and finalizers in the way",
        "Find out who set the finalizer, and let them finish or remove it. Kite never does.",
    ),
    r(
        "Needed",
        EVENT,
        "somebody needs the namespace again, so it stays",
        NOTHING,
    ),
    r(
        "OrphanRetained",
        NAMESPACE,
        "the namespace is protected, or holds a retained disk",
        "Remove the annotation or the disk, or keep the namespace.",
    ),
    r(
        "Orphaned",
        EVENT,
        "nobody needs the namespace, and it goes when the grace period is over",
        "Make a KiteUser with this namespace, or protect it with `kite.dev/deletion-protected`.",
    ),
];
