//! How long it took, as a distribution: the share of the machines that are so far against the time
//! since their creation, Kite and the bare client, each round and the median of the rounds.

use anyhow::Result;
use plotters::style::RGBColor;

use super::Picture;
use super::canvas::{self, Axis, BLUE, Chart, RED, light};
use super::chosen::{self, BARE, KITE};
use super::legend::{self, LIST, Mark, Meaning};
use super::numbers::{Spread, machines, shown};
use crate::numbers::number;
use crate::report::{Measured, Report};

/// The figure that is compared of a burst.
pub(super) const ALL_RUN: &str = "time to all Running";

/// One time of which there are distributions.
struct Kind {
    scenario: &'static str,
    /// The name of its curves in a report.
    series: &'static str,
    /// How the names of its pictures begin.
    file: &'static str,
    title: &'static str,
    /// What the machines are doing.
    how: &'static str,
    /// The axis of shares.
    share: &'static str,
    /// The figure that is told beside the curves, its unit and its name there.
    figure: (&'static str, &'static str, &'static str),
}

const KINDS: [Kind; 2] = [
    Kind {
        scenario: "burst",
        series: "time to Running",
        file: "time-to-running",
        title: "Time to Running",
        how: "at once",
        share: "machines that run, %",
        figure: (ALL_RUN, "s", "whole burst"),
    },
    Kind {
        scenario: "steady",
        series: "create to disk made",
        file: "time-to-disk",
        title: "Time to the disk being asked for",
        how: "one after the other",
        share: "machines with a disk, %",
        figure: ("create to disk made, p99", "ms", "p99"),
    },
];

/// A curve has no more points than can be told apart.
const POINTS: usize = 200;

type Curve = Vec<(f64, f64)>;

/// The curves of one contestant.
struct Curves {
    name: &'static str,
    colour: RGBColor,
    broken: bool,
    rounds: Vec<Curve>,
    median: Curve,
}

/// One picture for each time and size.
pub(super) fn draw(report: &Report) -> Result<Vec<Picture>> {
    let mut pictures = Vec::new();
    for kind in &KINDS {
        let results = chosen::of(report, kind.scenario);
        for size in chosen::sizes(&results) {
            let looks = [
                (KITE, "Kite", BLUE, false),
                (BARE, "bare client", RED, true),
            ];
            let both: Vec<_> = looks
                .into_iter()
                .filter_map(|look| curves(kind, &results, size, look))
                .collect();
            if !both.is_empty() {
                pictures.push(picture(kind, &results, size, &both)?);
            }
        }
    }
    Ok(pictures)
}

fn curves(
    kind: &Kind,
    results: &[&Measured],
    size: usize,
    (contestant, name, colour, broken): (&str, &'static str, RGBColor, bool),
) -> Option<Curves> {
    let rounds = chosen::rounds(results, contestant, size);
    let series = rounds.iter().flat_map(|m| &m.series);
    let rounds: Vec<Curve> = series
        .filter(|series| series.name == kind.series && !series.points.is_empty())
        .map(|series| thinned(&series.points))
        .collect();
    let median = median(&rounds);
    (!rounds.is_empty()).then_some(Curves {
        name,
        colour,
        broken,
        rounds,
        median,
    })
}

/// Fewer points of the same curve, its ends among them.
fn thinned(points: &[(f64, f64)]) -> Curve {
    let step = points.len().div_ceil(POINTS).max(1);
    let mut curve: Curve = points.iter().copied().step_by(step).collect();
    curve.extend(points.last());
    curve.dedup();
    curve
}

/// The time in the middle of all rounds for each share that every round has reached.
fn median(rounds: &[Curve]) -> Curve {
    let most = rounds
        .iter()
        .filter_map(|curve| curve.last())
        .map(|end| end.1)
        .fold(f64::INFINITY, f64::min);
    if !most.is_finite() {
        return Vec::new();
    }
    let shares = (0..=POINTS).map(|step| most * number(step) / number(POINTS));
    shares
        .filter_map(|share| {
            let times = rounds.iter().filter_map(|curve| reached(curve, share));
            Some((Spread::of(times.collect())?.median, share))
        })
        .collect()
}

/// When a curve first reaches a share.
fn reached(curve: &[(f64, f64)], share: f64) -> Option<f64> {
    let next = curve.iter().position(|point| point.1 >= share)?;
    let to = curve[next];
    let Some(from) = next.checked_sub(1).map(|before| curve[before]) else {
        return Some(to.0);
    };
    let part = (share - from.1) / (to.1 - from.1);
    Some(from.0 + part * (to.0 - from.0))
}

fn picture(kind: &Kind, results: &[&Measured], size: usize, both: &[Curves]) -> Result<Picture> {
    let title = format!("{}, {} {}", kind.title, machines(size), kind.how);
    let one = both.iter().all(|curves| curves.rounds.len() == 1);
    let lines = if one {
        ""
    } else {
        " Thin: a round. Thick: the median of the rounds."
    };
    let under = format!("Share of the machines, each from its own creation.{lines}");
    let svg = canvas::picture(440, &title, &under, |area| {
        let (left, right) = area.split_horizontally(area.dim_in_pixel().0.cast_signed() - LIST);
        let mut chart = canvas::chart(
            &left,
            &time_axis(kind, results, both),
            &share_axis(kind),
            64,
        )?;
        for curves in both {
            draw_curves(&mut chart, curves)?;
        }
        legend::list(&right, &meanings(kind, results, size, both))
    })?;
    let names: Vec<_> = both.iter().map(|curves| curves.name).collect();
    Ok(Picture {
        scenario: kind.scenario,
        name: format!("{}-{size}.svg", kind.file),
        alt: format!(
            "{title}: share of the machines against time, {}",
            names.join(" and ")
        ),
        svg,
    })
}

fn draw_curves(chart: &mut Chart<'_>, curves: &Curves) -> Result<()> {
    if curves.rounds.len() > 1 {
        for round in &curves.rounds {
            canvas::line(chart, round, light(curves.colour), 1, false)?;
        }
    }
    canvas::line(chart, &curves.median, curves.colour, 3, curves.broken)
}

fn time_axis(kind: &Kind, results: &[&Measured], both: &[Curves]) -> Axis {
    let curves = || both.iter().flat_map(|curves| &curves.rounds);
    let firsts = curves().filter_map(|curve| curve.first());
    let least = firsts.map(|first| first.0).fold(f64::INFINITY, f64::min);
    let lasts = curves().filter_map(|curve| curve.last());
    let most = lasts.map(|last| last.0).fold(0.0, f64::max);
    let mut series = results.iter().flat_map(|m| &m.series);
    let said = series.find(|series| series.name == kind.series);
    let title = match said.map_or("", |series| series.x.as_str()) {
        "" | "s" | "seconds" => "seconds since its creation",
        said => said,
    };
    Axis::around(title, least, most)
}

fn share_axis(kind: &Kind) -> Axis {
    let marks = [0.0, 0.25, 0.5, 0.75, 1.0];
    Axis {
        title: kind.share.to_owned(),
        range: 0.0..1.0,
        marks: marks.map(|mark| (mark, shown(mark * 100.0))).into(),
    }
}

fn meanings(kind: &Kind, results: &[&Measured], size: usize, both: &[Curves]) -> Vec<Meaning> {
    let (figure, unit, name) = kind.figure;
    let mut meanings = Vec::new();
    for curves in both {
        let contestant = if curves.broken { BARE } else { KITE };
        let all = chosen::spread(results, contestant, size, figure);
        let under = all.map_or_else(String::new, |all| format!("{name}: {} {unit}", all.shown()));
        let mark = if curves.broken {
            Mark::Broken(curves.colour, 3)
        } else {
            Mark::Line(curves.colour, 3)
        };
        meanings.push(Meaning::new(mark, curves.name, under));
        if curves.rounds.len() > 1 {
            let text = format!("its {} rounds", curves.rounds.len());
            let mark = Mark::Line(light(curves.colour), 1);
            meanings.push(Meaning::new(mark, &text, ""));
        }
    }
    if let Some(ratio) = chosen::ratio(results, size, figure) {
        let text = format!("Kite / bare: {} ×", shown(ratio.median));
        let (least, most) = (shown(ratio.least), shown(ratio.most));
        let range = if least == most {
            String::new()
        } else {
            format!(", {least}–{most}")
        };
        let under = format!("{name}{range}");
        meanings.push(Meaning::new(Mark::Nothing, &text, under));
    }
    meanings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_curve_has_the_middle_time_for_each_share() {
        let round = |last: f64| vec![(0.0, 0.0), (last, 1.0)];
        let median = median(&[round(2.0), round(9.0), round(4.0)]);
        assert_eq!(median.len(), POINTS + 1);
        assert!((median[POINTS / 2].0 - 2.0).abs() < 1e-9);
        assert!((median[POINTS].0 - 4.0).abs() < 1e-9);
    }

    #[test]
    fn a_share_that_one_round_never_reached_has_no_median() {
        let curves = [vec![(0.0, 0.0), (1.0, 0.5)], vec![(0.0, 0.0), (1.0, 1.0)]];
        let last = *median(&curves).last().unwrap();
        assert!((last.1 - 0.5).abs() < 1e-9);
        assert_eq!(median(&[]), []);
    }

    #[test]
    fn a_long_curve_is_thinned_and_keeps_its_ends() {
        let long: Curve = (0..10_000).map(|i| (number(i), number(i))).collect();
        let short = thinned(&long);
        assert!(short.len() <= POINTS + 1);
        assert_eq!((short[0], *short.last().unwrap()), (long[0], long[9_999]));
        assert_eq!(thinned(&long[..3]), long[..3]);
    }
}
