//! The clients of a process: one for work, one for the Lease, and one for who may
//! read the metrics if that is asked for.
//!
//! More than one, so that a full queue of work never delays a renewal. Every request has a
//! deadline; watches are not cut, because it ends with the response's head. The working client
//! refuses to write when the replica does not lead (rule: leadership is a
//! deadline that is checked at every write).

use std::time::Duration;

use anyhow::Context as _;
use http::{HeaderValue, Method, Request};
use kube::client::{Body, ClientBuilder};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tower::BoxError;
use tower::filter::FilterLayer;
use tower::timeout::TimeoutLayer;

use crate::feed::from_the_newest;
use crate::lease::Leadership;
use crate::metrics::Metrics;
use crate::retry_after::RetryAfterLayer;
use crate::settings::Settings;

/// Reads how to reach the API server: the flag's file, else the pod's account, else the default kubeconfig.
pub async fn config(settings: &Settings, controller: &str) -> anyhow::Result<Config> {
    let mut config = match &settings.kubeconfig {
        Some(path) => {
            let shown = path.display();
            let file = Kubeconfig::read_from(path).with_context(|| {
                format!("cannot read the kubeconfig {shown}; check --kubeconfig")
            })?;
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
                .await
                .with_context(|| {
                    format!("the kubeconfig {shown} does not say how to reach a cluster")
                })?
        }
        None => Config::infer()
            .await
            .context("no cluster is configured: run inside a pod, or give --kubeconfig PATH")?,
    };
    let agent = format!("{controller}/{}", env!("CARGO_PKG_VERSION"));
    config
        .headers
        .push((http::header::USER_AGENT, HeaderValue::from_str(&agent)?));
    Ok(config)
}

/// A client for work, which writes only while the replica leads. It tries nothing again by itself:
/// passes and watches do, with a back-off that knows their object.
pub fn for_work(
    mut config: Config,
    timeout: Duration,
    leadership: Leadership,
    metrics: &Metrics,
) -> anyhow::Result<Client> {
    let gate = FilterLayer::new(move |request: Request<Body>| {
        if writes(request.method()) && !leadership.is_current() {
            return Err::<_, BoxError>("not the leader any more: the write was not sent".into());
        }
        Ok(from_the_newest(request))
    });
    config.default_retry = false;
    Ok(ClientBuilder::try_from(config)?
        .with_layer(&metrics.count_requests())
        .with_layer(&RetryAfterLayer)
        .with_layer(&TimeoutLayer::new(timeout))
        .with_layer(&gate)
        .build())
}

/// A client for the Lease: shorter deadline, no retries of its own, since the elector retries with a plan.
pub fn for_lease(config: Config, timeout: Duration, metrics: &Metrics) -> anyhow::Result<Client> {
    ungated(config, timeout, metrics)
}

/// A scraper waits ten seconds as a rule, for two reviews and the metrics.
const REVIEW: Duration = Duration::from_secs(4);

/// A client for reviews of tokens, which a replica asks for whether it leads or not. Nothing is
/// asked again: the scraper comes again.
pub fn for_reviews(config: Config, timeout: Duration, metrics: &Metrics) -> anyhow::Result<Client> {
    ungated(config, timeout.min(REVIEW), metrics)
}

fn ungated(mut config: Config, timeout: Duration, metrics: &Metrics) -> anyhow::Result<Client> {
    config.default_retry = false;
    Ok(ClientBuilder::try_from(config)?
        .with_layer(&metrics.count_requests())
        .with_layer(&TimeoutLayer::new(timeout))
        .build())
}

fn writes(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}
