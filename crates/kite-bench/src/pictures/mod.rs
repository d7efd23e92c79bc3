//! Pictures and a page of a report, for people.
//!
//! The same report gives the same bytes, so what is committed can be checked against its report.
//! What was not measured has no picture and no table, only a sentence that says so. Nothing is
//! measured here and nothing is left out because it is unwelcome.

mod canvas;
mod chosen;
mod distribution;
#[cfg(test)]
mod example;
mod legend;
mod memory;
mod numbers;
mod page;
mod ratios;
mod requests;
mod rest;
mod scale;
mod scenarios;
mod seen;
mod targets;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::report::Report;

/// The name of the page, which code hosts show for its folder.
const PAGE: &str = "README.md";

/// One file of the page or of its pictures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name in the folder.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// One picture, and where it belongs.
struct Picture {
    /// The scenario whose section shows it.
    scenario: &'static str,
    /// The name of its file.
    name: String,
    /// What it shows, for those who do not see it.
    alt: String,
    svg: String,
}

/// The pictures of a report and the page that shows them, without writing them.
pub fn files(report: &Report) -> Result<Vec<File>> {
    let mut pictures = Vec::new();
    pictures.extend(ratios::draw(report)?);
    pictures.extend(distribution::draw(report)?);
    pictures.extend(requests::draw(report)?);
    pictures.extend(memory::draw(report)?);
    pictures.extend(rest::draw(report)?);
    let scale = scale::text(report);
    let page = File {
        name: PAGE.to_owned(),
        text: page::text(report, &pictures, scale.is_some()),
    };
    let drawn = pictures.into_iter().map(|picture| File {
        name: picture.name,
        text: picture.svg,
    });
    let scale = scale.map(|text| File {
        name: scale::PAGE.to_owned(),
        text,
    });
    Ok(drawn.chain([page]).chain(scale).collect())
}

/// Writes the pictures and the page into a folder, which is made if need be. Returns what was
/// written.
pub fn write(report: &Report, folder: &Path) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut written = Vec::new();
    for file in files(report)? {
        let place = folder.join(&file.name);
        fs::write(&place, &file.text)
            .with_context(|| format!("cannot write {}", place.display()))?;
        written.push(place);
    }
    Ok(written)
}
