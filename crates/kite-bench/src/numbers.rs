//! Small arithmetic of measurements: ranks of a distribution, rates.

use std::time::Duration;

/// Points of a curve are thinned to so many: more than a picture is wide would be lost in it.
const POINTS: usize = 200;

/// Values by rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spread(Vec<f64>);

impl Spread {
    /// Sorts values.
    pub fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value that a share of all does not exceed: 0.5 is the median (the lower of two), 0 the
    /// least, 1 the most. Not a number when there is none.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "ranks of some thousand values"
    )]
    pub fn at(&self, share: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        let rank = (share.clamp(0.0, 1.0) * number(self.0.len())).ceil() as usize;
        self.0
            .get(rank.saturating_sub(1).min(last))
            .copied()
            .unwrap_or(f64::NAN)
    }
}

/// The curve of a distribution: value, and the share of all that does not exceed it.
pub(crate) fn distribution(spread: &Spread) -> Vec<(f64, f64)> {
    let all = spread.0.len();
    let points = all.min(POINTS);
    let point = |number: usize| {
        let rank = (number * all).div_ceil(points).clamp(1, all);
        (spread.0[rank - 1], share(rank, all))
    };
    (1..=points).map(point).collect()
}

/// A whole number as one with a fraction.
#[expect(clippy::cast_precision_loss, reason = "no run has 2^52 of anything")]
pub fn number(whole: usize) -> f64 {
    whole as f64
}

/// How many a second.
pub fn per(count: usize, took: Duration) -> f64 {
    number(count) / took.as_secs_f64().max(f64::EPSILON)
}

/// So many for each of so many.
pub fn share(count: usize, of: usize) -> f64 {
    number(count) / number(of.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_values_themselves() {
        let spread = Spread::of([4.0, 1.0, 3.0, 2.0].into_iter());
        let at = [0.0, 0.25, 0.5, 0.51, 0.99, 1.0].map(|share| spread.at(share).to_string());
        assert_eq!(at, ["1", "1", "2", "3", "4", "4"]);
        assert!(Spread::default().at(0.5).is_nan());
    }

    #[test]
    fn a_curve_ends_at_the_largest_value_and_is_thin() {
        let spread = Spread::of((1..=1000).map(f64::from));
        let curve = distribution(&spread);
        assert_eq!(curve.len(), POINTS);
        assert_eq!(curve.last(), Some(&(1000.0, 1.0)));
        assert_eq!(curve[0], (5.0, 0.005));
        assert_eq!(distribution(&Spread::default()), []);
    }
}
