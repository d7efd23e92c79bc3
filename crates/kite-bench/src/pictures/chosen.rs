//! What of a report belongs together: the rounds of one contestant at one size, Kite and the bare
//! client of the same round, the requests of one controller. It chooses and does not judge.

use std::collections::BTreeSet;

use kite_api::labels::Controller;

use super::numbers::Spread;
use crate::numbers::number;
use crate::report::{Count, Measured, Report};

/// The contestant whose six processes are measured.
pub(super) const KITE: &str = "kite";
/// The one that sends the least writes and decides nothing.
pub(super) const BARE: &str = "bare";

/// The six, in the order in which they are always shown.
pub(super) fn six() -> [&'static str; 6] {
    Controller::ALL.map(Controller::name)
}

/// All results of one scenario.
pub(super) fn of<'r>(report: &'r Report, scenario: &str) -> Vec<&'r Measured> {
    let results = report.results.iter();
    results.filter(|m| m.scenario == scenario).collect()
}

/// The numbers of machines at which a scenario was measured, rising.
pub(super) fn sizes(results: &[&Measured]) -> Vec<usize> {
    let sizes: BTreeSet<_> = results.iter().map(|m| m.machines).collect();
    sizes.into_iter().collect()
}

/// The contestants in the order in which they were measured.
pub(super) fn contestants<'r>(results: &[&'r Measured]) -> Vec<&'r str> {
    let mut found: Vec<&str> = Vec::new();
    for measured in results {
        if !found.contains(&measured.contestant.as_str()) {
            found.push(&measured.contestant);
        }
    }
    found
}

/// All rounds of one contestant at one size.
pub(super) fn rounds<'r>(
    results: &[&'r Measured],
    contestant: &str,
    machines: usize,
) -> Vec<&'r Measured> {
    let results = results.iter().copied();
    results
        .filter(|m| m.contestant == contestant && m.machines == machines)
        .collect()
}

/// A figure over all rounds.
pub(super) fn spread(
    results: &[&Measured],
    contestant: &str,
    machines: usize,
    figure: &str,
) -> Option<Spread> {
    let rounds = rounds(results, contestant, machines);
    Spread::of(rounds.iter().filter_map(|m| m.value(figure)).collect())
}

/// How many times the bare client's figure Kite's is, each pair from the same round.
pub(super) fn ratio(results: &[&Measured], machines: usize, figure: &str) -> Option<Spread> {
    let bare = rounds(results, BARE, machines);
    let pairs = rounds(results, KITE, machines).into_iter().filter_map(|k| {
        let b = bare.iter().find(|b| b.round == k.round)?;
        let (kite, bare) = (k.value(figure)?, b.value(figure)?);
        (kite > 0.0 && bare > 0.0).then(|| kite / bare)
    });
    Spread::of(pairs.collect())
}

/// The account without what its kind puts before the name.
pub(super) fn account(count: &Count) -> &str {
    let name = &count.controller;
    name.rsplit(':').next().unwrap_or(name)
}

/// Whether a request belongs to a lease.
pub(super) fn is_lease(count: &Count) -> bool {
    count.resource.ends_with("leases")
}

/// Whether a request opens a watch.
pub(super) fn is_watch(count: &Count) -> bool {
    count.verb == "watch"
}

/// Whether a request writes an Event, which budgets count apart because events may merge.
pub(super) fn is_event(count: &Count) -> bool {
    count.resource.ends_with("events")
}

/// Whether a request changes something that is not a lease: taking part is not changing.
pub(super) fn is_write(count: &Count) -> bool {
    !matches!(count.verb.as_str(), "get" | "list" | "watch") && !is_lease(count)
}

/// How many requests of a kind were sent, the median over the rounds that were counted.
pub(super) fn counted(
    results: &[&Measured],
    machines: usize,
    wanted: impl Fn(&Count) -> bool,
) -> Option<f64> {
    let rounds = rounds(results, KITE, machines);
    let counted = rounds.iter().filter(|m| !m.counts.is_empty()).map(|m| {
        let wanted = m.counts.iter().filter(|count| wanted(count));
        number(wanted.map(|count| count.count).sum())
    });
    Spread::of(counted.collect()).map(|spread| spread.median)
}
