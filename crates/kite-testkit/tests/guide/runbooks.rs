//! The commands by which a runbook has one look: each names kinds, fields and flags that
//! exist. What it finds depends on the trouble, so that is not looked at.

use std::fs;

use anyhow::{Result, ensure};

use crate::ground::Ground;
use crate::page::docs;

/// What only reads.
const READS: [&str; 5] = [
    "get ",
    "describe ",
    "auth can-i ",
    "rollout status ",
    "top ",
];

/// What kubectl says where the cluster lacks something that is not Kite's, and not that a
/// command is wrong: the Prometheus operator, snapshots, a metrics server.
const OF_OTHERS: [&str; 7] = [
    "resource type \"servicemonitors\"",
    "resource type \"podmonitors\"",
    "resource type \"prometheus\"",
    "resource type \"volumesnapshotclass\"",
    "resource type \"kubevirt\"",
    "resource type \"cdi\"",
    "Metrics API not available",
];

/// What an administrator puts in for a page's words.
const WORDS: [(&str, &str); 4] = [
    ("<namespace>", "alice"),
    ("<name>", "db"),
    ("<kind>", "ktvm"),
    ("<node>", "kite-node-0"),
];

/// Runs what only reads of all pages; says how many there are.
pub(crate) async fn look(ground: &Ground) -> Result<usize> {
    let mut wrong = Vec::new();
    let mut ran = 0;
    for (page, command) in commands()? {
        let script = format!(
            "set +e +o pipefail; C=kite-vm NS=kite-system KIND=ktvm REASON=Ready\n\
            POD=$(kubectl get pods -n $NS -l app.kubernetes.io/name=$C -o jsonpath='{{.items[0].metadata.name}}')\n\
            {command}\ntrue"
        );
        let (_, said) = ground.shell(&script).await?;
        if let Some(error) = mistake(&said) {
            wrong.push(format!("docs/runbooks/{page}: {command}\n  {error}"));
        }
        ran += 1;
    }
    ensure!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    ensure!(ran >= 60, "only {ran} commands were found in the runbooks");
    Ok(ran)
}

/// What kubectl says of a command that is wrong. The server's refusals begin with a capital.
fn mistake(said: &str) -> Option<&str> {
    let known = |line: &str| OF_OTHERS.iter().any(|other| line.contains(other));
    said.lines()
        .find(|line| line.starts_with("error:") && !known(line))
}

fn commands() -> Result<Vec<(String, String)>> {
    let mut commands = Vec::new();
    for entry in fs::read_dir(docs().join("runbooks"))? {
        let path = entry?.path();
        let page = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        for line in fs::read_to_string(&path)?.lines() {
            let reads = line.strip_prefix("kubectl ").is_some_and(|rest| {
                READS.iter().any(|verb| rest.starts_with(verb)) && !rest.contains("--watch")
            });
            if reads {
                let typed = WORDS.iter().fold(line.to_owned(), |line, (word, meant)| {
                    line.replace(word, meant)
                });
                commands.push((page.clone(), typed));
            }
        }
    }
    commands.sort();
    Ok(commands)
}

#[test]
fn a_command_that_is_wrong_is_told_from_one_that_finds_nothing() {
    for wrong in [
        "error: the server doesn't have a resource type \"kitevm\"",
        "NAME\nerror: unknown flag: --namspace",
    ] {
        assert!(mistake(wrong).is_some(), "{wrong}");
    }
    for fine in [
        "No resources found",
        "Error from server (NotFound): pods \"a\" not found",
        "error: the server doesn't have a resource type \"servicemonitors\"",
    ] {
        assert_eq!(mistake(fine), None);
    }
}
