//! What BuildKit makes of the Dockerfile, target by target.

use std::collections::BTreeMap;

use kite_api::labels::Controller;
use kite_testkit::command_line;
use kite_testkit::programs::{self, Program};
use serde::Deserialize;
use serde_json::json;

use crate::workspace::{self, root};

/// What the image of a target is, as BuildKit would store it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Image {
    user: String,
    entrypoint: Vec<String>,
    env: Vec<String>,
    labels: BTreeMap<String, String>,
    /// The images that are fetched for it.
    bases: Vec<String>,
    warnings: Vec<String>,
    error: String,
}

fn dockerfile() -> String {
    workspace::read(&root().join("xtask/image/Dockerfile")).unwrap()
}

/// What BuildKit says of each target.
async fn judge(text: &str, targets: &[&str]) -> Vec<Image> {
    let program = programs::find_all(&[Program::Dockerfile]).await.unwrap();
    let arguments = json!({"VERSION": "1.2.3", "REVISION": "abc", "SOURCE": "https://example.org"});
    let questions = targets.iter().map(|target| {
        let question = json!({"dockerfile": text, "target": target, "args": arguments});
        question.to_string() + "\n"
    });
    let questions: String = questions.collect();
    let command = tokio::process::Command::new(&program[0]);
    let said = command_line::run(command, &questions).await.unwrap();
    let answers = said.ok().unwrap();
    answers
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The instructions of the stage of this name, with continued lines joined.
fn stage(text: &str, name: &str) -> Vec<String> {
    let text = text.replace("\\\n", " ");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .skip_while(|line| !(line.starts_with("FROM ") && line.ends_with(&format!(" AS {name}"))))
        .enumerate()
        .take_while(|(number, line)| *number == 0 || !line.starts_with("FROM "))
        .map(|(_, line)| line.trim().to_owned())
        .filter(|line| !line.is_empty())
        .collect()
}

#[tokio::test]
async fn buildkit_takes_every_target_for_one_program_of_nobody() {
    let names = Controller::ALL.map(Controller::name);
    let images = judge(&dockerfile(), &names).await;
    assert_eq!(images.len(), names.len());
    for (name, image) in names.iter().zip(&images) {
        assert_eq!(image.error, "", "{name}");
        assert_eq!(image.warnings, [""; 0], "{name}");
        // A number, or the kubelet cannot tell that it is not root.
        assert_eq!(image.user, "65532:65532", "{name}");
        assert_eq!(image.entrypoint, [format!("/{name}")]);
        // BuildKit's own; nothing is set beside it.
        assert!(
            image.env.iter().all(|e| e.starts_with("PATH=")),
            "{image:?}"
        );
        let label = |key: &str| image.labels[&format!("org.opencontainers.image.{key}")].as_str();
        assert_eq!(label("title"), *name);
        assert_eq!(label("version"), "1.2.3");
        assert_eq!(label("revision"), "abc");
        assert_eq!(label("source"), "https://example.org");
        assert_eq!(label("licenses"), "Apache-2.0");
        assert!(label("description").len() > 20, "{name}");
        // The compiler is the one thing that comes from elsewhere, and by its content.
        assert_eq!(image.bases.len(), 1, "{image:?}");
        assert!(image.bases[0].contains("@sha256:"), "{image:?}");
    }
}

#[tokio::test]
async fn buildkit_refuses_what_is_badly_written_and_what_is_not_there() {
    let shell = dockerfile().replace(r#"ENTRYPOINT ["/kite-vm"]"#, "ENTRYPOINT /kite-vm");
    let said = judge(&shell, &["kite-vm", "kite-api"]).await;
    // The Dockerfile's first line makes every warning an error.
    assert!(said[0].error.contains("lint violation"), "{said:?}");
    assert!(said[0].warnings.concat().contains("JSON"), "{said:?}");
    assert!(said[1].error.contains("kite-api"), "{said:?}");
}

#[test]
fn an_image_holds_its_program_and_the_licences_and_nothing_else() {
    let text = dockerfile();
    let base = stage(&text, "base");
    assert_eq!(base[0], "FROM scratch AS base");
    let copied = |stage: &[String]| -> Vec<String> {
        let copies = stage
            .iter()
            .filter(|i| i.starts_with("COPY ") || i.starts_with("ADD "));
        copies.cloned().collect()
    };
    assert_eq!(copied(&base), ["COPY --from=build /licences /licenses"]);
    for name in Controller::ALL.map(Controller::name) {
        let own = stage(&text, name);
        assert_eq!(own[0], format!("FROM base AS {name}"));
        assert_eq!(
            copied(&own),
            [format!("COPY --from=build /out/{name} /{name}")]
        );
        assert!(!own.iter().any(|i| i.starts_with("RUN ")), "{own:?}");
    }
}

#[test]
fn the_build_makes_all_six_from_the_lock_file_and_collects_their_licences() {
    let build = stage(&dockerfile(), "build").join("\n");
    let script = workspace::read(&root().join("xtask/image/licences.sh")).unwrap();
    for name in Controller::ALL.map(Controller::name) {
        let named = |text: &str| {
            text.split_whitespace()
                .any(|word| word.trim_end_matches(';') == name)
        };
        assert!(named(&build), "{name} is not built");
        assert!(named(&script), "{name} is without licences");
    }
    assert!(build.contains("--locked"), "{build}");
}

#[tokio::test]
async fn the_licences_of_what_is_linked_are_collected_and_those_of_what_only_builds_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = tokio::process::Command::new("sh");
    command.arg("xtask/image/licences.sh").arg(folder.path());
    command.current_dir(root());
    let said = command_line::run(command, "").await.unwrap();
    assert!(said.success, "{}", said.stderr);
    let read = |file: &str| workspace::read(&folder.path().join(file)).unwrap();
    assert!(read("NOTICE").contains("Kite"));
    let list = read("third-party/LIST");
    let listed = |name: &str| {
        list.lines()
            .find(|line| line.starts_with(&format!("{name} v")))
    };
    assert!(listed("ring").is_some(), "{list}");
    for other in ["kite-vm", "serde_derive", "cc"] {
        assert_eq!(listed(other), None);
    }
    let tokio: Vec<_> = listed("tokio").unwrap().split(' ').collect();
    let text = format!(
        "third-party/tokio-{}/LICENSE",
        tokio[1].trim_start_matches('v')
    );
    assert!(read(&text).contains("Permission is hereby granted"));
}

#[test]
fn nothing_but_sources_is_sent_to_the_build() {
    let ignored = workspace::read(&root().join("xtask/image/Dockerfile.dockerignore")).unwrap();
    let rules: Vec<_> = ignored
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    assert_eq!(rules[0], "*");
    for rule in &rules[1..] {
        let path = rule.strip_prefix('!').unwrap();
        assert!(root().join(path).exists(), "{path} is nowhere");
    }
}
