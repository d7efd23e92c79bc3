//! `cargo xtask demo`: the life of a user and of a machine on a real API server.
//!
//! Every step is seen to happen or the demo fails; what it counts at the end it
//! reads from the API server's audit log, not from Kite. It leaves nothing
//! running, and its logs in `target/demo`.

mod follow;
mod kubectl;
mod ledger;
mod machine;
mod steps;
mod story;

use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use clap::Args;
use kite_runtime::settings::duration;

use crate::up::{
    Cluster, Files, Interrupts, Lock, Plan, Profile, Report, Speed, block_on, prepare, tell,
};
use story::Story;

/// A clone takes a minute in life; six seconds are enough to watch one.
const SPEED: Speed = Speed::new(10.0);

/// A clone of two seconds, told three times a second.
const FASTEST: Speed = Speed::new(30.0);

/// What `cargo xtask demo` can be told.
#[derive(Args, Clone, Debug)]
pub(crate) struct DemoOptions {
    /// How much faster than life KubeVirt and CDI are played; Kite's intervals follow.
    #[arg(long, value_name = "N", default_value_t = SPEED, value_parser = speed)]
    speed: Speed,
    /// How long a namespace stays after its user went; ten minutes in life.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    grace_period: Duration,
    /// Have Helm install Kite from its charts, in pods that a stand-in for a node runs.
    #[arg(long, conflicts_with = "release")]
    helm: bool,
    /// Build Kite as it is shipped: smaller and faster, and it takes minutes.
    #[arg(long)]
    release: bool,
}

/// Refuses a speed at which the clone would be over before its progress was seen.
fn speed(text: &str) -> Result<Speed, String> {
    let speed: Speed = text.parse()?;
    if speed > FASTEST {
        return Err(format!(
            "the demo shows a clone's progress, which is too quick to be seen above {FASTEST}"
        ));
    }
    Ok(speed)
}

/// `cargo xtask demo`.
pub(crate) fn run(options: &DemoOptions) -> Result<()> {
    block_on(interruptible(options))
}

async fn interruptible(options: &DemoOptions) -> Result<()> {
    let mut interrupts = Interrupts::new()?;
    let report = Report::new();
    let files = Files::of_demo();
    let Some(_lock) = Lock::take(&files)? else {
        bail!("another demo runs in {}", files.folder().display());
    };
    let started = tokio::select! {
        started = start(options, &files, &report) => started,
        () = interrupts.next() => Err(anyhow!("stopped before it began; nothing is left running")),
    };
    if started.is_err() {
        files.remove_running()?;
    }
    let cluster = started?;
    let result = tokio::select! {
        result = play(&cluster, options, &report) => result,
        () = interrupts.next() => Err(anyhow!("stopped before its end")),
    };
    tell("");
    report.line("stopping all processes");
    // A second signal does not wait; the system ends the children then.
    tokio::select! {
        () = cluster.shutdown() => {}
        () = interrupts.next() => {}
    }
    files.remove_running()?;
    report.line("nothing is left running; logs and audit log are in target/demo");
    result
}

async fn start(options: &DemoOptions, files: &Files, report: &Report) -> Result<Cluster> {
    let profile = if options.release {
        Profile::Release
    } else {
        Profile::Dev
    };
    let binaries = prepare(profile, options.helm, report).await?;
    let plan = Plan {
        files: files.clone(),
        binaries,
        without: Vec::new(),
        stand_ins: true,
        speed: options.speed,
        namespace_grace: Some(options.grace_period),
        helm: options.helm,
    };
    Cluster::start(&plan, report).await
}

async fn play(cluster: &Cluster, options: &DemoOptions, report: &Report) -> Result<()> {
    let mut story = Story::begin(cluster, report, options.speed, options.grace_period).await?;
    steps::all(&mut story).await?;
    story.close(options.release)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demo_too_quick_to_be_seen_is_refused() {
        assert_eq!(speed("30"), Ok(FASTEST));
        assert!(speed("31").unwrap_err().contains("too quick"));
        assert!(speed("0").unwrap_err().contains("above 0"));
    }
}
