//! The page of mutants that may live, read back.
//!
//! A mutant is known by its file and by what was changed; the line would move
//! with every edit above it.

use anyhow::Result;

use crate::workspace::{read, root};

/// The page, from the top folder.
pub(super) const PAGE: &str = "docs/reference/mutants.md";

/// The page's text.
pub(super) fn page() -> Result<String> {
    read(&root().join(PAGE))
}

/// The mutants that the page allows: the first two cells of the rows that begin with a path.
pub(super) fn entries(page: &str) -> Vec<String> {
    page.lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| `crates/")?.split(" | ");
            let file = cells.next()?.trim_matches('`');
            let change = cells.next()?.trim_matches('`');
            Some(format!("crates/{file}: {change}"))
        })
        .collect()
}

/// The mutants that lived and are not allowed to.
pub(super) fn gaps(missed: &[String], allowed: &[String]) -> Vec<String> {
    let is_allowed = |line: &&String| !allowed.contains(&without_line(line));
    missed.iter().filter(is_allowed).cloned().collect()
}

/// The mutants that are allowed to live and did not.
pub(super) fn caught(caught: &[String], allowed: &[String]) -> Vec<String> {
    let caught: Vec<_> = caught.iter().map(|line| without_line(line)).collect();
    let is_caught = |entry: &&String| caught.contains(entry);
    allowed.iter().filter(is_caught).cloned().collect()
}

/// `src/a.rs:3:5: replace …` as `src/a.rs: replace …`.
fn without_line(mutant: &str) -> String {
    let mut parts = mutant.splitn(4, ':');
    match (parts.next(), parts.nth(2)) {
        (Some(file), Some(change)) => format!("{file}:{change}"),
        _ => mutant.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "| File | Change | Why |\n|---|---|---|\n| `crates/a/src/b.rs` | `replace x -> u8 with 0` | It is 0. |\n";

    fn lines(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|t| (*t).to_owned()).collect()
    }

    #[test]
    fn a_mutant_that_the_page_names_may_live_wherever_its_line_is() {
        let missed = lines(&[
            "crates/a/src/b.rs:7:5: replace x -> u8 with 0",
            "crates/a/src/b.rs:7:5: replace x -> u8 with 1",
        ]);
        assert_eq!(gaps(&missed, &entries(LIST)), missed[1..]);
    }

    #[test]
    fn a_mutant_that_a_test_notices_need_not_be_allowed() {
        let noticed = lines(&["crates/a/src/b.rs:9:1: replace x -> u8 with 0"]);
        assert_eq!(caught(&noticed, &entries(LIST)), entries(LIST));
        assert!(caught(&[], &entries(LIST)).is_empty());
    }

    #[test]
    fn every_row_of_the_page_is_understood() {
        let page = page().unwrap();
        let rows = page.lines().filter(|l| l.starts_with("| `")).count();
        assert_eq!(entries(&page).len(), rows);
    }
}
