//! Requests of a burst against the number of machines, one line for each controller and the sum.
//!
//! A slope of one in this picture means so many requests for each machine and nothing that grows
//! faster. Leases and re-opened watches are left out, since they go with time and not with machines,
//! and so are Events, which may merge.

use anyhow::Result;

use super::Picture;
use super::canvas::{self, Axis, FORMS, INK, SIX};
use super::chosen;
use super::legend::{self, LIST, Mark, Meaning};
use super::numbers::{count, decades, shown, slope};
use crate::numbers::number;
use crate::report::{Count, Measured, Report};

const SCENARIO: &str = "burst";

/// One line of the picture.
#[derive(Debug, PartialEq)]
pub(super) struct Line {
    /// A controller's name, or the sum.
    pub(super) name: String,
    /// Machines and requests.
    pub(super) points: Vec<(f64, f64)>,
}

impl Line {
    fn logarithms(&self) -> Vec<(f64, f64)> {
        let positive = self.points.iter().filter(|p| p.0 > 0.0 && p.1 > 0.0);
        positive.map(|p| (p.0.log10(), p.1.log10())).collect()
    }

    /// The slope in the picture.
    pub(super) fn slope(&self) -> Option<f64> {
        slope(&self.logarithms())
    }

    /// Requests for each machine more, between the least and the greatest number of machines.
    pub(super) fn for_each(&self) -> Option<f64> {
        let (first, last) = (self.points.first()?, self.points.last()?);
        (last.0 > first.0).then(|| (last.1 - first.1) / (last.0 - first.0))
    }
}

/// Whether a request is one that goes with machines.
fn is_work(count: &Count) -> bool {
    !chosen::is_lease(count) && !chosen::is_watch(count) && !chosen::is_event(count)
}

/// All such requests of the six at one size, if they were counted.
pub(super) fn of_six(results: &[&Measured], machines: usize) -> Option<f64> {
    chosen::counted(results, machines, |count| {
        is_work(count) && chosen::six().contains(&chosen::account(count))
    })
}

/// What was counted, of those that sent anything: the six, then the sum.
pub(super) fn lines(results: &[&Measured]) -> Vec<Line> {
    let sizes = chosen::sizes(results);
    let points = |wanted: &dyn Fn(&Count) -> bool| -> Vec<(f64, f64)> {
        let counted = sizes.iter().filter_map(|size| {
            let requests = chosen::counted(results, *size, |c| is_work(c) && wanted(c))?;
            Some((number(*size), requests))
        });
        counted.filter(|point| point.0 > 0.0).collect()
    };
    let six = chosen::six().map(|name| Line {
        name: name.to_owned(),
        points: points(&|count| chosen::account(count) == name),
    });
    let sum = Line {
        name: "sum of the six".to_owned(),
        points: points(&|count| chosen::six().contains(&chosen::account(count))),
    };
    let all = six.into_iter().chain([sum]);
    all.filter(|line| line.points.iter().any(|point| point.1 > 0.0))
        .collect()
}

/// The picture, when there are at least two sizes to draw a line between.
pub(super) fn draw(report: &Report) -> Result<Option<Picture>> {
    let lines = lines(&chosen::of(report, SCENARIO));
    if !lines.iter().any(|line| line.points.len() > 1) {
        return Ok(None);
    }
    let title = "Requests against machines";
    let under = "Kite's requests until all machines run, without leases, watches and Events. Both axes logarithmic.";
    let svg = canvas::picture(480, title, under, |area| {
        let (left, right) =
            area.split_horizontally(area.dim_in_pixel().0.cast_signed() - LIST - 20);
        let (x, y) = axes(&lines);
        let mut chart = canvas::chart(&left, &x, &y, 84)?;
        for line in &lines {
            let points = line.logarithms();
            let (colour, mark) = look(&line.name);
            if let Mark::Points(_, form) = mark {
                canvas::line(&mut chart, &points, colour, 2, false)?;
                canvas::points(&chart, &points, form, colour)?;
            } else {
                canvas::line(&mut chart, &points, colour, 4, false)?;
            }
        }
        // The list has the order in which the lines end, so that it can be read across.
        let mut by_end: Vec<&Line> = lines.iter().collect();
        by_end.sort_by(|a, b| end(b).total_cmp(&end(a)));
        legend::list(&right, &by_end.into_iter().map(meaning).collect::<Vec<_>>())
    })?;
    Ok(Some(Picture {
        scenario: SCENARIO,
        name: "requests.svg".to_owned(),
        alt: format!("{title}: a line for each controller and the sum, on logarithmic axes"),
        svg,
    }))
}

