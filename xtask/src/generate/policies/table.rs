//! What the admission policies refuse, and whom: one entry for each policy.
//!
//! Expressions are CEL. Each is total: an object without labels, annotations or
//! owners is as good as one with empty ones, since an expression that fails
//! refuses the write. None of them names KubeVirt, CDI or a storage driver: who
//! is refused is told by rights, not by a list of names.

use kite_api::labels::{
    Controller, DELETION_HELD, MANAGED_BY, ORPHANED_SINCE, RECENT_DELETIONS, RETAINED, TENANT_ROLE,
    USER, USER_UID, VM_SECRETS_ROLE,
};

use super::super::RELEASE_NAMESPACE;

/// Resources of one API group.
pub(crate) struct Target {
    pub(crate) group: &'static str,
    pub(crate) resources: &'static [&'static str],
    pub(super) operations: &'static [&'static str],
}

/// One validation: what must hold, and what is said where it does not.
pub(super) struct Check {
    pub(super) expression: String,
    /// CEL that makes the sentence; it holds what was wrong, with what, and what to do.
    pub(super) says: String,
}

/// One policy.
pub(crate) struct Policy {
    pub(crate) name: &'static str,
    /// Becomes a comment in the manifest, and a line of the reference page.
    pub(crate) why: &'static str,
    /// For the reference page: who is let through.
    pub(crate) may: &'static str,
    pub(crate) targets: &'static [Target],
    /// What a request must be for the policy to look at it at all, by name.
    pub(super) only: Vec<(&'static str, String)>,
    pub(super) variables: Vec<(&'static str, String)>,
    pub(super) checks: Vec<Check>,
}

/// Who may do anything with what is Kite's: those who may write KiteUsers, in the whole cluster.
const ADMINISTRATOR: &str =
    "authorizer.group('kite.dev').resource('kiteusers').check('update').allowed()";

const CREATE_UPDATE: &[&str] = &["CREATE", "UPDATE"];
const EVERY_WRITE: &[&str] = &["CREATE", "UPDATE", "DELETE"];

/// All policies. The last one is refused last by a server that takes them in one by one.
pub(super) fn policies() -> Vec<Policy> {
    vec![
        namespace_marks(),
        namespace_deletes(),
        status_writes(),
        children(),
        user_writes(),
    ]
}

/// A controller's user name, as a CEL string.
fn account(controller: Controller) -> String {
    format!(
        "'system:serviceaccount:{RELEASE_NAMESPACE}:{}'",
        controller.name()
    )
}

fn is(controller: Controller) -> String {
    format!("request.userInfo.username == {}", account(controller))
}

fn list(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("'{word}'")).collect();
    format!("[{}]", quoted.join(", "))
}

/// Whether what stands, or what is made, is bound to a KiteUser (rule C-7).
fn bound(object: &str) -> String {
    format!("{object}.metadata.?annotations[?'{USER_UID}'].orValue('') != ''")
}

/// Whether an object has a label or an annotation of Kite's.
fn has_mark(object: &str) -> String {
    let part = |part: &str| {
        format!("{object}.metadata.?{part}.orValue({{}}).exists(k, k.startsWith('kite.dev/'))")
    };
    format!(
        "{object} != null && (\n  {} ||\n  {})",
        part("labels"),
        part("annotations")
    )
}

/// Labels or annotations as they are and as they were, and which of Kite's a write sets, changes
/// or removes.
fn marks(part: &'static str, names: [&'static str; 3]) -> [(&'static str, String); 3] {
    let [new, old, changed] = names;
    [
        (new, format!("object.metadata.?{part}.orValue({{}})")),
        (
            old,
            format!("oldObject == null ? {{}} : oldObject.metadata.?{part}.orValue({{}})"),
        ),
        (
            changed,
            format!(
                "variables.{new}.filter(k, k.startsWith('kite.dev/') && (!(k in variables.{old}) || variables.{old}[k] != variables.{new}[k])) +\n\
                 variables.{old}.filter(k, k.startsWith('kite.dev/') && !(k in variables.{new}))"
            ),
        ),
    ]
}

fn namespace_marks() -> Policy {
    let user = list(&[MANAGED_BY, USER, USER_UID]);
    let namespace = list(&[ORPHANED_SINCE, DELETION_HELD, RECENT_DELETIONS]);
    let labels = marks("labels", ["labels", "oldLabels", "changedLabels"]);
    let annotations = marks(
        "annotations",
        ["annotations", "oldAnnotations", "changedAnnotations"],
    );
    let may = format!(
        "{} ? {user} :\n{} ? {namespace} : []",
        is(Controller::User),
        is(Controller::Namespace)
    );
    let wrong =
        "(variables.changedLabels + variables.changedAnnotations).filter(k, !(k in variables.may))";
    let own = [("may", may), ("wrong", wrong.to_owned())];
    Policy {
        name: "kite-namespace-marks",
        why: "a label or an annotation of Kite's on a Namespace binds it to a user, or has it deleted",
        may: "administrators; `kite-user` for what binds a namespace; `kite-namespace` for what it notes",
        targets: &[Target {
            group: "",
            // The subresources take labels and annotations too.
            resources: &["namespaces", "namespaces/status", "namespaces/finalize"],
            operations: CREATE_UPDATE,
        }],
        only: vec![(
            "has-a-mark-and-is-not-written-by-an-administrator",
            format!(
                "({} ||\n{}) &&\n!{ADMINISTRATOR}",
                has_mark("object"),
                has_mark("oldObject")
            ),
        )],
        variables: labels.into_iter().chain(annotations).chain(own).collect(),
        checks: vec![Check {
            expression: "size(variables.wrong) == 0".to_owned(),
            says: "'Namespace ' + request.name + ': ' + variables.wrong.join(', ') +\n' cannot be set, changed or removed by ' + \
                   request.userInfo.username +\n', only by Kite itself and by those who may update kiteusers.kite.dev; \
                   leave it as it is, or ask an administrator'"
                .to_owned(),
        }],
    }
}

fn namespace_deletes() -> Policy {
    Policy {
        name: "kite-namespace-deletes",
        why: "the right of kite-namespace to delete Namespaces holds in the whole cluster",
        may: "`kite-namespace` for namespaces that are bound to a KiteUser; nobody else is looked at",
        targets: &[Target {
            group: "",
            resources: &["namespaces"],
            operations: &["DELETE"],
        }],
        only: vec![("is-kite-namespace", is(Controller::Namespace))],
        variables: Vec::new(),
        checks: vec![Check {
            expression: bound("oldObject"),
            says: format!(
                "'Namespace ' + request.name + ' carries no annotation {USER_UID}, so kite-namespace may not delete it; \
                 whoever made it deletes it'"
            ),
        }],
    }
}

fn status_writes() -> Policy {
    let machine = [
        Controller::Vm,
        Controller::VmStatus,
        Controller::Service,
        Controller::DataVolume,
    ];
    let machine: Vec<_> = machine.into_iter().map(account).collect();
    let writers = format!(
        "request.resource.resource == 'kiteusers' ? [{}] :\nrequest.resource.resource == 'kiteplatforms' ? [{}] :\n[{}]",
        account(Controller::User),
        account(Controller::Vm),
        machine.join(",\n")
    );
    Policy {
        name: "kite-status-writes",
        why: "the status says what is, and what was recorded for a machine, such as which disk is its own; so it is not for people to write",
        may: "the controllers that keep it (rule C-9); the group `system:masters`, as a last resort",
        targets: &[Target {
            group: "kite.dev",
            resources: &[
                "kiteusers/status",
                "kitevirtualmachines/status",
                "kiteplatforms/status",
            ],
            operations: CREATE_UPDATE,
        }],
        only: vec![(
            "is-not-the-last-resort",
            "!('system:masters' in request.userInfo.?groups.orValue([]))".to_owned(),
        )],
        variables: vec![("writers", writers)],
        checks: vec![Check {
            expression: "request.userInfo.username in variables.writers".to_owned(),
            says: "'the status of ' + request.kind.kind + ' ' + request.name + ' is written by Kite alone, not by ' + \
                   request.userInfo.username + '; change the spec, and the status follows'"
                .to_owned(),
        }],
    }
}

/// Whether an object carries anything of Kite's: whatever looks like a child is treated as one.
fn looks_made(object: &str) -> String {
    format!(
        "({} ||\n{object} != null && {object}.metadata.?ownerReferences.orValue([]).exists(o,\n  \
         o.apiVersion.startsWith('kite.dev/') && o.?controller.orValue(false)))",
        has_mark(object)
    )
}

fn children() -> Policy {
    let tenant = |verb: &str| {
        format!(
            "authorizer.group('kite.dev').resource('kitevirtualmachines').namespace(request.namespace).check('{verb}').allowed()"
        )
    };
    Policy {
        name: "kite-children",
        why: "what Kite made is kept by Kite, and what looks like it could be taken for a machine's own",
        may: "all who may not write the KiteVirtualMachines of the namespace, such as Kubernetes, KubeVirt, CDI and storage \
              drivers; administrators; `kite-vm`; everybody for the deletion of a retained disk",
        targets: &[
            Target {
                group: "",
                resources: &[
                    "services",
                    "secrets",
                    "persistentvolumeclaims",
                    "resourcequotas",
                    "limitranges",
                ],
                operations: EVERY_WRITE,
            },
            Target {
                group: "networking.k8s.io",
                resources: &["networkpolicies", "ingresses"],
                operations: EVERY_WRITE,
            },
            Target {
                group: "rbac.authorization.k8s.io",
                resources: &["rolebindings"],
                operations: EVERY_WRITE,
            },
            Target {
                group: "kubevirt.io",
                resources: &["virtualmachines"],
                operations: EVERY_WRITE,
            },
            Target {
                group: "cdi.kubevirt.io",
                resources: &["datavolumes"],
                operations: EVERY_WRITE,
            },
        ],
        // One condition, since the server evaluates all of them: what is not marked costs no question about rights.
        only: vec![(
            "a-tenant-touches-what-is-marked",
            format!(
                "({} ||\n{}) &&\n!(request.operation == 'DELETE' && oldObject.metadata.?labels[?'{RETAINED}'].orValue('') == 'true') &&\n\
                 {} &&\n({} ||\n {})",
                looks_made("object"),
                looks_made("oldObject"),
                is(Controller::Vm).replace("==", "!="),
                tenant("update"),
                tenant("patch"),
            ),
        )],
        variables: Vec::new(),
        checks: vec![Check {
            expression: ADMINISTRATOR.to_owned(),
            says: format!(
                "request.kind.kind + ' ' + request.name + (({}) ?\n' is kept by Kite, so ' + request.userInfo.username + \
                 ' cannot change or delete it; change the KiteVirtualMachine, or ask an administrator to change the KiteUser' :\n\
                 ' is not made by Kite and carries what only Kite writes; leave out the labels and annotations that start \
                 with kite.dev/, and every KiteVirtualMachine as controlling owner')",
                looks_made("oldObject")
            ),
        }],
    }
}

fn user_writes() -> Policy {
    let binds = "request.kind.kind == 'RoleBinding' && request.operation != 'DELETE'";
    let subjects = "object.?subjects.orValue([])";
    let vm = Controller::Vm.name();
    Policy {
        name: "kite-user-writes",
        why: "the rights of kite-user on Namespaces, NetworkPolicies, quotas and RoleBindings hold in the whole cluster, and its \
              right to bind would open every Secret",
        may: "`kite-user` for what is bound to a KiteUser in a namespace that is, and with the two roles for those whom they \
              are for; nobody else is looked at",
        targets: &[
            Target {
                group: "",
                resources: &["namespaces"],
                operations: CREATE_UPDATE,
            },
            Target {
                group: "",
                resources: &["resourcequotas", "limitranges"],
                operations: EVERY_WRITE,
            },
            Target {
                group: "networking.k8s.io",
                resources: &["networkpolicies"],
                operations: EVERY_WRITE,
            },
            Target {
                group: "rbac.authorization.k8s.io",
                resources: &["rolebindings"],
                operations: EVERY_WRITE,
            },
        ],
        only: vec![("is-kite-user", is(Controller::User))],
        variables: Vec::new(),
        checks: vec![
            Check {
                expression: bound("(oldObject == null ? object : oldObject)"),
                says: format!(
                    "request.kind.kind + ' ' + request.name + ' carries no annotation {USER_UID}: it is not Kite\\'s, and \
                     kite-user may not write it'"
                ),
            },
            Check {
                // What is bound may go wherever it is: an administrator may have taken the namespace away from Kite.
                expression: format!(
                    "request.kind.kind == 'Namespace' || request.operation == 'DELETE' || {}",
                    bound("namespaceObject")
                ),
                says: format!(
                    "'namespace ' + request.namespace + ' carries no annotation {USER_UID}: it is no user\\'s, and kite-user may \
                     write nothing in it'"
                ),
            },
            Check {
                expression: format!(
                    "!({binds}) ||\n(object.roleRef.kind == 'ClusterRole' && (object.roleRef.name == '{TENANT_ROLE}' ?\n\
                     {subjects}.all(s, s.kind in ['User', 'Group'] && !(s.name in ['system:anonymous', 'system:unauthenticated'])) :\n\
                     object.roleRef.name == '{VM_SECRETS_ROLE}' &&\n{subjects}.all(s, s.kind == 'ServiceAccount' && s.name == '{vm}' &&\n  \
                     s.?namespace.orValue('') == '{RELEASE_NAMESPACE}')))"
                ),
                says: format!(
                    "'RoleBinding ' + request.name + ': kite-user may bind {TENANT_ROLE} to users and groups that are \
                     authenticated, and {VM_SECRETS_ROLE} to the ServiceAccount {vm} of {RELEASE_NAMESPACE}, and nothing else; \
                     where {vm} runs elsewhere, install the admission policies there'"
                ),
            },
        ],
    }
}
