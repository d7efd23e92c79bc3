//! Runs passes: one at a time for each object, a bounded number at once, each
//! with a deadline, retried by the class of its error.
//!
//! Which object is next is the [`queue`]'s, when settled ones are looked at the
//! [`rounds`]'. No pass is told why it runs: it looks at what is.

mod queue;
mod rounds;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tracing::Instrument as _;

use crate::cache::Key;
use crate::errors::{Backoff, Class, Failure};
use crate::feed::Feeds;
use crate::process::Process;
use queue::Queue;
use rounds::Rounds;

/// When an object that a pass could deal with is looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// When something changes, and at the safety pass.
    OnChange,
    /// When an object of that name appears; there is none now.
    Gone,
    /// After this time at the latest.
    Within(Duration),
}

impl Next {
    /// Within the time that something has to be waited for, if it has.
    pub const fn after(wait: Option<Duration>) -> Self {
        match wait {
            None => Self::OnChange,
            Some(left) => Self::Within(left),
        }
    }
}

/// What a controller does for one object.
pub trait Pass: Send + Sync + 'static {
    /// The reconcile error.
    type Error: Failure;

    /// Looks at what is, decides, writes what differs. Called for keys whose object is gone, too.
    fn pass(&self, key: Key) -> impl Future<Output = Result<Next, Self::Error>> + Send;
}

/// Runs passes until the process is told to stop, then lets running ones finish.
pub async fn drive<P: Pass>(process: &Process, mut feeds: Feeds, pass: P) -> anyhow::Result<()> {
    let mut wakes = feeds
        .take_queue()
        .ok_or_else(|| anyhow::anyhow!("the queue was taken before"))?;
    let mut stop = process.stop.clone();
    let Some(mut queue) = settle(&mut feeds, &mut wakes, &mut stop).await else {
        return Ok(());
    };
    let concurrency = process.settings.concurrency;
    process.metrics.allow_workers(concurrency);
    let context = Arc::new(Context {
        pass,
        backoff: Backoff::default(),
        process: process.clone(),
    });
    let mut running = FuturesUnordered::new();
    let mut rounds = Rounds::new(Instant::now());
    while !*stop.borrow() || !running.is_empty() {
        // All that is known comes before the next pass, or it would be looked at once for each.
        while let Ok(key) = wakes.try_recv() {
            queue.wake(key);
        }
        while !*stop.borrow() && running.len() < usize::from(concurrency) {
            let Some(key) = queue.take() else { break };
            running.push(run(key, Arc::clone(&context)));
        }
        let round = rounds.next();
        let timer = queue.next_timer().map_or(round, |timer| timer.min(round));
        tokio::select! {
            Some((key, next)) = running.next() => {
                let again = again_in(next, &key, &feeds);
                queue.done(key, again, Instant::now());
            }
            Some(key) = wakes.recv() => queue.wake(key),
            () = sleep_until(timer) => {
                let now = Instant::now();
                queue.expire(now);
                if let Some(part) = rounds.part(now) {
                    for key in feeds.primaries(|key| part.contains(&rounds::moment(key))) {
                        queue.wake(key);
                    }
                }
            }
            () = stopped(&mut stop), if !*process.stop.borrow() => {}
        }
    }
    Ok(())
}

/// What is to be looked at once every kind is known; nothing when the process is to stop before.
async fn settle(
    feeds: &mut Feeds,
    wakes: &mut UnboundedReceiver<Key>,
    stop: &mut watch::Receiver<bool>,
) -> Option<Queue> {
    let mut queue = Queue::default();
    loop {
        tokio::select! {
            () = feeds.settled() => return Some(queue),
            // Taken in at once: a first list wakes each object as often as it has children.
            Some(key) = wakes.recv() => queue.wake(key),
            () = stopped(stop) => return None,
        }
    }
}

/// When an object is looked at again, unless something wakes it before.
fn again_in(next: Next, key: &Key, feeds: &Feeds) -> Option<Duration> {
    match next {
        Next::Within(delay) => Some(delay),
        // What no round comes by has a time of its own.
        Next::OnChange if !feeds.is_primary(key) => Some(rounds::moment(key)),
        Next::OnChange | Next::Gone => None,
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone, and with it the process's main task.
    let _ = stop.wait_for(|s| *s).await;
}

struct Context<P> {
    pass: P,
    backoff: Backoff,
    process: Process,
}

/// An error of a pass, or its deadline.
#[derive(Debug, thiserror::Error)]
enum PassError<E: Failure> {
    #[error(transparent)]
    Failed(E),
    #[error("the pass did not end within {0:?}; it will be started again")]
    Timeout(Duration),
}

impl<E: Failure> PassError<E> {
    fn class(&self) -> Class {
        match self {
            Self::Failed(error) => error.class(),
            Self::Timeout(_) => Class::Transient,
        }
    }
}

/// One pass, and when the next one is due.
async fn run<P: Pass>(key: Key, context: Arc<Context<P>>) -> (Key, Next) {
    let span = tracing::info_span!("pass", object = %key);
    let next = context.run(&key).instrument(span).await;
    (key, next)
}

impl<P: Pass> Context<P> {
    async fn run(&self, key: &Key) -> Next {
        let guard = self.process.metrics.pass();
        let limit = self.process.settings.pass_timeout;
        let result = tokio::time::timeout(limit, self.pass.pass(key.clone())).await;
        let outcome = match result {
            Ok(Ok(next)) => {
                self.backoff.reset(key);
                Ok(next)
            }
            Ok(Err(error)) => Err(PassError::Failed(error)),
            Err(_) => Err(PassError::Timeout(limit)),
        };
        let label = match &outcome {
            Ok(Next::OnChange | Next::Gone) => "success",
            Ok(Next::Within(_)) => "requeue_after",
            Err(_) => "error",
        };
        let took = guard.ended(label);
        tracing::debug!(result = label, ?took, "pass");
        outcome.unwrap_or_else(|error| Next::Within(self.retry(key, &error)))
    }

    fn retry(&self, key: &Key, error: &PassError<P::Error>) -> Duration {
        let class = error.class();
        self.process.metrics.failed(class);
        let delay = self.backoff.next(key, class);
        let attempts = self.backoff.attempts(key);
        // Conflicts and waits are part of an ordinary life; they are news when they last.
        if matches!(class, Class::Conflict | Class::NotReady) && attempts < 5 {
            tracing::debug!(object = %key, class = class.label(), %error, ?delay, "will be tried again");
        } else {
            tracing::warn!(object = %key, class = class.label(), %error, ?delay, attempts, "will be tried again");
        }
        delay
    }
}
