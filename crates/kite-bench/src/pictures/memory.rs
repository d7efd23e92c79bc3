//! Memory against the number of machines: what each process holds at rest, and the most that it
//! ever held, one upon the other.

use anyhow::Result;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::Picture;
use super::canvas::{self, Axis, Chart, INK, SIX, letters, light};
use super::chosen;
use super::legend::{self, LIST, Mark, Meaning};
use super::numbers::{count, shown};
use super::targets::memory_targets;
use crate::numbers::number;
use crate::report::{Measured, Report};

const SCENARIO: &str = "memory";
/// Half the width of a bar, where one number of machines has the width one.
const HALF: f64 = 0.17;

/// One bar: what the six hold at one size.
struct Bar {
    place: f64,
    /// In MiB, in the order of the six.
    parts: [f64; 6],
    peak: bool,
}

impl Bar {
    fn whole(&self) -> f64 {
        self.parts.iter().sum()
    }
}

/// The picture, when any process was measured.
pub(super) fn draw(report: &Report) -> Result<Option<Picture>> {
    let results = chosen::of(report, SCENARIO);
    let sizes = chosen::sizes(&results);
    let places = || sizes.iter().zip(0..);
    let bars: Vec<Bar> = places()
        .flat_map(|(size, place)| bars(&results, *size, f64::from(place)))
        .collect();
    if bars.is_empty() {
        return Ok(None);
    }
    let title = "Memory against machines";
    let under = "Resident memory of the six processes. Left: at rest. Right, pale: each process's peak since it started.";
    let svg = canvas::picture(480, title, under, |area| {
        let (left, right) = area.split_horizontally(area.dim_in_pixel().0.cast_signed() - LIST);
        let mut chart = canvas::chart(
            &left,
            &machine_axis(&sizes),
            &memory_axis(&bars, &sizes),
            64,
        )?;
        for bar in &bars {
            draw_bar(&chart, bar)?;
        }
        for (size, place) in places() {
            draw_targets(&mut chart, *size, f64::from(place))?;
        }
        for bar in &bars {
            draw_number(&chart, bar)?;
        }
        legend::list(&right, &meanings(&sizes))
    })?;
    Ok(Some(Picture {
        scenario: SCENARIO,
        name: "memory.svg".to_owned(),
        alt: format!("{title}: resident memory and peak of the six processes, one upon the other"),
        svg,
    }))
}

fn bars(results: &[&Measured], size: usize, middle: f64) -> Vec<Bar> {
    let parts = |figure: &str| {
        chosen::six().map(|name| {
            let spread = chosen::spread(results, name, size, figure);
            spread.map_or(0.0, |spread| spread.median)
        })
    };
    let rest = Bar {
        place: middle - HALF - 0.02,
        parts: parts("resident"),
        peak: false,
    };
    let peak = Bar {
        place: middle + HALF + 0.02,
        parts: parts("peak"),
        peak: true,
    };
    let both = [rest, peak];
    both.into_iter().filter(|bar| bar.whole() > 0.0).collect()
}

fn machine_axis(sizes: &[usize]) -> Axis {
    let marks = sizes.iter().zip(0..);
    Axis {
        title: "machines".to_owned(),
        range: -0.5..number(sizes.len()) - 0.5,
        marks: marks
            .map(|(size, place)| (f64::from(place), count(*size)))
            .collect(),
    }
}

fn memory_axis(bars: &[Bar], sizes: &[usize]) -> Axis {
    let bars = bars.iter().map(Bar::whole);
    let targets = sizes.iter().filter_map(|size| memory_targets(*size));
    let most = bars.chain(targets.map(|t| t.must)).fold(0.0, f64::max);
    // Room for the number above the highest bar.
    Axis::from_zero("resident memory, MiB", most * 1.04)
}

fn draw_bar(chart: &Chart<'_>, bar: &Bar) -> Result<()> {
    let mut from = 0.0;
    for (part, colour) in bar.parts.iter().zip(SIX) {
        let colour = if bar.peak { light(colour) } else { colour };
        let to = from + part;
        let corners = [(bar.place - HALF, to), (bar.place + HALF, from)];
        chart
            .plotting_area()
            .draw(&Rectangle::new(corners, colour.filled()))?;
        let edge = [(bar.place - HALF, to), (bar.place + HALF, to)];
        chart
            .plotting_area()
            .draw(&PathElement::new(edge, WHITE.stroke_width(1)))?;
        from = to;
    }
    Ok(())
}

/// The whole of a bar above it, on paper, so that no line goes through the number.
fn draw_number(chart: &Chart<'_>, bar: &Bar) -> Result<()> {
    let text = shown(bar.whole());
    let half = i32::try_from(text.len()).unwrap_or(i32::MAX) * 4 + 3;
    let paper = Rectangle::new([(-half, -19), (half, -4)], WHITE.filled());
    let place = EmptyElement::at((bar.place, bar.whole()));
    chart.plotting_area().draw(&(place + paper))?;
    let style = canvas::at(&letters(14.0, INK), HPos::Center);
    canvas::label(chart, (bar.place, bar.whole()), (0, -11), &text, &style)
}

/// The targets are of what is held at rest, so they cross that bar alone.
fn draw_targets(chart: &mut Chart<'_>, size: usize, middle: f64) -> Result<()> {
    let Some(targets) = memory_targets(size) else {
        return Ok(());
    };
    let ends = |height| [(middle - 0.46, height), (middle - 0.01, height)];
    canvas::line(chart, &ends(targets.must), INK, 3, false)?;
    canvas::line(chart, &ends(targets.aim), INK, 2, true)
}

fn meanings(sizes: &[usize]) -> Vec<Meaning> {
    // The topmost part of a bar is the first of the list.
    let mut meanings: Vec<_> = chosen::six()
        .iter()
        .zip(SIX)
        .rev()
        .map(|(name, colour)| Meaning::new(Mark::Bar(colour), name, ""))
        .collect();
    let targets: Vec<_> = sizes.iter().filter_map(|s| memory_targets(*s)).collect();
    if !targets.is_empty() {
        let told = |mark, text: &str, values: Vec<f64>| {
            let values: Vec<_> = values.into_iter().map(shown).collect();
            Meaning::new(mark, text, format!("at rest: {} MiB", values.join(", ")))
        };
        let musts = targets.iter().map(|t| t.must).collect();
        meanings.push(told(Mark::Line(INK, 3), "must not be exceeded", musts));
        let aims = targets.iter().map(|t| t.aim).collect();
        meanings.push(told(Mark::Broken(INK, 2), "aim", aims));
    }
    meanings
}
