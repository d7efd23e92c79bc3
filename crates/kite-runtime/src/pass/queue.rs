//! Which keys are to be looked at, and which of them next.
//!
//! A key waits at most once and is never given out twice at the same time. Namespaces
//! take turns, so that the storm in one of them does not stand before the single
//! object of another; within one, whoever became due first is first. Nothing is
//! kept of a key that neither waits nor runs: what is at rest costs nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use crate::cache::Key;

/// How a key stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It waits for its turn.
    Due,
    /// It was given out; whether it was woken meanwhile.
    Running { again: bool },
    /// It becomes due by itself.
    Later(Instant),
}

/// The queue of one process.
#[derive(Debug, Default)]
pub(super) struct Queue {
    states: HashMap<Key, State>,
    /// Names that are due, by namespace. No entry is empty.
    due: HashMap<String, VecDeque<String>>,
    /// The namespaces of `due`, in the order in which they come to their turns.
    turns: VecDeque<String>,
    timers: BTreeMap<Instant, BTreeSet<Key>>,
}

impl Queue {
    /// The key is to be looked at as soon as it can be.
    pub(super) fn wake(&mut self, key: Key) {
        match self.states.get_mut(&key) {
            Some(State::Due) => {}
            Some(State::Running { again }) => *again = true,
            Some(State::Later(at)) => {
                let at = *at;
                self.unset(at, &key);
                self.enter(key);
            }
            None => self.enter(key),
        }
    }

    /// The next key, which counts as running until [`Queue::done`].
    pub(super) fn take(&mut self) -> Option<Key> {
        let namespace = self.turns.pop_front()?;
        let names = self.due.get_mut(&namespace)?;
        let name = names.pop_front()?;
        if names.is_empty() {
            self.due.remove(&namespace);
        } else {
            self.turns.push_back(namespace.clone());
        }
        let key = Key { namespace, name };
        self.states
            .insert(key.clone(), State::Running { again: false });
        Some(key)
    }

    /// The key was looked at, and is looked at again after this time unless it is woken before.
    pub(super) fn done(&mut self, key: Key, again_in: Option<Duration>, now: Instant) {
        let woken = self.states.remove(&key) == Some(State::Running { again: true });
        // A time beyond what the clock can tell does not come.
        let at = again_in.and_then(|delay| now.checked_add(delay));
        match at {
            _ if woken => self.enter(key),
            None => {}
            Some(at) => {
                self.states.insert(key.clone(), State::Later(at));
                self.timers.entry(at).or_default().insert(key);
            }
        }
    }

    /// When the next key becomes due by itself.
    pub(super) fn next_timer(&self) -> Option<Instant> {
        self.timers.first_key_value().map(|(at, _)| *at)
    }

    /// What has become due by itself.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some(first) = self.timers.first_entry().filter(|e| *e.key() <= now) {
            for key in first.remove() {
                self.enter(key);
            }
        }
    }

    fn enter(&mut self, key: Key) {
        self.states.insert(key.clone(), State::Due);
        let names = self.due.entry(key.namespace.clone()).or_default();
        if names.is_empty() {
            self.turns.push_back(key.namespace);
        }
        names.push_back(key.name);
    }

    fn unset(&mut self, at: Instant, key: &Key) {
        if let Some(keys) = self.timers.get_mut(&at) {
            keys.remove(key);
            if keys.is_empty() {
                self.timers.remove(&at);
            }
        }
    }

    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.states.is_empty()
            && self.due.is_empty()
            && self.turns.is_empty()
            && self.timers.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn key(namespace: &str, name: &str) -> Key {
        Key::new(namespace, name)
    }

    fn names(queue: &mut Queue) -> Vec<String> {
        std::iter::from_fn(|| queue.take())
            .map(|key| key.to_string())
            .collect()
    }

    // C-12, C-13
    #[test]
    fn a_key_waits_once_and_one_that_is_woken_while_it_runs_runs_once_more() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.wake(key("alice", "web"));
        queue.wake(key("alice", "web"));
        assert_eq!(names(&mut queue), ["alice/web"]);
        queue.wake(key("alice", "web"));
        queue.wake(key("alice", "web"));
        assert_eq!(queue.take(), None, "never twice at the same time");
        queue.done(key("alice", "web"), Some(SECOND), now);
        assert_eq!(names(&mut queue), ["alice/web"]);
        assert_eq!(queue.next_timer(), None, "the later pass says when");
        queue.done(key("alice", "web"), None, now);
        assert!(queue.is_empty(), "what is at rest costs nothing");
    }

    // C-12
    #[test]
    fn one_object_of_a_quiet_namespace_does_not_stand_behind_the_storm_of_another() {
        let mut queue = Queue::default();
        for name in ["a", "b", "c"] {
            queue.wake(key("storm", name));
        }
        queue.wake(key("quiet", "web"));
        let order = ["storm/a", "quiet/web", "storm/b", "storm/c"];
        assert_eq!(names(&mut queue), order);
    }

    #[test]
    fn a_time_that_comes_makes_due_and_a_wake_comes_before_it() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        for name in ["a", "b"] {
            queue.wake(key("alice", name));
            assert!(queue.take().is_some());
            queue.done(key("alice", name), Some(SECOND), now);
        }
        assert_eq!(queue.next_timer(), Some(now + SECOND));
        queue.expire(now);
        assert_eq!(queue.take(), None);
        queue.wake(key("alice", "b"));
        assert_eq!(names(&mut queue), ["alice/b"]);
        queue.expire(now + SECOND);
        assert_eq!(names(&mut queue), ["alice/a"]);
        queue.done(key("alice", "a"), None, now);
        queue.done(key("alice", "b"), Some(Duration::MAX), now);
        assert!(queue.is_empty());
    }
}
