//! Who looks on: a watch of all machines, which notes when each was first seen as what.
//!
//! It is the same for every contestant, and its own cost is in the bench's process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use futures::StreamExt as _;
use kite_api::KiteVirtualMachine;
use kite_api::machine::Phase;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt as _};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::load::Name;

/// What was seen of the machines.
#[derive(Default)]
struct Seen {
    phases: HashMap<Name, Phase>,
    /// When a machine was first seen in a phase since the last [`Onlooker::forget`].
    first: HashMap<(Name, Phase), Instant>,
    /// When a machine was seen to be gone.
    gone: HashMap<Name, Instant>,
    listed: bool,
}

/// A watch of all machines. Dropping it ends the watch.
pub struct Onlooker {
    seen: Arc<Mutex<Seen>>,
    changed: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Drop for Onlooker {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Onlooker {
    /// Begins to watch, and returns when what is there now was seen.
    pub async fn start(client: &Client) -> Self {
        let api: Api<KiteVirtualMachine> = Api::all(client.clone());
        let (seen, changed) = (Arc::<Mutex<Seen>>::default(), Arc::<Notify>::default());
        let (into, tell) = (Arc::clone(&seen), Arc::clone(&changed));
        let task = tokio::spawn(async move {
            let events = watcher(api, watcher::Config::default()).default_backoff();
            let mut events = Box::pin(events);
            while let Some(event) = events.next().await {
                match event {
                    Ok(event) => lock(&into).take(event),
                    // The back-off follows, and then a list.
                    Err(_) => continue,
                }
                tell.notify_waiters();
            }
        });
        let onlooker = Self {
            seen,
            changed,
            task,
        };
        onlooker.changes(|seen| seen.listed.then_some(())).await;
        onlooker
    }

    /// Forgets when things were first seen, before the next step begins.
    pub fn forget(&self) {
        let mut seen = lock(&self.seen);
        seen.first.clear();
        seen.gone.clear();
    }

    /// Waits until each of these was seen in a phase since the last [`Self::forget`]; returns when.
    pub async fn all_in(
        &self,
        phase: Phase,
        names: &[Name],
        limit: Duration,
    ) -> Result<HashMap<Name, Instant>> {
        let when = |seen: &Seen, name: &Name| seen.first.get(&(name.clone(), phase)).copied();
        let what = format!("{phase:?}");
        self.all(&what, names, limit, when).await
    }

    /// Waits until each of these is gone; returns when.
    pub async fn all_gone(
        &self,
        names: &[Name],
        limit: Duration,
    ) -> Result<HashMap<Name, Instant>> {
        let when = |seen: &Seen, name: &Name| seen.gone.get(name).copied();
        self.all("gone", names, limit, when).await
    }

    async fn all(
        &self,
        what: &str,
        names: &[Name],
        limit: Duration,
        when: impl Fn(&Seen, &Name) -> Option<Instant>,
    ) -> Result<HashMap<Name, Instant>> {
        let times = |seen: &Seen| {
            let time = |name: &Name| Some((name.clone(), when(seen, name)?));
            names.iter().map(time).collect()
        };
        match tokio::time::timeout(limit, self.changes(times)).await {
            Ok(times) => Ok(times),
            Err(_) => bail!(
                "after {} s not all machines are {what}: {}",
                limit.as_secs(),
                self.tally(names)
            ),
        }
    }

    async fn changes<T>(&self, look: impl Fn(&Seen) -> Option<T>) -> T {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Listening begins before the look, so that nothing is missed in between.
            changed.as_mut().enable();
            if let Some(found) = look(&lock(&self.seen)) {
                return found;
            }
            // A look at ten thousand machines for each event would be the bench's own burden.
            tokio::time::sleep(Duration::from_millis(20)).await;
            changed.await;
        }
    }

    fn tally(&self, names: &[Name]) -> String {
        let seen = lock(&self.seen);
        let mut counts: HashMap<String, usize> = HashMap::new();
        for name in names {
            let phase = seen.phases.get(name);
            let word = phase.map_or_else(|| "without a phase".to_owned(), |p| format!("{p:?}"));
            *counts.entry(word).or_default() += 1;
        }
        format!("{counts:?}")
    }
}

impl Seen {
    fn take(&mut self, event: Event<KiteVirtualMachine>) {
        match event {
            Event::Apply(machine) | Event::InitApply(machine) => {
                let Some(phase) = machine.status.as_ref().and_then(|status| status.phase) else {
                    return;
                };
                let name = name_of(&machine);
                let first = self.first.entry((name.clone(), phase));
                first.or_insert_with(Instant::now);
                self.phases.insert(name, phase);
            }
            Event::Delete(machine) => {
                let name = name_of(&machine);
                self.phases.remove(&name);
                self.gone.insert(name, Instant::now());
            }
            Event::Init => self.phases.clear(),
            Event::InitDone => self.listed = true,
        }
    }
}

fn name_of(machine: &KiteVirtualMachine) -> Name {
    Name {
        namespace: machine.namespace().unwrap_or_default(),
        name: machine.name_any(),
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
