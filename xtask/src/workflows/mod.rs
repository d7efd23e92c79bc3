//! What is asked of the workflows and of the Dockerfile, which nothing here can run.
//!
//! GitHub's own syntax is judged by actionlint, the Dockerfile by BuildKit's
//! frontend; here is what these projects cannot know: that rights are least,
//! programs pinned, commands of ours existing and lists of the six whole. Tests
//! only: a workflow is wrong before it is pushed, or never seen.

mod checks;
mod dockerfile;

use std::path::PathBuf;

use kite_api::labels::Controller;
use kite_testkit::command_line;
use kite_testkit::programs::{self, Program};
use serde_json::Value;

use crate::workspace::{self, Source, root};
use checks::Workflow;

/// Where the workflows are, from the top folder.
const FOLDER: &str = ".github/workflows";

fn paths() -> Vec<PathBuf> {
    let paths = workspace::files(&root().join(FOLDER), "yml").unwrap();
    assert!(paths.len() >= 4, "{paths:?}");
    paths
}

fn workflows() -> Vec<Workflow> {
    let sources = paths().into_iter().map(|path| Source::read(&path).unwrap());
    sources
        .map(|source| Workflow::new(source).unwrap())
        .collect()
}

fn workflow(name: &str) -> Value {
    let path = root().join(FOLDER).join(name);
    serde_saphyr::from_str(&workspace::read(&path).unwrap()).unwrap()
}

#[test]
fn every_workflow_has_least_rights_limits_and_pinned_actions() {
    let problems: Vec<_> = workflows().iter().flat_map(checks::check).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[tokio::test]
async fn actionlint_finds_nothing() {
    let program = programs::find_all(&[Program::Actionlint]).await.unwrap();
    let mut command = tokio::process::Command::new(&program[0]);
    // The scripts are shell, whose linter is not a program that everybody has.
    command.args(["-no-color", "-shellcheck=", "-pyflakes="]);
    command.args(paths()).current_dir(root());
    let said = command_line::run(command, "").await.unwrap();
    assert!(said.success, "{}{}", said.stdout, said.stderr);

    let mut broken = tokio::process::Command::new(&program[0]);
    broken.args(["-no-color", "-shellcheck=", "-pyflakes=", "-"]);
    let text =
        "on: push\njobs: {a: {runs-on: ubuntu-24.04, steps: [{run: 'echo ${{ secret.x }}'}]}}\n";
    let said = command_line::run(broken, text).await.unwrap();
    assert!(said.stdout.contains("secret"), "{}", said.stdout);
}

#[test]
fn a_release_joins_and_signs_the_images_of_all_six() {
    let release = workflow("release.yml");
    let all = serde_json::json!(Controller::ALL.map(Controller::name));
    assert_eq!(
        release["jobs"]["join"]["strategy"]["matrix"]["controller"],
        all
    );
    let loops = Controller::ALL.map(Controller::name).join(" ");
    for job in ["check", "bills"] {
        let text = release["jobs"][job].to_string();
        assert!(
            text.contains(&format!("for controller in {loops};")),
            "{job}"
        );
    }
}

#[test]
fn one_toolchain_builds_everywhere_and_is_the_oldest_that_cargo_allows() {
    let manifest = workspace::read(&root().join("Cargo.toml")).unwrap();
    let oldest = manifest.split("rust-version = \"").nth(1).unwrap();
    let oldest = format!("{}.0", oldest.split('"').next().unwrap());
    for workflow in workflows() {
        for line in workflow.source.text.lines() {
            let Some((_, rest)) = line.split_once("rustup toolchain install ") else {
                continue;
            };
            let version = rest.split(' ').next().unwrap();
            assert_eq!(version, oldest, "{}", workflow.source.path);
            assert!(
                line.ends_with(&format!("rustup default {version}")),
                "{line}"
            );
        }
    }
    let dockerfile = workspace::read(&root().join("xtask/image/Dockerfile")).unwrap();
    assert!(dockerfile.contains(&format!("FROM rust:{oldest}-")));
}
