//! What controllers share that only tell: each looks at an object of Kite's and at
//! a child of it, says what should stand in its own part of the status, and writes
//! that when its time has come.
//!
//! What is told, and how long it is held back, is each mirror's own. Nothing here
//! knows which object or which status it is.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kite_api::Condition;
use kite_api::condition;
use kube::{Api, Resource};
use serde::Serialize;
use tokio::time::Instant;

use crate::apply::{Object, Place, WriteError, Writer};
use crate::cache::{Cache, Key, identity};
use crate::events::Events;
use crate::process::Process;
use crate::since::{Since, Waits};

/// What to do with what should stand.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision<S> {
    /// It stands already, or its time has not come; look again after this long, if at all.
    Wait(Option<Duration>),
    /// Write it.
    Write(Box<S>),
}

/// Since when there has been something to say, and what kind of thing: another kind starts anew.
#[derive(Clone, Debug, PartialEq)]
pub struct Unsaid<R>(Since<R>);

impl<R> Default for Unsaid<R> {
    fn default() -> Self {
        Self(Since::default())
    }
}

impl<R: PartialEq> Unsaid<R> {
    /// Whether to write now. `news` is the kind of what should stand and does not, with the
    /// whole status; `due` is asked whether it has been unsaid for long enough; `next` is when
    /// something else is waited for.
    pub fn decide<S>(
        &mut self,
        news: Option<(R, S)>,
        next: Option<Duration>,
        now: Instant,
        due: impl FnOnce(&mut Waits, Option<Instant>) -> bool,
    ) -> Decision<S> {
        let Some((kind, status)) = news else {
            self.0.note(None, now);
            return Decision::Wait(next);
        };
        let since = self.0.note(Some(kind), now);
        let mut waits = Waits::at(now);
        if !due(&mut waits, since) {
            return Decision::Wait(next.into_iter().chain(waits.next()).min());
        }
        self.0.note(None, now);
        Decision::Write(Box::new(status))
    }
}

/// When another controller, whose word on an object comes first, was last seen to say such a word
/// after it had been waited for, of any object.
///
/// In a storm of creates each machine waits for its turn longer than anybody would wait for one
/// word. Whoever spoke first then would send a write that is old a moment later, for each of the
/// machines that wait, and all of them would wait the longer for it.
#[derive(Debug, Default)]
pub struct Pulse(Mutex<Option<Instant>>);

impl Pulse {
    fn beat(&self, now: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }

