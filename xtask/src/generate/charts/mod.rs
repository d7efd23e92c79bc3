//! The charts: six thin ones made whole from one table, and for every chart the
//! schema and the reference page of its values.
//!
//! `values.yaml` is where a value is described, once: its comment becomes the
//! line of the README, and the type in the comment becomes the schema. What the
//! templates of the library do with a value is written by hand in kite-common.

mod flags;
mod page;
mod schema;
mod table;
mod thin;
mod values;

use anyhow::{Context, Result};

use super::File;
use crate::workspace::{read, root};
pub(crate) use flags::camel;
use values::Entry;

/// The charts whose values are written by hand.
const BY_HAND: [&str; 2] = ["kite-crds", UMBRELLA];

/// The chart of all others.
const UMBRELLA: &str = "kite";

/// The version of all charts and of what they install.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A chart of which the schema and the page of values are made.
struct Chart {
    name: String,
    /// Its `Chart.yaml`.
    about: About,
    entries: Vec<Entry>,
}

/// What is read of a `Chart.yaml`.
#[derive(serde::Deserialize)]
struct About {
    description: String,
    #[serde(default)]
    dependencies: Vec<Dependency>,
}

/// A chart that is a part of another.
#[derive(serde::Deserialize)]
struct Dependency {
    name: String,
    alias: Option<String>,
}

impl Dependency {
    /// The value under which its own values stand.
    fn key(&self) -> &str {
        self.alias.as_deref().unwrap_or(&self.name)
    }
}

impl Chart {
    fn new(name: &str, about: &str, values: &str) -> Result<Self> {
        let part = |what| format!("charts/{name}/{what}");
        Ok(Self {
            name: name.to_owned(),
            about: serde_saphyr::from_str(about).with_context(|| part("Chart.yaml"))?,
            entries: values::read(values).with_context(|| part("values.yaml"))?,
        })
    }

    fn by_hand(name: &str) -> Result<Self> {
        let folder = root().join("charts").join(name);
        let about = read(&folder.join("Chart.yaml"))?;
        Self::new(name, &about, &read(&folder.join("values.yaml"))?)
    }

    fn files(&self, page: String) -> Result<[File; 2]> {
        let part = |what| format!("charts/{}/{what}", self.name);
        Ok([
            File {
                path: part("values.schema.json"),
                text: schema::text(self)?,
            },
            File {
                path: part("README.md"),
                text: page,
            },
        ])
    }
}

/// All files of the charts but for the rights.
pub(super) fn files() -> Result<Vec<File>> {
    let mut files = Vec::new();
    let mut thin = Vec::new();
    for controller in table::controllers() {
        let written = thin::files(&controller)?;
        let text = |name: &str| {
            let file = written.iter().find(|file| file.path.ends_with(name));
            file.map(|file| file.text.clone())
                .context("a thin chart has it")
        };
        let chart = Chart::new(controller.name, &text("Chart.yaml")?, &text("values.yaml")?)?;
        files.extend(written);
        files.extend(chart.files(page::of_controller(&chart))?);
        thin.push(chart);
    }
    for name in BY_HAND {
        let chart = Chart::by_hand(name)?;
        let page = page::by_hand(&chart, &thin)?;
        files.extend(chart.files(page)?);
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chart_that_is_written_by_hand_has_the_version_of_the_workspace() {
        for name in BY_HAND.into_iter().chain(["kite-common"]) {
            let about = read(&root().join("charts").join(name).join("Chart.yaml")).unwrap();
            assert!(about.contains(&format!("\nversion: {VERSION}\n")), "{name}");
        }
    }
}
