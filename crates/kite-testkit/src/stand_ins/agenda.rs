//! The one delay scheduler: which object is to be looked at, and when.
//!
//! An object is on the agenda at most once and is worked on by at most one
//! task at a time. What is on the agenda is no state: a pass decides from what
//! it sees, so losing the agenda loses nothing but waiting time.

use std::collections::{BTreeSet, HashMap};
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
    due: BTreeSet<(Instant, Task)>,
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
            self.due.remove(&(known, task.clone()));
        }
        self.at.insert(task.clone(), when);
        self.due.insert((when, task));
    }
}

impl Agenda {
    /// Looks at an object as soon as there is room.
    pub(super) fn wake(&self, kind: Res, key: Key) {
        let now = Instant::now();
        let task = Task { kind, key };
        let mut state = self.lock();
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
            let first = self.lock().due.first().map(|(when, _)| *when);
            match first {
                Some(when) if when <= Instant::now() => {
                    if let Some(task) = self.take() {
                        return task;
                    }
                }
                Some(when) => tokio::select! {
                    () = changed => {}
                    () = sleep_until(when) => {}
                },
                None => changed.await,
            }
        }
    }

    fn take(&self) -> Option<Task> {
        let mut state = self.lock();
        let (_, task) = state.due.pop_first()?;
        state.at.remove(&task);
        state.busy.insert(task.clone(), None);
        Some(task)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Works the agenda off for ever, at most `slots` objects at a time. `pass`
/// answers when it wants to see its object again.
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
        while running.try_join_next().is_some() {}
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
        assert!(agenda.lock().due.is_empty());
    }

    #[tokio::test]
    async fn a_wish_during_a_pass_brings_another_pass() {
        let agenda = Agenda::default();
        agenda.wake(Res::Vm, Key::new("n", "a"));
        let first = agenda.next().await;
        agenda.wake(Res::Vm, Key::new("n", "a"));
        assert!(agenda.lock().due.is_empty(), "never two passes at a time");
        agenda.done(first, Some(Duration::from_millis(300)));
        let before = Instant::now();
        agenda.next().await;
        assert!(before.elapsed() < Duration::from_millis(100));
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
