//! What is told while it happens, and the runtime and signals of these commands.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Lines with the time since the beginning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    began: Instant,
}

impl Report {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
        }
    }

    pub(crate) fn line(&self, text: &str) {
        tell(&format!("{} {text}", stamp(self.began.elapsed())));
    }
}

/// A line for people. Somebody who stopped reading must not stop the work.
pub(crate) fn tell(text: &str) {
    writeln!(io::stdout(), "{text}").ok();
}

/// Seconds since the beginning, always of the same width.
fn stamp(elapsed: Duration) -> String {
    format!("[{:6.1}s]", elapsed.as_secs_f64())
}

/// Runs to the end, and does not wait for threads that still look for a program.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = Runtime::new().context("cannot start a runtime")?;
    let result = runtime.block_on(work);
    runtime.shutdown_background();
    result
}

/// Ctrl-C, SIGTERM and the end of the terminal. Made before anything is started:
/// one that comes while nobody waits is kept.
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Interrupts {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_stand_below_each_other() {
        let early = stamp(Duration::from_millis(1234));
        let late = stamp(Duration::from_secs(1234));
        assert_eq!(early, "[   1.2s]");
        assert_eq!(early.len(), late.len());
    }
}
