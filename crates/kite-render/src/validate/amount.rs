//! Amounts of memory and disk as whole bytes.
//!
//! However a user wrote an amount, it is rendered in one way, so that equal
//! amounts never look like a change (IN1).

use std::fmt;

use k8s_openapi::apimachinery::pkg::api::resource;
use kite_api::quantity::{Quantity, whole};

use super::Wrong;

/// A number of bytes, never negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(i64);

impl Bytes {
    /// The largest amount that Kubernetes can hold; larger sums stop here.
    pub const MAX: Self = Self(i64::MAX);

    /// A number of bytes; a negative one counts as none.
    pub const fn new(bytes: i64) -> Self {
        Self(if bytes < 0 { 0 } else { bytes })
    }

    /// A number of binary megabytes.
    pub const fn mebi(count: i64) -> Self {
        Self::new(count.saturating_mul(1 << 20))
    }

    /// Reads an amount that must lie between two others.
    pub fn parse(text: &Quantity, least: Self, most: Self) -> Result<Self, Wrong> {
        let bytes = whole(&text.0).map_err(|e| Wrong::NoQuantity {
            error: e.to_string(),
        })?;
        if bytes < least.0 || bytes > most.0 {
            return Err(Wrong::out_of_bounds(least, most));
        }
        Ok(Self(bytes))
    }

    /// The number.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// The amount as Kubernetes writes it.
    pub fn quantity(self) -> resource::Quantity {
        resource::Quantity(self.to_string())
    }
}

impl fmt::Display for Bytes {
    /// The largest binary unit that leaves no fraction: `4Gi`, `1536Mi`, `20000000001`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u32, &str); 6] = [
            (60, "Ei"),
            (50, "Pi"),
            (40, "Ti"),
            (30, "Gi"),
            (20, "Mi"),
            (10, "Ki"),
        ];
        let fits = |shift: u32| self.0 != 0 && self.0.trailing_zeros() >= shift;
        match UNITS.iter().find(|(shift, _)| fits(*shift)) {
            Some((shift, unit)) => write!(f, "{}{unit}", self.0 >> shift),
            None => write!(f, "{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Bytes, Wrong> {
        Bytes::parse(
            &Quantity(text.to_owned()),
            Bytes::mebi(32),
            Bytes::mebi(12 << 20),
        )
    }

    // IN1, IN3
    #[test]
    fn bad_and_boundless_amounts_are_refused() {
        let many = "9".repeat(400);
        for bad in [
            "1e30",
            "-1Gi",
            "0",
            "100m",
            "1",
            "1Ki",
            "abc",
            "",
            "9223372036854775808",
            &many,
            " 1Gi",
            "1gi",
            "16Ei",
            "31Mi",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert!(
            parse("31Mi")
                .unwrap_err()
                .to_string()
                .contains("between 32Mi and 12Ti")
        );
    }

    // IN1
    #[test]
    fn equal_amounts_are_written_alike() {
        for (text, written) in [
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("4Gi", "4Gi"),
            ("20G", "19531250Ki"),
            ("50000001", "50000001"),
        ] {
            assert_eq!(parse(text).unwrap().to_string(), written);
        }
        assert_eq!(Bytes::new(0).to_string(), "0");
    }
}
