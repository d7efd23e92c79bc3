//! The paper that all pictures are drawn on: its size, its colours, its letters, a chart's axes
//! and the forms of points. It knows no scenario.
//!
//! The paper is white and has an edge, so that it reads on light and dark pages alike. Nothing lies
//! over the data: what a line means stands beside it. Letters have their size at the width at which
//! code hosts show a page, and colours are told apart by people who see no red or green; no two
//! lines differ by colour alone.

use std::ops::Range;

use anyhow::Result;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// The width of every picture; about that of a page of text.
const WIDTH: u32 = 880;
/// What the title and the line under it need.
const HEAD: u32 = 70;
/// Room at the other edges.
const EDGE: u32 = 18;

pub(super) const BLUE: RGBColor = RGBColor(0, 114, 178);
pub(super) const SKY: RGBColor = RGBColor(86, 180, 233);
pub(super) const GREEN: RGBColor = RGBColor(0, 158, 115);
pub(super) const ORANGE: RGBColor = RGBColor(230, 159, 0);
pub(super) const RED: RGBColor = RGBColor(213, 94, 0);
pub(super) const PINK: RGBColor = RGBColor(204, 121, 167);
pub(super) const INK: RGBColor = RGBColor(31, 35, 40);
pub(super) const GREY: RGBColor = RGBColor(89, 99, 110);
const GRID: RGBColor = RGBColor(225, 229, 234);
const FRAME: RGBColor = RGBColor(160, 168, 177);

/// The colours of the six, in their order.
pub(super) const SIX: [RGBColor; 6] = [PINK, ORANGE, BLUE, SKY, GREEN, RED];

/// A part of the paper.
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A straight scale whose marks are given, which the library's own scale does not take.
pub(super) struct Scale {
    range: Range<f64>,
    marks: Vec<f64>,
}

impl Ranged for Scale {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let part = (value - self.range.start) / (self.range.end - self.range.start);
        from + pixel(part * f64::from(to - from))
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() {
            return Vec::new();
        }
        self.marks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

/// A chart with two axes of numbers.
pub(super) type Chart<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<Scale, Scale>>;

/// The same colour, as light as paper allows.
pub(super) fn light(colour: RGBColor) -> RGBColor {
    let paler = |part: u8| 255 - (255 - part) / 5 * 2;
    RGBColor(paler(colour.0), paler(colour.1), paler(colour.2))
}

/// Letters of so many pixels. The library takes a font's line height for its size.
pub(super) fn letters(pixels: f64, colour: RGBColor) -> TextStyle<'static> {
    ("sans-serif", pixels * 1.24)
        .into_font()
        .color(&colour)
        .pos(Pos::new(HPos::Left, VPos::Center))
}

/// The same letters, ending where they are put, or with their middle there.
pub(super) fn at(style: &TextStyle<'static>, side: HPos) -> TextStyle<'static> {
    style.pos(Pos::new(side, VPos::Center))
}

/// A whole pixel.
#[allow(
    clippy::cast_possible_truncation,
    reason = "a picture is some hundred pixels wide"
)]
pub(super) fn pixel(place: f64) -> i32 {
    place.round() as i32
}

/// Draws one picture: its head, and below it whatever the caller draws.
pub(super) fn picture(
    height: u32,
    title: &str,
    under: &str,
    draw: impl FnOnce(&Area<'_>) -> Result<()>,
) -> Result<String> {
    let mut svg = String::new();
    {
        let size = (WIDTH, height);
        let paper = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        paper.fill(&WHITE)?;
        let edge = Rectangle::new(
            [(0, 0), (WIDTH.cast_signed() - 1, height.cast_signed() - 1)],
            GRID,
        );
        paper.draw(&edge)?;
        let mut bold = letters(19.0, INK);
        bold.font = bold.font.style(FontStyle::Bold);
        paper.draw_text(title, &bold, (EDGE.cast_signed() + 4, 26))?;
        paper.draw_text(under, &letters(13.0, GREY), (EDGE.cast_signed() + 4, 50))?;
        draw(&paper.margin(HEAD, EDGE, EDGE, EDGE))?;
        paper.present()?;
    }
    Ok(svg)
}

/// One axis of a chart.
pub(super) struct Axis {
    /// What it shows, with its unit.
    pub(super) title: String,
    pub(super) range: Range<f64>,
    /// Where it has marks, and what stands there.
    pub(super) marks: Vec<(f64, String)>,
}

impl Axis {
    /// From zero, with marks at round numbers.
    pub(super) fn from_zero(title: &str, most: f64) -> Self {
        Self::with(title, super::numbers::marks(most))
    }

    /// From zero, unless everything is so far from it that its form would not be seen.
    pub(super) fn around(title: &str, least: f64, most: f64) -> Self {
        if least < most * 0.4 {
            return Self::from_zero(title, most);
        }
        Self::with(title, super::numbers::marks_between(least, most))
    }

    fn with(title: &str, marks: Vec<f64>) -> Self {
        let from = marks.first().copied().unwrap_or(0.0);
        Self {
            title: title.to_owned(),
            range: from..marks.last().copied().unwrap_or(from + 1.0),
            marks: marks
                .into_iter()
                .map(|mark| (mark, super::numbers::mark(mark)))
                .collect(),
        }
    }

    fn scale(&self) -> Scale {
        Scale {
            range: self.range.clone(),
            marks: self.marks.iter().map(|mark| mark.0).collect(),
        }
    }

    fn label(&self, place: f64) -> String {
        let found = self
            .marks
            .iter()
            .find(|mark| mark.0.total_cmp(&place).is_eq());
        found.map_or_else(String::new, |mark| mark.1.clone())
    }
}

/// A chart that fills an area, with room for the marks of the left axis.
pub(super) fn chart<'a>(area: &Area<'a>, x: &Axis, y: &Axis, left: u32) -> Result<Chart<'a>> {
    let mut chart = ChartBuilder::on(area)
        .margin_top(8)
        .margin_right(14)
        .x_label_area_size(50)
        .y_label_area_size(left)
        .build_cartesian_2d(x.scale(), y.scale())?;
    let mut mesh = chart.configure_mesh();
    if x.title.is_empty() || x.marks.iter().all(|mark| mark.1.is_empty()) {
        mesh.disable_x_mesh();
    }
    if y.title.is_empty() {
        mesh.disable_y_mesh();
    }
    mesh.bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(FRAME)
        .set_all_tick_mark_size(4)
        .label_style(letters(13.0, INK))
        .axis_desc_style(letters(13.0, GREY))
        .x_label_formatter(&|place| x.label(*place))
        .y_label_formatter(&|place| y.label(*place))
        .x_desc(x.title.as_str())
        .y_desc(y.title.as_str())
        .draw()?;
    Ok(chart)
}

