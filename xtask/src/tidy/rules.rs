//! A rule that code or a test names must exist in the page of rules.
//!
//! Whether each rule is proved by a test is not judged here: some are proved by
//! the absence of something.

use std::collections::BTreeSet;

use super::{Problem, Source};

/// The page, from the top folder.
const PAGE: &str = "docs/reference/rules.md";

/// The letters that rules are numbered under.
const LETTERS: &str = "CPUNVSEDF";

/// All names of rules that do not exist, and a page that defines one twice.
pub(super) fn check(code: &[Source], pages: &[Source]) -> Vec<Problem> {
    let Some(page) = pages.iter().find(|page| page.path == PAGE) else {
        return vec![Problem::new(
            PAGE,
            1,
            "the page of rules is not there; tests name rules that it must define",
        )];
    };
    let mut known = BTreeSet::new();
    let mut problems = Vec::new();
    for (line, rule) in defined(page) {
        if !known.insert(rule) {
            problems.push(Problem::new(
                PAGE,
                line,
                format!("{rule} is defined twice; a rule's number belongs to one rule for ever"),
            ));
        }
    }
    for source in code {
        problems.extend(unknown(source, &known));
    }
    problems
}

/// The rules that the page defines: its headings `### C-1`.
fn defined(page: &Source) -> impl Iterator<Item = (usize, &str)> {
    page.lines().filter_map(|(number, line)| {
        let rule = line.strip_prefix("### ")?.trim_end();
        is_rule(rule).then_some((number, rule))
    })
}

fn unknown(source: &Source, known: &BTreeSet<&str>) -> Vec<Problem> {
    source
        .lines()
        .filter(|(_, line)| line.trim_start().starts_with("//"))
        .flat_map(|(number, line)| words(line).map(move |word| (number, word)))
        .filter(|(_, word)| is_rule(word) && !known.contains(word))
        .map(|(number, word)| {
            Problem::new(
                &source.path,
                number,
                format!("rule {word} is not in {PAGE}; name the rule that is meant, or write it down there"),
            )
        })
        .collect()
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
}

/// Whether a word has the form of a rule's name: a letter, a hyphen, one or two digits.
fn is_rule(word: &str) -> bool {
    let Some((letter, number)) = word.split_once('-') else {
        return false;
    };
    letter.len() == 1
        && LETTERS.contains(letter)
        && matches!(number.len(), 1 | 2)
        && number.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::super::source;
    use super::*;

    fn found(page: &str, code: &str) -> Vec<(String, usize)> {
        let problems = check(&[source("crates/a/src/b.rs", code)], &[source(PAGE, page)]);
        problems.into_iter().map(|p| (p.file, p.line)).collect()
    }

    #[test]
    fn a_named_rule_that_is_not_defined_is_found_with_its_line() {
        let page = "# Rules\n\n### C-1\n\nText about C-9.\n";
        assert_eq!(found(page, "// C-1\nfn a() {}\n"), []);
        assert_eq!(
            found(page, "// C-1, C-9: both\nfn a() {}\n"),
            [("crates/a/src/b.rs".to_owned(), 1)]
        );
    }

    #[test]
    fn other_words_with_a_hyphen_and_a_number_are_no_rules() {
        let text = "// UTF-8, SHA-256, P-256, FNV-1a, x-1, C-, -1\nlet a = \"C-77\";\n";
        assert_eq!(found("### C-1\n", text), []);
    }

    #[test]
    fn a_rule_that_is_defined_twice_is_found() {
        assert_eq!(found("### C-1\n### C-1\n", ""), [(PAGE.to_owned(), 2)]);
    }

    #[test]
    fn without_its_page_no_rule_exists() {
        assert_eq!(check(&[], &[]).len(), 1);
    }
}
