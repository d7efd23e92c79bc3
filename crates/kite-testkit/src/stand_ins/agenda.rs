//! The one delay scheduler: which object is to be looked at, and when.
//!
//! An object is on the agenda at most once and is worked on by at most one
//! task at a time. Namespaces take turns among what is due, or whatever is
//! measured of a quiet one beside a storm would be the length of the row in
//! here. What is on the agenda is no state: a pass decides from what it sees,
//! so losing the agenda loses nothing but waiting time.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::cache::Key;
use super::names::Res;

/// One object to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Task {
    pub(super) kind: Res,
    pub(super) key: Key,
}

/// Everything that is to be looked at.
#[derive(Default)]
pub(super) struct Agenda {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    later: BTreeSet<(Instant, Task)>,
    /// What is due, by namespace. No entry is empty.
    due: HashMap<String, VecDeque<Task>>,
    /// The namespaces of `due`, in the order in which they come to their turns.
    turns: VecDeque<String>,
    at: HashMap<Task, Instant>,
    /// Those being worked on, and when they were asked for in the meantime.
    busy: HashMap<Task, Option<Instant>>,
}

impl State {
    /// The earlier of two wishes counts: a pass too many does no harm.
    fn add(&mut self, task: Task, when: Instant) {
        if let Some(known) = self.at.get(&task).copied() {
            if known <= when {
                return;
            }
            self.later.remove(&(known, task.clone()));
        }
        self.at.insert(task.clone(), when);
        self.later.insert((when, task));
    }

    /// Puts in a row what has become due by now.
    fn expire(&mut self, now: Instant) {
        while let Some((when, task)) = self.later.pop_first() {
            if when > now {
                self.later.insert((when, task));
                return;
            }
            let namespace = task.key.namespace.clone();
            let row = self.due.entry(namespace.clone()).or_default();
            if row.is_empty() {
                self.turns.push_back(namespace);
            }
            row.push_back(task);
        }
    }

    fn take(&mut self, now: Instant) -> Option<Task> {
        self.expire(now);
        let namespace = self.turns.pop_front()?;
        let row = self.due.get_mut(&namespace)?;
        let task = row.pop_front()?;
        if row.is_empty() {
            self.due.remove(&namespace);
        } else {
            self.turns.push_back(namespace);
        }
        self.at.remove(&task);
        self.busy.insert(task.clone(), None);
        Some(task)
    }
}

impl Agenda {
    /// Looks at an object as soon as there is room.
    pub(super) fn wake(&self, kind: Res, key: Key) {
        let task = Task { kind, key };
        let mut state = self.lock();
        // Read under the lock: an earlier time than that of what is due already would put it in twice.
        let now = Instant::now();
        if let Some(again) = state.busy.get_mut(&task) {
            *again = Some(again.map_or(now, |known| known.min(now)));
        } else {
            state.add(task, now);
            self.changed.notify_one();
        }
    }

    fn done(&self, task: Task, again: Option<Duration>) {
        let later = again.map(|delay| Instant::now() + delay);
        let mut state = self.lock();
        let asked = state.busy.remove(&task).flatten();
        if let Some(when) = [later, asked].into_iter().flatten().min() {
            state.add(task, when);
            self.changed.notify_one();
        }
    }

    /// The next task that is due; waits for one.
    async fn next(&self) -> Task {
        loop {
            let changed = self.changed.notified();
            let first = {
                let mut state = self.lock();
                if let Some(task) = state.take(Instant::now()) {
                    return task;
                }
                state.later.first().map(|(when, _)| *when)
            };
            match first {
                Some(when) => tokio::select! {
                    () = changed => {}
                    () = sleep_until(when) => {}
                },
                None => changed.await,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Works the agenda off for ever, at most `slots` objects at a time. `pass`
/// answers when it wants to see its object again.
///
/// # Panics
///
/// When a pass has panicked: its object would be looked at no more, and nobody would know why.
pub(super) async fn work<F, Fut>(agenda: Arc<Agenda>, slots: usize, pass: F)
where
    F: Fn(Task) -> Fut,
    Fut: Future<Output = Option<Duration>> + Send + 'static,
{
    let room = Arc::new(Semaphore::new(slots));
    let mut running = JoinSet::new();
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else {
            return;
        };
        let task = agenda.next().await;
        let look = pass(task.clone());
        let agenda = agenda.clone();
        running.spawn(async move {
            let again = look.await;
            agenda.done(task, again);
            drop(permit);
        });
        while let Some(ended) = running.try_join_next() {
            if let Err(error) = ended
                && error.is_panic()
            {
                std::panic::resume_unwind(error.into_panic());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(name: &str) -> Task {
        Task {
            kind: Res::Vm,
            key: Key::new("n", name),
        }
    }

    #[tokio::test]
    async fn an_object_woken_twice_is_looked_at_once() {
        let agenda = Agenda::default();
        agenda.wake(Res::Vm, Key::new("n", "a"));
        agenda.wake(Res::Vm, Key::new("n", "a"));
        assert_eq!(agenda.next().await, task("a"));
        assert!(agenda.lock().later.is_empty());
    }

    #[tokio::test]
    async fn a_wish_during_a_pass_brings_another_pass() {
        let agenda = Agenda::default();
        agenda.wake(Res::Vm, Key::new("n", "a"));
        let first = agenda.next().await;
        agenda.wake(Res::Vm, Key::new("n", "a"));
        assert!(agenda.lock().later.is_empty(), "never two passes at a time");
        agenda.done(first, Some(Duration::from_millis(300)));
        let before = Instant::now();
        agenda.next().await;
        assert!(before.elapsed() < Duration::from_millis(100));
    }

    #[tokio::test]
    async fn one_object_of_a_quiet_namespace_does_not_wait_for_the_row_of_another() {
        let agenda = Agenda::default();
        for name in ["a", "b", "c"] {
            agenda.wake(Res::Vm, Key::new("n", name));
        }
        agenda.wake(Res::Vm, Key::new("quiet", "z"));
        agenda.next().await;
        assert_eq!(agenda.next().await.key, Key::new("quiet", "z"));
        assert_eq!(agenda.next().await, task("b"));
    }

    #[tokio::test]
    async fn a_delay_is_kept() {
        let agenda = Agenda::default();
        agenda.wake(Res::Vm, Key::new("n", "a"));
        let first = agenda.next().await;
        agenda.done(first, Some(Duration::from_millis(300)));
        let before = Instant::now();
        agenda.next().await;
        assert!(before.elapsed() >= Duration::from_millis(200));
    }
}
