//! Turns at cloning an image: not more than so many at once, oldest machine first (rule V-14).
//!
//! What is being cloned is counted in the cache of DataVolumes, so the answer
//! survives a restart; a DataVolume of this process that the cache does not show
//! yet counts as a turn that was given. Whoever waits is woken by name when there
//! may be room, one after the other: no timer asks and no crowd wakes. Two
//! leaders each count what their own cache shows, so together they may exceed
//! the limit by what the other one has just made.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kite_kubevirt::read::DataVolume;
use kite_runtime::Key;
use kite_runtime::since::{Since, Waits};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

/// One that waits: the older machine comes first, then the name decides.
pub type Place = (Option<Time>, Key);

/// Whether a machine may begin to clone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It may; [`Turns::taken`] is owed.
    Now,
    /// Others come first. The first in the row looks again after this time, when a clone that
    /// does not move stops counting; the others are woken.
    Later(Option<Duration>),
}

/// The image that a disk is cloned from, if it is.
pub fn image_of(disk: &DataVolume) -> Option<Key> {
    let source = disk.spec.as_ref()?.source_ref.as_ref()?;
    let namespace = source.namespace.clone().unwrap_or_default();
    Some(Key::new(namespace, &source.name))
}

/// The image that a disk is being cloned from, as long as it is.
pub fn unfilled_from(disk: &DataVolume) -> Option<String> {
    let image = image_of(disk).filter(|_| !is_over(disk))?;
    Some(image.to_string())
}

/// Whether a disk's clone has ended, one way or the other.
pub fn is_over(disk: &DataVolume) -> bool {
    matches!(disk.phase(), "Succeeded" | "Failed") || disk.metadata.deletion_timestamp.is_some()
}

/// Phase and progress: what changes while a clone gets on.
type Movement = (String, String);

#[derive(Default)]
struct Row {
    /// Who waits for which image.
    waiting: HashMap<Key, BTreeSet<Place>>,
    /// Where a machine waits, and whether its present pass has asked.
    places: HashMap<Key, (Key, Place, bool)>,
    /// Turns that were given and are not in the cache yet, with their image.
    given: HashMap<Key, Key>,
    /// Images whose row was taken over from what the statuses say.
    known: HashSet<Key>,
    /// Since when each clone of an image has not moved, by the DataVolume's UID.
    moved: HashMap<Key, HashMap<String, Since<Movement>>>,
}

/// The rows of all images. Locked for map operations only, by passes and one watch.
#[derive(Clone)]
pub struct Turns {
    row: Arc<Mutex<Row>>,
    patience: Duration,
    waker: UnboundedSender<Key>,
}

impl Turns {
    /// Nobody waits yet. A clone that has not moved for `patience` does not count: its place would
    /// be held for ever by whoever names a storage class that provides nothing.
    pub fn new(patience: Duration, waker: UnboundedSender<Key>) -> Self {
        Self {
            row: Arc::default(),
            patience,
            waker,
        }
    }

    /// A pass over a machine begins. `standing` is the image it waits for, as its status says.
    pub fn begin(&self, key: &Key, standing: Option<(Key, Option<Time>)>) {
        let mut row = self.lock();
        row.given.remove(key);
        if let Some((image, created)) = standing {
            row.enter(&image, (created, key.clone()), false);
        }
        if let Some(place) = row.places.get_mut(key) {
            place.2 = false;
        }
    }

    /// A pass over a machine ends. One that did not ask does not wait any more.
    pub fn end(&self, key: &Key) {
        let mut row = self.lock();
        if row.places.get(key).is_some_and(|(_, _, asked)| !asked)
            && let Some(image) = row.leave(key)
        {
            self.wake(&row, &image);
        }
    }

