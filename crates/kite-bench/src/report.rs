//! What a run found: figures, counts and curves, each with the scenario and the contestant it
//! belongs to.
//!
//! It is a file format (`--json`), read again by the pictures. It holds no judgement.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::numbers::{Spread, distribution};

/// One run of the benchmark.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The version of Kite, and the commit if it is known.
    pub version: String,
    /// The day, as `2026-11-30`.
    pub date: String,
    /// The command that made it, to be run again.
    pub command: String,
    /// What it ran on: processors, memory, kernel.
    pub machine: BTreeMap<String, String>,
    /// The servers' versions and flags, and how the life was played.
    pub settings: BTreeMap<String, String>,
    /// What was measured, in the order in which it was.
    pub results: Vec<Measured>,
}

impl Report {
    /// Adds what was found, in place of what was found of the same before. A run that counts and
    /// one that times are not the same.
    pub fn replace(&mut self, found: Vec<Measured>) {
        let again = |old: &Measured| found.iter().any(|new| new.is_again(old));
        self.results.retain(|old| !again(old));
        // The report's own command is that of the last run.
        let command = &self.command;
        self.results.extend(found.into_iter().map(|found| Measured {
            command: command.clone(),
            ..found
        }));
    }
}

/// What was found of one contestant in one scenario at one size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Measured {
    /// The scenario, such as `burst`.
    pub scenario: String,
    /// Who did the work: `kite`, `bare` (the bare client), `raw` (creates only), `stand-ins`; or
    /// the name of one process, such as `kite-vm`.
    pub contestant: String,
    /// Number of machines.
    pub machines: usize,
    /// Which repetition, from 1; 0 when there is but one.
    pub round: usize,
    /// The command that made it: a report may be put together from several runs. The report's when
    /// it is empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// Single numbers.
    pub figures: Vec<Figure>,
    /// Requests, by who sent them.
    pub counts: Vec<Count>,
    /// Distributions and curves.
    pub series: Vec<Series>,
}

/// One number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Figure {
    /// Such as `time to all Running`.
    pub name: String,
    /// Such as `s`, `MiB`, `requests/min`, `x`.
    pub unit: String,
    /// The value.
    pub value: f64,
}

/// How often one request was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Count {
    /// The controller, or another account.
    pub controller: String,
    /// The verb, as the audit log has it.
    pub verb: String,
    /// The resource, with its subresource.
    pub resource: String,
    /// How often.
    pub count: usize,
}

/// Points of a curve, or the values of a distribution by rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Series {
    /// Such as `time to Running`.
    pub name: String,
    /// What the first number of a point is, with its unit.
    pub x: String,
    /// What the second is, with its unit.
    pub y: String,
    /// The points, by rising first number.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    /// How the times of machines are distributed: after how many seconds which share of them.
    pub fn of_times(name: &str, times: &Spread) -> Self {
        Self {
            name: name.to_owned(),
            x: "seconds after its creation".to_owned(),
            y: "share of machines".to_owned(),
            points: distribution(times),
        }
    }
}

impl Measured {
    fn is_again(&self, old: &Self) -> bool {
        let what = |m: &Self| (m.machines, m.counts.is_empty());
        what(self) == what(old)
            && self.scenario == old.scenario
            && self.contestant == old.contestant
    }

    /// Nothing found yet.
    pub fn new(scenario: &str, contestant: &str, machines: usize) -> Self {
        Self {
            scenario: scenario.to_owned(),
            contestant: contestant.to_owned(),
            machines,
            ..Self::default()
        }
    }

    /// Adds a number.
    #[must_use]
    pub fn figure(mut self, name: &str, unit: &str, value: f64) -> Self {
        self.figures.push(Figure {
            name: name.to_owned(),
            unit: unit.to_owned(),
            value,
        });
        self
    }

    /// The number of that name.
    pub fn value(&self, name: &str) -> Option<f64> {
        let found = self.figures.iter().find(|figure| figure.name == name);
        found.map(|figure| figure.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed(machines: usize, round: usize) -> Measured {
        Measured {
            round,
            ..Measured::new("burst", "kite", machines)
        }
    }

    fn counted(machines: usize) -> Measured {
        Measured {
            counts: vec![Count::default()],
            ..timed(machines, 0)
        }
    }

    #[test]
    fn a_run_replaces_its_own_rounds_and_not_what_others_measured() {
        // Given rounds of two runs and a count of the same size,
        let mut report = Report {
            command: "first".to_owned(),
            ..Report::default()
        };
        report.replace(vec![timed(100, 1), timed(100, 2)]);
        report.replace(vec![counted(100), timed(1_000, 1)]);
        assert_eq!(report.results.len(), 4);
        // when the rounds are measured again, fewer than before,
        report.command = "second".to_owned();
        report.replace(vec![timed(100, 1)]);
        // then the old ones are gone and the rest is as it was, each with its command.
        let left = report.results.iter();
        let left: Vec<_> = left
            .map(|m| (m.machines, m.round, m.command.as_str()))
            .collect();
        let expected = [(100, 0, "first"), (1_000, 1, "first"), (100, 1, "second")];
        assert_eq!(left, expected);
    }
}
