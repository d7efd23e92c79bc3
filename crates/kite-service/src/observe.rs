//! Step 1: a machine's Service and what is behind it, from the watches alone.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use kite_api::KiteVirtualMachine;
use kite_api::labels::VM_UID;
use kite_runtime::{By, Cache, Key};
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
}

/// Slices by Service, since their names are random.
pub const BY_SERVICE: By<EndpointSlice> = By {
    name: "service",
    of: |slice| service_of(slice).map(|service| service.to_string()),
};

impl World {
    /// The machine's own Service. Another of the same name is as good as none (rule E-5).
    pub fn service(&self, key: &Key, machine: &KiteVirtualMachine) -> Option<Arc<Service>> {
        let uid = machine.metadata.uid.as_deref().unwrap_or_default();
        self.services.get(key).filter(|s| is_of(&s.metadata, uid))
    }

    /// Whether anything ready is behind a Service.
    pub fn answers(&self, service: &Key) -> bool {
        let slices = self.slices.find(BY_SERVICE, &service.to_string());
        slices.iter().any(|slice| is_ready(slice))
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
