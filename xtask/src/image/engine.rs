//! The three engines that can build a Dockerfile, and their words for the same things.
//!
//! What an engine is asked is a function of the plan, so that it can be read and
//! tested where there is none.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};
use clap::ValueEnum;
use kite_api::labels::Controller;

use super::{DOCKERFILE, Destination, Plan};

/// What builds images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// Docker with buildx.
    Docker,
    /// Podman.
    Podman,
    /// Buildah.
    Buildah,
}

impl Engine {
    /// In the order in which they are looked for: only the first pushes by digest.
    const ALL: [Self; 3] = [Self::Docker, Self::Podman, Self::Buildah];

    /// Its program.
    const fn program(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
            Self::Buildah => "buildah",
        }
    }

    /// What must answer before it is used; Docker is there without its builder or its daemon, too.
    const fn proofs(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::Docker => &[
                &["buildx", "version"],
                &["version", "--format", "{{.Server.Version}}"],
            ],
            Self::Podman | Self::Buildah => &[&["version"]],
        }
    }

    /// The wanted engine, or the first that works; the error says of each why it does not.
    pub(super) fn find(wanted: Option<Self>) -> Result<Self> {
        let candidates = wanted.map_or_else(|| Self::ALL.to_vec(), |engine| vec![engine]);
        first_that_works(&candidates, answers)
    }

    /// The commands that carry out the plan.
    pub(super) fn commands(self, plan: &Plan) -> Result<Vec<Vec<String>>> {
        let by_digest = matches!(plan.destination, Destination::Digests(_));
        if by_digest && self != Self::Docker {
            bail!(
                "--digests needs docker with buildx; {} has no such push",
                self.program()
            );
        }
        if plan.destination == Destination::Engine
            && self == Self::Docker
            && plan.platforms.len() > 1
        {
            bail!(
                "docker keeps the image of one platform; give one with --platform, or --push them all"
            );
        }
        let each = plan.controllers.iter().map(|controller| match self {
            Self::Docker => vec![buildx(plan, *controller)],
            Self::Podman | Self::Buildah => self.build_and_push(plan, *controller),
        });
        Ok(each.flatten().collect())
    }

    fn build_and_push(self, plan: &Plan, controller: Controller) -> Vec<Vec<String>> {
        let name = plan.name(controller);
        let several = plan.platforms.len() > 1;
        let mut build = words(&[self.program(), "build"]);
        build.extend(sources(plan, controller));
        if let Some(time) = &plan.time {
            build.extend(words(&["--timestamp", time]));
        }
        let naming = if several { "--manifest" } else { "--tag" };
        build.extend(words(&[naming, &name, "."]));
        let mut commands = vec![build];
        if plan.destination == Destination::Registry {
            commands.push(if several {
                let there = format!("docker://{name}");
                words(&[self.program(), "manifest", "push", "--all", &name, &there])
            } else {
                words(&[self.program(), "push", &name])
            });
        }
        commands
    }
}

fn buildx(plan: &Plan, controller: Controller) -> Vec<String> {
    let mut command = words(&["docker", "buildx", "build"]);
    command.extend(sources(plan, controller));
    if let Some(time) = &plan.time {
        command.extend(words(&[
            "--build-arg",
            &format!("SOURCE_DATE_EPOCH={time}"),
        ]));
    }
    // What a registry can keep beside an image: how it was built, and what is in it.
    let attested = ["--provenance=mode=max", "--sbom=true"];
    match &plan.destination {
        Destination::Nowhere => command.extend(words(&["--output", "type=cacheonly"])),
        Destination::Engine => {
            let name = plan.name(controller);
            command.extend(words(&["--provenance=false", "--load", "--tag", &name]));
        }
        Destination::Registry => {
            command.extend(words(&attested));
            let output = "type=image,push=true,rewrite-timestamp=true";
            command.extend(words(&[
                "--output",
                output,
                "--tag",
                &plan.name(controller),
            ]));
        }
        Destination::Digests(folder) => {
            command.extend(words(&attested));
            let output = format!(
                "type=image,name={},push-by-digest=true,name-canonical=true,push=true,rewrite-timestamp=true",
                plan.repository(controller)
            );
            let file = folder.join(format!("{}.json", controller.name()));
            let file = file.display().to_string();
            command.extend(words(&["--output", &output, "--metadata-file", &file]));
        }
    }
    command.push(".".into());
    command
}

