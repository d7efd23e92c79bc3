//! Watches: each is a task of its own that fills a [`Cache`] and says which
//! objects to look at again.
//!
//! Each watch backs off by itself and keeps its errors to itself, so that a kind
//! the cluster does not serve slows nothing else (rule C-14). Deletes always
//! wake. Nothing is decided here.

mod item;
mod listing;

use std::fmt::Debug;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kube::core::error_boundary::InvalidObject;
use kube::core::{ObjectMeta, PartialObjectMeta, Resource};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::cache::{Availability, By, Cache, Key};
use crate::errors::{Refusal, jittered, refusal, words};
use crate::health::{Health, WatchHealth};
pub use item::{Guarded, Item};
pub(crate) use listing::from_the_newest;
use listing::{Broken, Listing};

/// A missing kind is looked for again within this time, jitter included (rule C-14: picked up within 30 s).
const LONGEST_PAUSE: Duration = Duration::from_secs(16);
/// First pause after an error of a watch.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Objects asked for at once by a list in pages, see [`listing`]. All watches list at the same
/// time when a process starts, and a page of each is in memory then, as text and read.
const PAGE: u32 = 250;
/// What `kubectl apply` keeps for itself: the object once more.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// One watch, before it starts.
pub struct Watch<I: Item> {
    name: &'static str,
    api: Api<I>,
    config: watcher::Config,
    reads: fn(&I::Object) -> u64,
    trim: fn(&mut I::Object),
    indexes: Vec<By<I::Object>>,
    packed: fn(Cache<I::Object>) -> Cache<I::Object>,
}

impl<K> Watch<Guarded<K>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    /// A watch of whole objects in all namespaces. `name` is the kind, for logs, health and metrics.
    pub fn objects(name: &'static str, client: Client) -> Self {
        Self::new(name, client)
    }
}

impl<K> Watch<PartialObjectMeta<K>>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Send + Sync + 'static,
{
    /// A watch of objects' metadata in all namespaces.
    pub fn metadata(name: &'static str, client: Client) -> Self {
        Self::new(name, client)
    }
}

impl<I: Item> Watch<I> {
    fn new(name: &'static str, client: Client) -> Self {
        Self {
            name,
            api: Api::all(client),
            config: listing::streamed(watcher::Config::default().page_size(PAGE)),
            reads: |o| crate::cache::version(o.meta()),
            trim: |_| {},
            indexes: Vec::new(),
            packed: |cache| cache,
        }
    }

    /// Only objects with these labels.
    #[must_use]
    pub fn labels(mut self, selector: &str) -> Self {
        self.config = self.config.labels(selector);
        self
    }

    /// Only objects with these fields.
    #[must_use]
    pub fn fields(mut self, selector: &str) -> Self {
        self.config = self.config.fields(selector);
        self
    }

    /// The hash of what a pass reads; a change of anything else wakes nobody.
    #[must_use]
    pub fn reads(mut self, reads: fn(&I::Object) -> u64) -> Self {
        self.reads = reads;
        self
    }

    /// Keeps the objects packed: for kinds of which there are thousands.
    #[must_use]
    pub fn packed(mut self) -> Self
    where
        I::Object: Serialize + DeserializeOwned,
    {
        self.packed = Cache::packed;
        self
    }

    /// Keeps an index for [`Cache::find`].
    #[must_use]
    pub fn index(mut self, by: By<I::Object>) -> Self {
        self.indexes.push(by);
        self
    }

    /// Drops what no pass reads, before it is kept.
    #[must_use]
    pub fn trim(mut self, trim: fn(&mut I::Object)) -> Self {
        self.trim = trim;
        self
    }
}

/// The primary objects, whatever their kind.
trait Keys: Send + Sync {
    fn all(&self) -> Vec<Key>;
    fn has(&self, key: &Key) -> bool;
}

impl<K: Resource<DynamicType = ()> + Send + Sync> Keys for Cache<K> {
    fn all(&self) -> Vec<Key> {
        self.keys()
    }