    fn last(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A word of another controller that is waited for, on one object; another kind of word starts anew.
#[derive(Clone, Debug, PartialEq)]
pub struct Awaited<T>(Since<T>);

impl<T> Default for Awaited<T> {
    fn default() -> Self {
        Self(Since::default())
    }
}

/// A word that has not come by then does not come because of a storm: a controller that gets to no
/// more than four objects a second has been through a thousand.
const STORM: Duration = Duration::from_mins(5);

impl<T: PartialEq> Awaited<T> {
    /// Notes which word is missing, if any, and tells whether it has been for longer than it is
    /// waited for: `patience`, which begins anew with each word on another object, and
    /// [`STORM`] at most.
    pub fn note(
        &mut self,
        missing: Option<T>,
        patience: Duration,
        pulse: &Pulse,
        waits: &mut Waits,
    ) -> bool {
        let (waited, now) = (self.0.stands(), waits.now());
        let since = self.0.note(missing, now);
        if waited && since.is_none() {
            pulse.beat(now);
        }
        let working = since.zip(pulse.last());
        let working = working.map(|(since, last)| last.saturating_duration_since(since));
        let patience = (patience + working.unwrap_or_default()).min(patience.max(STORM));
        waits.over(since, patience)
    }
}

/// What is remembered of each object, in memory only. A successor of the same name starts anew.
///
/// Of an object at rest there is nothing to remember, and nothing is kept: what says the same as
/// at the start is dropped.
#[derive(Debug)]
pub struct Memory<C> {
    /// With what stands for the UID of the object that it is about. Locked by a pass for single
    /// operations on its own object's entry.
    all: Mutex<Remembered<C>>,
}

type Remembered<C> = HashMap<Key, (u64, Box<C>)>;

impl<C> Default for Memory<C> {
    fn default() -> Self {
        Self {
            all: Mutex::default(),
        }
    }
}

impl<C: Default + PartialEq> Memory<C> {
    /// Looks at what is remembered of an object, and may change it.
    pub fn with<T>(
        &self,
        object: &impl Resource<DynamicType = ()>,
        look: impl FnOnce(&mut C) -> T,
    ) -> T {
        let meta = object.meta();
        let (key, whose) = (Key::of_meta(meta), identity(meta.uid.as_deref()));
        let mut all = self.lock();
        let known = all.remove(&key).filter(|(uid, _)| *uid == whose);
        let mut remembered = known.map(|(_, known)| known).unwrap_or_default();
        let told = look(&mut remembered);
        if *remembered != C::default() {
            all.insert(key, (whose, remembered));
        }
        told
    }

    /// Forgets an object.
    pub fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, Remembered<C>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The one place where a mirror writes: its own part of an object's status, and events about it.
pub struct Mirror<K> {
    writer: Writer,
    events: Events,
    objects: Cache<K>,
}

impl<K> Mirror<K>
where
    K: Object + Resource<Scope = k8s_openapi::NamespaceResourceScope>,
{
    /// A mirror of these objects, writing under a controller's name.
    pub fn new(process: &Process, manager: &'static str, objects: Cache<K>) -> Self {
        Self {
            writer: Writer::new(
                process.client.clone(),
                manager,
                std::sync::Arc::clone(&process.metrics),
            ),
            events: process.events.clone(),
            objects,
        }
    }

    /// Writes the mirror's whole part. With `version`, only to the object as it was decided on.
    pub async fn write(
        &self,
        key: &Key,
        status: &(impl Serialize + Sync),
        version: Option<&str>,
        force: bool,
    ) -> Result<(), WriteError> {
        let place = Place {
            api: Api::namespaced(self.writer.client().clone(), &key.namespace),
            cache: &self.objects,
            key: key.clone(),
        };
        self.writer.status(&place, status, version, force).await?;
        Ok(())
    }

    /// Looks at a child on the server itself, where a rule says so.
    pub async fn live<C>(&self, cache: &Cache<C>, key: &Key) -> Result<Option<C>, WriteError>
    where
        C: Object + Resource<Scope = k8s_openapi::NamespaceResourceScope>,
    {
        let place = Place {
            api: Api::namespaced(self.writer.client().clone(), &key.namespace),
            cache,
            key: key.clone(),
        };
        self.writer.live(&place).await
    }

    /// Something that a person may have to act on.
    pub async fn warn(&self, about: &K, reason: &str, note: &str) {
        self.events
            .warning(about, reason, "Watch", note.to_owned())
            .await;
    }

    /// Something that a person may want to know.
    pub async fn inform(&self, about: &K, reason: &str, note: &str) {
        self.events
            .normal(about, reason, "Watch", note.to_owned())
            .await;
    }
}

/// The condition of a type, if it now says something else than before, by reason and status.
pub fn changed<'a>(
    before: &[Condition],
    now: &'a [Condition],
    type_: &str,
) -> Option<&'a Condition> {
    let says = |c: &Condition| (c.status.clone(), c.reason.clone());
    let now = condition::find(now, type_)?;
    let same = condition::find(before, type_).map(says) == Some(says(now));
    (!same).then_some(now)
}

/// Which object a change of a child concerns that has its name; whose it is is the pass's question.
pub fn namesake<C>(key: &Key, _: Option<&C>) -> Vec<Key> {
    vec![key.clone()]
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::*;

    fn object(uid: &str) -> ConfigMap {
        ConfigMap {
            metadata: ObjectMeta {
                name: Some("a".into()),
                uid: Some(uid.into()),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        }
    }

    // ST4
    #[test]
    fn a_successor_of_the_same_name_is_not_taken_for_what_was_there() {
        let memory = Memory::<u32>::default();
        memory.with(&object("1"), |n| *n = 7);
        assert_eq!(memory.with(&object("1"), |n| *n), 7);
        assert_eq!(memory.with(&object("2"), |n| *n), 0);
        memory.with(&object("2"), |n| *n = 8);
        memory.forget(&Key::cluster("a"));
        assert_eq!(memory.with(&object("2"), |n| *n), 0);
    }

    #[test]
    fn nothing_is_kept_of_an_object_of_which_there_is_nothing_to_remember() {
        let memory = Memory::<u32>::default();
        memory.with(&object("1"), |n| *n = 7);
        assert_eq!(memory.lock().len(), 1);
        memory.with(&object("1"), |n| *n = 0);
        assert_eq!(memory.lock().len(), 0);
    }

    // C-9
    #[test]
    fn a_first_word_is_waited_for_while_others_get_theirs_and_not_for_ever() {
        let (second, start, pulse) = (Duration::from_secs(1), Instant::now(), Pulse::default());
        let look = |awaited: &mut Awaited<()>, missing: bool, seconds: u32| {
            let mut waits = Waits::at(start + seconds * second);
            let missed = awaited.note(missing.then_some(()), 10 * second, &pulse, &mut waits);
            (missed, waits.next())
        };
        let (mut one, mut other) = (Awaited::default(), Awaited::default());
        assert_eq!(look(&mut one, true, 0), (false, Some(10 * second)));
        assert_eq!(look(&mut other, true, 0), (false, Some(10 * second)));
        assert!(look(&mut one.clone(), true, 10).0, "nobody got any");

        assert_eq!(look(&mut other, false, 9), (false, None));
        assert_eq!(look(&mut one, true, 10), (false, Some(9 * second)));
        assert!(look(&mut one.clone(), true, 19).0, "the last was long ago");

        // Of an object at rest nothing was waited for, so it tells nothing of who is at work.
        look(&mut Awaited::default(), false, 18);
        assert!(look(&mut one.clone(), true, 19).0);

        for seconds in (9..300).step_by(9) {
            look(&mut other, true, seconds);
            look(&mut other, false, seconds);
        }
        assert!(!look(&mut one, true, 299).0);
        assert!(look(&mut one, true, 300).0, "this one was forgotten");
    }

    // C-5
    #[test]
    fn what_is_held_back_is_said_when_it_has_stood_and_another_kind_begins_anew() {
        let second = Duration::from_secs(1);
        let start = Instant::now();
        let mut unsaid = Unsaid::default();
        let mut at = |seconds: u32, news: Option<&'static str>| {
            unsaid.decide(
                news.map(|n| (n, n)),
                Some(60 * second),
                start + seconds * second,
                |waits, since| waits.over(since, 3 * second),
            )
        };
        assert_eq!(at(0, Some("a")), Decision::Wait(Some(3 * second)));
        assert_eq!(at(2, Some("b")), Decision::Wait(Some(3 * second)));
        assert_eq!(at(3, None), Decision::Wait(Some(60 * second)));
        assert_eq!(at(4, Some("b")), Decision::Wait(Some(3 * second)));
        assert_eq!(at(7, Some("b")), Decision::Write(Box::new("b")));
    }
}
