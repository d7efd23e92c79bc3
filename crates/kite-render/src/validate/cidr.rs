//! Ranges of addresses, for network policies.
//!
//! The API server refuses an `except` that does not lie inside its `cidr`, so
//! that question is answered here by arithmetic and not by text.

use std::fmt;
use std::net::IpAddr;

use super::Wrong;

/// A range of IPv4 or IPv6 addresses, always written by its first address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cidr {
    first: IpAddr,
    length: u8,
}

impl Cidr {
    /// Reads `10.0.0.0/8` or `fd00::/8`; bits beyond the prefix are cleared.
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        let wrong = || Wrong::Range;
        let (address, length) = text.split_once('/').ok_or_else(wrong)?;
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        // The API server takes no IPv4 address written as one of IPv6.
        if matches!(address, IpAddr::V6(a) if a.to_ipv4_mapped().is_some()) {
            return Err(wrong());
        }
        // `parse` of a number would take a sign, and zeros before it.
        let digits = !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit());
        let digits = digits && (length == "0" || !length.starts_with('0'));
        let length: u8 = if digits {
            length.parse().map_err(|_| wrong())?
        } else {
            return Err(wrong());
        };
        if length > width(address) {
            return Err(wrong());
        }
        Ok(Self::new(address, length))
    }

    /// The range of one address.
    pub fn single(address: IpAddr) -> Self {
        Self::new(address, width(address))
    }

    /// The range of the given length that holds the address. A length past the address's counts as all of it.
    pub fn new(address: IpAddr, length: u8) -> Self {
        let length = length.min(width(address));
        let first = match address {
            IpAddr::V4(a) => IpAddr::V4((a.to_bits() & mask32(length)).into()),
            IpAddr::V6(a) => IpAddr::V6((a.to_bits() & mask128(length)).into()),
        };
        Self { first, length }
    }

    /// Whether every address of the other range lies in this one.
    pub fn contains(&self, other: &Self) -> bool {
        let same_family = self.is_ipv4() == other.is_ipv4();
        same_family && self.length <= other.length && Self::new(other.first, self.length) == *self
    }

    /// Whether it is a range of IPv4.
    pub const fn is_ipv4(&self) -> bool {
        self.first.is_ipv4()
    }

    /// Whether it is every address there is.
    pub const fn is_everything(&self) -> bool {
        self.length == 0
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.length)
    }
}

/// Number of bits of an address.
const fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn mask32(length: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0)
}

fn mask128(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cidr(text: &str) -> Cidr {
        Cidr::parse(text).unwrap()
    }

    #[test]
    fn a_range_is_written_by_its_first_address() {
        assert_eq!(cidr("10.1.2.3/8").to_string(), "10.0.0.0/8");
        assert_eq!(cidr("FD00:0:0::1/16").to_string(), "fd00::/16");
        assert_eq!(cidr("0.0.0.0/0").to_string(), "0.0.0.0/0");
        assert_eq!(cidr("1.2.3.4/32").to_string(), "1.2.3.4/32");
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for bad in [
            "",
            "10.0.0.0",
            "10.0.0.0/33",
            "10.0.0/8",
            "::/129",
            "/8",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "10.0.0.0/8/8",
            "a/8",
            "10.0.0.0/8 ",
            "10.0.0.0/08",
            "::ffff:10.0.0.0/104",
        ] {
            assert!(Cidr::parse(bad).is_err(), "{bad}");
        }
    }

    // SE20
    #[test]
    fn containment_is_by_address_and_family() {
        assert!(cidr("0.0.0.0/0").contains(&cidr("10.0.0.0/8")));
        assert!(cidr("10.0.0.0/8").contains(&cidr("10.0.0.0/8")));
        assert!(!cidr("10.0.0.0/8").contains(&cidr("11.0.0.0/16")));
        assert!(!cidr("10.0.0.0/16").contains(&cidr("10.0.0.0/8")));
        assert!(!cidr("0.0.0.0/0").contains(&cidr("fd00::/8")));
        assert!(cidr("fc00::/7").contains(&cidr("fd00:ec2::254/128")));
    }
}
