//! The page and the pictures of the benchmark, from the report that is committed beside them.
//!
//! Nothing is measured here: the report is what `cargo xtask bench` wrote.

use anyhow::{Context, Result, bail};
use kite_bench::pictures;
use kite_bench::report::Report;

use super::File;
use crate::workspace::{self, root};

/// Where the report, the page and the pictures are.
const FOLDER: &str = "docs/benchmarks";

/// The page and the pictures; a page without its report is an error.
pub(super) fn files() -> Result<Vec<File>> {
    let folder = root().join(FOLDER);
    let report = folder.join("report.json");
    if !report.exists() {
        if folder.join("README.md").exists() {
            bail!(
                "{FOLDER}/README.md has no report.json from which it could be made; \
                 measure with `cargo xtask bench --json {FOLDER}/report.json`"
            );
        }
        return Ok(Vec::new());
    }
    from(&workspace::read(&report)?)
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
    use super::*;

    #[test]
    fn a_report_gives_its_page_and_what_is_none_is_refused_by_name() {
        let text = serde_json::to_string(&Report::default()).unwrap();
        let paths: Vec<_> = from(&text).unwrap().into_iter().map(|f| f.path).collect();
        assert_eq!(paths, ["docs/benchmarks/README.md"]);
        let refused = from("{}").err().unwrap().to_string();
        assert!(refused.contains("docs/benchmarks/report.json"), "{refused}");
    }
}
