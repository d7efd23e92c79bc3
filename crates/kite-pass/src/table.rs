//! Counts the cases and holds them against what was recorded.
//!
//! What was recorded is the page itself, docs/benchmarks/instructions.md, which names compiler,
//! processor and valgrind. With others the figures differ by themselves, so there they are only
//! printed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::callgrind::{self, Cost};
use crate::cases::{CASES, Case};

/// By how much a figure may grow before `--check` fails; a compiler's patch release moves it by less.
const TOLERANCE: f64 = 1.03;

fn page() -> PathBuf {
    PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/benchmarks/instructions.md"
    ))
}

/// Counts the cases, prints them, and checks or records them.
pub(crate) fn count(
    check: bool,
    write: bool,
    profiles: Option<&str>,
    only: &[String],
) -> Result<()> {
    if let Some(unknown) = only.iter().find(|o| CASES.iter().all(|c| c.name != **o)) {
        bail!("there is no case {unknown}");
    }
    let with = with()?;
    let calls = callgrind::calibrate()?;
    let recorded = fs::read_to_string(page()).unwrap_or_default();
    let before = rows(&recorded);
    let alike = recorded.contains(&with);
    println!("{with}");
    let mut grown = Vec::new();
    let mut costs = Vec::new();
    for case in CASES
        .iter()
        .filter(|c| only.is_empty() || only.iter().any(|o| o == c.name))
    {
        let keep = profiles.map(|folder| format!("{folder}/{}.profile", case.name));
        let cost = callgrind::count(case.name, calls, keep.as_deref())?;
        let known = before.get(case.name);
        println!("{}", told(case, cost, known.copied()));
        if known.is_some_and(|known| has_grown(cost.instructions, *known)) {
            grown.push(case.name);
        }
        costs.push((case, cost));
    }
    if !alike {
        println!(
            "docs/benchmarks/instructions.md was counted with something else; the differences are no finding"
        );
    }
    if write {
        if !only.is_empty() {
            bail!("the page holds all cases; leave the names out");
        }
        let page = page();
        fs::create_dir_all(page.parent().context("the page is in no folder")?)?;
        fs::write(page, text(&with, &costs))?;
    }
    if check && alike && !grown.is_empty() {
        bail!(
            "over 3 % more instructions than recorded: {}; find out why, or record them with --write and say why",
            grown.join(", ")
        );
    }
    Ok(())
}

#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn has_grown(now: u64, before: u64) -> bool {
    now as f64 > before as f64 * TOLERANCE
}

/// What the figures depend on beside the code.
fn with() -> Result<String> {
    let rustc = Command::new("rustc")
        .arg("-V")
        .output()
        .context("cannot start rustc")?;
    let rustc = String::from_utf8_lossy(&rustc.stdout).trim().to_owned();
    let valgrind = callgrind::version()?;
    let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
    Ok(format!("{rustc}, {arch} {os}, {valgrind}"))
}

fn told(case: &Case, cost: Cost, before: Option<u64>) -> String {
    let change = match before {
        Some(before) if before != cost.instructions => format!(", was {}", grouped(before)),
        _ => String::new(),
    };
    format!(
        "{:<20} {:>12} instructions{change}, {} allocations",
        case.name,
        grouped(cost.instructions),
        grouped(cost.allocations)
    )
}

/// The instructions on the page, by case.
fn rows(page: &str) -> BTreeMap<&str, u64> {
    let row = |line: &'_ str| -> Option<(_, u64)> {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let name = cells.next()?.strip_suffix('`')?;
        let instructions = cells.nth(1)?.replace(',', "").parse().ok()?;
        Some((name.len(), instructions))
    };
    let named = page.lines().filter_map(|line| {
        let (length, instructions) = row(line)?;
        Some((line.get(3..3 + length)?, instructions))
    });
    named.collect()
}

fn text(with: &str, costs: &[(&Case, Cost)]) -> String {
    let mut rows = String::new();
    for (case, cost) in costs {
        let bounds = case.bounds.map_or("—".to_owned(), |(most, aim)| {
            format!("{} / {}", grouped(most), grouped(aim))
        });
        let _ = writeln!(
            rows,
            "| `{}` | {} | {} | {} | {bounds} |",
            case.name,
            case.about,
            grouped(cost.instructions),
            grouped(cost.allocations)
        );
    }
    format!(
        "<!-- Written by `cargo xtask bench pass count --write`. -->\n\n{HEAD}\nCounted with {with}.\n\n| case | what | instructions | allocations | most / aim |\n|---|---|---|---|---|\n{rows}\n{FOOT}"
    )
}

const HEAD: &str = "# Instructions of a pass

How much work a controller has with one machine when nothing is sent: the count of instructions in user
space, by valgrind's callgrind. The same program on the same recording gives the same count, however busy
the machine is.

    cargo xtask bench pass
    cargo xtask bench pass count --check
    cargo xtask bench pass count --profiles profiles vm-settled
    callgrind_annotate profiles/vm-settled.profile

The first prints the counts beside those below, the second fails when one has grown by over 3 % (with the
compiler, processor and valgrind named below; with others it only prints), the others show where the
instructions are.
";

const FOOT: &str = "The objects are a recording of a control plane on which all six controllers have come to rest
(`kite-pass record`). The passes are the controllers' own, with everything that they do in a process:
caches, metrics, clocks. A settled pass that sent one request would be an error, not a figure.

What these figures are not: time (a cache miss counts as one instruction, and so does a division); the
kernel's share; TLS and HTTP; the reading of what a watch brings. They are of the profile `measure`, which
leaves out the optimization across crates that a release has, so a release takes somewhat less.

The most and the aim were set before anything was measured. A settled pass takes several times the most, since
what is watched is kept as compressed text and read anew in each pass; [the profile](profile.md) has the shares,
and why it stays so.
";

/// A number as people read it.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_read_as_it_was_written() {
        let cost = Cost {
            instructions: 1_234_567,
            allocations: 89,
        };
        let costs: Vec<_> = CASES.iter().map(|case| (case, cost)).collect();
        let page = text("a compiler", &costs);
        let rows = rows(&page);
        assert_eq!(rows.len(), CASES.len());
        assert!(rows.values().all(|n| *n == 1_234_567), "{rows:?}");
        assert!(page.contains("Counted with a compiler."));
    }

    #[test]
    fn a_figure_has_grown_when_it_is_over_three_percent_larger() {
        assert!(!has_grown(1030, 1000));
        assert!(has_grown(1031, 1000));
        assert!(!has_grown(10, 1000));
    }
}
