//! Since when something has been so, for states that count only when they have stood.
//!
//! The clock is the caller's. It is forgotten when the process ends; who needs
//! more looks at what already stands in a status.

use std::time::Duration;

use tokio::time::Instant;

/// One state that may hold or not; another value of it starts anew.
#[derive(Clone, Debug, PartialEq)]
pub struct Since<T>(Option<(T, Instant)>);

impl<T> Default for Since<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: PartialEq> Since<T> {
    /// Notes what holds now, if anything, and tells since when it has.
    pub fn note(&mut self, what: Option<T>, now: Instant) -> Option<Instant> {
        match what {
            None => self.0 = None,
            Some(what) if self.0.as_ref().is_none_or(|(w, _)| *w != what) => {
                self.0 = Some((what, now));
            }
            Some(_) => {}
        }
        self.0.as_ref().map(|(_, since)| *since)
    }

    /// Whether something held at the last look.
    pub const fn stands(&self) -> bool {
        self.0.is_some()
    }
}

/// The waiting times of one look: which are over, and when the next of them will be.
#[derive(Debug)]
pub struct Waits {
    now: Instant,
    next: Option<Duration>,
}

impl Waits {
    /// A look at this time.
    pub const fn at(now: Instant) -> Self {
        Self { now, next: None }
    }

    /// Whether something has stood for long enough. If it is on its way there, the rest is noted.
    pub fn over(&mut self, since: Option<Instant>, limit: Duration) -> bool {
        let left = since.map(|s| limit.saturating_sub(self.now.duration_since(s)));
        self.next = self
            .next
            .into_iter()
            .chain(left.filter(|l| !l.is_zero()))
            .min();
        left.is_some_and(|l| l.is_zero())
    }

    /// When the look is.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// When to look again, if there is anything to wait for.
    pub const fn next(&self) -> Option<Duration> {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_stands_from_when_it_began_and_another_value_begins_anew() {
        let (mut since, start) = (Since::default(), Instant::now());
        let second = Duration::from_secs(1);
        assert_eq!(since.note(Some("a"), start), Some(start));
        assert_eq!(since.note(Some("a"), start + second), Some(start));
        assert_eq!(since.note(Some("b"), start + second), Some(start + second));
        assert_eq!(since.note(None, start + second), None);
        assert_eq!(
            since.note(Some("b"), start + 2 * second),
            Some(start + 2 * second)
        );
    }

    #[test]
    fn the_next_look_is_when_the_first_of_the_waits_is_over() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let mut waits = Waits::at(start + 5 * second);
        assert!(waits.over(Some(start), 5 * second));
        assert!(!waits.over(None, second));
        assert_eq!(waits.next(), None);
        assert!(!waits.over(Some(start), 9 * second) && !waits.over(Some(start), 7 * second));
        assert_eq!(waits.next(), Some(2 * second));
    }
}
