//! Who sees what happens to the machines' own objects: when a disk was made, and when KubeVirt
//! said that a machine runs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use futures::StreamExt as _;
use kite_kubevirt::read::{DataVolume, VirtualMachine};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, ResourceExt as _};
use tokio::task::JoinHandle;

use crate::load::Name;

#[derive(Default)]
struct Seen {
    disks: HashMap<Name, Instant>,
    running: HashMap<Name, Instant>,
}

/// Two watches. Dropping it ends them.
pub struct Bystander {
    seen: Arc<Mutex<Seen>>,
    watches: [JoinHandle<()>; 2],
}

impl Drop for Bystander {
    fn drop(&mut self) {
        for watch in &self.watches {
            watch.abort();
        }
    }
}

impl Bystander {
    /// Begins to watch.
    pub async fn start(client: &Client) -> Self {
        let seen = Arc::<Mutex<Seen>>::default();
        let (disks, running) = (Arc::clone(&seen), Arc::clone(&seen));
        let disks = follow(client, move |name, _: &DataVolume| {
            let mut seen = lock(&disks);
            seen.disks.entry(name).or_insert_with(Instant::now);
        });
        let running = follow(client, move |name, vm: &VirtualMachine| {
            if vm.printable_status() == "Running" {
                let mut seen = lock(&running);
                seen.running.entry(name).or_insert_with(Instant::now);
            }
        });
        Self {
            seen,
            watches: [disks.await, running.await],
        }
    }

    /// Forgets what was seen.
    pub fn forget(&self) {
        *lock(&self.seen) = Seen::default();
    }

    /// When a machine's disk was first seen.
    pub fn disk_made(&self, name: &Name) -> Option<Instant> {
        lock(&self.seen).disks.get(name).copied()
    }

    /// When KubeVirt first said that a machine runs.
    pub fn runs(&self, name: &Name) -> Option<Instant> {
        lock(&self.seen).running.get(name).copied()
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Watches all objects of a kind, and returns when the first list is over.
pub(crate) async fn follow<K>(
    client: &Client,
    tell: impl Fn(Name, &K) + Send + 'static,
) -> JoinHandle<()>
where
    K: kube::Resource<DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned
        + Send
        + 'static,
{
    let api: Api<K> = Api::all(client.clone());
    let (listed, ready) = tokio::sync::oneshot::channel();
    let task = tokio::spawn(async move {
        let mut listed = Some(listed);
        let events = watcher(api, watcher::Config::default()).default_backoff();
        let mut events = Box::pin(events);
        while let Some(event) = events.next().await {
            match event {
                Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) => {
                    tell(
                        Name {
                            namespace: object.namespace().unwrap_or_default(),
                            name: object.name_any(),
                        },
                        &object,
                    );
                }
                Ok(watcher::Event::InitDone) => {
                    // Nobody waits any more only when the caller gave up.
                    let _ = listed.take().map(|listed| listed.send(()));
                }
                _ => {}
            }
        }
    });
    // The sender goes only with the task, which the caller holds.
    let _ = ready.await;
    task
}
