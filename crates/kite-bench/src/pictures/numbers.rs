//! Numbers: what is in the middle of several, where an axis has its marks, and how a number is
//! shown to people. Nothing here knows what a number means.

use crate::numbers::number;

/// Several values of the same thing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) least: f64,
    pub(super) median: f64,
    pub(super) most: f64,
    /// How many there were.
    pub(super) rounds: usize,
}

impl Spread {
    /// None when there is no value.
    pub(super) fn of(mut values: Vec<f64>) -> Option<Self> {
        values.retain(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let upper = *values.get(middle)?;
        let median = if values.len().is_multiple_of(2) {
            f64::midpoint(values[middle - 1], upper)
        } else {
            upper
        };
        Some(Self {
            least: *values.first()?,
            median,
            most: *values.last()?,
            rounds: values.len(),
        })
    }

    /// `4.2`, or `4.2 (4.1–4.5)` when there is more than one value.
    pub(super) fn shown(&self) -> String {
        let (least, most) = (shown(self.least), shown(self.most));
        if least == most {
            return shown(self.median);
        }
        format!("{} ({least}–{most})", shown(self.median))
    }
}

/// A number with three digits that count, thousands apart, and no zeros at the end.
pub(super) fn shown(value: f64) -> String {
    let digits = match value.abs() {
        large if large >= 99.95 => 0,
        middle if middle >= 9.995 => 1,
        small if small >= 0.9995 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = fraction.trim_end_matches('0');
    let whole = thousands(whole);
    match (whole.as_str(), fraction) {
        ("-0", "") => "0".to_owned(),
        (_, "") => whole,
        _ => format!("{whole}.{fraction}"),
    }
}

/// A number at a mark of an axis, as exact as the mark: rounded, it would stand at a wrong place.
pub(super) fn mark(value: f64) -> String {
    let text = format!("{value:.6}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    match fraction.trim_end_matches('0') {
        "" => thousands(whole),
        fraction => format!("{}.{fraction}", thousands(whole)),
    }
}

/// A number of things.
pub(super) fn count(whole: usize) -> String {
    thousands(&whole.to_string())
}

/// `1 machine`, `1,000 machines`.
pub(super) fn machines(count_of: usize) -> String {
    let plural = if count_of == 1 { "" } else { "s" };
    format!("{} machine{plural}", count(count_of))
}

fn thousands(digits: &str) -> String {
    let (sign, digits) = digits
        .strip_prefix('-')
        .map_or(("", digits), |rest| ("-", rest));
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    format!("{sign}{text}")
}

/// Marks from zero to at least `most`, about five of them, at round numbers.
pub(super) fn marks(most: f64) -> Vec<f64> {
    let most = if most > 0.0 && most.is_finite() {
        most
    } else {
        1.0
    };
    let rough = most / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0];
    let step = steps
        .iter()
        .map(|step| step * power)
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(power * 10.0);
    let mut marks = vec![0.0];
    let mut at = 0.0;
    while at < most {
        at += step;
        marks.push(at);
    }
    marks
}

/// Marks that enclose a range, about five of them, at round numbers.
pub(super) fn marks_between(least: f64, most: f64) -> Vec<f64> {
    let step = marks(most - least).get(1).copied().unwrap_or(1.0);
    let mut at = (least / step).floor() * step;
    let mut marks = vec![at];
    while at < most {
        at += step;
        marks.push(at);
    }
    marks
}

/// The powers of ten that enclose a range of positive numbers, as logarithms.
pub(super) fn decades(least: f64, most: f64) -> Vec<f64> {
    let mut at = least.log10().floor();
    let above = most.log10().ceil().max(at + 1.0);
    let mut marks = Vec::new();
    while at <= above {
        marks.push(at);
        at += 1.0;
    }
    marks
}

/// The slope of the straight line that fits points best; none with fewer than two.
pub(super) fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let many = number(points.len());
    let (x, y) = points
        .iter()
        .fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
    let (x, y) = (x / many, y / many);
    let (above, below) = points.iter().fold((0.0, 0.0), |sum, point| {
        let off = point.0 - x;
        (sum.0 + off * (point.1 - y), sum.1 + off * off)
    });
    (below > 0.0).then(|| above / below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_three_digits_that_count() {
        let all = [
            0.0, -0.000_1, 0.0123, 0.5, 1.234, 12.34, 12.0, 99.99, 1234.5, 1e6,
        ];
        let text: Vec<_> = all.iter().map(|value| shown(*value)).collect();
        let expected = [
            "0",
            "0",
            "0.012",
            "0.5",
            "1.23",
            "12.3",
            "12",
            "100",
            "1,234",
            "1,000,000",
        ];
        assert_eq!(text, expected);
        let marks: Vec<_> = [0.0, 102.5, 0.1 + 0.2, 2_000.0].map(mark).into();
        assert_eq!(marks, ["0", "102.5", "0.3", "2,000"]);
        assert_eq!(machines(10_000), "10,000 machines");
        assert_eq!(machines(1), "1 machine");
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_two_in_the_middle() {
        let spread = Spread::of(vec![4.0, 1.0, 2.0, 3.0]).unwrap();
        assert_eq!(spread.shown(), "2.5 (1–4)");
        assert_eq!(Spread::of(vec![2.0]).unwrap().shown(), "2");
        assert_eq!(Spread::of(Vec::new()), None);
    }

    #[test]
    fn marks_are_round_and_enclose_what_is_shown() {
        assert_eq!(marks(9.3), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(marks(0.0).len(), 6);
        assert_eq!(
            marks_between(83.0, 95.0),
            [82.5, 85.0, 87.5, 90.0, 92.5, 95.0]
        );
        assert_eq!(decades(70.0, 20_000.0), [1.0, 2.0, 3.0, 4.0, 5.0]);
    }

    #[test]
    fn a_line_through_points_has_their_slope() {
        let slope_of = slope(&[(2.0, 3.0), (3.0, 4.0), (4.0, 5.0)]).unwrap();
        assert!((slope_of - 1.0).abs() < 1e-9);
        assert_eq!(slope(&[(2.0, 3.0)]), None);
        assert_eq!(slope(&[]), None);
    }
}
