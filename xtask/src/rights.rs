//! Whether every right of a controller was used by some test.
//!
//! The scenarios run each process under its generated rights and no others, so a
//! missing one fails a scenario. This is the other half: the audit logs of the
//! whole suite are held against the tables, and a right that nothing used is
//! reported. A server's log cannot show a right that is only asked about; those
//! few stand in [`EXCEPTIONS`] with the reason.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, bail};
use kite_runtime::shared_roles;
use kite_testkit::audit::{Request, read_folder};

use crate::generate::controllers;

/// A right that the logs cannot show, and why it is there all the same.
struct Exception {
    controller: &'static str,
    verb: &'static str,
    resource: &'static str,
    reason: &'static str,
}

const fn exception(
    controller: &'static str,
    verb: &'static str,
    resource: &'static str,
    reason: &'static str,
) -> Exception {
    Exception {
        controller,
        verb,
        resource,
        reason,
    }
}

/// At most ten beside the three that a test takes away (`rights.rs` of the test kit).
const EXCEPTIONS: &[Exception] = &[
    exception(
        "kite-user",
        "bind",
        "rbac.authorization.k8s.io/clusterroles",
        "the server asks about it; proved by taking it away",
    ),
    exception(
        "kite-vm",
        "create",
        "cdi.kubevirt.io/datavolumes/source",
        "CDI asks about it; proved by taking it away",
    ),
    exception(
        "kite-vm",
        "update",
        "kite.dev/kitevirtualmachines/finalizers",
        "the server asks about it; proved by taking it away",
    ),
    exception(
        "*",
        "patch",
        "events.k8s.io/events",
        "the same event again within minutes is counted up in place",
    ),
    exception(
        "*",
        "create",
        "events.k8s.io/events",
        "a mirror tells only of what has stood for long",
    ),
    exception(
        "kite-vm",
        "get",
        "kite.dev/kitehostclaims",
        "only when two machines ask for a host between one watch event and the next",
    ),
];

/// One right: who may do what to which resource.
type Right = (&'static str, &'static str, String);

/// Reads the audit logs in a folder and reports the rights that nothing used.
pub(crate) fn check(folder: &Path) -> Result<()> {
    let requests = read_folder(folder)?;
    let used = used(&requests);
    let granted = granted();
    let unused: Vec<String> = unused(&granted, &used)
        .into_iter()
        .map(|(who, verb, resource)| format!("{who}: {verb} {resource}"))
        .collect();
    println!(
        "{} rights, {} requests in the logs, {} exceptions, {} unused",
        granted.len(),
        requests.len(),
        EXCEPTIONS.len(),
        unused.len()
    );
    for exception in EXCEPTIONS {
        println!(
            "not to be seen in a log: {}: {} {}: {}",
            exception.controller, exception.verb, exception.resource, exception.reason
        );
    }
    if unused.is_empty() {
        return Ok(());
    }
    bail!(
        "no test used these rights; write one that does, or take them out of RULES:\n  {}",
        unused.join("\n  ")
    )
}

fn granted() -> Vec<Right> {
    let mut granted = Vec::new();
    for controller in controllers() {
        let mut rules = controller.rules;
        if controller.name == "kite-vm" {
            rules.extend(shared_roles::VM_SECRETS.iter().copied());
        }
        for rule in rules {
            for resource in rule.resources {
                let target = if rule.group.is_empty() {
                    (*resource).to_owned()
                } else {
                    format!("{}/{resource}", rule.group)
                };
                granted.extend(
                    rule.verbs
                        .iter()
                        .map(|v| (controller.name, *v, target.clone())),
                );
            }
        }
    }
    granted
}

/// What was done and allowed, by user, verb and resource.
fn used(requests: &[Request]) -> BTreeSet<(String, String, String)> {
    let mut used = BTreeSet::new();
    for request in requests.iter().filter(|r| r.code != 403 && r.code != 401) {
        let Some(name) = request
            .user
            .strip_prefix("system:serviceaccount:kite-system:")
        else {
            continue;
        };
        let mut use_of =
            |verb: &str| used.insert((name.to_owned(), verb.to_owned(), request.target()));
        use_of(&request.verb);
        // Kite creates by server-side apply, for which the server asks for both rights.
        if request.verb == "create" && request.uri.contains("fieldManager=") {
            use_of("patch");
        }
    }
    used
}

fn unused(granted: &[Right], used: &BTreeSet<(String, String, String)>) -> Vec<Right> {
    let excused = |(who, verb, resource): &Right| {
        EXCEPTIONS.iter().any(|e| {
            (e.controller == "*" || e.controller == *who)
                && e.verb == *verb
                && e.resource == *resource
        })
    };
    granted
        .iter()
        .filter(|r| !excused(r) && !used.contains(&(r.0.to_owned(), r.1.to_owned(), r.2.clone())))
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_that_nothing_used_is_found_and_a_used_one_is_not() {
        let granted = vec![
            ("kite-vm", "delete", "services".to_owned()),
            ("kite-vm", "get", "services".to_owned()),
        ];
        let used = BTreeSet::from([(
            "kite-vm".to_owned(),
            "delete".to_owned(),
            "services".to_owned(),
        )]);
        assert_eq!(
            unused(&granted, &used),
            [("kite-vm", "get", "services".to_owned())]
        );
    }

    #[test]
    fn there_are_few_exceptions() {
        assert!(EXCEPTIONS.len() <= 13);
    }
}