    /// Asks for a turn. `disks` are the image's DataVolumes that are not filled; `standing` are the machines that wait
    /// for it by their status, of which a process that has just started knows nothing else.
    pub fn ask(
        &self,
        image: &Key,
        place: Place,
        limit: usize,
        disks: impl FnOnce() -> Vec<Arc<DataVolume>>,
        standing: impl FnOnce() -> Vec<Place>,
    ) -> Turn {
        let mut row = self.lock();
        if row.known.insert(image.clone()) {
            for other in standing() {
                if !row.places.contains_key(&other.1) && !row.given.contains_key(&other.1) {
                    row.enter(image, other, false);
                }
            }
        }
        let key = place.1.clone();
        row.enter(image, place, true);
        let mut waits = Waits::at(Instant::now());
        let busy = row.busy(image, &disks(), self.patience, &mut waits);
        let before = row.before(&key);
        if before < limit.saturating_sub(busy) {
            row.leave(&key);
            row.given.insert(key, image.clone());
            return Turn::Now;
        }
        if busy < limit {
            self.wake(&row, image);
        }
        Turn::Later(waits.next().filter(|_| before == 0))
    }

    /// The turn that was given shows in the cache, or came to nothing.
    pub fn taken(&self, key: &Key) {
        let mut row = self.lock();
        if let Some(image) = row.given.remove(key) {
            self.wake(&row, &image);
        }
    }

    /// Something about a disk of this image changed: there may be room.
    pub fn changed(&self, image: &Key) {
        self.wake(&self.lock(), image);
    }

