//! The map inside a cache, with what finds objects in it.
//!
//! Locking, and which of two views of an object counts, is the cache's.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use super::packed::{Kept, Packing};
use super::{By, Key, Read};

pub(super) struct Entry<K> {
    pub(super) object: Kept<K>,
    /// Stands for the UID, see [`identity`].
    pub(super) identity: u64,
    pub(super) version: u64,
    pub(super) hash: u64,
    /// Number of the last list that held it, or during which it was written.
    pub(super) listed: u32,
}

/// What stands for a UID where it is only compared: UIDs are random, so this is as good.
pub(crate) fn identity(uid: Option<&str>) -> u64 {
    let mut hasher = DefaultHasher::new();
    uid.hash(&mut hasher);
    hasher.finish()
}

pub(super) struct Inner<K> {
    /// In order, so that those of a namespace are found without looking at the others.
    pub(super) objects: BTreeMap<Key, Entry<K>>,
    pub(super) packing: Option<Packing<K>>,
    pub(super) indexes: Vec<Index<K>>,
    /// UIDs that this process deleted and the watch still shows.
    pub(super) gone: HashMap<Key, String>,
    /// Number of the latest list.
    pub(super) lists: u32,
    /// Whether that list is under way.
    pub(super) listing: bool,
}

/// Finds objects by what they say.
pub(super) struct Index<K> {
    pub(super) by: By<K>,
    keys: HashMap<Box<str>, Keys>,
}

/// Most values are those of one object, and a set for one key would take ten times the room.
enum Keys {
    One(Key),
    Several(BTreeSet<Key>),
}

impl Keys {
    fn add(&mut self, key: &Key) {
        match self {
            Self::One(only) if only == key => {}
            Self::One(only) => *self = Self::Several([only.clone(), key.clone()].into()),
            Self::Several(keys) => {
                keys.insert(key.clone());
            }
        }
    }

    /// Whether nothing is left then.
    fn remove(&mut self, key: &Key) -> bool {
        match self {
            Self::One(only) => only == key,
            Self::Several(keys) => {
                keys.remove(key);
                keys.is_empty()
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Key> {
        let (one, several) = match self {
            Self::One(key) => (Some(key), None),
            Self::Several(keys) => (None, Some(keys)),
        };
        one.into_iter().chain(several.into_iter().flatten())
    }
}

impl<K> Index<K> {
    pub(super) fn new(by: By<K>) -> Self {
        let keys = HashMap::new();
        Self { by, keys }
    }

    fn enter(&mut self, key: &Key, object: &K) {
        if let Some(value) = (self.by.of)(object) {
            let keys = self.keys.entry(value.into_boxed_str());
            let keys = keys.or_insert_with(|| Keys::One(key.clone()));
            keys.add(key);
        }
    }

    fn leave(&mut self, key: &Key, object: &K) {
        if let Some(value) = (self.by.of)(object)
            && let Some(keys) = self.keys.get_mut(value.as_str())
            && keys.remove(key)
        {
            self.keys.remove(value.as_str());
        }
    }

    /// The keys of the objects that say this, in order.
    pub(super) fn keys(&self, value: &str) -> impl Iterator<Item = &Key> {
        self.keys.get(value).into_iter().flat_map(Keys::iter)
    }
}

impl<K> Inner<K> {
    /// The object of an entry.
    pub(super) fn open(&self, entry: &Entry<K>) -> Option<Arc<K>> {
        entry.object.object(self.packing.as_ref())
    }

    /// All objects that could be read, one after the other.
    pub(super) fn all(&self) -> impl Iterator<Item = Arc<K>> {
        self.objects.values().filter_map(|entry| self.open(entry))
    }

    /// Keeps an object, in the place of one that may be there.
    pub(super) fn insert(&mut self, key: Key, entry: Entry<K>) {
        if !self.indexes.is_empty() {
            self.remove(&key);
            if let Some(object) = self.open(&entry) {
                for index in &mut self.indexes {
                    index.enter(&key, &object);
                }
            }
        }
        self.objects.insert(key, entry);
    }

    pub(super) fn remove(&mut self, key: &Key) -> Option<Entry<K>> {
        let entry = self.objects.remove(key)?;
        if !self.indexes.is_empty()
            && let Some(object) = entry.object.object(self.packing.as_ref())
        {
            for index in &mut self.indexes {
                index.leave(key, &object);
            }
        }
        Some(entry)
    }

    /// Takes an object out, in the shape in which it came.
    pub(super) fn take(&mut self, key: &Key) -> Option<Read<K>> {
        let entry = self.remove(key)?;
        let object = entry.object.object(self.packing.as_ref()).map(Ok);
        object.or_else(|| entry.object.invalid().cloned().map(Err))
    }

    /// The entries of a namespace.
    pub(super) fn within<'a>(
        &'a self,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a Key, &'a Entry<K>)> {
        let of_it = self.objects.range(Key::new(namespace, "")..);
        of_it.take_while(move |(key, _)| key.namespace == namespace)
    }
}

impl<K> Default for Inner<K> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            packing: None,
            indexes: Vec::new(),
            gone: HashMap::new(),
            lists: 0,
            listing: false,
        }
    }
}
