//! The brake (rule N-6): when so many namespaces are due at once that a mistake
//! is more likely than a wish.
//!
//! An empty list of KiteUsers has destroyed whole clusters elsewhere: a restored
//! backup, a wrong context, a re-installed kind. So a window in which every
//! managed namespace is orphaned trips it always, however few there are.

use std::collections::BTreeSet;

/// When it trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brake {
    /// Share of the managed namespaces that may go within one window, in percent.
    pub share: u64,
    /// Number that may go whatever the share.
    pub least: u64,
}

/// What is counted, by name of the namespace. Those deleted within the window are in all three.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Namespaces that are or were bound to a KiteUser.
    pub managed: BTreeSet<String>,
    /// Those that no KiteUser needs.
    pub orphaned: BTreeSet<String>,
    /// Those of them that nothing protects.
    pub due: BTreeSet<String>,
}

impl Brake {
    /// Why it trips, in words for people; nothing when deletions may go on.
    pub fn trips(self, count: &Count) -> Option<String> {
        let number = |set: &BTreeSet<String>| u64::try_from(set.len()).unwrap_or(u64::MAX);
        let (managed, due) = (number(&count.managed), number(&count.due));
        if due == 0 {
            return None;
        }
        if number(&count.orphaned) == managed {
            return Some(format!(
                "all {managed} managed namespaces are without a KiteUser"
            ));
        }
        let beyond_share = due.saturating_mul(100) > self.share.saturating_mul(managed);
        (due > self.least && beyond_share).then(|| {
            format!("{due} of {managed} managed namespaces are without a KiteUser, more than {} and {} %", self.least, self.share)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(managed: usize, orphaned: usize, due: usize) -> Count {
        let names = |n: usize| (0..n).map(|i| i.to_string()).collect();
        Count {
            managed: names(managed),
            orphaned: names(orphaned),
            due: names(due),
        }
    }

    // N-6
    #[test]
    fn it_trips_beyond_the_larger_of_number_and_share_and_when_all_are_orphaned() {
        let brake = Brake {
            share: 20,
            least: 3,
        };
        let rows = [
            (10, 0, 0, false),
            (10, 1, 1, false),
            (10, 3, 3, false),
            (10, 4, 4, true),
            (100, 20, 20, false),
            (100, 21, 21, true),
            // Every one of them, however few.
            (1, 1, 1, true),
            (3, 3, 3, true),
            (3, 2, 2, false),
            // A protected one is no victim, but it does not make the others needed.
            (3, 3, 2, true),
            (3, 3, 0, false),
            (10, 5, 3, false),
        ];
        for (managed, orphaned, due, trips) in rows {
            let found = brake.trips(&count(managed, orphaned, due));
            assert_eq!(
                found.is_some(),
                trips,
                "{managed} {orphaned} {due}: {found:?}"
            );
        }
    }
}
