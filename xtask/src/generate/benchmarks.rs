//! The page and the pictures of the benchmark, from the report that is committed beside them.
//!
//! Nothing is measured here: the report is what `cargo xtask bench` wrote.

use std::path::Path;

use anyhow::{Context, Result, bail};
use kite_bench::pictures;
use kite_bench::report::Report;

use super::File;
use crate::workspace::{self, root};

/// Where the report, the page and the pictures are.
const FOLDER: &str = "docs/benchmarks";

/// The page and the pictures; a page without its report is an error.
pub(super) fn files() -> Result<Vec<File>> {
    of(&root().join(FOLDER))
}

fn of(folder: &Path) -> Result<Vec<File>> {
    let report = folder.join("report.json");
    if report.exists() {
        return from(&workspace::read(&report)?);
    }
    if folder.join("README.md").exists() {
        bail!(
            "{FOLDER}/README.md has no report.json from which it could be made; \
             measure with `cargo xtask bench --json {FOLDER}/report.json`"
        );
    }
    Ok(Vec::new())
}

/// What a report's text gives.
fn from(text: &str) -> Result<Vec<File>> {
    let report: Report = serde_json::from_str(text)
        .with_context(|| format!("{FOLDER}/report.json is not a report of this version"))?;
    let files = pictures::files(&report)?.into_iter();
    Ok(files
        .map(|file| File {
            path: format!("{FOLDER}/{}", file.name),
            text: file.text,
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_page_whose_report_is_gone_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(of(folder.path()).unwrap().len(), 0);
        fs::write(folder.path().join("README.md"), "").unwrap();
        let refused = of(folder.path()).err().unwrap().to_string();
        assert!(refused.contains("cargo xtask bench --json"), "{refused}");
        let report = serde_json::to_string(&Report::default()).unwrap();
        fs::write(folder.path().join("report.json"), report).unwrap();
        assert_eq!(of(folder.path()).unwrap().len(), 1);
    }

    #[test]
    fn a_report_gives_its_page_and_what_is_none_is_refused_by_name() {
        let text = serde_json::to_string(&Report::default()).unwrap();
        let paths: Vec<_> = from(&text).unwrap().into_iter().map(|f| f.path).collect();
        assert_eq!(paths, ["docs/benchmarks/README.md"]);
        let refused = from("{}").err().unwrap().to_string();
        assert!(refused.contains("docs/benchmarks/report.json"), "{refused}");
    }
}
