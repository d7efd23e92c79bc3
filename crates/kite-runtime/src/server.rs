//! The ports of a process: `/livez`, `/readyz` and `/healthz` on one, which is
//! always plain and open, so that probes need to know nothing; `/metrics` on the
//! same one, or on one of its own with TLS and with tokens.
//!
//! Nothing here asks the API server anything, unless tokens are wanted and
//! somebody sends one.

mod readers;
mod tls;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use kube::Client;
use tokio::net::TcpListener;

use crate::health::Health;
use crate::metrics::Metrics;
use crate::settings::Settings;

use readers::Readers;
use tls::{Certificate, TlsListener};

/// Where the metrics are, and what a reader must have the right to `get`.
const METRICS_PATH: &str = "/metrics";

#[derive(Clone)]
struct Pages {
    health: Health,
    metrics: Arc<Metrics>,
    readers: Option<Arc<Readers>>,
}

/// The ports, taken and not served yet.
pub(crate) struct Ports {
    health: TcpListener,
    metrics: Option<(TcpListener, Option<Certificate>)>,
}

impl Ports {
    /// Takes them. A port that is in use ends the process with a sentence (row LE14), and so does a
    /// certificate that cannot be read.
    pub(crate) async fn take(settings: &Settings) -> anyhow::Result<Self> {
        let health = bind(settings.listen, "health", "--listen").await?;
        let metrics = match settings.metrics_listen {
            Some(address) => Some((
                bind(address, "metrics", "--metrics-listen").await?,
                certificate(settings)?,
            )),
            None => None,
        };
        Ok(Self { health, metrics })
    }

    /// Serves until the process ends. With a client for questions about tokens, readers need one.
    pub(crate) fn serve(
        self,
        health: Health,
        metrics: Arc<Metrics>,
        reviews: Option<Client>,
    ) -> std::io::Result<()> {
        let pages = Pages {
            health,
            metrics,
            readers: reviews.map(Readers::new).map(Arc::new),
        };
        let mut open = Router::new()
            .route("/livez", get(live))
            .route("/healthz", get(live))
            .route("/readyz", get(ready));
        let metrics = Router::new().route(METRICS_PATH, get(metrics_page));
        match self.metrics {
            None => open = open.merge(metrics),
            Some((listener, None)) => {
                spawn(axum::serve(listener, metrics.with_state(pages.clone())));
            }
            Some((listener, Some(certificate))) => {
                let listener = TlsListener::new(listener, certificate)?;
                spawn(axum::serve(listener, metrics.with_state(pages.clone())));
            }
        }
        spawn(axum::serve(self.health, open.with_state(pages)));
        Ok(())
    }
}

/// Serving never ends by itself, so nobody waits for it.
fn spawn(serve: impl IntoFuture<IntoFuture: Send, Output = std::io::Result<()>> + Send + 'static) {
    tokio::spawn(async move { serve.await });
}

async fn bind(address: SocketAddr, what: &str, flag: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!("cannot listen on {address} for {what}; another process may use the port, give {flag} another address")
    })
}

fn certificate(settings: &Settings) -> anyhow::Result<Option<Certificate>> {
    match (&settings.tls_cert_file, &settings.tls_key_file) {
        (Some(chain), Some(key)) => Certificate::read(chain, key).map(Some),
        _ => Ok(None),
    }
}

async fn live(State(pages): State<Pages>) -> Response {
    match pages.health.live() {
        Ok(()) => "ok\n".into_response(),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
    }
}

async fn ready(State(pages): State<Pages>, RawQuery(query): RawQuery) -> Response {
    let (ready, text) = pages.health.ready();
    let verbose = query
        .as_deref()
        .is_some_and(|q| q.split('&').any(|p| p.starts_with("verbose")));
    let body = if verbose || !ready {
        text
    } else {
        "ok\n".to_owned()
    };
    let code = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (code, body).into_response()
}

async fn metrics_page(State(pages): State<Pages>, headers: HeaderMap) -> Response {
    if let Some(readers) = &pages.readers
        && let Err(refusal) = readers.admit(&headers).await
    {
        return refusal;
    }
    match pages.metrics.render() {
        Ok(text) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
