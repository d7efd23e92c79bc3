//! `cargo xtask release`: what must be so before a version is published, and what is said about it.
//!
//! A version stands in several files that different programs read; here they are
//! held against each other. Nothing is published here.

mod changelog;

use std::fmt;

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use serde_json::Value;

use crate::workspace::{self, Source, root};

/// What `cargo xtask release` can do.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum ReleaseCommand {
    /// Fail unless every file that names a version names this one.
    Check {
        /// For instance `v0.1.0`, as the tag is called.
        version: String,
    },
    /// Print what CHANGELOG.md says of this version.
    Notes {
        /// For instance `v0.1.0`, as the tag is called.
        version: String,
    },
}

/// A file that names another version, or none.
#[derive(Debug, PartialEq, Eq)]
struct Mistake {
    file: String,
    text: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.text)
    }
}

/// Carries out the command.
pub(crate) fn run(command: &ReleaseCommand) -> Result<()> {
    let changelog = workspace::read(&root().join(changelog::PAGE))?;
    match command {
        ReleaseCommand::Check { version } => check(number(version)?, &changelog),
        ReleaseCommand::Notes { version } => {
            let notes = changelog::section(&changelog, number(version)?);
            let notes = notes
                .with_context(|| format!("{} has no section for {version}", changelog::PAGE))?;
            println!("{notes}");
            Ok(())
        }
    }
}

/// The version of a tag: three numbers, and perhaps what it is a candidate for.
fn number(tag: &str) -> Result<&str> {
    let version = tag.strip_prefix('v').unwrap_or(tag);
    let core = version.split(['-', '+']).next().unwrap_or_default();
    let numbers: Vec<_> = core.split('.').map(str::parse::<u32>).collect();
    if numbers.len() != 3 || numbers.iter().any(Result::is_err) {
        bail!("{tag} is no version; a tag looks like v0.1.0 or v0.1.0-rc.1");
    }
    Ok(version)
}

fn check(version: &str, changelog: &str) -> Result<()> {
    let mut mistakes = Vec::new();
    let ours = env!("CARGO_PKG_VERSION");
    if ours != version {
        mistakes.push(Mistake {
            file: "Cargo.toml".into(),
            text: format!("the workspace's version is {ours}"),
        });
    }
    for path in workspace::files(&root().join("charts"), "yaml")? {
        if path.file_name().is_some_and(|name| name == "Chart.yaml") {
            mistakes.extend(chart(&Source::read(&path)?, version)?);
        }
    }
    let mut pages = vec![root().join("README.md")];
    pages.extend(workspace::files(&root().join("docs"), "md")?);
    for path in pages {
        mistakes.extend(page(&Source::read(&path)?, version));
    }
    if changelog::section(changelog, version).is_none() {
        mistakes.push(Mistake {
            file: changelog::PAGE.into(),
            text: format!("no section `## {version}` with something in it"),
        });
    }
    if mistakes.is_empty() {
        println!("{version} is what every file says");
        return Ok(());
    }
    for mistake in &mistakes {
        println!("{mistake}");
    }
    bail!("{} places do not say {version}", mistakes.len())
}

/// What a chart's file says otherwise; charts of the same repository have the same version.
fn chart(source: &Source, version: &str) -> Result<Vec<Mistake>> {
    let chart: Value = serde_saphyr::from_str(&source.text)
        .with_context(|| format!("cannot read {}", source.path))?;
    let library = chart["type"] == "library";
    let mut said = vec![("version".to_owned(), chart["version"].clone())];
    // A library has no program whose version it could name.
    if !(library && chart["appVersion"].is_null()) {
        said.push(("appVersion".to_owned(), chart["appVersion"].clone()));
    }
    for dependency in chart["dependencies"].as_array().into_iter().flatten() {
        let local = dependency["repository"]
            .as_str()
            .is_some_and(|place| place.starts_with("file://"));
        if local {
            let name = format!("the dependency {}", dependency["name"]);
            said.push((name, dependency["version"].clone()));
        }
    }
    let other = said.into_iter().filter(|(_, value)| *value != version);
    Ok(other
        .map(|(field, value)| Mistake {
            file: source.path.clone(),
            text: format!("{field} is {value}"),
        })
        .collect())
}

/// Commands in a page that install another version of Kite's charts.
fn page(source: &Source, version: &str) -> Vec<Mistake> {
    let named = source.lines().filter(|(_, line)| line.contains("kite"));
    let other = named.filter_map(|(number, line)| {
        let (_, rest) = line.split_once("--version")?;
        let said = rest.trim_start_matches(['=', ' ']).split(' ').next()?;
        let said = said.trim_end_matches(['`', '\\']);
        let is_version = said.starts_with(|c: char| c.is_ascii_digit());
        (is_version && said != version).then(|| Mistake {
            file: format!("{}:{number}", source.path),
            text: format!("it installs {said}"),
        })
    });
    other.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn a_tag_is_a_version_with_or_without_v() {
        assert_eq!(number("v0.1.0").unwrap(), "0.1.0");
        assert_eq!(number("1.22.3-rc.1").unwrap(), "1.22.3-rc.1");
        for bad in ["v1", "main", "v1.2.x", ""] {
            assert!(number(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_chart_says_one_version_of_itself_its_program_and_its_neighbours() {
        let text = "version: 0.1.0\nappVersion: 0.2.0\ndependencies:\n\
                    - {name: kite-common, version: 0.3.0, repository: 'file://../kite-common'}\n\
                    - {name: other, version: 9.9.9, repository: 'oci://registry.example.org'}\n";
        let found = chart(&source("charts/a/Chart.yaml", text), "0.1.0").unwrap();
        let said: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "charts/a/Chart.yaml: appVersion is \"0.2.0\"",
                "charts/a/Chart.yaml: the dependency \"kite-common\" is \"0.3.0\"",
            ]
        );
        let library = source("charts/b/Chart.yaml", "type: library\nversion: 0.1.0\n");
        assert_eq!(chart(&library, "0.1.0").unwrap(), []);
    }

    #[test]
    fn a_page_that_installs_another_version_is_found_with_its_line() {
        let text = "helm install kite oci://example.org/kite --version 0.1.0 \\\n\
                    helm install kite oci://example.org/kite --version 0.0.9\n\
                    cargo install cargo-mutants --version 27.0.0\n\
                    kite-vm --version\n";
        let found = page(&source("docs/a.md", text), "0.1.0");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].to_string(), "docs/a.md:2: it installs 0.0.9");
    }

    #[test]
    fn every_chart_and_page_of_today_says_the_version_of_the_workspace() {
        let version = env!("CARGO_PKG_VERSION");
        check(version, &format!("## {version}\n\nsomething\n")).unwrap();
        let error = check("9.9.9", "").unwrap_err().to_string();
        assert!(error.ends_with("places do not say 9.9.9"), "{error}");
    }
}