/// What all engines call the same.
fn sources(plan: &Plan, controller: Controller) -> Vec<String> {
    let mut given = words(&["--file", DOCKERFILE, "--target", controller.name()]);
    if !plan.platforms.is_empty() {
        given.extend(words(&["--platform", &plan.platforms.join(",")]));
    }
    for (name, value) in &plan.arguments {
        given.extend(words(&["--build-arg", &format!("{name}={value}")]));
    }
    given
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// Whether an engine does its work here, or why not.
fn answers(engine: Engine) -> Result<(), String> {
    for proof in engine.proofs() {
        let output = Command::new(engine.program())
            .args(*proof)
            .stdin(Stdio::null())
            .output();
        match output {
            Err(_) => return Err("is not installed".into()),
            Ok(output) if !output.status.success() => {
                let said = String::from_utf8_lossy(&output.stderr);
                let said = said.lines().next().unwrap_or("no more is known").trim();
                return Err(format!("refuses `{}`: {said}", proof.join(" ")));
            }
            Ok(_) => {}
        }
    }
    Ok(())
}

fn first_that_works(
    candidates: &[Engine],
    answers: impl Fn(Engine) -> Result<(), String>,
) -> Result<Engine> {
    let mut reasons = Vec::new();
    for &engine in candidates {
        match answers(engine) {
            Ok(()) => return Ok(engine),
            Err(reason) => reasons.push(format!("{} {reason}", engine.program())),
        }
    }
    bail!(
        "nothing here can build an image:\n  {}\ninstall Docker with its buildx plugin and start its \
         daemon, or install Podman or Buildah; `cargo xtask release-build` builds the programs \
         without any of them, and --print shows what would be run",
        reasons.join("\n  ")
    )
}

#[cfg(test)]
mod tests {
    use super::super::{ImageOptions, shown};
    use super::*;

    /// Two controllers of a known commit.
    fn plan(options: &ImageOptions) -> Plan {
        let mut plan = Plan::new(options).unwrap();
        plan.controllers = vec![Controller::Vm, Controller::User];
        plan.tag = "1.2.3".into();
        plan.arguments = vec![("VERSION", "1.2.3".into()), ("REVISION", "abc".into())];
        plan.time = Some("17".into());
        plan
    }

    fn said(engine: Engine, options: &ImageOptions) -> Vec<String> {
        let commands = engine.commands(&plan(options)).unwrap();
        commands.iter().map(|words| shown(words)).collect()
    }

    fn pushed(digests: Option<&str>, platforms: &[&str]) -> ImageOptions {
        ImageOptions {
            push: Some("registry.example.org".into()),
            digests: digests.map(Into::into),
            platform: words(platforms),
            ..ImageOptions::default()
        }
    }

    const SOURCES: &str = "--file xtask/image/Dockerfile --target kite-vm";
    const ARGUMENTS: &str = "--build-arg VERSION=1.2.3 --build-arg REVISION=abc";

    #[test]
    fn without_a_destination_docker_only_builds() {
        assert_eq!(
            said(Engine::Docker, &ImageOptions::default())[0],
            format!(
                "docker buildx build {SOURCES} {ARGUMENTS} --build-arg SOURCE_DATE_EPOCH=17 --output type=cacheonly ."
            )
        );
    }

    #[test]
    fn each_controller_gets_its_own_target_and_name() {
        let load = ImageOptions {
            load: true,
            ..ImageOptions::default()
        };
        let said = said(Engine::Docker, &load);
        assert_eq!(said.len(), 2);
        assert!(
            said[0].ends_with("--load --tag kite/kite-vm:1.2.3 ."),
            "{}",
            said[0]
        );
        assert!(said[1].contains("--target kite-user "), "{}", said[1]);
        assert!(said[1].contains("kite/kite-user:1.2.3"), "{}", said[1]);
    }

    #[test]
    fn a_push_carries_what_the_image_is_made_of() {
        let said = &said(
            Engine::Docker,
            &pushed(None, &["linux/amd64", "linux/arm64"]),
        )[0];
        for part in [
            "--platform linux/amd64,linux/arm64",
            "--provenance=mode=max --sbom=true",
            "--tag registry.example.org/kite/kite-vm:1.2.3",
        ] {
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn a_push_by_digest_has_no_tag_and_leaves_a_file_for_each() {
        let said = &said(Engine::Docker, &pushed(Some("/tmp/digests"), &[]))[0];
        assert!(
            said.contains("name=registry.example.org/kite/kite-vm,push-by-digest=true"),
            "{said}"
        );
        assert!(
            said.contains("--metadata-file /tmp/digests/kite-vm.json"),
            "{said}"
        );
        assert!(!said.contains("--tag"), "{said}");
        let other = Engine::Podman.commands(&plan(&pushed(Some("/tmp/digests"), &[])));
        assert!(other.unwrap_err().to_string().contains("needs docker"));
    }

    #[test]
    fn podman_and_buildah_build_first_and_push_then() {
        assert_eq!(
            said(Engine::Podman, &pushed(None, &[]))[..2],
            [
                format!(
                    "podman build {SOURCES} {ARGUMENTS} --timestamp 17 --tag registry.example.org/kite/kite-vm:1.2.3 ."
                ),
                "podman push registry.example.org/kite/kite-vm:1.2.3".to_owned(),
            ]
        );
        let several = said(
            Engine::Buildah,
            &pushed(None, &["linux/amd64", "linux/arm64"]),
        );
        assert!(several[0].contains("--manifest registry.example.org/kite/kite-vm:1.2.3"));
        assert!(
            several[1].starts_with("buildah manifest push --all "),
            "{}",
            several[1]
        );
    }

    #[test]
    fn docker_refuses_to_keep_several_platforms_at_once() {
        let both = ImageOptions {
            load: true,
            platform: words(&["linux/amd64", "linux/arm64"]),
            ..ImageOptions::default()
        };
        let error = Engine::Docker.commands(&plan(&both)).unwrap_err();
        assert!(error.to_string().contains("--push them all"), "{error}");
    }

    #[test]
    fn without_an_engine_the_error_says_of_each_why_and_what_to_install() {
        let none = |engine| Err(format!("is missing ({engine:?})"));
        let error = first_that_works(&Engine::ALL, none)
            .unwrap_err()
            .to_string();
        for part in [
            "docker is missing (Docker)",
            "podman",
            "buildah",
            "install Docker with its buildx",
        ] {
            assert!(error.contains(part), "{error}");
        }
        let last = |engine| {
            if engine == Engine::Buildah {
                Ok(())
            } else {
                Err(String::new())
            }
        };
        assert_eq!(
            first_that_works(&Engine::ALL, last).unwrap(),
            Engine::Buildah
        );
    }
}
