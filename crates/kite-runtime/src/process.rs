//! The life of a process: start, wait for the lease, work, stop.
//!
//! Stopping is in this order: take no new work, let running passes finish, give
//! the lease back, exit with 0. A second signal exits at once. A process whose
//! lease is lost, or whose elector ended for any reason, exits with 1 without
//! releasing anything: its successor may already be writing.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use clap::{CommandFactory as _, FromArgMatches as _, Parser};
use kite_api::labels::Controller;
use kube::Client;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing_subscriber::EnvFilter;

use crate::client;
use crate::events::Events;
use crate::health::{Health, Role};
use crate::lease::{Elector, Ended, Leadership};
use crate::metrics::Metrics;
use crate::server::Ports;
use crate::settings::{LogFormat, Settings};

/// A controller: its name, its flags, its work.
pub trait Program: 'static {
    /// Which of the six it is.
    const CONTROLLER: Controller;
    /// One line for `--help`.
    const ABOUT: &'static str;
    /// Flags beyond those all six share.
    type Flags: clap::Args + Send;

    /// Works until `process.stop` turns true.
    fn run(process: Process, flags: Self::Flags)
    -> impl Future<Output = anyhow::Result<()>> + Send;
}

/// What a controller works with.
#[derive(Clone)]
pub struct Process {
    /// The client for work.
    pub client: Client,
    /// The shared flags.
    pub settings: Arc<Settings>,
    /// Metrics.
    pub metrics: Arc<Metrics>,
    /// Health, where watches report.
    pub health: Health,
    /// Events.
    pub events: Events,
    /// Turns true when the process is to stop.
    pub stop: watch::Receiver<bool>,
}

#[derive(Parser)]
struct Line<F: clap::Args> {
    #[command(flatten)]
    shared: Settings,
    #[command(flatten)]
    own: F,
}

/// The whole of a controller's `main`.
pub fn main<P: Program>() -> ExitCode {
    let command = Line::<P::Flags>::command()
        .name(P::CONTROLLER.name())
        .version(env!("CARGO_PKG_VERSION"))
        .about(P::ABOUT);
    let matches = command.clone().get_matches();
    let line = match Line::<P::Flags>::from_arg_matches(&matches) {
        Ok(line) => line,
        Err(error) => error.exit(),
    };
    if let Err(sentence) = line.shared.check() {
        command
            .clone()
            .error(clap::error::ErrorKind::ValueValidation, sentence)
            .exit();
    }
    log(&line.shared);
    // The provider is named here, so that no feature of a dependency can make it ambiguous.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // One thread: a controller waits for the API server nearly all of its time.
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "cannot start");
            return ExitCode::FAILURE;
        }
    };
    let code = match runtime.block_on(live::<P>(line)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "ending");
            ExitCode::FAILURE
        }
    };
    // Watches are open requests; nothing is gained by waiting for them.
    runtime.shutdown_background();
    code
}

fn log(settings: &Settings) {
    let filter = EnvFilter::try_new(&settings.log_level).unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    match settings.log_format {
        LogFormat::Json => lines.json().flatten_event(true).init(),
        LogFormat::Text => lines.init(),
    }
}

async fn live<P: Program>(line: Line<P::Flags>) -> anyhow::Result<()> {
    let name = P::CONTROLLER.name();
    let settings = Arc::new(line.shared);
    let metrics = Arc::new(Metrics::new(name)?);
    let health = Health::new(Arc::clone(&metrics))?;
    let ports = Ports::take(&settings).await?;
    let config = client::config(&settings, name).await?;
    let reviews = settings
        .metrics_auth
        .then(|| client::for_reviews(config.clone(), settings.request_timeout, &metrics))
        .transpose()?;
    ports.serve(health.clone(), Arc::clone(&metrics), reviews)?;
    let (stop, stopping) = watch::channel(false);
    let (release, released) = watch::channel(false);
    let signals = tokio::spawn(signals(stop));

    let lease_client = client::for_lease(
        config.clone(),
        settings.retry_interval.max(settings.renew_interval),
        &metrics,
    )?;
    let (elector, leadership) = if settings.leader_election {
        let (elector, leadership) = Elector::new(lease_client, name, &settings);
        (tokio::spawn(elector.run(released)), leadership)
    } else {
        let unelected = tokio::spawn(async move {
            let mut released = released;
            let _ = released.wait_for(|r| *r).await;
            Ended::Released
        });
        (unelected, Leadership::unelected())
    };
    metrics.follow(leadership.clone());
    let client = client::for_work(
        config,
        settings.request_timeout,
        leadership.clone(),
        &metrics,
    )?;
    let events = Events::new(client.clone(), name, &settings.identity());
    let process = Process {
        client,
        settings,
        metrics,
        health,
        events,
        stop: stopping,
    };
    let work = work::<P>(process, leadership, line.own, release);
    let mut elector = elector;
    tokio::select! {
        result = work => {
            result?;
            elector.await.context("the elector ended badly")?;
        }
        ended = &mut elector => {
            return Err(anyhow::anyhow!("stopped leading: {}", ended.context("the elector ended badly")?));
        }
    }
    signals.abort();
    Ok(())
}

/// Waits for the lease, works, and has the lease released when all work is done.
async fn work<P: Program>(
    process: Process,
    mut leadership: Leadership,
    flags: P::Flags,
    release: watch::Sender<bool>,
) -> anyhow::Result<()> {
    let mut stop = process.stop.clone();
    if !leadership.is_current() {
        process.health.set_role(Role::Standby);
    }
    tokio::select! {
        () = leadership.gained() => {}
        _ = stop.wait_for(|s| *s) => {
            release.send_replace(true);
            return Ok(());
        }
    }
    process.health.set_role(Role::Leader);
    let grace = process.settings.shutdown_grace;
    let limit = async {
        let _ = stop.wait_for(|s| *s).await;
        tokio::time::sleep(grace).await;
    };
    let result = tokio::select! {
        result = P::run(process, flags) => result,
        () = limit => Err(anyhow::anyhow!("passes were still running {grace:?} after the signal; they were dropped")),
    };
    release.send_replace(true);
    result
}

/// The first signal stops gently, the second at once.
async fn signals(stop: watch::Sender<bool>) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    let mut next = async || {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    next().await;
    tracing::info!("stopping: running passes are finished first");
    stop.send_replace(true);
    next().await;
    tracing::warn!("second signal: stopping at once");
    std::process::exit(1)
}
