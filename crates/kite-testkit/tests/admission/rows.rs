//! The tables: who asks for what, and what the answer is.

use serde_json::{Value, json};

use crate::row::{Row, annotation, delete, edit, label, row};
use crate::world::marked;

const ADMINISTRATORS_MARK: Option<&str> = Some(
    "only by Kite itself and by those who may update kiteusers.kite.dev; leave it as it is, or ask an administrator",
);

pub(crate) fn namespaces() -> Vec<Row> {
    let alice = "namespaces/alice";
    let named = |name: &str, uid: &str| {
        let mut object = annotation("kite.dev/user-uid", uid);
        object["metadata"]["name"] = name.into();
        object
    };
    let uid = |uid: Value| annotation("kite.dev/user-uid", uid);
    let no = ADMINISTRATORS_MARK;
    let of_nobody = Some("Namespace vault carries no annotation kite.dev/user-uid");
    vec![
        edit("helpdesk", alice, label("team", "blue"), None),
        edit("helpdesk", alice, label("kite.dev/user", "bob"), no),
        edit("helpdesk", alice, label("kite.dev/new", ""), no),
        edit("helpdesk", alice, uid(Value::Null), no),
        edit("helpdesk", alice, uid("u-2".into()), no),
        edit(
            "helpdesk",
            &format!("{alice}/status"),
            uid("u-2".into()),
            no,
        ),
        edit("helpdesk", "namespaces/vault", uid("u-1".into()), no),
        row("helpdesk", "POST", "namespaces", named("new", "u-1"), no),
        row(
            "helpdesk",
            "POST",
            "namespaces",
            json!({"metadata": {"name": "new"}}),
            None,
        ),
        edit(
            "administrator",
            alice,
            annotation("kite.dev/deletion-protected", "true"),
            None,
        ),
        edit("administrator", alice, uid("u-2".into()), None),
        edit("the last resort", alice, uid(Value::Null), None),
        edit("garbage collector", alice, uid("u-1".into()), None),
        edit("kite-user", alice, uid("u-2".into()), None),
        edit(
            "kite-user",
            alice,
            annotation("kite.dev/orphaned-since", "now"),
            no,
        ),
        edit(
            "kite-user",
            "namespaces/vault",
            uid("u-1".into()),
            of_nobody,
        ),
        edit(
            "kite-user",
            "namespaces/kube-system",
            label("a", "b"),
            Some("Namespace kube-system carries no annotation"),
        ),
        row("kite-user", "POST", "namespaces", named("new", "u-1"), None),
        edit(
            "kite-namespace",
            alice,
            annotation("kite.dev/orphaned-since", "now"),
            None,
        ),
        edit(
            "kite-namespace",
            "namespaces/kite-system",
            annotation("kite.dev/recent-deletions", "x"),
            None,
        ),
        edit("kite-namespace", alice, uid("u-2".into()), no),
        delete("kite-namespace", alice, None),
        delete("kite-namespace", "namespaces/vault", of_nobody),
        delete("namespace controller", "namespaces/vault", None),
    ]
}

/// The rights over Secrets, bound by Kite for Kite's own account.
pub(crate) fn binding(uid: &str, role: &str, subject: &Value) -> Value {
    json!({
        "metadata": {"name": "bound", "annotations": {"kite.dev/user-uid": uid}},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    })
}

fn account(namespace: &str, name: &str) -> Value {
    json!({"kind": "ServiceAccount", "namespace": namespace, "name": name})
}

fn person(kind: &str, name: &str) -> Value {
    json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name})
}

/// What would open every Secret of a namespace that is not Kite's.
pub(crate) fn bypass() -> Row {
    row(
        "kite-user",
        "POST",
        "rbac.authorization.k8s.io/v1/namespaces/vault/rolebindings",
        binding("u-1", "kite-vm-secrets", &account("vault", "thief")),
        Some("namespace vault carries no annotation kite.dev/user-uid: it is no user's"),
    )
}

