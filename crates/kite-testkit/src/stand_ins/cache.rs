//! What the watches have seen, and what the stand-ins have themselves written.
//!
//! A write puts its answer in at once, so that a pass never decides on a state
//! older than its own last write. Nothing here is ever authoritative: a lost
//! cache is rebuilt by the next list.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use kube::ResourceExt;
use kube::api::DynamicObject;

/// Namespace and name; the Namespace is empty for cluster-scoped kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Key {
    pub(super) fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// The key of an object.
    pub(super) fn of(object: &DynamicObject) -> Self {
        Self::new(object.namespace().unwrap_or_default(), object.name_any())
    }
}

/// The known objects of one kind.
#[derive(Default)]
pub(super) struct Store {
    inner: RwLock<Inner>,
}

#[derive(Default)]
struct Inner {
    live: HashMap<Key, Arc<DynamicObject>>,
    /// UIDs seen to be deleted: the late answer of a write must not revive them.
    gone: HashSet<String>,
}

impl Store {
    pub(super) fn get(&self, key: &Key) -> Option<Arc<DynamicObject>> {
        self.read(|inner| inner.live.get(key).cloned())
    }

    /// All objects for which `wanted` holds.
    pub(super) fn find(&self, wanted: impl Fn(&DynamicObject) -> bool) -> Vec<Arc<DynamicObject>> {
        self.read(|inner| {
            let found = inner.live.values().filter(|object| wanted(object));
            found.cloned().collect()
        })
    }

    /// Takes in a newer state of an object; an older one is ignored.
    pub(super) fn put(&self, object: DynamicObject) {
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        if object
            .metadata
            .uid
            .as_ref()
            .is_some_and(|uid| inner.gone.contains(uid))
        {
            return;
        }
        let key = Key::of(&object);
        let older = inner.live.get(&key).is_some_and(|known| {
            known.metadata.uid == object.metadata.uid && version(known) > version(&object)
        });
        if !older {
            inner.live.insert(key, Arc::new(object));
        }
    }

    /// Forgets an object that is gone.
    pub(super) fn remove(&self, object: &DynamicObject) {
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        let key = Key::of(object);
        if inner
            .live
            .get(&key)
            .is_some_and(|known| known.metadata.uid == object.metadata.uid)
        {
            inner.live.remove(&key);
        }
        inner.gone.extend(object.metadata.uid.clone());
    }

    /// After a full list: everything that was not in it is gone.
    pub(super) fn keep_only(&self, listed: &HashSet<Key>) -> Vec<Arc<DynamicObject>> {
        let missing = self.find(|object| !listed.contains(&Key::of(object)));
        for object in &missing {
            self.remove(object);
        }
        missing
    }

    fn read<T>(&self, look: impl FnOnce(&Inner) -> T) -> T {
        look(&self.inner.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Versions of one server's objects of one kind grow.
fn version(object: &DynamicObject) -> u64 {
    object
        .metadata
        .resource_version
        .as_deref()
        .and_then(|version| version.parse().ok())
        .unwrap_or_default()
}
