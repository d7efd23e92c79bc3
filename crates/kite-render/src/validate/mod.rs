//! Specifications, parsed once into types that cannot be wrong (rule C-19).
//!
//! The API server refuses most of what is refused here already; objects may be
//! older than the rule, or have come under a looser CRD, so it is all asked
//! again. What needs the cluster (is the image published, is the host free) is
//! not asked here.

mod amount;
mod cidr;
mod login;
mod machine;
mod names;
mod platform;
mod quota;
mod user;
mod wrong;

use std::fmt;

pub use amount::Bytes;
pub use cidr::Cidr;
pub use login::{CryptHash, LoginUser, SshPublicKey};
pub use machine::{MachineOwner, PasswordRef, ValidMachine};
pub use names::{DnsLabel, DnsName, MachineName, SecretKey, Uid};
pub use platform::{Limits, SshSource, ValidPlatform};
pub use quota::ValidQuota;
pub use user::{Egress, EgressPort, Subject, UserOwner, ValidUser};
pub use wrong::Wrong;

/// One field that cannot stand as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Path of the field, for instance `spec.memory`.
    pub field: String,
    /// What is wrong with it, and what to do.
    pub wrong: Wrong,
}

/// Everything that is wrong with an object, so that its owner need not find out one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// The problems, in the order of the fields.
    pub fn all(&self) -> &[Problem] {
        &self.0
    }

    /// Keeps the value of a field, or the reason why there is none.
    fn note<T>(&mut self, field: &str, result: Result<T, Wrong>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(wrong) => {
                self.add(field, wrong);
                None
            }
        }
    }

    /// Like [`Self::note`] for a field that may be absent.
    fn note_some<T>(&mut self, field: &str, result: Option<Result<T, Wrong>>) -> Option<T> {
        self.note(field, result?)
    }

    /// Like [`Self::note`] for each item of a list.
    fn note_all<I, T>(
        &mut self,
        field: &str,
        items: impl IntoIterator<Item = I>,
        parse: impl Fn(I) -> Result<T, Wrong>,
    ) -> Vec<T> {
        let numbered = items.into_iter().enumerate();
        numbered
            .filter_map(|(i, item)| self.note(&format!("{field}[{i}]"), parse(item)))
            .collect()
    }

    /// Adds a problem.
    fn add(&mut self, field: &str, wrong: Wrong) {
        self.0.push(Problem {
            field: field.to_owned(),
            wrong,
        });
    }

    /// Takes over the problems of a part.
    fn append(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The value, if nothing was wrong on the way to it.
    fn finish<T>(self, value: Option<T>) -> Result<T, Self> {
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            _ => Err(self),
        }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, Problem { field, wrong }) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { "; " };
            write!(f, "{separator}{field} {wrong}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// Whether a character does not show, or changes how others show: control
/// characters, zero-width and bidirectional marks, line and paragraph
/// separators, tags and non-characters. Such text would read otherwise than it
/// acts, and YAML parsers refuse some of it.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{ffff}' | '\u{e0000}'..='\u{e0fff}')
        || u32::from(c) & 0xfffe == 0xfffe
}
