//! Who may depend on whom, and what must be nowhere in the tree.
//!
//! Cargo is asked for the facts; the judgement is a function of its answer.
//! Unused dependencies are not looked for.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use kite_api::labels::Controller;
use serde_json::Value;

use super::Problem;
use crate::workspace;

/// The crates that anybody may use without getting a client.
const PURE: [&str; 3] = ["kite-api", "kite-kubevirt", "kite-render"];

/// What makes a dependency tree impure: a client, or what only a client brings.
const CLIENT: [&str; 5] = ["kube-client", "kube-runtime", "hyper", "reqwest", "tokio"];

/// What must not be in the lock file, and why.
const BANNED: [(&str, &str); 5] = [
    ("aws-lc-rs", "ring is the one TLS provider"),
    ("aws-lc-sys", "ring is the one TLS provider"),
    ("openssl", "rustls is the one TLS library"),
    ("openssl-sys", "rustls is the one TLS library"),
    ("native-tls", "rustls is the one TLS library"),
];

/// What must be there in one version: an object of one is not an object of the other.
const SINGLE: [&str; 6] = [
    "k8s-openapi",
    "kube",
    "kube-client",
    "kube-core",
    "rustls",
    "schemars",
];

/// One crate's own declaration of a dependency on another crate of the workspace.
struct Edge {
    from: String,
    to: String,
    /// Whether only tests use it.
    dev: bool,
    manifest: String,
    line: usize,
}

/// All problems with dependencies.
pub(super) fn run() -> Result<Vec<Problem>> {
    let mut problems: Vec<_> = edges()?.iter().filter_map(wrong_way).collect();
    for name in PURE {
        let tree = cargo(&[
            "tree", "--locked", "-p", name, "-e", "normal", "--prefix", "none", "-f", "{p}",
        ])?;
        problems.extend(impure(name, &tree));
    }
    let lock = workspace::read(&workspace::root().join("Cargo.lock"))?;
    problems.extend(lock_file(&lock));
    Ok(problems)
}

/// The crates of the workspace that a crate's shipped code may name.
fn allowed(from: &str) -> &'static [&'static str] {
    match from {
        "kite-api" => &[],
        "kite-kubevirt" | "kite-runtime" => &["kite-api"],
        "kite-render" => &["kite-api", "kite-kubevirt"],
        _ => &["kite-api", "kite-kubevirt", "kite-render", "kite-runtime"],
    }
}

fn wrong_way(edge: &Edge) -> Option<Problem> {
    let Edge { from, to, .. } = edge;
    // What nobody ships may use everything.
    let free = ["xtask", "kite-pass"].contains(&from.as_str())
        || (from == "kite-bench" && to == "kite-testkit");
    let for_tests = edge.dev && !Controller::ALL.iter().any(|c| c.name() == to);
    if free || for_tests || allowed(from).contains(&to.as_str()) {
        return None;
    }
    Some(Problem::new(
        &edge.manifest,
        edge.line,
        format!(
            "{from} must not depend on {to}; dependencies point from the controllers to kite-runtime, kite-render and kite-kubevirt, and from these to kite-api"
        ),
    ))
}

/// Clients in a pure crate's tree, one line of `cargo tree` for each package.
fn impure(name: &str, tree: &str) -> Vec<Problem> {
    CLIENT
        .iter()
        .filter(|client| {
            tree.lines()
                .any(|line| line.split(' ').next() == Some(**client))
        })
        .map(|client| {
            Problem::new(
                &format!("crates/{name}/Cargo.toml"),
                1,
                format!(
                    "{client} is in the tree of {name}, which must stay free of a client; `cargo tree -p {name} -i {client}` shows the way"
                ),
            )
        })
        .collect()
}

