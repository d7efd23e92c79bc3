//! What a pass talks to here: nothing at all, or the recording.
//!
//! No API server is played: a settled pass asks for nothing, and a creating one is given the
//! recorded objects back, outside of what is counted.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use crate::recorded::Recorded;
use crate::region;

/// A client, and how many requests it was asked to send.
pub(crate) struct Line {
    /// The client.
    pub(crate) client: Client,
    sent: Arc<AtomicUsize>,
}

impl Line {
    /// Each request is answered with the recorded object of its path.
    pub(crate) fn new(recorded: Arc<Recorded>) -> Self {
        let sent = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&sent);
        let service = tower::service_fn(move |request: Request<Body>| {
            count.fetch_add(1, Ordering::Relaxed);
            let mut answer = Response::new(Body::empty());
            region::uncounted(&mut || answer = respond(&recorded, &request));
            // The body that was to be sent was made within what is counted.
            async move { Ok::<_, Infallible>(answer) }
        });
        Self {
            client: Client::new(service, "default"),
            sent,
        }
    }

    /// How many requests were sent so far.
    pub(crate) fn sent(&self) -> usize {
        self.sent.load(Ordering::Relaxed)
    }
}

/// The kinds that a creating pass writes, by their plural.
const KINDS: [(&str, &str); 7] = [
    ("kitevirtualmachines", "KiteVirtualMachine"),
    ("kitehostclaims", "KiteHostClaim"),
    ("virtualmachines", "VirtualMachine"),
    ("datavolumes", "DataVolume"),
    ("services", "Service"),
    ("ingresses", "Ingress"),
    ("secrets", "Secret"),
];

fn respond(recorded: &Recorded, request: &Request<Body>) -> Response<Body> {
    let parts: Vec<&str> = request
        .uri()
        .path()
        .trim_end_matches("/status")
        .split('/')
        .collect();
    let [.., plural, name] = parts.as_slice() else {
        return refused();
    };
    let kind = KINDS
        .iter()
        .find(|(known, _)| known == plural)
        .map(|(_, kind)| *kind);
    let body = match kind {
        Some("Secret") => Some(secret(name)),
        // It is new, so nothing was told of it yet.
        Some(kind @ "KiteVirtualMachine") => recorded.answer(kind, name).cloned().map(|mut m| {
            m["status"].take();
            m
        }),
        Some(kind) => recorded.answer(kind, name).cloned(),
        None => None,
    };
    match body.map(|body| serde_json::to_vec(&body)) {
        Some(Ok(bytes)) => Response::new(Body::from(bytes)),
        _ => refused(),
    }
}

/// Secrets are not recorded; the answer to writing one is its metadata.
fn secret(name: &str) -> Value {
    json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
        "metadata": {"name": name, "namespace": crate::recorded::NAMESPACE, "uid": "11111111-2222-3333-4444-555555555555", "resourceVersion": "1"},
    })
}

fn refused() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}