    fn has(&self, key: &Key) -> bool {
        self.contains(key)
    }
}

type Primary = Arc<OnceLock<Box<dyn Keys>>>;

/// All watches of a process, and the queue of keys they wake.
pub struct Feeds {
    wakes: UnboundedSender<Key>,
    queue: Option<UnboundedReceiver<Key>>,
    health: Health,
    primary: Primary,
    settled: Vec<tokio::sync::watch::Receiver<Availability>>,
}

impl Feeds {
    /// No watches yet.
    pub fn new(health: Health) -> Self {
        let (wakes, queue) = unbounded_channel();
        Self {
            wakes,
            queue: Some(queue),
            health,
            primary: Arc::default(),
            settled: Vec::new(),
        }
    }

    /// Watches the kind that passes are about. Each of its objects wakes itself.
    pub fn primary<I: Item>(&mut self, watch: Watch<I>) -> Cache<I::Object> {
        let cache = self.watch(watch, |key, _| vec![key.clone()]);
        // Set twice only by a controller with two primaries, which none has.
        let _ = self.primary.set(Box::new(cache.clone()));
        cache
    }

    /// Watches another kind. `wakes` says which primary objects a change concerns;
    /// it gets the object as last known, or nothing if its shape is unknown.
    pub fn watch<I: Item>(
        &mut self,
        watch: Watch<I>,
        wakes: impl Fn(&Key, Option<&I::Object>) -> Vec<Key> + Send + Sync + 'static,
    ) -> Cache<I::Object> {
        let cache = (watch.packed)(Cache::new(watch.reads));
        let cache = watch.indexes.into_iter().fold(cache, Cache::indexed);
        self.settled.push(cache.availability_changes());
        let feed = Feed {
            cache: cache.clone(),
            health: self.health.watch(watch.name),
            wakes: self.wakes.clone(),
            which: Box::new(wakes),
            primary: Arc::clone(&self.primary),
            trim: watch.trim,
            name: watch.name,
        };
        let task = tokio::spawn(feed.run::<I>(watch.api, watch.config));
        self.health.guard_task(watch.name, task);
        cache
    }

    /// A sender that wakes objects from outside the watches, for timers.
    pub fn waker(&self) -> UnboundedSender<Key> {
        self.wakes.clone()
    }

    /// Waits until every watch is complete or its kind is known to be missing (row ST12).
    pub async fn settled(&mut self) {
        for availability in &mut self.settled {
            // The sender lives as long as the watch; its end is noticed by the health check.
            let _ = availability.wait_for(|a| *a != Availability::Syncing).await;
        }
    }

    /// The primary objects that a rule picks.
    pub(crate) fn primaries(&self, pick: impl Fn(&Key) -> bool) -> Vec<Key> {
        let mut keys = self
            .primary
            .get()
            .map(|keys| keys.all())
            .unwrap_or_default();
        keys.retain(pick);
        keys
    }

    /// Whether a key is that of a primary object.
    pub(crate) fn is_primary(&self, key: &Key) -> bool {
        self.primary.get().is_some_and(|keys| keys.has(key))
    }

    /// The queue of keys to look at. It can be taken once.
    pub(crate) fn take_queue(&mut self) -> Option<UnboundedReceiver<Key>> {
        self.queue.take()
    }
}

/// Which primary objects a change concerns.
type Which<K> = Box<dyn Fn(&Key, Option<&K>) -> Vec<Key> + Send + Sync>;

struct Feed<K> {
    cache: Cache<K>,
    health: WatchHealth,
    wakes: UnboundedSender<Key>,
    which: Which<K>,
    primary: Primary,
    trim: fn(&mut K),
    name: &'static str,
}

