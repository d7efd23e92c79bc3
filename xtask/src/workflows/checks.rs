//! What holds for every workflow, as functions from its text to what is wrong with it.

use anyhow::{Context, Result};
use clap::Parser;
use serde_json::{Map, Value};

use crate::Cli;
use crate::workspace::Source;

/// Hosts of images that a workflow must not name: the registry is the repository's variable.
const REGISTRIES: [&str; 6] = [
    "ghcr.io",
    "docker.io",
    "quay.io",
    "gcr.io",
    "registry.k8s.io",
    "amazonaws.com",
];

/// A workflow, as text and as data.
pub(super) struct Workflow {
    pub(super) source: Source,
    data: Value,
}

impl Workflow {
    pub(super) fn new(source: Source) -> Result<Self> {
        let data = serde_saphyr::from_str(&source.text)
            .with_context(|| format!("{} is no YAML", source.path))?;
        Ok(Self { source, data })
    }

    fn jobs(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.data["jobs"]
            .as_object()
            .into_iter()
            .flat_map(Map::iter)
    }

    fn steps(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.jobs().flat_map(|(name, job)| {
            let steps = job["steps"].as_array().into_iter().flatten();
            steps.map(move |step| (name, step))
        })
    }
}

/// All that is wrong with a workflow.
pub(super) fn check(workflow: &Workflow) -> Vec<String> {
    let checks = [top, jobs, actions, scripts, commands, registries];
    let problems = checks.iter().flat_map(|check| check(workflow));
    problems
        .map(|problem| format!("{}: {problem}", workflow.source.path))
        .collect()
}

fn top(workflow: &Workflow) -> Vec<String> {
    let mut problems = Vec::new();
    if workflow.data["permissions"] != serde_json::json!({}) {
        problems.push("give no right at the top, `permissions: {}`, and each job its own".into());
    }
    if workflow.data["concurrency"]["group"].is_null() {
        problems.push("say what runs of it exclude one another, `concurrency`".into());
    }
    // YAML 1.1 reads the key `on` as true.
    let triggers = [&workflow.data["on"], &workflow.data["true"]].map(Value::to_string);
    if triggers.iter().any(|t| t.contains("pull_request_target")) {
        problems.push("pull_request_target runs a stranger's code with our rights".into());
    }
    problems
}

fn jobs(workflow: &Workflow) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, job) in workflow.jobs() {
        if !job["timeout-minutes"].is_u64() {
            problems.push(format!("{name} has no timeout-minutes"));
        }
        if !job["permissions"].is_object() {
            problems.push(format!("{name} does not say which permissions it needs"));
        }
        let runner = job["runs-on"].as_str().unwrap_or_default();
        if runner.contains("latest") {
            problems.push(format!("{name} runs on {runner}, which changes by itself"));
        }
    }
    problems
}

fn actions(workflow: &Workflow) -> Vec<String> {
    let mut problems = Vec::new();
    for (number, line) in workflow.source.lines() {
        let line = line.trim().trim_start_matches("- ");
        let Some(used) = line.strip_prefix("uses: ") else {
            continue;
        };
        if !is_pinned(used) {
            problems.push(format!(
                "line {number}: pin {used} by the commit, with its version behind: `@<commit> # v1.2.3`"
            ));
        }
    }
    for (job, step) in workflow.steps() {
        let checkout = step["uses"]
            .as_str()
            .is_some_and(|uses| uses.starts_with("actions/checkout@"));
        if checkout && step["with"]["persist-credentials"] != false {
            problems.push(format!(
                "{job} leaves its token in the clone; set persist-credentials: false"
            ));
        }
    }
    problems
}

/// `name@<40 hexadecimal digits> # v1.2.3`.
fn is_pinned(used: &str) -> bool {
    let Some((action, version)) = used.split_once(" # v") else {
        return false;
    };
    let commit = action.split_once('@').map_or("", |(_, commit)| commit);
    commit.len() == 40
        && commit.bytes().all(|b| b.is_ascii_hexdigit())
        && version.split('.').count() == 3
}

