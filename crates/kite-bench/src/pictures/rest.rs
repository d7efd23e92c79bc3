//! Requests a minute while nothing happens, by controller, at each number of machines. Leases and
//! watches are told apart from what would be work; of that there should be nothing.

use anyhow::Result;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::Picture;
use super::canvas::{self, Area, Axis, Chart, GREY, INK, ORANGE, RED, SKY, letters};
use super::chosen::{self, KITE};
use super::legend::{self, Mark, Meaning};
use super::numbers::{machines, mark, marks, shown};
use crate::numbers::number;
use crate::report::{Count, Measured, Report};

const SCENARIO: &str = "rest";
/// What stands before the bars: the names of the controllers.
const NAMES: u32 = 130;
/// A panel is no wider, however few there are.
const WIDEST: i32 = 360;

/// What the requests are for, and the colour of each.
const KINDS: [(&str, RGBColor); 3] = [
    ("leases", SKY),
    ("watches, opened again", ORANGE),
    ("anything else", RED),
];

/// The requests a minute of the six at one size.
#[derive(Debug, PartialEq)]
struct Panel {
    machines: usize,
    /// For each of the six: leases, watches, anything else.
    rates: [[f64; 3]; 6],
    /// As the report has it.
    whole: f64,
}

/// The picture, when rest was counted.
pub(super) fn draw(report: &Report) -> Result<Option<Picture>> {
    let results = chosen::of(report, SCENARIO);
    let sizes = chosen::sizes(&results);
    let panels: Vec<_> = sizes.iter().filter_map(|s| panel(&results, *s)).collect();
    if panels.is_empty() {
        return Ok(None);
    }
    let title = "Requests while nothing happens";
    let under =
        "Requests a minute of each controller, with so many machines that have come to rest.";
    let svg = canvas::picture(416, title, under, |area| {
        let (above, below) = area.split_vertically(area.dim_in_pixel().1.cast_signed() - 34);
        draw_panels(&above, &panels)?;
        draw_kinds(&below)
    })?;
    Ok(Some(Picture {
        scenario: SCENARIO,
        name: "rest.svg".to_owned(),
        alt: format!("{title}: requests a minute of each controller, for leases, watches and else"),
        svg,
    }))
}

fn kind(count: &Count) -> usize {
    if chosen::is_lease(count) {
        0
    } else if chosen::is_watch(count) {
        1
    } else {
        2
    }
}

fn panel(results: &[&Measured], machines: usize) -> Option<Panel> {
    let whole = chosen::spread(results, KITE, machines, "requests a minute")?.median;
    let count = |controller: &str, wanted: usize| {
        chosen::counted(results, machines, |count| {
            chosen::account(count) == controller && kind(count) == wanted
        })
    };
    let mut rates = [[0.0; 3]; 6];
    for (row, controller) in rates.iter_mut().zip(chosen::six()) {
        for (place, rate) in row.iter_mut().enumerate() {
            *rate = count(controller, place)?;
        }
    }
    // The counts are of the whole time; the report's sum says how long a minute of them is.
    let sum: f64 = rates.iter().flatten().sum();
    let minutes = if whole > 0.0 { sum / whole } else { 1.0 };
    for rate in rates.iter_mut().flatten() {
        *rate /= if minutes > 0.0 { minutes } else { 1.0 };
    }
    Some(Panel {
        machines,
        rates,
        whole,
    })
}

fn draw_panels(area: &Area<'_>, panels: &[Panel]) -> Result<()> {
    let sums = panels.iter().flat_map(|panel| &panel.rates);
    let most = sums.map(|row| row.iter().sum()).fold(0.0, f64::max);
    let many = i32::try_from(panels.len()).unwrap_or(i32::MAX);
    let width = area.dim_in_pixel().0.cast_signed() - NAMES.cast_signed();
    let each = (width / many).min(WIDEST);
    let mut rest = area.clone();
    for (place, panel) in panels.iter().enumerate() {
        // Only the first has the names of the controllers.
        let left = if place == 0 { NAMES } else { 8 };
        let whole = if place == 0 {
            each + NAMES.cast_signed()
        } else {
            each
        };
        let (here, right) = rest.split_horizontally(whole);
        draw_panel(&here, panel, most, left)?;
        rest = right;
    }
    Ok(())
}

fn draw_panel(area: &Area<'_>, panel: &Panel, most: f64, left: u32) -> Result<()> {
    let (head, body) = area.split_vertically(42);
    let from = left.cast_signed();
    head.draw_text(&machines(panel.machines), &letters(14.0, INK), (from, 10))?;
    let sum = format!("{} a minute in all", shown(panel.whole));
    head.draw_text(&sum, &letters(12.0, GREY), (from, 28))?;
    // Room for the number after the longest bar.
    let ticks = marks(most);
    let last = ticks.last().copied().unwrap_or(1.0);
    let x = Axis {
        title: "requests a minute".to_owned(),
        range: 0.0..last.max(most * 1.3),
        marks: ticks.into_iter().step_by(2).map(|m| (m, mark(m))).collect(),
    };
    let names = chosen::six().into_iter().zip(0..);
    let y = Axis {
        title: String::new(),
        // The first stands at the top.
        range: 5.6..-0.6,
        marks: names
            .map(|(name, row)| {
                (
                    f64::from(row),
                    if left == NAMES { name } else { "" }.to_owned(),
                )
            })
            .collect(),
    };
    let chart = canvas::chart(&body, &x, &y, left)?;
    for (row, rates) in panel.rates.iter().enumerate() {
        draw_row(&chart, number(row), rates)?;
    }
    Ok(())
}

fn draw_row(chart: &Chart<'_>, row: f64, rates: &[f64; 3]) -> Result<()> {
    let mut from = 0.0;
    for (rate, (_, colour)) in rates.iter().zip(KINDS) {
        if *rate > 0.0 {
            let corners = [(from, row - 0.32), (from + rate, row + 0.32)];
            let bar = Rectangle::new(corners, colour.filled());
            chart.plotting_area().draw(&bar)?;
        }
        from += rate;
    }
    let style = canvas::at(&letters(12.0, INK), HPos::Left);
    canvas::label(chart, (from, row), (5, 0), &shown(from), &style)
}

fn draw_kinds(area: &Area<'_>) -> Result<()> {
    let mut left = NAMES.cast_signed() - 14;
    for ((name, colour), width) in KINDS.into_iter().zip([130, 230, 160]) {
        let (box_area, _) = area.split_horizontally(left + width);
        let (_, here) = box_area.split_horizontally(left);
        legend::list(&here, &[Meaning::new(Mark::Bar(colour), name, "")])?;
        left += width;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_ten_minutes_become_requests_a_minute() {
        let count = |controller: &str, verb: &str, resource: &str, count| Count {
            controller: controller.to_owned(),
            verb: verb.to_owned(),
            resource: resource.to_owned(),
            count,
        };
        let mut measured =
            Measured::new(SCENARIO, KITE, 100).figure("requests a minute", "requests/min", 14.0);
        measured.counts = vec![
            count("kite-user", "update", "coordination.k8s.io/leases", 120),
            count("kite-vm", "watch", "services", 20),
        ];
        let panel = panel(&[&measured], 100).unwrap();
        let shown_of = |row: usize| panel.rates[row].map(shown);
        assert_eq!(shown_of(0), ["12", "0", "0"]);
        assert_eq!(shown_of(2), ["0", "2", "0"]);
    }
}