impl<K: Resource<DynamicType = ()> + Send + Sync + 'static> Feed<K> {
    async fn run<I: Item<Object = K>>(self, api: Api<I>, mut config: watcher::Config) {
        let mut pause = FIRST_PAUSE;
        let mut listing = Listing::default();
        let mut events = Box::pin(watcher(api.clone(), config.clone()));
        while let Some(event) = listing.next(&mut events).await {
            match event {
                Ok(event) => {
                    // `Init` only says that a list was asked for.
                    if !matches!(event, Event::Init) {
                        pause = FIRST_PAUSE;
                        self.health.progressed();
                    }
                    self.take(event);
                }
                Err(broken) => {
                    if broken.needs_pages(&config) {
                        tracing::info!(kind = self.name, error = %broken, "the server streams no list; it is read in pages");
                        config = listing::in_pages(config);
                    } else {
                        self.failed(&broken);
                    }
                    if !self.cache.is_served() || broken.lists_anew() {
                        // Nothing of it is worth resuming; a list tells what there is now.
                        listing = Listing::default();
                        events = Box::pin(watcher(api.clone(), config.clone()));
                    }
                    tokio::time::sleep(jittered(pause, &Key::cluster(self.name), 0)).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    fn take<I: Item<Object = K>>(&self, event: Event<I>) {
        match event {
            Event::Init => self.cache.begin_list(),
            Event::InitApply(object) | Event::Apply(object) => {
                let object = self.read(object);
                let key = key_of(&object);
                if self.cache.shown(object) {
                    self.wake(&key, self.cache.get(&key).as_deref());
                }
            }
            Event::Delete(object) => {
                let object = self.read(object);
                let key = key_of(&object);
                if let Some(last) = self.cache.removed(object) {
                    self.wake(&key, last.as_deref().ok());
                }
            }
            Event::InitDone => {
                for last in self.cache.end_list() {
                    self.wake(&key_of(&last), last.as_deref().ok());
                }
                self.became(Availability::Ready);
            }
        }
    }

    fn read<I: Item<Object = K>>(&self, object: I) -> Result<Arc<K>, Arc<InvalidObject>> {
        match object.read() {
            Ok(mut object) => {
                tidy(object.meta_mut());
                (self.trim)(&mut object);
                Ok(Arc::new(object))
            }
            Err(mut invalid) => {
                invalid.metadata.managed_fields = None;
                tracing::warn!(
                    kind = self.name,
                    object = %Key::of_meta(&invalid.metadata),
                    error = %invalid.error,
                    "an object does not have the shape this version knows; it alone is left out"
                );
                Err(Arc::from(invalid))
            }
        }
    }

    fn wake(&self, key: &Key, object: Option<&K>) {
        for key in (self.which)(key, object) {
            // The receiver is gone only while the process shuts down.
            let _ = self.wakes.send(key);
        }
    }

    fn became(&self, availability: Availability) {
        if self.cache.set_availability(availability) {
            self.health.available(availability);
            tracing::info!(kind = self.name, ?availability, "watch");
            // A kind that came or went changes what every object can have.
            for key in self
                .primary
                .get()
                .map(|keys| keys.all())
                .unwrap_or_default()
            {
                let _ = self.wakes.send(key);
            }
        }
    }

    fn failed(&self, broken: &Broken) {
        let api_error = broken.answer();
        if api_error.map(refusal) == Some(Refusal::KindMissing) {
            self.health.progressed();
            self.became(Availability::Missing);
            return;
        }
        let text = api_error.map_or_else(|| broken.to_string(), words);
        if self.health.failing(&text) {
            tracing::warn!(kind = self.name, error = %text, "the watch fails and will be tried again until it works");
        }
    }
}

/// Drops what no pass of any controller reads.
fn tidy(meta: &mut ObjectMeta) {
    meta.managed_fields = None;
    if let Some(annotations) = &mut meta.annotations
        && annotations.remove(LAST_APPLIED).is_some()
        && annotations.is_empty()
    {
        meta.annotations = None;
    }
}

fn key_of<K: Resource>(object: &Result<Arc<K>, Arc<InvalidObject>>) -> Key {
    match object {
        Ok(object) => Key::of_meta(object.meta()),
        Err(invalid) => Key::of_meta(&invalid.metadata),
    }
}
