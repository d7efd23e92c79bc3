//! The page of rules, read back: which rules there are.
//!
//! What a rule says is not judged; only its number and how it begins are taken.

use crate::workspace::{Source, read, root};
use anyhow::Result;

/// The page, from the top folder.
pub(crate) const PAGE: &str = "docs/reference/rules.md";

/// The page of faults, from the top folder.
pub(crate) const FAULTS: &str = "docs/reference/faults.md";

/// The letters that rules are numbered under, in the order of the page.
const LETTERS: &str = "CPUNVSEDF";

/// One rule as the page defines it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rule<'a> {
    /// Its number, for instance `C-7`.
    pub(crate) name: &'a str,
    /// Where its heading is.
    pub(crate) line: usize,
    /// The first line of its text.
    pub(crate) opening: &'a str,
}

/// The page as it lies there.
pub(super) fn page() -> Result<Source> {
    Ok(Source {
        path: PAGE.to_owned(),
        text: read(&root().join(PAGE))?,
    })
}

/// The rules that the page defines: its headings `### C-1`.
pub(crate) fn defined(page: &Source) -> Vec<Rule<'_>> {
    let lines: Vec<_> = page.lines().collect();
    lines
        .iter()
        .enumerate()
        .filter_map(|(index, (line, text))| {
            let name = text.strip_prefix("### ")?.trim_end();
            let mut following = lines[index + 1..].iter().map(|(_, text)| *text);
            is_rule(name).then(|| Rule {
                name,
                line: *line,
                opening: following.find(|text| !text.is_empty()).unwrap_or_default(),
            })
        })
        .collect()
}

/// The faults that their page defines: the first cells of its tables' rows, with the line.
pub(crate) fn defined_faults(page: &Source) -> Vec<(usize, &str)> {
    let rows = page.lines().filter_map(|(line, text)| {
        let name = text.strip_prefix("| ")?.split(" |").next()?;
        is_fault(name).then_some((line, name))
    });
    rows.collect()
}

/// The words of a comment that have the form of a rule's name.
pub(crate) fn named(comment: &str) -> impl Iterator<Item = &str> {
    words(comment).filter(|word| is_rule(word))
}

/// The words of a comment that have the form of a fault's number, for instance `CR1`.
pub(crate) fn faults(comment: &str) -> impl Iterator<Item = &str> {
    words(comment).filter(|word| is_fault(word))
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
}

/// A letter, a hyphen, one or two digits.
fn is_rule(word: &str) -> bool {
    let Some((letter, number)) = word.split_once('-') else {
        return false;
    };
    letter.len() == 1 && LETTERS.contains(letter) && is_number(number)
}

/// One of the table's pairs of letters, one or two digits.
fn is_fault(word: &str) -> bool {
    const GROUPS: [&str; 12] = [
        "AP", "CR", "DE", "IN", "LE", "NS", "PF", "SE", "ST", "TS", "UP", "VM",
    ];
    word.split_at_checked(2)
        .is_some_and(|(group, number)| GROUPS.contains(&group) && is_number(number))
}

fn is_number(text: &str) -> bool {
    matches!(text.len(), 1 | 2) && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_a_heading_with_its_line_and_how_its_text_begins() {
        let page = Source {
            path: PAGE.to_owned(),
            text: "# Rules\n\n### C-1\n\nFirst line\nsecond.\n\n### Other\n\n### D-7".to_owned(),
        };
        let rule = |name, line, opening| Rule {
            name,
            line,
            opening,
        };
        assert_eq!(
            defined(&page),
            [rule("C-1", 3, "First line"), rule("D-7", 10, "")]
        );
    }

    #[test]
    fn other_words_with_a_hyphen_and_a_number_name_nothing() {
        let text = "UTF-8, SHA-256, P-256, FNV-1a, x-1, C-, -1, C-123, IPv4, IN, CR123, XY1";
        assert_eq!(named(text).count() + faults(text).count(), 0);
        let text = "C-7 (d), rules V-1/V-22; rows CR9,ST11";
        assert_eq!(named(text).collect::<Vec<_>>(), ["C-7", "V-1", "V-22"]);
        assert_eq!(faults(text).collect::<Vec<_>>(), ["CR9", "ST11"]);
    }
}
