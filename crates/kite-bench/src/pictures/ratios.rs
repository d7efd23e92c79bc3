//! How many times the bare client's time Kite's is, for everything that both did: the least, the
//! median and the greatest of the rounds, beside the targets.

use anyhow::Result;

use super::Picture;
use super::canvas::{self, Area, Axis, BLUE, Chart, Form, GREY, INK, SKY};
use super::chosen::{self, KITE};
use super::legend::{self, Mark, Meaning};
use super::numbers::{Spread, count, shown};
use super::targets::{Target, ratio_targets};
use crate::numbers::number;
use crate::report::{Figure, Measured, Report};

/// The height of one row, in pixels.
const ROW: u32 = 30;
/// What stands before the rows.
const NAMES: u32 = 310;
/// Where an axis of ratios may have a mark.
const MARKS: [f64; 13] = [
    0.1, 0.2, 0.5, 0.75, 0.9, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0,
];

/// One line of the picture.
pub(super) struct Row {
    /// The scenario, the number of machines and the figure.
    pub(super) name: String,
    pub(super) ratio: Spread,
    pub(super) target: Option<Target>,
}

/// Whether a figure is a time of which a ratio is stated. Of the processor times only the API
/// server's is: the others are either no contestant's work or not in both.
fn is_time(figure: &Figure) -> bool {
    let spent_elsewhere = figure.name.starts_with("CPU") && !figure.name.ends_with("apiserver");
    matches!(figure.unit.as_str(), "s" | "ms") && !spent_elsewhere
}

/// All ratios of a report, those with targets first.
pub(super) fn rows(report: &Report) -> Vec<Row> {
    let mut scenarios: Vec<&str> = Vec::new();
    for measured in &report.results {
        if !scenarios.contains(&measured.scenario.as_str()) {
            scenarios.push(&measured.scenario);
        }
    }
    let mut rows: Vec<Row> = scenarios
        .into_iter()
        .flat_map(|scenario| of_scenario(scenario, &chosen::of(report, scenario)))
        .collect();
    // The sort is stable: what has the same rank keeps the report's order.
    rows.sort_by_key(|row| row.target.is_none());
    rows
}

fn of_scenario(scenario: &str, results: &[&Measured]) -> Vec<Row> {
    let mut rows = Vec::new();
    for size in chosen::sizes(results) {
        let mut names: Vec<&str> = Vec::new();
        for measured in chosen::rounds(results, KITE, size) {
            let times = measured.figures.iter().filter(|f| is_time(f));
            for figure in times {
                if !names.contains(&figure.name.as_str()) {
                    names.push(&figure.name);
                }
            }
        }
        for figure in names {
            if let Some(ratio) = chosen::ratio(results, size, figure) {
                rows.push(Row {
                    name: format!("{scenario} {}: {figure}", count(size)),
                    ratio,
                    target: ratio_targets(scenario, size, figure),
                });
            }
        }
    }
    rows
}

/// The picture, when Kite and the bare client did the same.
pub(super) fn draw(report: &Report) -> Result<Option<Picture>> {
    let rows = rows(report);
    if rows.is_empty() {
        return Ok(None);
    }
    let title = "Kite's time as a multiple of the bare client's";
    let under = "Each pair from the same round of the same run. Point: median. Bar: least to greatest. Less is better.";
    let height = u32::try_from(rows.len()).unwrap_or(u32::MAX) * ROW + 196;
    let svg = canvas::picture(height, title, under, |area| {
        let (above, below) = area.split_vertically(area.dim_in_pixel().1.cast_signed() - 36);
        draw_rows(&above, &rows)?;
        draw_meanings(&below, &rows)
    })?;
    Ok(Some(Picture {
        scenario: "",
        name: "ratios.svg".to_owned(),
        alt: format!("{title}: least, median and greatest, beside the targets"),
        svg,
    }))
}

fn draw_rows(area: &Area<'_>, rows: &[Row]) -> Result<()> {
    let (left, right) = area.split_horizontally(area.dim_in_pixel().0.cast_signed() - 150);
    let names = rows.iter().zip(0..);
    let y = Axis {
        title: String::new(),
        range: number(rows.len()) - 0.4..-0.6,
        marks: names
            .map(|(row, place)| (f64::from(place), row.name.clone()))
            .collect(),
    };
    let mut chart = canvas::chart(&left, &ratio_axis(rows), &y, NAMES)?;
    let ends = [(0.0, -0.6), (0.0, number(rows.len()) - 0.4)];
    canvas::line(&mut chart, &ends, GREY, 2, false)?;
    for (row, place) in rows.iter().zip(0..) {
        draw_row(&mut chart, row, f64::from(place))?;
        let (_, y) = chart
            .plotting_area()
            .map_coordinate(&(0.0, f64::from(place)));
        let y = y - right.get_base_pixel().1;
        right.draw_text(&row.ratio.shown(), &canvas::letters(13.0, INK), (0, y))?;
    }
    Ok(())
}

fn draw_row(chart: &mut Chart<'_>, row: &Row, place: f64) -> Result<()> {
    if let Some(target) = &row.target {
        let ends = |value: f64| [(value.log10(), place - 0.5), (value.log10(), place + 0.5)];
        canvas::line(chart, &ends(target.must), INK, 3, false)?;
        canvas::line(chart, &ends(target.aim), INK, 2, true)?;
    }
    let place_of = |ratio: f64| (ratio.log10(), place);
    let ends = [place_of(row.ratio.least), place_of(row.ratio.most)];
    canvas::line(chart, &ends, SKY, 7, false)?;
    canvas::points(chart, &[place_of(row.ratio.median)], Form::Disc, BLUE)
}

/// Logarithmic, so that twice and half are equally far from the bare client.
fn ratio_axis(rows: &[Row]) -> Axis {
    let nearest = rows.iter().map(|row| row.ratio.least).fold(0.9, f64::min);
    let musts = rows.iter().filter_map(|row| row.target.as_ref());
    let musts = musts.map(|target| target.must);
    let most = rows.iter().map(|row| row.ratio.most).chain(musts);
    let most = most.fold(1.1, f64::max);
    let (from, to) = (nearest.log10() - 0.02, most.log10() + 0.02);
    // Marks stand apart by at least an eighth of the axis.
    let mut marks: Vec<(f64, String)> = vec![(0.0, "1".to_owned())];
    for mark in MARKS {
        let place = mark.log10();
        let apart = marks
            .iter()
            .all(|m| (m.0 - place).abs() >= (to - from) / 9.0);
        if apart && place >= from && place <= to {
            marks.push((place, shown(mark)));
        }
    }
    Axis {
        title: "Kite / bare client, × (logarithmic)".to_owned(),
        range: from..to,
        marks,
    }
}

fn draw_meanings(area: &Area<'_>, rows: &[Row]) -> Result<()> {
    let mut meanings = vec![
        Meaning::new(Mark::Span(SKY, BLUE), "least, median, most", ""),
        Meaning::new(Mark::Line(GREY, 2), "the bare client", ""),
    ];
    if rows.iter().any(|row| row.target.is_some()) {
        meanings.push(Meaning::new(Mark::Broken(INK, 2), "aim", ""));
        meanings.push(Meaning::new(Mark::Line(INK, 3), "must not be exceeded", ""));
    }
    let mut left = 20;
    for (meaning, width) in meanings.into_iter().zip([220, 190, 110, 220]) {
        let (box_area, _) = area.split_horizontally(left + width);
        let (_, here) = box_area.split_horizontally(left);
        legend::list(&here, &[meaning])?;
        left += width;
    }
    Ok(())
}