/// A line through points, and nothing between those that are not there.
pub(super) fn line(
    chart: &mut Chart<'_>,
    points: &[(f64, f64)],
    colour: RGBColor,
    width: u32,
    broken: bool,
) -> Result<()> {
    let style = colour.stroke_width(width);
    if broken {
        let dashes = DashedLineSeries::new(points.iter().copied(), 8, 5, style);
        chart.draw_series(dashes)?;
    } else {
        chart.draw_series(LineSeries::new(points.iter().copied(), style))?;
    }
    Ok(())
}

/// A text at a point of a chart, moved by so many pixels.
pub(super) fn label(
    chart: &Chart<'_>,
    place: (f64, f64),
    moved: (i32, i32),
    text: &str,
    style: &TextStyle<'static>,
) -> Result<()> {
    let text = Text::new(text.to_owned(), moved, style.clone());
    chart
        .plotting_area()
        .draw(&(EmptyElement::at(place) + text))?;
    Ok(())
}

/// The form of a point: lines are told apart by it as well.
#[derive(Clone, Copy)]
pub(super) enum Form {
    Disc,
    Square,
    Triangle,
    Ring,
    Cross,
    Diamond,
}

/// The forms of the six, in their order.
pub(super) const FORMS: [Form; 6] = [
    Form::Diamond,
    Form::Cross,
    Form::Disc,
    Form::Ring,
    Form::Square,
    Form::Triangle,
];

/// Draws a point of a form on the paper.
pub(super) fn point(
    area: &Area<'_>,
    (x, y): (i32, i32),
    form: Form,
    colour: RGBColor,
) -> Result<()> {
    let full = colour.filled();
    match form {
        Form::Disc => area.draw(&Circle::new((x, y), 5, full))?,
        Form::Ring => {
            area.draw(&Circle::new((x, y), 5, WHITE.filled()))?;
            area.draw(&Circle::new((x, y), 5, colour.stroke_width(2)))?;
        }
        Form::Square => area.draw(&Rectangle::new([(x - 4, y - 4), (x + 5, y + 5)], full))?,
        Form::Triangle => {
            area.draw(&Polygon::new(
                vec![(x, y - 6), (x - 6, y + 5), (x + 6, y + 5)],
                full,
            ))?;
        }
        Form::Diamond => {
            let corners = vec![(x, y - 6), (x - 6, y), (x, y + 6), (x + 6, y)];
            area.draw(&Polygon::new(corners, full))?;
        }
        Form::Cross => {
            let stroke = colour.stroke_width(3);
            area.draw(&PathElement::new(
                vec![(x - 4, y - 4), (x + 4, y + 4)],
                stroke,
            ))?;
            area.draw(&PathElement::new(
                vec![(x - 4, y + 4), (x + 4, y - 4)],
                stroke,
            ))?;
        }
    }
    Ok(())
}

/// Draws points of a form at points of a chart.
pub(super) fn points(
    chart: &Chart<'_>,
    places: &[(f64, f64)],
    form: Form,
    colour: RGBColor,
) -> Result<()> {
    let paper = chart.plotting_area().strip_coord_spec();
    let (left, top) = paper.get_base_pixel();
    for place in places {
        let (x, y) = chart.plotting_area().map_coordinate(place);
        point(&paper, (x - left, y - top), form, colour)?;
    }
    Ok(())
}
