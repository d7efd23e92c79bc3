//! The admission webhooks of KubeVirt and CDI, served over TLS on loopback and
//! registered with the server, so that mutations, refusals and outages are the
//! server's own.
//!
//! They are closed on failure like the real ones, and are taken back by
//! [`Webhooks::remove`]; a process that is killed leaves them registered.

mod data_volume;
mod register;
mod vm;

use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;

use anyhow::{Context, Result};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use axum_server::accept::NoDelayAcceptor;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use k8s_openapi::ByteString;
use kube::Client;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::cache::Key;
use super::fault::Fault;
use super::value::text;
use super::world::World;
use crate::pki::Authority;

/// What a webhook answers.
pub(super) enum Answer {
    /// As it is.
    Allow,
    /// With these changes (JSON patch operations).
    Change(Vec<Value>),
    /// No, and why.
    Refuse(String),
}

/// Webhooks that are registered.
pub(super) struct Webhooks {
    client: Client,
}

impl Webhooks {
    /// Serves and registers them.
    pub(super) async fn start(world: &Arc<World>, tasks: &mut JoinSet<()>) -> Result<Self> {
        let authority = Authority::new("kite-stand-ins")?;
        let (certificate, key) = authority.server(&["127.0.0.1", "localhost"])?;
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port for the webhooks")?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        // The first to install a provider wins; which one matters to nobody here.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let tls = RustlsConfig::from_pem(certificate.into_bytes(), key.into_bytes()).await?;
        let router = Router::new()
            .route("/{kind}/{verb}", post(admit))
            .with_state(world.clone());
        // Without it every answer waits for the other side's delayed acknowledgement.
        let acceptor = RustlsAcceptor::new(tls).acceptor(NoDelayAcceptor::new());
        let server = axum_server::from_tcp(listener)?.acceptor(acceptor);
        tasks.spawn(async move {
            if let Err(error) = server.serve(router.into_make_service()).await {
                tracing::error!(%error, "stand-in: webhooks ended");
            }
        });
        register::apply(&world.client, port, &authority.certificate).await?;
        Ok(Self {
            client: world.client.clone(),
        })
    }

    /// Takes the registration back.
    pub(super) async fn remove(&self) -> Result<()> {
        register::remove(&self.client).await
    }
}

async fn admit(
    State(world): State<Arc<World>>,
    Path((kind, verb)): Path<(String, String)>,
    Json(review): Json<Value>,
) -> Result<Json<Value>, StatusCode> {
    let request = &review["request"];
    if !world.behaviour.answers(&key(request)) {
        return Err(StatusCode::SERVICE_UNAVAILABLE);
    }
    let answer = match (kind.as_str(), verb.as_str()) {
        ("vm", "mutate") => {
            let more = world.behaviour.has(&key(request), &Fault::WebhookAdds);
            vm::mutate(request, more)
        }
        ("vm", "validate") => vm::validate(request, world.behaviour.refusal(&key(request))),
        ("dv", "mutate") => data_volume::mutate(&world, request).await,
        ("dv", "validate") => {
            let refusal = world.behaviour.disk_refusal(&key(request));
            data_volume::validate(&world, request, refusal).await
        }
        _ => return Err(StatusCode::NOT_FOUND),
    };
    Ok(Json(response(request, answer)))
}

fn key(request: &Value) -> Key {
    Key::new(text(request, "/namespace"), text(request, "/name"))
}

/// Whether an object is on its way out: nothing is checked then.
pub(super) fn is_going(request: &Value) -> bool {
    request
        .pointer("/object/metadata/deletionTimestamp")
        .is_some()
}

fn response(request: &Value, answer: Answer) -> Value {
    let mut response = json!({"uid": request["uid"], "allowed": true});
    match answer {
        Answer::Allow => {}
        Answer::Change(operations) => {
            let patch = Value::from(operations).to_string();
            response["patchType"] = json!("JSONPatch");
            response["patch"] = json!(ByteString(patch.into_bytes()));
        }
        Answer::Refuse(message) => {
            response["allowed"] = json!(false);
            response["status"] = json!({"code": 422, "reason": "Invalid", "message": message});
        }
    }
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}
