//! A rule that code or a test names must exist in the page of rules, and a rule
//! of the page must be named by a test.
//!
//! Whether that test proves it is not judged here; `cargo xtask mutants` asks.

use std::collections::BTreeSet;

use super::{Problem, Source};
use crate::rules::{PAGE, defined, named, proofs, unproved};

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
    let rules = defined(page);
    for rule in &rules {
        if !known.insert(rule.name) {
            problems.push(Problem::new(
                PAGE,
                rule.line,
                format!(
                    "{} is defined twice; a rule's number belongs to one rule for ever",
                    rule.name
                ),
            ));
        }
    }
    for source in code {
        problems.extend(unknown(source, &known));
    }
    let proofs: Vec<_> = code.iter().flat_map(proofs).collect();
    let bare = unproved(&rules, &proofs);
    problems.extend(bare.iter().map(|rule| {
        Problem::new(
            PAGE,
            rule.line,
            format!(
                "no test names {}; name it above the test that proves it, or write that test",
                rule.name
            ),
        )
    }));
    problems
}

fn unknown(source: &Source, known: &BTreeSet<&str>) -> Vec<Problem> {
    source
        .lines()
        .filter(|(_, line)| line.trim_start().starts_with("//"))
        .flat_map(|(number, line)| named(line).map(move |word| (number, word)))
        .filter(|(_, word)| !known.contains(word))
        .map(|(number, word)| {
            Problem::new(
                &source.path,
                number,
                format!("rule {word} is not in {PAGE}; name the rule that is meant, or write it down there"),
            )
        })
        .collect()
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
        assert_eq!(found(page, "// C-1\n#[test]\nfn a() {}\n"), []);
        assert_eq!(
            found(page, "// C-1, C-9: both\n#[test]\nfn a() {}\n"),
            [("crates/a/src/b.rs".to_owned(), 1)]
        );
    }

    #[test]
    fn other_words_with_a_hyphen_and_a_number_are_no_rules() {
        let text = "// C-1\n#[test]\nfn a() {}\n// UTF-8, SHA-256, P-256, FNV-1a, x-1, C-, -1\nlet a = \"C-77\";\n";
        assert_eq!(found("### C-1\n", text), []);
    }

    #[test]
    fn a_rule_that_is_defined_twice_is_found() {
        let code = "// C-1\n#[test]\nfn a() {}\n";
        assert_eq!(found("### C-1\n### C-1\n", code), [(PAGE.to_owned(), 2)]);
    }

    #[test]
    fn a_rule_that_only_a_function_names_and_no_test_is_found() {
        let code = "// C-1\nfn a() {}\n";
        assert_eq!(found("# Rules\n\n### C-1\n", code), [(PAGE.to_owned(), 3)]);
    }

    #[test]
    fn without_its_page_no_rule_exists() {
        assert_eq!(check(&[], &[]).len(), 1);
    }
}
