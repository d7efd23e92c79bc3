//! The record of recent deletions, which the brake counts with those that are due.
//!
//! It stands in an annotation of Kite's own namespace and is written before the
//! deletion that it tells of, so that neither a restart nor another leader makes
//! the brake forget (rule N-6). A deletion that then does not take place counts
//! all the same, which errs on the safe side.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kite_api::labels::RECENT_DELETIONS;

use crate::plan::annotation;

/// An object's annotations may have 256 KiB together, and an entry has 90 bytes at most. Of more
/// deletions than these within one window the oldest are forgotten.
const MOST: usize = 2000;

/// Which namespaces were deleted, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    deleted: BTreeMap<String, Timestamp>,
}

impl Record {
    /// What stands on Kite's own namespace. An entry that cannot be read is none: only a hand can
    /// have written it.
    pub fn read(own: &ObjectMeta) -> Self {
        let text = annotation(own, RECENT_DELETIONS).unwrap_or_default();
        let entries = text.split_whitespace().filter_map(|entry| {
            let (name, at) = entry.split_once('=')?;
            Some((name.to_owned(), at.parse().ok()?))
        });
        Self {
            deleted: entries.collect(),
        }
    }

    /// The names of those deleted within the window before `now`.
    pub fn within(&self, window: Duration, now: Timestamp) -> BTreeSet<String> {
        let window = SignedDuration::try_from(window).unwrap_or(SignedDuration::MAX);
        let recent = self.deleted.iter().filter(|(_, at)| {
            // One from a clock that is ahead counts, too.
            now.duration_since(**at) < window
        });
        recent.map(|(name, _)| name.clone()).collect()
    }

    /// The annotation's value with one more deletion and without those before the window.
    pub fn with(&self, name: &str, window: Duration, now: Timestamp) -> String {
        let kept = self.within(window, now);
        let mut entries: Vec<(&str, Timestamp)> = self
            .deleted
            .iter()
            .filter(|(known, _)| kept.contains(*known) && *known != name)
            .map(|(known, at)| (known.as_str(), *at))
            .collect();
        entries.push((name, now));
        entries.sort_by_key(|(_, at)| *at);
        let entries = entries.split_off(entries.len().saturating_sub(MOST));
        let texts: Vec<String> = entries
            .iter()
            .map(|(name, at)| format!("{name}={at}"))
            .collect();
        texts.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(600);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn own(value: &str) -> ObjectMeta {
        ObjectMeta {
            annotations: Some([(RECENT_DELETIONS.to_owned(), value.to_owned())].into()),
            ..ObjectMeta::default()
        }
    }

    fn names(record: &Record, now: i64) -> String {
        let names = record.within(WINDOW, at(now));
        names.into_iter().collect::<Vec<_>>().join(" ")
    }

    // N-6
    #[test]
    fn a_deletion_is_remembered_for_one_window_and_then_taken_out() {
        let first = Record::default().with("a", WINDOW, at(1000));
        let record = Record::read(&own(&first));
        assert_eq!(names(&record, 1599), "a");
        assert_eq!(names(&record, 1600), "");
        assert_eq!(names(&record, 900), "a", "a clock that is behind");
        let second = Record::read(&own(&record.with("b", WINDOW, at(1500))));
        assert_eq!(names(&second, 1500), "a b");
        let third = second.with("c", WINDOW, at(1700));
        assert!(!third.contains("a="), "{third}");
        let again = Record::read(&own(&second.with("a", WINDOW, at(1550))));
        assert_eq!(names(&again, 2100), "a", "deleted a second time");
    }

    // N-6: a hand's mistake hides no other entry.
    #[test]
    fn what_cannot_be_read_is_no_entry() {
        let record = Record::read(&own("a=soon b  =c d=1970-01-01T00:16:40Z"));
        assert_eq!(names(&record, 1000), "d");
        assert_eq!(names(&Record::read(&ObjectMeta::default()), 1000), "");
    }

    #[test]
    fn the_record_stays_within_what_an_annotation_may_hold() {
        let long = |i: usize| format!("{i:0>63}");
        let mut record = Record::default();
        for i in 0..MOST {
            record.deleted.insert(long(i), at(1000));
        }
        let text = record.with(&long(MOST), WINDOW, at(1001));
        assert!(text.len() < 250_000, "{}", text.len());
        assert!(text.ends_with(&format!("{}=1970-01-01T00:16:41Z", long(MOST))));
        let kept = Record::read(&own(&text)).within(WINDOW, at(1002));
        assert_eq!(kept.len(), MOST);
    }
}
