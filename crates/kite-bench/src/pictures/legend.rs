//! The list of what a line, a bar or a point means, which stands beside a picture and never on it.

use anyhow::Result;
use plotters::prelude::*;

use super::canvas::{Area, Form, GREY, INK, letters, point};

/// The width that a list needs at the right of a chart.
pub(super) const LIST: i32 = 230;

/// How a line or a bar looks.
#[derive(Clone, Copy)]
pub(super) enum Mark {
    /// A line of that width.
    Line(RGBColor, u32),
    /// A broken line of that width.
    Broken(RGBColor, u32),
    /// A line with points.
    Points(RGBColor, Form),
    /// A point on a span from the least to the greatest.
    Span(RGBColor, RGBColor),
    /// A bar.
    Bar(RGBColor),
    /// Only a text.
    Nothing,
}

/// What one look means.
pub(super) struct Meaning {
    pub(super) mark: Mark,
    pub(super) text: String,
    /// Smaller, below.
    pub(super) under: String,
}

impl Meaning {
    pub(super) fn new(mark: Mark, text: &str, under: impl Into<String>) -> Self {
        Self {
            mark,
            text: text.to_owned(),
            under: under.into(),
        }
    }
}

/// Draws the list of what is what into an area of its own.
pub(super) fn list(area: &Area<'_>, meanings: &[Meaning]) -> Result<()> {
    let mut y = 18;
    for meaning in meanings {
        sample(area, y, meaning.mark)?;
        area.draw_text(&meaning.text, &letters(14.0, INK), (46, y))?;
        if !meaning.under.is_empty() {
            y += 18;
            area.draw_text(&meaning.under, &letters(12.0, GREY), (46, y))?;
        }
        y += 27;
    }
    Ok(())
}

/// A piece of what is meant, at a height of the list.
fn sample(area: &Area<'_>, y: i32, mark: Mark) -> Result<()> {
    let dash = |from: i32, to: i32, colour: RGBColor, width: u32| {
        area.draw(&PathElement::new(
            vec![(from, y), (to, y)],
            colour.stroke_width(width),
        ))
    };
    match mark {
        Mark::Line(colour, width) => dash(8, 36, colour, width)?,
        Mark::Broken(colour, width) => {
            for from in [8, 20, 32] {
                dash(from, from + 7, colour, width)?;
            }
        }
        Mark::Points(colour, form) => {
            dash(8, 36, colour, 2)?;
            point(area, (22, y), form, colour)?;
        }
        Mark::Span(span, disc) => {
            dash(8, 36, span, 7)?;
            point(area, (22, y), Form::Disc, disc)?;
        }
        Mark::Bar(colour) => {
            let corners = [(14, y - 7), (30, y + 7)];
            area.draw(&Rectangle::new(corners, colour.filled()))?;
        }
        Mark::Nothing => {}
    }
    Ok(())
}