/// Banned packages and second versions in a lock file.
fn lock_file(lock: &str) -> Vec<Problem> {
    let packages: Vec<(usize, &str)> = (1..)
        .zip(lock.lines())
        .filter_map(|(number, line)| {
            let name = line.strip_prefix("name = \"")?.strip_suffix('"')?;
            Some((number, name))
        })
        .collect();
    let mut problems = Vec::new();
    for (index, &(line, name)) in packages.iter().enumerate() {
        if let Some((_, why)) = BANNED.iter().find(|(banned, _)| *banned == name) {
            let text = format!(
                "{name} is in the tree, and {why}; `cargo tree -i {name}` shows who brings it"
            );
            problems.push(Problem::new("Cargo.lock", line, text));
        }
        let again = packages[..index].iter().any(|(_, other)| *other == name);
        if again && SINGLE.contains(&name) {
            let text = format!(
                "{name} is there in two versions; bring those who ask for the other one to the same"
            );
            problems.push(Problem::new("Cargo.lock", line, text));
        }
    }
    problems
}

fn cargo(arguments: &[&str]) -> Result<String> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(program)
        .args(arguments)
        .current_dir(workspace::root())
        .output()
        .context("cannot start cargo")?;
    if !output.status.success() {
        bail!(
            "cargo {} failed: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// The declarations between crates of the workspace.
fn edges() -> Result<Vec<Edge>> {
    let text = cargo(&["metadata", "--no-deps", "--format-version", "1"])?;
    let metadata: Value = serde_json::from_str(&text)?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    let mut edges = Vec::new();
    for package in packages {
        let path = Path::new(package["manifest_path"].as_str().unwrap_or_default());
        let manifest = workspace::read(path)?;
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let to = dependency["name"].as_str().unwrap_or_default();
            // Only crates of the workspace have a path.
            if dependency["path"].is_null() {
                continue;
            }
            let declared = manifest.lines().position(|line| line.starts_with(to));
            edges.push(Edge {
                from: package["name"].as_str().unwrap_or_default().to_owned(),
                to: to.to_owned(),
                dev: dependency["kind"] == "dev",
                manifest: workspace::shown(path),
                line: declared.map_or(1, |index| index + 1),
            });
        }
    }
    Ok(edges)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: &str, to: &str, dev: bool) -> Option<Problem> {
        wrong_way(&Edge {
            from: from.to_owned(),
            to: to.to_owned(),
            dev,
            manifest: "Cargo.toml".to_owned(),
            line: 1,
        })
    }

    #[test]
    fn dependencies_that_follow_the_design_pass() {
        for (from, to) in [
            ("kite-vm", "kite-render"),
            ("kite-vm", "kite-runtime"),
            ("kite-render", "kite-kubevirt"),
            ("kite-runtime", "kite-api"),
            ("xtask", "kite-vm"),
            ("kite-pass", "kite-vm"),
        ] {
            assert_eq!(edge(from, to, false), None, "{from} → {to}");
        }
        assert_eq!(edge("kite-vm", "kite-testkit", true), None);
    }

    #[test]
    fn dependencies_against_the_design_are_found() {
        for (from, to, dev) in [
            ("kite-api", "kite-kubevirt", false),
            ("kite-render", "kite-runtime", false),
            ("kite-runtime", "kite-render", false),
            ("kite-vm", "kite-user", false),
            ("kite-vm", "kite-user", true),
            ("kite-vm", "kite-testkit", false),
            ("kite-testkit", "kite-vm", false),
        ] {
            assert!(edge(from, to, dev).is_some(), "{from} → {to}");
        }
    }

    #[test]
    fn a_client_in_a_pure_tree_is_found_and_a_name_that_contains_one_is_not() {
        let clean = "kite-api v0.1.0 (/x)\nkube-core v5.0.0\nhyperloglog v1.0.0\n";
        assert_eq!(impure("kite-api", clean), []);
        let tree = format!("{clean}hyper v1.0.0\nkube-client v5.0.0\n");
        assert_eq!(impure("kite-api", &tree).len(), 2);
    }

    #[test]
    fn a_banned_package_and_a_second_version_are_found_with_their_lines() {
        let package = |name: &str| format!("[[package]]\nname = \"{name}\"\nversion = \"1\"\n");
        let good = package("kube") + &package("syn") + &package("syn");
        assert_eq!(lock_file(&good), []);
        let bad = good + &package("kube") + &package("openssl");
        let lines: Vec<_> = lock_file(&bad).iter().map(|p| p.line).collect();
        assert_eq!(lines, [11, 14]);
    }
}
