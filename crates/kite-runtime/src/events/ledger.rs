//! The events of the last minutes: what is told again is counted, not written anew.
//!
//! In memory only; after a restart one more event says the same.

use std::time::Duration;

use tokio::time::Instant;

/// What is told again after this long is news again; the API server and other recorders use the same.
const REPEAT: Duration = Duration::from_secs(6 * 60);
/// So many different notes an object gets for one reason within [`REPEAT`]; later ones are counted
/// on the last of them. It bounds what a text that keeps changing can write.
const NOTES: usize = 4;

/// What an event is about, and why; everything but its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    /// UID of the object.
    pub(super) uid: String,
    /// Its name.
    pub(super) name: String,
    /// `Normal` or `Warning`.
    pub(super) type_: &'static str,
    /// Why, in one word.
    pub(super) reason: String,
    /// What was being done, in one word.
    pub(super) action: String,
}

/// One thing to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// What it is about.
    pub(super) subject: Subject,
    /// Its words.
    pub(super) note: String,
}

/// An event that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// Its name.
    pub(super) name: String,
    /// How often it has been told, this time included.
    pub(super) count: i32,
}

/// The events of the last minutes, oldest first.
#[derive(Debug, Default)]
pub(super) struct Ledger(Vec<Line>);

#[derive(Debug)]
struct Line {
    entry: Entry,
    name: String,
    count: i32,
    last: Instant,
}

impl Ledger {
    /// The event on which this is to be counted, if there is one. It is then counted.
    pub(super) fn find(&mut self, entry: &Entry, now: Instant) -> Option<Known> {
        self.0.retain(|l| now.duration_since(l.last) < REPEAT);
        let alike = |l: &&mut Line| l.entry.subject == entry.subject;
        let notes = self.0.iter_mut().filter(alike).count();
        let line = match self.0.iter_mut().find(|l| l.entry == *entry) {
            Some(same) => same,
            None if notes >= NOTES => self.0.iter_mut().rfind(alike)?,
            None => return None,
        };
        line.count = line.count.saturating_add(1);
        line.last = now;
        Some(Known {
            name: line.name.clone(),
            count: line.count,
        })
    }

    /// Notes an event that was written.
    pub(super) fn note(&mut self, entry: Entry, name: String, now: Instant) {
        self.0.push(Line {
            entry,
            name,
            count: 1,
            last: now,
        });
    }

    /// The event of this name is gone.
    pub(super) fn forget(&mut self, name: &str) {
        self.0.retain(|l| l.name != name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(uid: &str, reason: &str, note: &str) -> Entry {
        Entry {
            subject: Subject {
                uid: uid.to_owned(),
                name: "web".to_owned(),
                type_: "Warning",
                reason: reason.to_owned(),
                action: "Apply".to_owned(),
            },
            note: note.to_owned(),
        }
    }

    fn known(name: &str, count: i32) -> Known {
        Known {
            name: name.to_owned(),
            count,
        }
    }

    // C-16, row TS6
    #[test]
    fn the_same_is_counted_for_six_minutes_and_other_words_are_another_event() {
        let (mut ledger, start) = (Ledger::default(), Instant::now());
        let at = |minutes: u64| start + Duration::from_secs(60 * minutes);
        assert_eq!(
            ledger.find(&entry("u-1", "Stopped", "by hand"), start),
            None
        );
        ledger.note(entry("u-1", "Stopped", "by hand"), "e-1".into(), start);
        assert_eq!(
            ledger.find(&entry("u-1", "Stopped", "by hand"), at(5)),
            Some(known("e-1", 2))
        );
        for other in [
            entry("u-1", "Stopped", "by a drain"),
            entry("u-1", "Crashed", "by hand"),
            entry("u-2", "Stopped", "by hand"),
        ] {
            assert_eq!(ledger.find(&other, at(5)), None, "{other:?}");
        }
        // Each repetition begins the six minutes anew.
        assert_eq!(
            ledger.find(&entry("u-1", "Stopped", "by hand"), at(10)),
            Some(known("e-1", 3))
        );
        assert_eq!(
            ledger.find(&entry("u-1", "Stopped", "by hand"), at(16)),
            None
        );
    }

    // C-16
    #[test]
    fn a_text_that_keeps_changing_writes_a_few_events_and_an_event_that_is_gone_is_written_anew() {
        let (mut ledger, now) = (Ledger::default(), Instant::now());
        for number in 0..NOTES {
            let entry = entry("u-1", "Rejected", &number.to_string());
            assert_eq!(ledger.find(&entry, now), None);
            ledger.note(entry, format!("e-{number}"), now);
        }
        assert_eq!(
            ledger.find(&entry("u-1", "Rejected", "yet another"), now),
            Some(known("e-3", 2))
        );
        assert_eq!(
            ledger.find(&entry("u-1", "Rejected", "0"), now),
            Some(known("e-0", 2))
        );
        ledger.forget("e-0");
        assert_eq!(ledger.find(&entry("u-1", "Rejected", "0"), now), None);
    }
}
