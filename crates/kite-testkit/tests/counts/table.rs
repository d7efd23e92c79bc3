//! The table at the end: by step and controller how many requests at each size, and the line.

use std::collections::BTreeSet;
use std::fmt;

use kite_testkit::audit::Request;
use kite_testkit::fit::Line;

use crate::expected::Step;
use crate::judged::Judged;

/// What was counted, in the order of the steps.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<(&'static Step, Vec<(usize, Judged)>)>,
}

impl Table {
    /// Adds a step at one size.
    pub(crate) fn add(&mut self, step: &'static Step, number: usize, judged: Judged) {
        match self.rows.iter_mut().find(|row| row.0.name == step.name) {
            Some(row) => row.1.push((number, judged)),
            None => self.rows.push((step, vec![(number, judged)])),
        }
    }

    fn all(&self) -> impl Iterator<Item = &Judged> {
        self.rows.iter().flat_map(|row| &row.1).map(|size| &size.1)
    }

    /// Everything that is not as it should be.
    pub(crate) fn wrong(&self) -> Vec<String> {
        self.all().flat_map(|judged| judged.wrong.clone()).collect()
    }

    /// What was refused as stale.
    pub(crate) fn stale(&self) -> impl Iterator<Item = &Request> {
        self.all().flat_map(|judged| &judged.stale)
    }

    /// All requests of all steps, refused ones included.
    pub(crate) fn total(&self) -> usize {
        let of = |judged: &Judged| judged.counts.total() + judged.stale.len();
        self.all().map(of).sum()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (step, sizes) in &self.rows {
            let whose = if step.of.is_empty() { "all" } else { step.of };
            let (floor, limit) = (step.floor, step.limit);
            writeln!(
                f,
                "{} (floor {floor}, limit {limit} for each, {whose})",
                step.name
            )?;
            let controllers = sizes.iter().flat_map(|size| size.1.counts.rows());
            let controllers: BTreeSet<_> = controllers.map(|row| &*row.0.controller).collect();
            let rows = controllers.into_iter().map(Some).chain([None]);
            for controller in rows {
                let of = |judged: &Judged| {
                    controller.map_or(judged.counts.total(), |name| judged.counts.by(name))
                };
                let points: Vec<_> = sizes.iter().map(|(n, judged)| (*n, of(judged))).collect();
                write!(f, "  {:16}", controller.unwrap_or("all"))?;
                for (number, count) in &points {
                    write!(f, "  {number:3}: {count:4}")?;
                }
                writeln!(f, "   {}", Line::through(&points))?;
            }
            for (number, judged) in sizes {
                let (stale, excused) = (judged.stale.len(), judged.excused);
                if stale + excused > 0 {
                    writeln!(
                        f,
                        "  with {number}: {stale} refused as stale, {excused} because others were slow"
                    )?;
                }
            }
        }
        Ok(())
    }
}
