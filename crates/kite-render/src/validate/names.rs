//! Names as types: once parsed, they fit wherever Kubernetes takes such a name.
//!
//! A value can only be made by parsing, so a function that takes one need not ask again.

use std::fmt;

use super::Wrong;

/// Longest label of the DNS.
const LABEL: usize = 63;
/// Longest name of the DNS.
const NAME: usize = 253;

/// Declares a text type that is made by parsing only.
macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $test:expr, $wrong:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $type(String);

        impl $type {
            /// Checks the text.
            pub fn parse(text: &str) -> Result<Self, Wrong> {
                let test: fn(&str) -> bool = $test;
                if test(text) { Ok(Self(text.to_owned())) } else { Err($wrong) }
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name!(
    /// A DNS label (RFC 1123): namespaces, users, host name prefixes.
    DnsLabel,
    is_label,
    Wrong::Label
);

name!(
    /// The name of a machine, which is also that of its Service: a DNS label that begins with a letter (RFC 1035).
    MachineName,
    |t| is_label(t) && t.starts_with(|c: char| c.is_ascii_lowercase()),
    Wrong::MachineName
);

name!(
    /// A DNS name: images, classes, Secrets, hosts.
    DnsName,
    |t| t.len() <= NAME && t.split('.').all(is_label),
    Wrong::DnsName
);

name!(
    /// A UID as the API server gives it; fit for a label.
    Uid,
    |t| t.len() <= LABEL && is_edged(t) && t.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'),
    Wrong::Uid
);

name!(
    /// A key within a Secret.
    SecretKey,
    |t| !t.is_empty() && t.len() <= NAME && !t.starts_with("..") && t != "." && t.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)),
    Wrong::SecretKey
);

impl DnsLabel {
    /// A name that stands in the source of this crate and is known to be good.
    pub(super) fn fixed(text: &'static str) -> Self {
        Self(text.to_owned())
    }
}

/// Whether the text begins and ends with a letter or digit.
fn is_edged(text: &str) -> bool {
    let edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
    edge(text.bytes().next()) && edge(text.bytes().last())
}

fn is_label(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    text.len() <= LABEL && is_edged(text) && text.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    // IN4
    #[test]
    fn a_machine_name_fits_a_service() {
        for good in ["a", "web", "a-1", &"a".repeat(52), &"a".repeat(63)] {
            assert!(MachineName::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "1a",
            "a.b",
            "-a",
            "a-",
            "A",
            "a_b",
            "a b",
            "ä",
            &"a".repeat(64),
            &"a".repeat(253),
        ] {
            assert!(MachineName::parse(bad).is_err(), "{bad}");
        }
    }

    // SE5
    #[test]
    fn no_name_holds_what_yaml_or_a_template_could_read() {
        for bad in [
            "a\nb", "---", "{{x}}", "${x}", "a\"", "a'", "a#", "a\tb", "a\0", "a: b", "..", ".",
            "a..b", "a.", "../x", "ns/name", "*",
        ] {
            assert!(DnsLabel::parse(bad).is_err(), "{bad:?}");
            assert!(DnsName::parse(bad).is_err(), "{bad:?}");
            assert!(MachineName::parse(bad).is_err(), "{bad:?}");
            assert!(Uid::parse(bad).is_err(), "{bad:?}");
        }
        assert!(DnsName::parse("ubuntu-24.04").is_ok());
        assert!(DnsName::parse(&["a"; 127].join(".")).is_ok());
        assert!(DnsName::parse(&["a"; 128].join(".")).is_err());
    }
}
