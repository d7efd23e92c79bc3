//! What is known of one kind: what the watch showed, and what this process wrote
//! itself and the watch has not shown yet.
//!
//! A pass that runs between its predecessor's write and the watch's echo of it
//! would act on an old view: create twice, delete twice. So answers to writes
//! go into the same map, and the higher resourceVersion wins. A label-selected
//! cache never proves that an object is absent (rule C-7); the first write of
//! an object is create-only for that reason.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::error_boundary::InvalidObject;
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

mod inner;
mod packed;

pub(crate) use inner::identity;
use inner::{Entry, Index, Inner};
use packed::{Kept, Packing};

/// Namespace and name of an object; the namespace of a cluster-scoped one is empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Namespace, or nothing.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl Key {
    /// A namespaced object's key.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// A cluster-scoped object's key.
    pub fn cluster(name: impl Into<String>) -> Self {
        Self::new("", name)
    }

    /// The key of an object.
    pub fn of(object: &impl ResourceExt) -> Self {
        Self::new(object.namespace().unwrap_or_default(), object.name_any())
    }

    pub(crate) fn of_meta(meta: &ObjectMeta) -> Self {
        Self::new(
            meta.namespace.clone().unwrap_or_default(),
            meta.name.clone().unwrap_or_default(),
        )
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

/// What objects of a kind can be found by.
pub struct By<K> {
    /// Tells it from other ways to find objects of the kind.
    pub name: &'static str,
    /// What an object says; nothing when it is not to be found this way.
    pub of: fn(&K) -> Option<String>,
}

impl<K> Clone for By<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for By<K> {}

/// How far a watch has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// The first list is not complete.
    Syncing,
    /// The cache is complete and follows the server.
    Ready,
    /// The server does not serve the kind.
    Missing,
}

/// One object, as far as it could be read.
type Read<K> = Result<Arc<K>, Arc<InvalidObject>>;

/// Everything known of one kind. Clones share one map.
///
/// The lock is held for single map operations only, by the watch and by passes.
pub struct Cache<K> {
    inner: Arc<RwLock<Inner<K>>>,
    reads: fn(&K) -> u64,
    availability: Arc<watch::Sender<Availability>>,
}

impl<K> Clone for Cache<K> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            reads: self.reads,
            availability: Arc::clone(&self.availability),
        }
    }
}

impl<K: Resource<DynamicType = ()>> Cache<K> {
    /// An empty cache. `reads` hashes exactly what a pass reads of an object: a change elsewhere wakes nobody.
    pub fn new(reads: fn(&K) -> u64) -> Self {
        Self {
            inner: Arc::new(RwLock::new(Inner::default())),
            reads,
            availability: Arc::new(watch::Sender::new(Availability::Syncing)),
        }
    }

    /// Keeps objects packed. It is for a cache that is empty, of a kind of which there are thousands.
    #[must_use]
    pub fn packed(self) -> Self
    where
        K: Serialize + DeserializeOwned,
    {
        self.write().packing = Some(Packing::new());
        self
    }

    /// Keeps an index, so that [`Cache::find`] looks at nothing else. It is for a cache that is empty.
    #[must_use]
    pub fn indexed(self, by: By<K>) -> Self {
        self.write().indexes.push(Index::new(by));
        self
    }

    /// How far the watch has come.
    pub fn availability(&self) -> Availability {
        *self.availability.borrow()
    }

    /// Tells when the availability changes.
    pub fn availability_changes(&self) -> watch::Receiver<Availability> {
        self.availability.subscribe()
    }

    /// Whether the server serves the kind.
    pub fn is_served(&self) -> bool {
        self.availability() != Availability::Missing
    }

