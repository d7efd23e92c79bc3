//! The one port of a process: `/livez`, `/readyz`, `/healthz` and `/metrics`.

use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;

use crate::health::Health;
use crate::metrics::Metrics;

#[derive(Clone)]
struct Pages {
    health: Health,
    metrics: Arc<Metrics>,
}

/// Takes the port. A port that is in use ends the process with a sentence (row LE14).
pub(crate) async fn bind(address: std::net::SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!("cannot listen on {address} for metrics and health; another process may use the port, give --listen another address")
    })
}

/// Serves until the process ends.
pub(crate) async fn serve(
    listener: TcpListener,
    health: Health,
    metrics: Arc<Metrics>,
) -> std::io::Result<()> {
    let pages = Pages { health, metrics };
    let router = Router::new()
        .route("/livez", get(live))
        .route("/healthz", get(live))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics_page))
        .with_state(pages);
    axum::serve(listener, router).await
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

async fn metrics_page(State(pages): State<Pages>) -> Response {
    match pages.metrics.render() {
        Ok(text) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