/// A value that is pasted into a script can be a script; in the environment it is a word.
fn scripts(workflow: &Workflow) -> Vec<String> {
    let pasted = workflow
        .steps()
        .filter(|(_, step)| step["run"].as_str().is_some_and(|run| run.contains("${{")));
    pasted
        .map(|(job, _)| format!("{job} pastes ${{{{ }}}} into a script; hand it over with env"))
        .collect()
}

fn commands(workflow: &Workflow) -> Vec<String> {
    let runs = workflow
        .steps()
        .filter_map(|(_, step)| step["run"].as_str());
    runs.flat_map(str::lines)
        .filter_map(|line| Some(line.split_once("cargo xtask ")?.1))
        .filter_map(|arguments| unknown(arguments).err())
        .collect()
}

/// Asks the command line itself; a shell's variables and redirections are not its business.
fn unknown(arguments: &str) -> Result<(), String> {
    let words = arguments.split([' ', ';', '|']);
    let words = words.take_while(|word| !word.starts_with('>') && *word != "&&");
    let words = words
        .filter(|word| !word.is_empty())
        .map(|word| word.trim_matches('"'));
    Cli::try_parse_from(["cargo xtask"].into_iter().chain(words))
        .map(drop)
        .map_err(|error| format!("`cargo xtask {arguments}`: {error}"))
}

fn registries(workflow: &Workflow) -> Vec<String> {
    let named = workflow.source.lines().filter_map(|(number, line)| {
        let host = REGISTRIES.iter().find(|host| line.contains(**host))?;
        Some(format!(
            "line {number} names {host}; the registry is vars.REGISTRY"
        ))
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
on: push
permissions: {}
concurrency: {group: a}
jobs:
  one:
    runs-on: ubuntu-24.04
    timeout-minutes: 5
    permissions: {contents: read}
    steps:
      - uses: actions/checkout@de0fac2e4500dabe0009e67214ff5f5447ce83dd # v6.0.2
        with: {persist-credentials: false}
      - run: |
          cargo xtask mutants "$CRATE"
          cargo xtask release notes "$TAG" >"$RUNNER_TEMP/notes.md"
"#;

    fn found(text: &str) -> Vec<String> {
        let source = Source {
            path: "a.yml".into(),
            text: text.into(),
        };
        check(&Workflow::new(source).unwrap())
    }

    #[test]
    fn a_workflow_as_it_should_be_passes() {
        assert_eq!(found(GOOD), Vec::<String>::new());
    }

    #[test]
    fn each_thing_that_is_left_out_or_wrong_is_found() {
        for (from, to, said) in [
            (
                "permissions: {}",
                "permissions: {contents: read}",
                "at the top",
            ),
            ("concurrency: {group: a}", "name: a", "exclude one another"),
            ("on: push", "on: [pull_request_target]", "stranger's code"),
            ("    timeout-minutes: 5\n", "", "no timeout-minutes"),
            (
                "    permissions: {contents: read}\n",
                "",
                "which permissions",
            ),
            ("ubuntu-24.04", "ubuntu-latest", "changes by itself"),
            (
                "@de0fac2e4500dabe0009e67214ff5f5447ce83dd # v6.0.2",
                "@v6",
                "pin actions/checkout@v6",
            ),
            (" # v6.0.2", "", "pin actions/checkout@de0"),
            ("de0fac2", "xxxxxxx", "pin actions/checkout@xxx"),
            (
                "{persist-credentials: false}",
                "{ref: main}",
                "leaves its token",
            ),
            ("\"$CRATE\"", "${{ matrix.crate }}", "into a script"),
            ("xtask mutants", "xtask mutate", "unrecognized subcommand"),
            ("release notes", "release tell", "unrecognized subcommand"),
            (
                "mutants \"$CRATE\"",
                "image --pull a",
                "unexpected argument",
            ),
            ("\"$CRATE\"", "# from ghcr.io", "names ghcr.io"),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let problems = found(&GOOD.replace(from, to)).join("\n");
            assert!(problems.contains(said), "{to}: {problems}");
        }
    }
}
