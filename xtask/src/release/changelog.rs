//! The sections of CHANGELOG.md: what is told about a version when it is published.

/// The file, from the top folder.
pub(super) const PAGE: &str = "CHANGELOG.md";

/// What stands under the heading of a version; nothing when there is no such heading or nothing under it.
pub(super) fn section(text: &str, version: &str) -> Option<String> {
    let mut lines = text
        .lines()
        .skip_while(|line| !is_heading_of(line, version));
    lines.next()?;
    let section: Vec<_> = lines.take_while(|line| !line.starts_with("## ")).collect();
    let section = section.join("\n").trim().to_owned();
    (!section.is_empty()).then_some(section)
}

/// `## 0.1.0`, with or without brackets and a date behind it.
fn is_heading_of(line: &str, version: &str) -> bool {
    let Some(heading) = line.strip_prefix("## ") else {
        return false;
    };
    let word = heading.split(' ').next().unwrap_or_default();
    word.trim_matches(['[', ']']) == version
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Changelog\n\n## Unreleased\n\n* new\n\n## [0.2.0] - 2026-12-01\n\n### Added\n\n* b\n\n## 0.1.0\n\n* a\n\n## 0.0.1\n";

    #[test]
    fn a_section_ends_where_the_next_version_begins() {
        assert_eq!(section(TEXT, "0.2.0").unwrap(), "### Added\n\n* b");
        assert_eq!(section(TEXT, "0.1.0").unwrap(), "* a");
    }

    #[test]
    fn a_version_that_is_not_there_or_says_nothing_has_none() {
        for missing in ["0.3.0", "0.1", "0.0.1"] {
            assert_eq!(section(TEXT, missing), None, "{missing}");
        }
    }
}