pub(crate) fn bindings() -> Vec<Row> {
    let secrets = "kite-vm-secrets";
    let vm = account("kite-system", "kite-vm");
    let other =
        Some("and kite-vm-secrets to the ServiceAccount kite-vm of kite-system, and nothing else");
    let binds = |object, refused| {
        let path = "rbac.authorization.k8s.io/v1/namespaces/alice/rolebindings";
        row("kite-user", "POST", path, object, refused)
    };
    let policies = "networking.k8s.io/v1/namespaces/alice/networkpolicies";
    let foreign = Some("carries no annotation kite.dev/user-uid: it is not Kite's");
    let spec = json!({"spec": {"policyTypes": ["Ingress"]}});
    vec![
        binds(binding("u-1", secrets, &vm), None),
        binds(binding("u-1", secrets, &account("vault", "kite-vm")), other),
        binds(
            binding("u-1", secrets, &account("kite-system", "kite-user")),
            other,
        ),
        binds(binding("u-1", secrets, &person("User", "tenant")), other),
        binds(
            binding("u-1", "kite-tenant", &person("User", "tenant")),
            None,
        ),
        binds(
            binding("u-1", "kite-tenant", &person("Group", "staff")),
            None,
        ),
        binds(
            binding("u-1", "kite-tenant", &account("vault", "thief")),
            other,
        ),
        binds(
            binding(
                "u-1",
                "kite-tenant",
                &person("Group", "system:unauthenticated"),
            ),
            other,
        ),
        binds(binding("", secrets, &vm), foreign),
        bypass(),
        edit(
            "kite-user",
            &format!("{policies}/kite-isolation"),
            spec.clone(),
            None,
        ),
        edit("kite-user", &format!("{policies}/theirs"), spec, foreign),
        delete("kite-user", &format!("{policies}/theirs"), foreign),
        // A namespace that an administrator took away from Kite can still be tidied up.
        delete(
            "kite-user",
            "networking.k8s.io/v1/namespaces/vault/networkpolicies/left",
            None,
        ),
        delete(
            "kite-user",
            "namespaces/alice/resourcequotas/kite-quota",
            None,
        ),
    ]
}

pub(crate) fn status() -> Vec<Row> {
    let machine = "kite.dev/v1alpha1/namespaces/alice/kitevirtualmachines/web/status";
    let user = "kite.dev/v1alpha1/kiteusers/alice/status";
    let platform = "kite.dev/v1alpha1/kiteplatforms/default/status";
    let nothing = || json!({"status": {"conditions": []}});
    let by = |who, path, refused| edit(who, path, nothing(), refused);
    let no = Some(
        "is written by Kite alone, not by administrator; change the spec, and the status follows",
    );
    let mut rows = vec![
        by("kite-user", user, None),
        by("kite-vm", platform, None),
        by("administrator", user, no),
        by("administrator", machine, no),
        by("administrator", platform, no),
        by(
            "garbage collector",
            machine,
            Some("the status of KiteVirtualMachine web is written by Kite alone"),
        ),
        by("the last resort", machine, None),
        // Rights say the rest.
        by("tenant", machine, Some("cannot patch resource")),
        by("kite-namespace", user, Some("cannot patch resource")),
    ];
    let writers = [
        "kite-vm",
        "kite-vm-status",
        "kite-service",
        "kite-datavolume",
    ];
    rows.extend(writers.map(|who| by(who, machine, None)));
    rows
}

const KEPT: Option<&str> = Some(
    "is kept by Kite, so editor cannot change or delete it; change the KiteVirtualMachine, or ask an administrator",
);
const PLANTED: Option<&str> = Some(
    "is not made by Kite and carries what only Kite writes; leave out the labels and annotations that start with kite.dev/",
);

/// Kite's children, each of a kind with another mark.
const CHILDREN: [&str; 6] = [
    "namespaces/alice/services/web",
    "namespaces/alice/secrets/web-ssh-key",
    "namespaces/alice/persistentvolumeclaims/web",
    "namespaces/alice/resourcequotas/kite-quota",
    "networking.k8s.io/v1/namespaces/alice/networkpolicies/kite-isolation",
    "kubevirt.io/v1/namespaces/alice/virtualmachines/web",
];

