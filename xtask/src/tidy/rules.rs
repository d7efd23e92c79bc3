//! A rule that code or a test names must exist in the page of rules, and a rule
//! of the page must be named by a test. The same holds for faults and their page.
//!
//! Whether that test proves it is not judged here; `cargo xtask mutants` asks.

use std::collections::BTreeSet;

use super::{Problem, Source};
use crate::rules::{FAULTS, PAGE, Proof, defined, defined_faults, faults, named, proofs, unproved};

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
        problems.extend(unknown(source, PAGE, &known, |line| named(line).collect()));
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
    problems.extend(check_faults(code, pages, &proofs));
    problems
}

/// Faults that are named and not on their page, and rows that no test plays.
fn check_faults(code: &[Source], pages: &[Source], proofs: &[Proof<'_>]) -> Vec<Problem> {
    let page = pages.iter().find(|page| page.path == FAULTS);
    let rows = page.map(defined_faults).unwrap_or_default();
    let known = rows.iter().map(|(_, name)| *name).collect();
    let mut problems: Vec<_> = code
        .iter()
        .flat_map(|source| unknown(source, FAULTS, &known, |line| faults(line).collect()))
        .collect();
    let played = |name: &str| proofs.iter().any(|proof| proof.names.contains(name));
    let bare = rows.iter().filter(|(_, name)| !played(name));
    problems.extend(bare.map(|(line, name)| {
        Problem::new(
            FAULTS,
            *line,
            format!("no test plays {name}; name it above the test that does, or write that test"),
        )
    }));
    problems
}

fn unknown<'a>(
    source: &'a Source,
    page: &str,
    known: &BTreeSet<&str>,
    names: impl Fn(&'a str) -> Vec<&'a str>,
) -> Vec<Problem> {
    source
        .lines()
        .filter(|(_, line)| line.trim_start().starts_with("//"))
        .flat_map(|(number, line)| names(line).into_iter().map(move |word| (number, word)))
        .filter(|(_, word)| !known.contains(word))
        .map(|(number, word)| {
            Problem::new(
                &source.path,
                number,
                format!(
                    "{word} is not in {page}; name the one that is meant, or write it down there"
                ),
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
    fn a_fault_stands_on_its_page_and_is_played_by_a_test() {
        let page = source(
            FAULTS,
            "| ID | What |\n|---|---|\n| CR1 | It dies |\n| CR2 | Too late |\n",
        );
        let pages = [source(PAGE, "# Rules\n"), page];
        let code = [source(
            "crates/a/src/b.rs",
            "// CR1, CR3\n#[test]\nfn a() {}\n",
        )];
        let problems = check(&code, &pages);
        let found: Vec<_> = problems.iter().map(|p| (p.file.as_str(), p.line)).collect();
        assert_eq!(found, [("crates/a/src/b.rs", 1), (FAULTS, 4)]);
    }

    #[test]
    fn without_its_page_no_rule_exists() {
        assert_eq!(check(&[], &[]).len(), 1);
    }
}
