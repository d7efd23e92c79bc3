//! `cargo xtask rules`: each rule, and the tests that name it.
//!
//! That a test names a rule does not show that it proves it; what would have to
//! break for a test to fail is asked by `cargo xtask mutants`. `cargo xtask
//! tidy` fails on a rule that no test names.

mod page;
mod proofs;

use std::collections::BTreeSet;

use anyhow::{Result, bail};

pub(crate) use page::{FAULTS, PAGE, Rule, defined, defined_faults, faults, named};
pub(crate) use proofs::{Proof, proofs};

use crate::workspace;

/// Prints every rule, or the one that is asked for, with its tests.
pub(crate) fn run(only: Option<&str>) -> Result<()> {
    let page = page::page()?;
    let sources = workspace::sources()?;
    let proofs: Vec<_> = sources.iter().flat_map(proofs).collect();
    let rules = defined(&page);
    if let Some(name) = only {
        let rule = rules.iter().find(|rule| rule.name == name);
        let shown = rule.map_or_else(|| entry(name, "", &proofs), |rule| of(rule, &proofs));
        if rule.is_none() && proofs.iter().all(|proof| !proof.names.contains(name)) {
            bail!(
                "{name} is neither a rule of {PAGE} nor named by a test; write it as C-7, or as CR1 for a fault"
            );
        }
        print!("{shown}");
        return Ok(());
    }
    for rule in &rules {
        print!("{}", of(rule, &proofs));
    }
    let others = others(&rules, &proofs);
    println!("\nFaults that tests name beside the rules\n");
    for name in &others {
        print!("{}", entry(name, "", &proofs));
    }
    println!("\n{}", summary(&rules, &proofs));
    Ok(())
}

/// The rules that no test names.
pub(crate) fn unproved<'a, 'p>(rules: &'a [Rule<'p>], proofs: &[Proof<'_>]) -> Vec<&'a Rule<'p>> {
    rules
        .iter()
        .filter(|rule| !proofs.iter().any(|proof| proof.names.contains(rule.name)))
        .collect()
}

/// What tests name that is no rule of the page, by letters and number.
fn others<'a>(rules: &[Rule<'_>], proofs: &[Proof<'a>]) -> Vec<&'a str> {
    let names: BTreeSet<&str> = proofs
        .iter()
        .flat_map(|p| p.names.iter().copied())
        .collect();
    let is_rule = |name: &&str| rules.iter().any(|rule| rule.name == *name);
    let mut names: Vec<_> = names.into_iter().filter(|name| !is_rule(name)).collect();
    names.sort_by_key(|name| {
        (
            name.get(..2),
            name.get(2..).and_then(|n| n.parse::<u8>().ok()),
        )
    });
    names
}

fn of(rule: &Rule<'_>, proofs: &[Proof<'_>]) -> String {
    entry(rule.name, rule.opening, proofs)
}

/// A heading line and a line for each test.
fn entry(name: &str, opening: &str, proofs: &[Proof<'_>]) -> String {
    let mut lines: Vec<_> = proofs
        .iter()
        .filter(|proof| proof.names.contains(name))
        .map(|proof| format!("{}:{} {}", proof.path, proof.line, proof.test))
        .collect();
    if lines.is_empty() {
        lines.push("no test names it".to_owned());
    }
    let heading = format!("{name:<5} {opening}");
    format!("{}\n      {}\n", heading.trim_end(), lines.join("\n      "))
}

fn summary(rules: &[Rule<'_>], proofs: &[Proof<'_>]) -> String {
    let missing: Vec<_> = unproved(rules, proofs).iter().map(|r| r.name).collect();
    let count = format!(
        "{} rules, {} tests that name one",
        rules.len(),
        proofs.len()
    );
    if missing.is_empty() {
        return format!("{count}; no rule is without a test");
    }
    format!(
        "{count}; {} without a test: {}",
        missing.len(),
        missing.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str) -> Rule<'_> {
        Rule {
            name,
            line: 1,
            opening: "It does.",
        }
    }

    fn proof<'a>(test: &'a str, names: &[&'a str]) -> Proof<'a> {
        Proof {
            path: "a.rs",
            line: 7,
            test,
            names: names.iter().copied().collect(),
        }
    }

    #[test]
    fn a_rule_is_shown_with_each_of_its_tests_or_with_their_lack() {
        let proofs = [proof("it_does", &["C-1", "V-2"]), proof("it_too", &["C-1"])];
        assert_eq!(
            of(&rule("C-1"), &proofs),
            "C-1   It does.\n      a.rs:7 it_does\n      a.rs:7 it_too\n"
        );
        assert_eq!(
            of(&rule("C-2"), &proofs),
            "C-2   It does.\n      no test names it\n"
        );
    }

    #[test]
    fn the_summary_names_what_is_missing() {
        let rules = [rule("C-1"), rule("C-2")];
        let proofs = [proof("it_does", &["C-1"])];
        assert_eq!(
            summary(&rules, &proofs),
            "2 rules, 1 tests that name one; 1 without a test: C-2"
        );
        assert_eq!(
            summary(&rules[..1], &proofs),
            "1 rules, 1 tests that name one; no rule is without a test"
        );
    }

    #[test]
    fn faults_stand_apart_in_the_order_of_their_numbers() {
        let proofs = [proof("a", &["C-1", "ST11", "ST4", "CR9"])];
        assert_eq!(others(&[rule("C-1")], &proofs), ["CR9", "ST4", "ST11"]);
    }
}
