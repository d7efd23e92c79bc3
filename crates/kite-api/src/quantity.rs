//! Kubernetes quantities (`4Gi`, `500m`) as a type with a short schema, and the
//! exact arithmetic the controllers need: compare by value, never by text.
//!
//! The generated schema of `k8s_openapi`'s own type carries three kilobytes of
//! prose for each use; this one carries a pattern and a length. It does not
//! normalise what a user wrote.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A quantity as the user wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Quantity(pub String);

impl Quantity {
    /// The value in whole units (bytes, cores), rounded up.
    pub fn value(&self) -> Result<i64, QuantityError> {
        whole(&self.0)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for Quantity {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl JsonSchema for Quantity {
    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // 15 digits before the suffix and 32 characters in all keep the CEL cost
        // estimate low and every accepted value inside 128-bit arithmetic.
        json_schema!({
            "type": "string",
            "pattern": r"^[0-9]{1,15}(\.[0-9]{1,9})?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$",
            "maxLength": 32
        })
    }
}

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantityError(String);

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not a quantity; write a number with an optional suffix, for instance 4Gi or 500m",
            self.0
        )
    }
}

impl std::error::Error for QuantityError {}

/// The value in thousandths, rounded up, as Kubernetes compares quantities.
pub fn milli(text: &str) -> Result<i128, QuantityError> {
    let error = || QuantityError(text.chars().take(64).collect());
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    let (negative, unsigned) = match unsigned.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, unsigned),
    };
    let end = unsigned
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (numerator, denominator) = scale(suffix).ok_or_else(error)?;
    let (integer, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = [integer, fraction].concat();
    // 28 digits times 1000 times Ei stays below 2^127 only for sane inputs; checked below.
    if digits.is_empty() || digits.len() > 28 || fraction.contains('.') {
        return Err(error());
    }
    let power = u32::try_from(fraction.len()).map_err(|_| error())?;
    let denominator = 10_i128
        .checked_pow(power)
        .and_then(|p| p.checked_mul(denominator))
        .ok_or_else(error)?;
    let value = digits
        .parse::<i128>()
        .ok()
        .and_then(|d| d.checked_mul(numerator))
        .and_then(|d| d.checked_mul(1000))
        .ok_or_else(error)?;
    let up = value / denominator + i128::from(value % denominator != 0);
    Ok(if negative { -up } else { up })
}

/// The value in whole units, rounded up. Values past `i64` are refused.
pub fn whole(text: &str) -> Result<i64, QuantityError> {
    let milli = milli(text)?;
    let up = milli.div_euclid(1000) + i128::from(milli.rem_euclid(1000) != 0);
    i64::try_from(up).map_err(|_| QuantityError(text.chars().take(64).collect()))
}

/// Whether two texts mean the same amount; texts that do not parse are compared as they are.
pub fn same(a: &str, b: &str) -> bool {
    match (milli(a), milli(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}

/// Numerator and denominator of a suffix.
fn scale(suffix: &str) -> Option<(i128, i128)> {
    let exact = |n: i128| Some((n, 1));
    match suffix {
        "" => exact(1),
        "n" => Some((1, 1_000_000_000)),
        "u" => Some((1, 1_000_000)),
        "m" => Some((1, 1000)),
        "k" => exact(1000),
        "M" => exact(1_000_000),
        "G" => exact(1_000_000_000),
        "T" => exact(1_000_000_000_000),
        "P" => exact(1_000_000_000_000_000),
        "E" => exact(1_000_000_000_000_000_000),
        "Ki" => exact(1 << 10),
        "Mi" => exact(1 << 20),
        "Gi" => exact(1 << 30),
        "Ti" => exact(1 << 40),
        "Pi" => exact(1 << 50),
        "Ei" => exact(1 << 60),
        exponent => {
            let power: i32 = exponent.strip_prefix(['e', 'E'])?.parse().ok()?;
            // A server writes exponents of at most 18; anything longer is not a size.
            let ten = 10_i128.checked_pow(power.unsigned_abs().min(30))?;
            Some(if power < 0 { (1, ten) } else { (ten, 1) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // IN1: equal quantities cause no drift.
    #[test]
    fn equal_amounts_are_equal_however_they_are_written() {
        assert!(same("1024Mi", "1Gi"));
        assert!(same("1000m", "1"));
        assert!(same("1.5Gi", "1536Mi"));
        assert!(same("2e3", "2k"));
        assert!(!same("1G", "1Gi"));
        assert_eq!(whole("2276332667"), Ok(2_276_332_667));
        assert_eq!(whole("100m"), Ok(1));
        assert_eq!(milli("0"), Ok(0));
        assert_eq!(milli("-1Gi"), Ok(-(1 << 30) * 1000));
    }

    #[test]
    fn what_is_no_quantity_is_an_error_that_says_how_to_write_one() {
        for text in [
            "",
            "abc",
            "1gi",
            " 1Gi",
            "1.2.3",
            ".",
            "Gi",
            "1e",
            "99999999999999999999999999999Ei",
        ] {
            assert!(milli(text).is_err(), "{text:?} was accepted");
        }
        assert!(whole(&"9".repeat(400)).is_err());
        assert!(
            milli("x")
                .unwrap_err()
                .to_string()
                .contains("for instance 4Gi")
        );
    }
}