pub(crate) fn children() -> Vec<Row> {
    let touch = || annotation("note", "mine");
    let mut rows: Vec<Row> = CHILDREN
        .into_iter()
        .flat_map(|path| {
            [
                edit("editor", path, touch(), KEPT),
                delete("editor", path, KEPT),
                edit("administrator", path, touch(), None),
                delete("garbage collector", path, None),
                delete("namespace controller", path, None),
            ]
        })
        .collect();
    // The quota is nobody's to edit by rights, so the first refusal is another.
    rows.retain(|r| r.who != "editor" || !r.path.contains("resourcequotas"));
    let own = "namespaces/alice/services/own";
    let owned = json!({"metadata": {"ownerReferences": [{
        "apiVersion": "kite.dev/v1alpha1", "kind": "KiteVirtualMachine", "name": "web", "uid": "m-1", "controller": true,
    }]}});
    let copy = || json!({"metadata": marked("copy"), "spec": {"ports": [{"port": 80}]}});
    let disk = json!({
        "apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume",
        "metadata": {"name": "copy", "annotations": {"kite.dev/vm-uid": "m-1"}},
        "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}},
    });
    let disks = "cdi.kubevirt.io/v1beta1/namespaces/alice/datavolumes";
    rows.extend([
        edit(
            "editor",
            CHILDREN[0],
            label("kite.dev/managed-by", Value::Null),
            KEPT,
        ),
        edit(
            "tenant",
            CHILDREN[1],
            touch(),
            Some("is kept by Kite, so tenant cannot change"),
        ),
        edit("tenant", "namespaces/alice/secrets/password", touch(), None),
        edit("editor", own, touch(), None),
        edit("editor", own, label("kite.dev/vm-uid", "m-1"), PLANTED),
        edit("editor", own, owned, PLANTED),
        row(
            "editor",
            "POST",
            "namespaces/alice/services",
            copy(),
            PLANTED,
        ),
        row(
            "administrator",
            "POST",
            "namespaces/alice/services",
            copy(),
            None,
        ),
        row("editor", "POST", disks, disk.clone(), PLANTED),
        // KubeVirt and CDI copy labels to what they make, and write what Kite made.
        row("virt-controller", "POST", disks, disk, None),
        edit("virt-controller", CHILDREN[5], touch(), None),
        edit("virt-controller", CHILDREN[2], touch(), None),
        edit(
            "kite-vm",
            CHILDREN[0],
            label("kite.dev/vm-name", "web"),
            None,
        ),
        // A disk that outlived its machine is the user's to throw away, and not to relabel.
        delete(
            "editor",
            "namespaces/alice/persistentvolumeclaims/old",
            None,
        ),
        edit(
            "editor",
            "namespaces/alice/persistentvolumeclaims/old",
            label("kite.dev/retained", Value::Null),
            KEPT,
        ),
    ]);
    rows
}

pub(crate) fn people() -> Vec<Row> {
    let machines = "kite.dev/v1alpha1/namespaces/alice/kitevirtualmachines";
    let users = "kite.dev/v1alpha1/kiteusers";
    let machine = || {
        json!({
            "apiVersion": "kite.dev/v1alpha1", "kind": "KiteVirtualMachine", "metadata": {"name": "new"},
            "spec": {"cpu": 1, "memory": "1Gi", "disk": "2Gi", "image": "ubuntu-24.04"},
        })
    };
    let user = || {
        json!({
            "apiVersion": "kite.dev/v1alpha1", "kind": "KiteUser", "metadata": {"name": "new"},
            "spec": {"namespace": "new"},
        })
    };
    let no = Some("cannot create resource");
    vec![
        row("tenant", "POST", machines, machine(), None),
        row("editor", "POST", machines, machine(), None),
        delete("editor", &format!("{machines}/web"), None),
        row("viewer", "POST", machines, machine(), no),
        row("tenant", "POST", users, user(), no),
        row("editor", "POST", users, user(), no),
        row("administrator", "POST", users, user(), None),
    ]
}
