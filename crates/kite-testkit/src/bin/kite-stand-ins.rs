//! Runs the stand-ins for KubeVirt and CDI against a cluster until SIGTERM.
//!
//! For `cargo xtask up` and for tests that want them in a process of their own.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use axum::http::HeaderValue;
use axum::http::header::USER_AGENT;
use kite_testkit::stand_ins::{self, Options};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::signal::unix::{SignalKind, signal};

const USAGE: &str = "usage: kite-stand-ins --kubeconfig PATH [--speed N] [--webhooks true|false] [--temporary-claims true|false] [--binds-claims true|false] [--ticks N] [--slots N]";

struct Flags {
    kubeconfig: PathBuf,
    options: Options,
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    let flags = match flags(std::env::args().skip(1)) {
        Ok(flags) => flags,
        Err(error) => {
            eprintln!("{error:#}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match tokio::runtime::Runtime::new()
        .map_err(Into::into)
        .and_then(|runtime| runtime.block_on(run(flags)))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn flags(mut arguments: impl Iterator<Item = String>) -> Result<Flags> {
    let mut kubeconfig = None;
    let mut options = Options::default();
    while let Some(flag) = arguments.next() {
        let (flag, value) = if let Some((flag, value)) = flag.split_once('=') {
            (flag.to_owned(), value.to_owned())
        } else {
            let value = arguments.next();
            let value = value.with_context(|| format!("{flag} needs a value"))?;
            (flag, value)
        };
        let wrong = || format!("{flag} cannot be {value}");
        match flag.as_str() {
            "--kubeconfig" => kubeconfig = Some(PathBuf::from(&value)),
            "--speed" => options.speed = value.parse().with_context(wrong)?,
            "--webhooks" => options.webhooks = value.parse().with_context(wrong)?,
            "--temporary-claims" => options.temporary_claims = value.parse().with_context(wrong)?,
            "--binds-claims" => options.binds_claims = value.parse().with_context(wrong)?,
            "--ticks" => options.ticks = value.parse().with_context(wrong)?,
            "--slots" => options.slots = value.parse().with_context(wrong)?,
            _ => anyhow::bail!("{flag} is not known"),
        }
    }
    anyhow::ensure!(
        options.speed.is_finite() && options.speed > 0.0,
        "--speed must be above 0"
    );
    let kubeconfig = kubeconfig.context("--kubeconfig is needed")?;
    Ok(Flags {
        kubeconfig,
        options,
    })
}

async fn run(flags: Flags) -> Result<()> {
    let kubeconfig = Kubeconfig::read_from(&flags.kubeconfig)?;
    let mut config =
        Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let name = HeaderValue::from_static("kite-stand-ins");
    config.headers.push((USER_AGENT, name));
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut running = stand_ins::start(Client::try_from(config)?, flags.options).await?;
    eprintln!(
        "stand-ins for KubeVirt and CDI are running at speed {}",
        flags.options.speed
    );
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        error = running.ended() => return Err(error),
    }
    running.stop().await
}
