//! The steps of a user.

use super::{
    BINDING, CLAIM, CRD, KITE_USER, KITE_USER_STATUS, MACHINE, NAMESPACE, POLICY, Step, USER,
    exactly,
};

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
