//! What is known of one kind: what the watch showed, and what this process wrote
//! itself and the watch has not shown yet.
//!
//! A pass that runs between its predecessor's write and the watch's echo of it
//! would act on an old view: create twice, delete twice. So answers to writes
//! go into the same map, and the higher resourceVersion wins. A label-selected
//! cache never proves that an object is absent (rule C-7); the first write of
//! an object is create-only for that reason.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::error_boundary::InvalidObject;
use kube::{Resource, ResourceExt};
use tokio::sync::watch;

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

struct Entry<K> {
    object: Read<K>,
    uid: Option<String>,
    version: u64,
    hash: u64,
}

struct Inner<K> {
    objects: HashMap<Key, Entry<K>>,
    /// UIDs that this process deleted and the watch still shows.
    gone: HashMap<Key, String>,
    /// Keys seen in the list that is under way, and keys written meanwhile.
    listing: Option<HashSet<Key>>,
}

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
            inner: Arc::new(RwLock::new(Inner {
                objects: HashMap::new(),
                gone: HashMap::new(),
                listing: None,
            })),
            reads,
            availability: Arc::new(watch::Sender::new(Availability::Syncing)),
        }
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
        self.read()
            .objects
            .get(key)
            .and_then(|e| e.object.as_ref().ok().cloned())
    }

    /// The object of that name, if its shape is not what this version knows.
    pub fn malformed(&self, key: &Key) -> Option<Arc<InvalidObject>> {
        self.read()
            .objects
            .get(key)
            .and_then(|e| e.object.as_ref().err().cloned())
    }

    /// All objects that could be read, in no order.
    pub fn all(&self) -> Vec<Arc<K>> {
        self.read()
            .objects
            .values()
            .filter_map(|e| e.object.as_ref().ok().cloned())
            .collect()
    }

    /// The objects that a predicate picks.
    pub fn select(&self, pick: impl Fn(&K) -> bool) -> Vec<Arc<K>> {
        let inner = self.read();
        let readable = inner
            .objects
            .values()
            .filter_map(|e| e.object.as_ref().ok());
        readable.filter(|o| pick(o)).cloned().collect()
    }

    /// All keys, in no order.
    pub fn keys(&self) -> Vec<Key> {
        self.read().objects.keys().cloned().collect()
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
        let mut inner = self.write();
        if let Some(listing) = inner.listing.as_mut() {
            listing.insert(key.clone());
        }
        self.upsert(&mut inner, key, Ok(Arc::clone(&object)));
        object
    }

    /// Takes in that an object with this UID is gone for good, or with an empty UID that there is none.
    pub fn forget(&self, key: &Key, uid: &str) {
        let mut inner = self.write();
        let known = inner.objects.get(key).map(|e| e.uid.clone());
        if known.is_none_or(|known| known.as_deref() == Some(uid)) {
            inner.objects.remove(key);
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
        self.write().listing = Some(HashSet::new());
    }

    /// An object that the watch showed. True when something that a pass reads has changed.
    pub(crate) fn shown(&self, object: Read<K>) -> bool {
        let key = Key::of_meta(meta(&object));
        let mut inner = self.write();
        if let Some(listing) = inner.listing.as_mut() {
            listing.insert(key.clone());
        }
        self.upsert(&mut inner, key, object)
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
            inner.objects.remove(&key);
            Some(object)
        } else {
            // Either our own delete was remembered already, or a successor was.
            (!inner.objects.contains_key(&key)).then_some(object)
        }
    }

    /// The list is complete: what it did not hold is gone.
    pub(crate) fn end_list(&self) -> Vec<Read<K>> {
        let mut inner = self.write();
        let listed = inner.listing.take().unwrap_or_default();
        inner.gone.clear();
        let absent: Vec<Key> = inner
            .objects
            .keys()
            .filter(|k| !listed.contains(*k))
            .cloned()
            .collect();
        absent
            .iter()
            .filter_map(|k| inner.objects.remove(k))
            .map(|e| e.object)
            .collect()
    }

    fn upsert(&self, inner: &mut Inner<K>, key: Key, object: Read<K>) -> bool {
        let meta = meta(&object);
        if meta.uid.is_some() && inner.gone.get(&key) == meta.uid.as_ref() {
            return false;
        }
        inner.gone.remove(&key);
        let entry = Entry {
            uid: meta.uid.clone(),
            version: version(meta),
            hash: object.as_ref().map_or(0, |o| (self.reads)(o)),
            object,
        };
        let previous = inner.objects.get(&key);
        if previous.is_some_and(|p| p.version > entry.version) {
            return false;
        }
        let changed = previous.is_none_or(|p| {
            p.hash != entry.hash || p.uid != entry.uid || p.object.is_ok() != entry.object.is_ok()
        });
        inner.objects.insert(key, entry);
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
