//! Two settled machines and what stands around them, as a control plane had them.
//!
//! `kite-pass record` makes the recording anew.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use kite_runtime::{By, Cache, Key};
use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The namespace of the machines.
pub(crate) const NAMESPACE: &str = "alice";
/// A machine without a host name.
pub(crate) const PLAIN: &str = "plain";
/// A machine with one.
pub(crate) const WEB: &str = "web";

/// Where the recording is.
pub(crate) fn path() -> PathBuf {
    PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/recordings/settled.json"
    ))
}

/// The recorded objects, by kind.
pub(crate) struct Recorded {
    objects: Vec<Value>,
    packed: bool,
}

impl Recorded {
    /// Reads the recording. `packed` caches keep objects as those of the processes do.
    pub(crate) fn load(packed: bool) -> Result<Self> {
        let text = std::fs::read_to_string(path()).context("there is no recording")?;
        let objects = serde_json::from_str(&text)?;
        Ok(Self { objects, packed })
    }

    /// The objects of a kind.
    pub(crate) fn all<K>(&self) -> Result<Vec<K>>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let kind = K::kind(&());
        let of_kind = self.objects.iter().filter(|object| object["kind"] == *kind);
        let read = of_kind.map(|object| serde_json::from_value(object.clone()));
        read.collect::<Result<_, _>>()
            .with_context(|| format!("a recorded {kind} cannot be read"))
    }

    /// The object of that name.
    pub(crate) fn one<K>(&self, name: &str) -> Result<K>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let mut all = self.all::<K>()?.into_iter();
        let found = all.find(|object| object.meta().name.as_deref() == Some(name));
        found.with_context(|| format!("no {} {name} was recorded", K::kind(&())))
    }

    /// A cache that has seen all objects of a kind.
    pub(crate) fn cache<K>(&self) -> Result<Cache<K>>
    where
        K: Resource<DynamicType = ()> + Serialize + DeserializeOwned,
    {
        self.fill(Cache::new(|_| 0))
    }

    /// A cache that has seen all objects of a kind, and finds them by what they say.
    pub(crate) fn indexed<K>(&self, by: By<K>) -> Result<Cache<K>>
    where
        K: Resource<DynamicType = ()> + Serialize + DeserializeOwned,
    {
        self.fill(Cache::new(|_| 0).indexed(by))
    }

    fn fill<K>(&self, mut cache: Cache<K>) -> Result<Cache<K>>
    where
        K: Resource<DynamicType = ()> + Serialize + DeserializeOwned,
    {
        if self.packed {
            cache = cache.packed();
        }
        for object in self.all()? {
            cache.remember(object);
        }
        Ok(cache)
    }

    /// An object as the server would send it, by the path of a request for it.
    pub(crate) fn answer(&self, kind: &str, name: &str) -> Option<&Value> {
        let is = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
        self.objects.iter().find(is)
    }
}

/// The key of a machine.
pub(crate) fn key(name: &str) -> Key {
    Key::new(NAMESPACE, name)
}
