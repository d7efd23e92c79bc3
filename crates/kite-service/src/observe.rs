//! Step 1: a machine's Service and what is behind it, from the watches alone.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use kite_api::KiteVirtualMachine;
use kite_api::labels::VM_UID;
use kite_runtime::{Cache, Key};
use kube::core::ObjectMeta;

/// The label by which a slice names its Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Everything that is watched.
#[derive(Clone)]
pub struct World {
    /// The machines.
    pub machines: Cache<KiteVirtualMachine>,
    /// Services that carry Kite's labels.
    pub services: Cache<Service>,
    /// Their slices: the server copies a Service's labels to them.
    pub slices: Cache<EndpointSlice>,
    /// Which slices are whose.
    pub index: SliceIndex,
}

impl World {
    /// The machine's own Service. Another of the same name is as good as none (rule E-5).
    pub fn service(&self, key: &Key, machine: &KiteVirtualMachine) -> Option<Arc<Service>> {
        let uid = machine.metadata.uid.as_deref().unwrap_or_default();
        self.services.get(key).filter(|s| is_of(&s.metadata, uid))
    }

    /// Whether anything ready is behind a Service.
    pub fn answers(&self, service: &Key) -> bool {
        let slices = self.index.of(service);
        slices
            .iter()
            .filter_map(|key| self.slices.get(key))
            .any(|slice| is_ready(&slice))
    }
}

/// By the controller's UID, or by the annotation when the owner reference was edited away.
fn is_of(meta: &ObjectMeta, uid: &str) -> bool {
    let mut owners = meta.owner_references.iter().flatten();
    let annotations = meta.annotations.as_ref();
    owners.any(|o| o.controller == Some(true) && o.uid == uid)
        || annotations
            .and_then(|a| a.get(VM_UID))
            .is_some_and(|bound| bound == uid)
}

/// Whether a slice has an endpoint that takes connections. Readiness that is not told counts as ready.
pub fn is_ready(slice: &EndpointSlice) -> bool {
    let ready = |e: &Endpoint| e.conditions.as_ref().and_then(|c| c.ready) != Some(false);
    slice.endpoints.iter().any(ready)
}

/// The Service that a slice belongs to.
pub fn service_of(slice: &EndpointSlice) -> Option<Key> {
    let name = slice.metadata.labels.as_ref()?.get(SERVICE_NAME)?;
    let namespace = slice.metadata.namespace.as_deref().unwrap_or_default();
    Some(Key::new(namespace, name))
}

/// Slices by Service, since their names are random. A name that is gone is harmless: it is not in the cache.
#[derive(Clone, Debug, Default)]
pub struct SliceIndex {
    /// Locked for single map operations, by the watch of slices and by passes.
    slices: Arc<Mutex<HashMap<Key, BTreeSet<Key>>>>,
}

impl SliceIndex {
    /// Notes whose a slice is.
    pub fn note(&self, service: &Key, slice: &Key) {
        self.lock()
            .entry(service.clone())
            .or_default()
            .insert(slice.clone());
    }

    /// Forgets a Service with its slices.
    pub fn forget(&self, service: &Key) {
        self.lock().remove(service);
    }

    fn of(&self, service: &Key) -> BTreeSet<Key> {
        self.lock().get(service).cloned().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, BTreeSet<Key>>> {
        self.slices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
