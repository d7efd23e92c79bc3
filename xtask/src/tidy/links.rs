//! Links in the documentation lead somewhere: to a file of the project, and to a heading in it.
//!
//! Addresses on the network are not asked: a check must not depend on them.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use anyhow::Result;

use super::{Problem, Source};
use crate::workspace;

/// The pages at the top and everything below `docs`.
pub(super) fn read() -> Result<Vec<Source>> {
    let root = workspace::root();
    let mut paths: Vec<PathBuf> = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
        .map(|name| root.join(name))
        .into();
    paths.extend(workspace::files(&root.join("docs"), "md")?);
    paths.iter().map(|path| Source::read(path)).collect()
}

/// All links that lead nowhere.
pub(super) fn check(pages: &[Source]) -> Vec<Problem> {
    pages
        .iter()
        .flat_map(|page| broken(page, pages, |path| workspace::root().join(path).exists()))
        .collect()
}

fn broken(page: &Source, pages: &[Source], exists: impl Fn(&Path) -> bool) -> Vec<Problem> {
    let folder = Path::new(&page.path).parent().unwrap_or(Path::new(""));
    let mut problems = Vec::new();
    for (line, link) in links(page) {
        if link.contains("://") || link.starts_with("mailto:") {
            continue;
        }
        let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
        let target = if file.is_empty() {
            PathBuf::from(&page.path)
        } else {
            normal(&folder.join(file))
        };
        if !exists(&target) {
            problems.push(Problem::new(
                &page.path,
                line,
                format!("the link to {link} leads to no file; mend or remove it"),
            ));
            continue;
        }
        let there = pages.iter().find(|p| Path::new(&p.path) == target);
        let lost = there.is_some_and(|p| !anchor.is_empty() && !anchors(p).contains(anchor));
        if lost {
            problems.push(Problem::new(
                &page.path,
                line,
                format!(
                    "{} has no heading with the anchor #{anchor}",
                    target.display()
                ),
            ));
        }
    }
    problems
}

/// A path without `.` and `..`, which need not exist to be followed.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

/// The lines of a page that are text, not code.
fn prose(page: &Source) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    page.lines().filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence
    })
}

/// The targets of all inline links, with their lines.
fn links(page: &Source) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in prose(page) {
        // Every second part between backticks is code.
        let mut rest = line;
        while let Some(start) = rest.find("](") {
            let target = &rest[start + 2..];
            let quoted = rest[..start].matches('`').count() % 2 == 1;
            let Some(end) = target.find(')') else { break };
            if !quoted {
                found.push((number, &target[..end]));
            }
            rest = &target[end..];
        }
    }
    found
}

/// The anchors of a page's headings, as code hosts and mdBook make them.
fn anchors(page: &Source) -> BTreeSet<String> {
    prose(page)
        .filter(|(_, line)| line.starts_with('#'))
        .map(|(_, line)| {
            line.trim_start_matches('#')
                .trim()
                .to_lowercase()
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
                .map(|c| if c == ' ' { '-' } else { c })
                .collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::source;
    use super::*;

    fn found(text: &str) -> Vec<usize> {
        let pages = [
            source("docs/a.md", text),
            source("docs/reference/b.md", "# Title\n\n## The `one` Thing, 2\n"),
        ];
        let exists = |path: &Path| pages.iter().any(|p| Path::new(&p.path) == path);
        let problems = broken(&pages[0], &pages, exists);
        problems.iter().map(|p| p.line).collect()
    }

    #[test]
    fn a_link_to_a_file_and_a_heading_that_are_there_passes() {
        assert_eq!(
            found(
                "# A\n[b](reference/b.md) [c](./reference/../reference/b.md#the-one-thing-2) [a](#a)\n"
            ),
            [0_usize; 0]
        );
    }

    #[test]
    fn a_link_to_nothing_is_found_with_its_line() {
        assert_eq!(found("text\n[x](reference/c.md)\n"), [2]);
        assert_eq!(found("[x](reference/b.md#other) [y](#none)\n"), [1, 1]);
    }

    #[test]
    fn code_and_addresses_on_the_network_are_no_links() {
        let text = "```\n[x](none.md)\n```\n`[x](none.md)` [y](https://example.org/none)\n";
        assert_eq!(found(text), [0_usize; 0]);
    }
}