fn end(line: &Line) -> f64 {
    line.points.last().map_or(0.0, |point| point.1)
}

fn look(name: &str) -> (plotters::style::RGBColor, Mark) {
    match chosen::six().iter().position(|six| *six == name) {
        Some(place) => (SIX[place], Mark::Points(SIX[place], FORMS[place])),
        None => (INK, Mark::Line(INK, 4)),
    }
}

fn meaning(line: &Line) -> Meaning {
    let slope = line.slope().map(|slope| format!("slope {slope:.2}"));
    let each = line.for_each();
    let each = each.map(|each| format!("{} for each machine", shown(each)));
    let under: Vec<_> = slope.into_iter().chain(each).collect();
    Meaning::new(look(&line.name).1, &line.name, under.join(", "))
}

fn axes(lines: &[Line]) -> (Axis, Axis) {
    let points = || lines.iter().flat_map(|line| &line.points);
    let ends = |values: &mut dyn Iterator<Item = f64>| {
        values
            .filter(|value| *value > 0.0)
            .fold((f64::INFINITY, 0.0), |(least, most), value| {
                (f64::min(least, value), f64::max(most, value))
            })
    };
    let x = ends(&mut points().map(|point| point.0));
    let y = ends(&mut points().map(|point| point.1));
    let mut machines = axis("machines", x);
    // The first and the last point do not lie on the frame.
    machines.range = (x.0.log10() - 0.15)..(x.1.log10() + 0.15);
    (machines, axis("requests", y))
}

fn axis(title: &str, (least, most): (f64, f64)) -> Axis {
    let marks = decades(least, most);
    let below = marks.first().copied().unwrap_or(0.0);
    let above = marks.last().copied().unwrap_or(1.0);
    Axis {
        title: title.to_owned(),
        range: below..above,
        marks: marks.iter().map(|m| (*m, power(*m))).collect(),
    }
}

fn power(exponent: f64) -> String {
    let value = 10_f64.powf(exponent);
    let small = shown(value);
    // Whole numbers of ten thousand and more, without what floating point adds to them.
    format!("{value:.0}")
        .parse()
        .map_or(small, |whole: usize| count(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_grow_with_machines_have_the_slope_one() {
        let line = Line {
            name: "kite-vm".to_owned(),
            points: vec![(100.0, 700.0), (1_000.0, 7_000.0)],
        };
        assert!((line.slope().unwrap() - 1.0).abs() < 1e-9);
        assert!((line.for_each().unwrap() - 7.0).abs() < 1e-9);
    }

    #[test]
    fn leases_watches_and_events_are_not_counted_nor_are_other_accounts() {
        let count = |controller: &str, verb: &str, resource: &str| Count {
            controller: controller.to_owned(),
            verb: verb.to_owned(),
            resource: resource.to_owned(),
            count: 5,
        };
        let mut measured = Measured::new(SCENARIO, chosen::KITE, 100);
        measured.counts = vec![
            count("kite-vm", "patch", "services"),
            count("kite-vm", "update", "coordination.k8s.io/leases"),
            count("kite-vm", "watch", "services"),
            count("kite-vm", "create", "events.k8s.io/events"),
            count("load", "create", "services"),
        ];
        let found = lines(&[&measured]);
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|line| line.points == [(100.0, 5.0)]));
        assert!(
            draw(&Report {
                results: vec![measured],
                ..Report::default()
            })
            .unwrap()
            .is_none()
        );
    }
}
