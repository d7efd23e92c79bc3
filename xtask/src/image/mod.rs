//! `cargo xtask image`: the six images, from the one Dockerfile in `xtask/image`.
//!
//! Which engine builds and with which words is in [`engine`]; here is what shall
//! be built and where it shall go. Nothing is signed here and no tag is joined
//! from several architectures: that is a release's work, and needs its identity.

mod engine;
pub(crate) mod release_build;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;
use kite_api::labels::Controller;

use crate::workspace::root;
use engine::Engine;

/// Where the Dockerfile is, from the top folder.
const DOCKERFILE: &str = "xtask/image/Dockerfile";

/// What comes before a controller's name in its image's; the charts' `image.repository` begins with it.
const REPOSITORY: &str = "kite";

/// What `cargo xtask image` can be told.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ImageOptions {
    /// Only the images of these controllers.
    controllers: Vec<String>,
    /// Keep the images in the engine, to run them; without it and --push they are only built.
    #[arg(long, conflicts_with = "push")]
    load: bool,
    /// Push the images to this registry.
    #[arg(long, value_name = "REGISTRY")]
    push: Option<String>,
    /// Push without a tag, and write what was pushed into this folder, one file for each controller.
    #[arg(long, value_name = "FOLDER", requires = "push")]
    digests: Option<PathBuf>,
    /// Build for these, for instance `linux/amd64,linux/arm64`; without it for this machine.
    #[arg(long, value_name = "OS/ARCH", value_delimiter = ',')]
    platform: Vec<String>,
    /// The images' tag; without it the version of the workspace.
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Where the sources are published, for the images' labels.
    #[arg(long, value_name = "URL", env = "KITE_SOURCE")]
    source: Option<String>,
    /// What builds; without it the first that works.
    #[arg(long)]
    engine: Option<Engine>,
    /// Only show what would be run.
    #[arg(long)]
    print: bool,
}

/// Where images go.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Destination {
    /// Nowhere: it is only seen whether they build.
    Nowhere,
    /// Into the engine.
    Engine,
    /// To a registry, under a tag.
    Registry,
    /// To a registry without a tag; what was pushed is written into this folder.
    Digests(PathBuf),
}

/// One run: what is built of what, and where it goes.
#[derive(Clone, Debug)]
struct Plan {
    controllers: Vec<Controller>,
    destination: Destination,
    /// The registry, if it is in the images' names.
    registry: Option<String>,
    platforms: Vec<String>,
    tag: String,
    /// Arguments of the Dockerfile.
    arguments: Vec<(&'static str, String)>,
    /// The commit's time in seconds, which is the time of all that is in the images.
    time: Option<String>,
}

impl Plan {
    fn new(options: &ImageOptions) -> Result<Self> {
        let destination = match (&options.push, &options.digests) {
            (Some(_), Some(folder)) => Destination::Digests(folder.clone()),
            (Some(_), None) => Destination::Registry,
            (None, _) if options.load => Destination::Engine,
            (None, _) => Destination::Nowhere,
        };
        let mut arguments = vec![
            ("VERSION", env!("CARGO_PKG_VERSION").to_owned()),
            ("REVISION", revision().unwrap_or_else(|| "unknown".into())),
        ];
        arguments.extend(options.source.clone().map(|url| ("SOURCE", url)));
        let tag = options.tag.as_deref().unwrap_or(env!("CARGO_PKG_VERSION"));
        Ok(Self {
            controllers: chosen(&options.controllers)?,
            destination,
            registry: options.push.clone(),
            platforms: options.platform.clone(),
            tag: tag.to_owned(),
            arguments,
            time: git(&["log", "-1", "--format=%ct"]),
        })
    }

    /// The image's name without a tag.
    fn repository(&self, controller: Controller) -> String {
        let name = format!("{REPOSITORY}/{}", controller.name());
        match &self.registry {
            Some(registry) => format!("{}/{name}", registry.trim_end_matches('/')),
            None => name,
        }
    }

    /// The image's whole name.
    fn name(&self, controller: Controller) -> String {
        format!("{}:{}", self.repository(controller), self.tag)
    }
}

/// Builds, and keeps or pushes.
pub(crate) fn run(options: &ImageOptions) -> Result<()> {
    let plan = Plan::new(options)?;
    if options.print {
        for command in options.engine.unwrap_or(Engine::Docker).commands(&plan)? {
            println!("{}", shown(&command));
        }
        return Ok(());
    }
    let engine = Engine::find(options.engine)?;
    if let Destination::Digests(folder) = &plan.destination {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
    }
    for words in engine.commands(&plan)? {
        println!("$ {}", shown(&words));
        let status = Command::new(&words[0])
            .args(&words[1..])
            .current_dir(root())
            .status()
            .with_context(|| format!("cannot start {}", words[0]))?;
        if !status.success() {
            bail!("{} ended with {status}", words[0]);
        }
    }
    Ok(())
}

/// The controllers of these names, or all.
fn chosen(names: &[String]) -> Result<Vec<Controller>> {
    let known = |name: &str| Controller::ALL.into_iter().find(|c| c.name() == name);
    if names.is_empty() {
        return Ok(Controller::ALL.to_vec());
    }
    let chosen = names.iter().map(|name| {
        known(name).with_context(|| {
            let all = Controller::ALL.map(Controller::name).join(", ");
            format!("there is no image of {name}; choose among {all}")
        })
    });
    chosen.collect()
}

/// The commit that is built; marked when files differ from it.
fn revision() -> Option<String> {
    let commit = git(&["rev-parse", "HEAD"])?;
    let clean = git(&["status", "--porcelain"]).is_some_and(|changes| changes.is_empty());
    Some(if clean { commit } else { commit + "-dirty" })
}

/// What git says; nothing where the sources are no clone.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(root())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// A command as one types it.
fn shown(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@+%".contains(c);
    let words = words.iter().map(|word| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_controller_is_refused_with_the_choice() {
        let error = chosen(&["kite-api".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("choose among kite-user, "), "{error}");
        assert_eq!(chosen(&[]).unwrap(), Controller::ALL);
        assert_eq!(chosen(&["kite-vm".into()]).unwrap(), [Controller::Vm]);
    }

    #[test]
    fn an_image_has_the_version_as_tag_and_no_registry_of_its_own() {
        let here = Plan::new(&ImageOptions::default()).unwrap();
        assert_eq!(here.destination, Destination::Nowhere);
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(here.name(Controller::Vm), format!("kite/kite-vm:{version}"));
        let elsewhere = Plan::new(&ImageOptions {
            push: Some("registry.example.org/team/".into()),
            tag: Some("next".into()),
            ..ImageOptions::default()
        });
        assert_eq!(
            elsewhere.unwrap().name(Controller::Vm),
            "registry.example.org/team/kite/kite-vm:next"
        );
    }

    #[test]
    fn a_shown_command_can_be_typed() {
        let words = ["a", "--b=c", "d e", "it's", ""].map(str::to_owned);
        assert_eq!(shown(&words), r"a --b=c 'd e' 'it'\''s' ''");
    }
}