    /// The object, if it is known and could be read.
    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        let inner = self.read();
        inner.objects.get(key).and_then(|entry| inner.open(entry))
    }

    /// The object of that name, if its shape is not what this version knows.
    pub fn malformed(&self, key: &Key) -> Option<Arc<InvalidObject>> {
        let inner = self.read();
        inner.objects.get(key)?.object.invalid().cloned()
    }

    /// All objects that could be read, in the order of their keys.
    pub fn all(&self) -> Vec<Arc<K>> {
        self.read().all().collect()
    }

    /// The objects that a predicate picks. It looks at all of them, so it is for what happens seldom.
    pub fn select(&self, pick: impl Fn(&K) -> bool) -> Vec<Arc<K>> {
        let inner = self.read();
        inner.all().filter(|object| pick(object)).collect()
    }

    /// Looks at each object that could be read, one after the other.
    pub fn for_each(&self, look: impl FnMut(Arc<K>)) {
        self.read().all().for_each(look);
    }

    /// The objects that say this.
    pub fn find(&self, by: By<K>, value: &str) -> Vec<Arc<K>> {
        let inner = self.read();
        let Some(index) = inner.indexes.iter().find(|i| i.by.name == by.name) else {
            drop(inner);
            return self.select(|object| (by.of)(object).as_deref() == Some(value));
        };
        let keys = index.keys(value);
        keys.filter_map(|key| inner.open(inner.objects.get(key)?))
            .collect()
    }

    /// The objects of a namespace that could be read.
    pub fn within(&self, namespace: &str) -> Vec<Arc<K>> {
        let inner = self.read();
        let entries = inner.within(namespace);
        entries.filter_map(|(_, entry)| inner.open(entry)).collect()
    }

    /// All keys, in order.
    pub fn keys(&self) -> Vec<Key> {
        self.read().objects.keys().cloned().collect()
    }

    /// The keys of a namespace, in order.
    pub fn keys_within(&self, namespace: &str) -> Vec<Key> {
        let inner = self.read();
        inner.within(namespace).map(|(k, _)| k.clone()).collect()
    }

    /// Whether an object of that key is known, readable or not.
    pub fn contains(&self, key: &Key) -> bool {
        self.read().objects.contains_key(key)
    }

    /// How many objects are known, those included that could not be read.
    pub fn len(&self) -> usize {
        self.read().objects.len()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes in the server's answer to a write of this process.
    pub fn remember(&self, object: K) -> Arc<K> {
        let key = Key::of_meta(object.meta());
        let object = Arc::new(object);
        self.upsert(&mut self.write(), key, Ok(Arc::clone(&object)));
        object
    }

    /// Takes in that an object with this UID is gone for good, or with an empty UID that there is none.
    pub fn forget(&self, key: &Key, uid: &str) {
        let mut inner = self.write();
        let known = inner.objects.get(key);
        if known.is_none_or(|known| known.identity == identity(Some(uid))) {
            inner.remove(key);
            inner.gone.insert(key.clone(), uid.to_owned());
        }
    }

    /// Whether this process saw the object of that name go, and none come since.
    pub fn was_deleted(&self, key: &Key) -> bool {
        self.read().gone.contains_key(key)
    }

    pub(crate) fn set_availability(&self, now: Availability) -> bool {
        self.availability
            .send_if_modified(|a| std::mem::replace(a, now) != now)
    }

    /// A list begins.
    pub(crate) fn begin_list(&self) {
        let mut inner = self.write();
        inner.lists = inner.lists.wrapping_add(1);
        inner.listing = true;
    }

    /// An object that the watch showed. True when something that a pass reads has changed.
    pub(crate) fn shown(&self, object: Read<K>) -> bool {
        let key = Key::of_meta(meta(&object));
        self.upsert(&mut self.write(), key, object)
    }

    /// An object that the watch showed for the last time. The last known form of it.
    pub(crate) fn removed(&self, object: Read<K>) -> Option<Read<K>> {
        let key = Key::of_meta(meta(&object));
        let mut inner = self.write();
        inner.gone.remove(&key);
        let older = inner
            .objects
            .get(&key)
            .is_some_and(|e| e.version <= version(meta(&object)));
        if older {
            inner.remove(&key);
            Some(object)
        } else {
            // Either our own delete was remembered already, or a successor was.
            (!inner.objects.contains_key(&key)).then_some(object)
        }
    }

    /// The list is complete: what it did not hold is gone.
    pub(crate) fn end_list(&self) -> Vec<Read<K>> {
        let mut inner = self.write();
        inner.listing = false;
        inner.gone.clear();
        let latest = inner.lists;
        let entries = inner.objects.iter();
        let absent = entries.filter(|(_, entry)| entry.listed != latest);
        let absent: Vec<Key> = absent.map(|(key, _)| key.clone()).collect();
        absent.iter().filter_map(|key| inner.take(key)).collect()
    }

    fn upsert(&self, inner: &mut Inner<K>, key: Key, object: Read<K>) -> bool {
        let meta = meta(&object);
        if meta.uid.is_some() && inner.gone.get(&key) == meta.uid.as_ref() {
            return false;
        }
        inner.gone.remove(&key);
        let (identity, version) = (identity(meta.uid.as_deref()), version(meta));
        let hash = object.as_ref().map_or(0, |o| (self.reads)(o));
        let mut listed = inner.lists;
        let mut changed = true;
        if let Some(previous) = inner.objects.get_mut(&key) {
            if inner.listing {
                previous.listed = inner.lists;
            }
            if previous.version > version {
                return false;
            }
            listed = previous.listed;
            changed = previous.hash != hash
                || previous.identity != identity
                || previous.object.is_readable() != object.is_ok();
        }
        let entry = Entry {
            object: Kept::new(object, inner.packing.as_ref()),
            identity,
            version,
            hash,
            listed,
        };
        inner.insert(key, entry);
        changed
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Inner<K>> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Inner<K>> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn meta<K: Resource>(object: &Read<K>) -> &ObjectMeta {
    object
        .as_ref()
        .map_or_else(|invalid| &invalid.metadata, |o| o.meta())
}

/// Resource versions are etcd revisions: numbers that only grow, the same for every object of a server.
pub fn version(meta: &ObjectMeta) -> u64 {
    meta.resource_version
        .as_deref()
        .and_then(|v| v.parse().ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
