//! `cargo xtask tidy`: what no compiler checks.
//!
//! Each check is a function from text to problems, so that a test can show that
//! it fails; reading files and asking cargo happens around them. A check belongs
//! here only if the problem can be named with a place and a remedy.

mod dependencies;
mod examples;
mod layout;
mod links;
mod rules;
mod sources;

use std::fmt;

use anyhow::{Result, bail};

use crate::workspace::{self, Source};
pub(crate) use sources::PURE_STEPS;

/// One thing that is not as it should be.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Problem {
    /// Path from the top folder.
    file: String,
    line: usize,
    /// What is wrong, and what to do.
    text: String,
}

impl Problem {
    fn new(file: &str, line: usize, text: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line,
            text: text.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.text)
    }
}

/// Runs every check; fails when one of them found something.
pub(crate) fn run() -> Result<()> {
    let code = workspace::sources()?;
    let pages = links::read()?;
    let mut problems = sources::check(&code);
    problems.extend(layout::check(&code));
    problems.extend(rules::check(&code, &pages));
    problems.extend(links::check(&pages));
    problems.extend(examples::run()?);
    problems.extend(dependencies::run()?);
    problems.sort();
    for problem in &problems {
        println!("{problem}");
    }
    if problems.is_empty() {
        println!(
            "tidy: {} source files and {} pages are in order",
            code.len(),
            pages.len()
        );
        return Ok(());
    }
    bail!("tidy found {} problems", problems.len())
}

#[cfg(test)]
fn source(path: &str, text: &str) -> Source {
    Source {
        path: path.to_owned(),
        text: text.to_owned(),
    }
}