    fn wake(&self, row: &Row, image: &Key) {
        if let Some((_, first)) = row.waiting.get(image).and_then(BTreeSet::first) {
            // The receiver is gone only while the process shuts down.
            let _ = self.waker.send(first.clone());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Row> {
        self.row.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Row {
    fn enter(&mut self, image: &Key, place: Place, asked: bool) {
        self.leave(&place.1);
        let row = self.waiting.entry(image.clone()).or_default();
        row.insert(place.clone());
        self.places
            .insert(place.1.clone(), (image.clone(), place, asked));
    }

    fn leave(&mut self, key: &Key) -> Option<Key> {
        let (image, place, _) = self.places.remove(key)?;
        if let Some(row) = self.waiting.get_mut(&image) {
            row.remove(&place);
        }
        Some(image)
    }

    /// How many come before a machine in its row.
    fn before(&self, key: &Key) -> usize {
        let Some((image, place, _)) = self.places.get(key) else {
            return 0;
        };
        let row = self.waiting.get(image);
        row.map_or(0, |row| row.range(..place).count())
    }

    /// How many clones of an image are under way.
    fn busy(
        &mut self,
        image: &Key,
        disks: &[Arc<DataVolume>],
        patience: Duration,
        waits: &mut Waits,
    ) -> usize {
        let now = Instant::now();
        let mut busy = self.given.values().filter(|i| *i == image).count();
        // What has ended is not among the disks any more, and is forgotten.
        let mut before = self.moved.remove(image).unwrap_or_default();
        let mut moved = HashMap::new();
        for disk in disks.iter().filter(|disk| !is_over(disk)) {
            let uid = disk.metadata.uid.clone().unwrap_or_default();
            if self.given.contains_key(&Key::of(disk.as_ref())) {
                continue;
            }
            let progress = disk.status.as_ref().and_then(|s| s.progress.clone());
            let movement = (disk.phase().to_owned(), progress.unwrap_or_default());
            let mut since = before.remove(&uid).unwrap_or_default();
            busy += usize::from(!waits.over(since.note(Some(movement), now), patience));
            moved.insert(uid, since);
        }
        if !moved.is_empty() {
            self.moved.insert(image.clone(), moved);
        }
        busy
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(300);

    fn turns() -> (Turns, UnboundedReceiver<Key>) {
        let (waker, woken) = unbounded_channel();
        (Turns::new(PATIENCE, waker), woken)
    }

    fn image() -> Key {
        Key::new("kite-images", "ubuntu")
    }

    fn place(name: &str, second: i64) -> Place {
        let created = k8s_openapi::jiff::Timestamp::from_second(second).unwrap();
        (Some(Time(created)), Key::new("alice", name))
    }

    fn disk(name: &str, phase: &str) -> Arc<DataVolume> {
        let text = format!(
            r#"{{"metadata": {{"namespace": "alice", "name": "{name}", "uid": "{name}"}},
            "spec": {{"sourceRef": {{"kind": "DataSource", "namespace": "kite-images", "name": "ubuntu"}}}},
            "status": {{"phase": "{phase}", "progress": "N/A"}}}}"#
        );
        Arc::new(serde_json::from_str(&text).unwrap())
    }

    fn ask(turns: &Turns, who: Place, limit: usize, disks: &[Arc<DataVolume>]) -> Turn {
        let key = who.1.clone();
        turns.begin(&key, None);
        let turn = turns.ask(&image(), who, limit, || disks.to_vec(), Vec::new);
        turns.end(&key);
        turn
    }

    // V-14
    #[tokio::test(start_paused = true)]
    async fn a_turn_given_counts_until_the_disk_does_and_the_next_is_woken_by_name() {
        let (turns, mut woken) = turns();
        assert_eq!(ask(&turns, place("a", 1), 1, &[]), Turn::Now);
        assert_eq!(ask(&turns, place("c", 3), 1, &[]), Turn::Later(None));
        assert_eq!(ask(&turns, place("b", 2), 1, &[]), Turn::Later(None));
        let busy = [disk("a", "CloneInProgress")];
        turns.taken(&Key::new("alice", "a"));
        assert_eq!(woken.recv().await, Some(Key::new("alice", "b")));
        let left = ask(&turns, place("b", 2), 1, &busy);
        assert_eq!(left, Turn::Later(Some(PATIENCE)), "the first looks again");
        assert_eq!(ask(&turns, place("c", 3), 1, &busy), Turn::Later(None));

        // The clone ends: the oldest goes on, and one that pushes in wakes it and waits.
        let over = [disk("a", "Succeeded")];
        assert_eq!(ask(&turns, place("c", 3), 1, &over), Turn::Later(None));
        assert_eq!(woken.recv().await, Some(Key::new("alice", "b")));
        assert_eq!(ask(&turns, place("b", 2), 1, &over), Turn::Now);
    }

    // V-14: who does not want a clone any more holds nobody up.
    #[tokio::test(start_paused = true)]
    async fn one_that_stops_asking_leaves_its_place_to_the_next() {
        let (turns, mut woken) = turns();
        let busy = [disk("x", "Pending")];
        ask(&turns, place("a", 1), 1, &busy);
        ask(&turns, place("b", 2), 1, &busy);
        turns.begin(&Key::new("alice", "a"), None);
        turns.end(&Key::new("alice", "a"));
        assert_eq!(woken.recv().await, Some(Key::new("alice", "b")));
        assert_eq!(ask(&turns, place("b", 2), 1, &[]), Turn::Now);
        // A turn that came to nothing is free again.
        turns.taken(&Key::new("alice", "b"));
        assert_eq!(ask(&turns, place("c", 3), 1, &[]), Turn::Now);
    }

    // V-14: after a restart the row is as the statuses tell it.
    #[tokio::test(start_paused = true)]
    async fn a_new_process_takes_the_row_over_from_the_statuses() {
        let (turns, mut woken) = turns();
        let younger = place("b", 2);
        turns.begin(&younger.1, None);
        let standing = || vec![place("a", 1)];
        let turn = turns.ask(&image(), younger.clone(), 1, Vec::new, standing);
        assert_eq!(turn, Turn::Later(None));
        assert_eq!(woken.recv().await, Some(Key::new("alice", "a")));
        assert_eq!(ask(&turns, place("a", 1), 1, &[]), Turn::Now);
    }

    // V-14: a disk that nothing provides holds its place for a bounded time only.
    #[tokio::test(start_paused = true)]
    async fn a_clone_that_does_not_move_stops_counting() {
        let (turns, _woken) = turns();
        let stuck = [disk("x", "CloneInProgress")];
        assert_eq!(
            ask(&turns, place("a", 1), 1, &stuck),
            Turn::Later(Some(PATIENCE))
        );
        tokio::time::advance(PATIENCE).await;
        assert_eq!(ask(&turns, place("a", 1), 1, &stuck), Turn::Now);
    }
}
