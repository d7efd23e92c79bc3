//! Runs passes: one at a time for each object, a bounded number at once, each
//! with a deadline, retried by the class of its error.
//!
//! The queue, the de-duplication and the timers are those of kube's Controller
//! (its `applier`); what is added is the back-off for each object, the deadline
//! and the metrics. No pass is told why it runs: it looks at what is.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _, stream};
use kube::core::{DynamicResourceScope, ObjectMeta, Resource};
use kube::runtime::controller::{Action, Config, applier};
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, store};
use kube::runtime::watcher::Event;
use tokio::sync::watch;

use crate::cache::Key;
use crate::errors::{Backoff, Class, Failure, jittered};
use crate::feed::Feeds;
use crate::process::Process;

/// The safety pass compares in memory what a lost watch event may have hidden (rule C-13).
const SAFETY: Duration = Duration::from_secs(12 * 3600);

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

/// What kube's queue looks up for a key. It wants to own the objects; the passes
/// read from their caches instead, so a name is all there is.
#[derive(Clone, Debug, Default)]
struct Token {
    metadata: ObjectMeta,
}

impl Resource for Token {
    type DynamicType = ();
    type Scope = DynamicResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "object".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "objects".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Runs passes until the process is told to stop, then lets running ones finish.
pub async fn drive<P: Pass>(process: &Process, mut feeds: Feeds, pass: P) -> anyhow::Result<()> {
    let queue = feeds
        .take_queue()
        .ok_or_else(|| anyhow::anyhow!("the queue was taken before"))?;
    let mut stop = process.stop.clone();
    tokio::select! {
        () = feeds.settled() => {}
        _ = stop.wait_for(|s| *s) => return Ok(()),
    }
    // One token a key: the queue's look-ups must succeed, those of deleted objects included.
    let (tokens, mut writer) = store::<Token>();
    writer.apply_watcher_event(&Event::Init);
    writer.apply_watcher_event(&Event::InitDone);
    let writer = Arc::new(Mutex::new(writer));
    let context = Arc::new(Context {
        pass,
        backoff: Backoff::default(),
        process: process.clone(),
        tokens: Arc::clone(&writer),
    });
    let queue = stream::unfold(queue, |mut queue| async move {
        queue.recv().await.map(|key| (key, queue))
    })
    .take_until(stopped(stop))
    .map(move |key| {
        lock(&writer).apply_watcher_event(&Event::Apply(token(&key)));
        Ok::<_, std::convert::Infallible>(ObjectRef::<Token>::new(&key.name).within(&key.namespace))
    });
    let concurrency = process.settings.concurrency;
    process.metrics.allow_workers(concurrency);
    let config = Config::default().concurrency(concurrency);
    applier(
        |token, context: Arc<Context<P>>| run(token, context).boxed(),
        |token, error, context| context.retry(&Key::of(token.as_ref()), error),
        context,
        tokens,
        queue,
        config,
    )
    .for_each(|_| std::future::ready(()))
    .await;
    Ok(())
}

fn token(key: &Key) -> Token {
    let mut token = Token::default();
    token.metadata.name = Some(key.name.clone());
    token.metadata.namespace = Some(key.namespace.clone()).filter(|n| !n.is_empty());
    token
}

async fn stopped(mut stop: watch::Receiver<bool>) {
    // An error means that the sender is gone, and with it the process's main task.
    let _ = stop.wait_for(|s| *s).await;
}

struct Context<P> {
    pass: P,
    backoff: Backoff,
    process: Process,
    /// Locked for one map operation, when a key is queued and when its object is gone.
    tokens: Arc<Mutex<Writer<Token>>>,
}

fn lock(writer: &Mutex<Writer<Token>>) -> MutexGuard<'_, Writer<Token>> {
    writer.lock().unwrap_or_else(PoisonError::into_inner)
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

async fn run<P: Pass>(
    token: Arc<Token>,
    context: Arc<Context<P>>,
) -> Result<Action, PassError<P::Error>> {
    let key = Key::of(token.as_ref());
    let guard = context.process.metrics.pass();
    let limit = context.process.settings.pass_timeout;
    let result = tokio::time::timeout(limit, context.pass.pass(key.clone())).await;
    let outcome = match result {
        Ok(Ok(next)) => {
            context.backoff.reset(&key);
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
    tracing::debug!(object = %key, result = label, ?took, "pass");
    outcome.map(|next| match next {
        Next::OnChange => Action::requeue(safety_pass(&key)),
        Next::Within(delay) => Action::requeue(delay),
        Next::Gone => {
            lock(&context.tokens).apply_watcher_event(&Event::Delete(token.as_ref().clone()));
            Action::await_change()
        }
    })
}

/// When a settled object is looked at again without a reason: not all of them at once.
fn safety_pass(key: &Key) -> Duration {
    jittered(SAFETY, key, 0)
}

impl<P: Pass> Context<P> {
    fn retry(&self, key: &Key, error: &PassError<P::Error>) -> Action {
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
        Action::requeue(delay)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    // C-13: a thousand settled machines are looked at over hours, each within twelve.
    #[test]
    fn safety_passes_come_within_twelve_hours_and_not_together() {
        let key = |n: usize| Key {
            namespace: "alice".to_owned(),
            name: format!("web-{n}"),
        };
        let passes: Vec<_> = (0..1000).map(|n| safety_pass(&key(n))).collect();
        let hours = |n: u64| Duration::from_secs(n * 3600);
        assert!(
            passes
                .iter()
                .all(|pass| (hours(9)..=hours(12)).contains(pass))
        );
        let minutes: BTreeSet<_> = passes.iter().map(|pass| pass.as_secs() / 60).collect();
        assert!(
            minutes.len() > 100,
            "in {} different minutes only",
            minutes.len()
        );
    }
}
