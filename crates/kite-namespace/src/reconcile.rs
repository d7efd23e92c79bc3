//! The pass over one managed Namespace, from top to bottom: is it needed, since
//! when not, is it due, and does the server itself agree.
//!
//! It has no status to write: what it thinks of a namespace stands in the
//! namespace's annotations, its events and the metrics.

mod due;
pub mod measure;

use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::jiff::Timestamp;
use kite_api::labels::{DELETION_HELD, DELETION_PROTECTED};
use kite_runtime::apply::{WriteError, Writer};
use kite_runtime::errors::{refusal, words};
use kite_runtime::events::Events;
use kite_runtime::patience::Patience;
use kite_runtime::{Availability, Class, Failure, Key, Next, Pass};
use tokio::sync::Mutex;

use self::measure::Measures;
use crate::apply;
use crate::observe::Caches;
use crate::plan::blocked::Blocked;
use crate::plan::brake::Brake;
use crate::plan::{HELD_BY_CONTENT, annotation, bound_uid, is_marked, orphaned_since, until_due};

/// How long until a doubt is looked into again, of which no watch tells.
const DOUBT_PAUSE: Duration = Duration::from_secs(60);

/// Everything that a pass works with.
pub struct Reconciler {
    /// What the watches show.
    pub caches: Caches,
    /// Kite's own namespace.
    pub own: String,
    /// How long an unneeded namespace is kept.
    pub grace: Duration,
    /// When deletions stop.
    pub brake: Brake,
    /// Over which time deletions are counted for it.
    pub window: Duration,
    /// When a deletion takes long.
    pub blocked_after: Duration,
    /// Held from the brake's look at what went lately until the deletion that it allowed, so that
    /// no two count without each other.
    pub deciding: Mutex<()>,
    /// Writes.
    pub writer: Writer,
    /// Events.
    pub events: Events,
    /// Metrics.
    pub measures: Measures,
    /// Waits a moment before it marks.
    pub patience: Patience,
}

/// Why a pass did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A write was refused or did not arrive.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A live look failed; nothing is deleted without it.
    #[error("cannot {doing}: {}", words(.source))]
    Live {
        /// What was being done.
        doing: &'static str,
        /// The answer.
        source: kube::Error,
    },
}

impl Error {
    pub(crate) const fn live(doing: &'static str, source: kube::Error) -> Self {
        Self::Live { doing, source }
    }
}

impl Failure for Error {
    fn class(&self) -> Class {
        match self {
            Self::Write(error) => error.class(),
            Self::Live { source, .. } => refusal(source).class(),
        }
    }
}

impl Pass for Reconciler {
    type Error = Error;

    async fn pass(&self, key: Key) -> Result<Next, Error> {
        let Some(namespace) = self.caches.namespaces.get(&key) else {
            self.patience.reset(&key);
            return Ok(Next::Gone);
        };
        let meta = &namespace.metadata;
        if let Some(since) = &meta.deletion_timestamp {
            return self.going(&namespace, since.0).await;
        }
        if bound_uid(meta).is_none() {
            // A label alone proves nothing (rule N-1).
            tracing::warn!(namespace = %key, "has Kite's label and is bound to no KiteUser; it is left alone");
            return Ok(Next::OnChange);
        }
        if self.caches.users.availability() != Availability::Ready {
            return Ok(self.suppress("kind_absent", DOUBT_PAUSE));
        }
        if self.caches.is_needed(meta) {
            return self.keep(&key, &namespace).await;
        }
        let now = now();
        let Some(since) = self.since(&namespace, now) else {
            if let Some(left) = self.patience.left(&key) {
                return Ok(Next::Within(left));
            }
            return self.mark_orphaned(&namespace, now).await;
        };
        match until_due(since, self.grace, now) {
            Some(left) => Ok(Next::Within(left)),
            None => self.due(&namespace, since, now).await,
        }
    }
}

impl Reconciler {
    /// Since when nobody needs it. With no grace period it need not be marked first.
    fn since(&self, namespace: &Namespace, now: Timestamp) -> Option<Timestamp> {
        let marked = orphaned_since(&namespace.metadata);
        marked.or_else(|| self.grace.is_zero().then_some(now))
    }

    /// Somebody needs it (again).
    async fn keep(&self, key: &Key, namespace: &Namespace) -> Result<Next, Error> {
        self.patience.reset(key);
        if is_marked(&namespace.metadata) {
            self.annotate(namespace, None, None).await?;
            let note = "a KiteUser needs this namespace again; it is kept".to_owned();
            self.events.normal(namespace, "Needed", "Keep", note).await;
        }
        Ok(Next::OnChange)
    }

    async fn mark_orphaned(&self, namespace: &Namespace, now: Timestamp) -> Result<Next, Error> {
        self.annotate(namespace, Some(now), None).await?;
        let at = k8s_openapi::jiff::SignedDuration::try_from(self.grace)
            .ok()
            .and_then(|grace| now.checked_add(grace).ok())
            .unwrap_or(Timestamp::MAX);
        let note = format!(
            "no KiteUser needs this namespace; it and everything in it is deleted at {at}, \
             unless a KiteUser names it before, or it is given the annotation {DELETION_PROTECTED}=true"
        );
        self.events
            .warning(namespace, "Orphaned", "Mark", note)
            .await;
        Ok(Next::Within(self.grace))
    }

    /// It is being deleted, by whomever. One that takes long is told about once.
    async fn going(&self, namespace: &Namespace, since: Timestamp) -> Result<Next, Error> {
        if let Some(left) = until_due(since, self.blocked_after, now()) {
            return Ok(Next::Within(left));
        }
        let meta = &namespace.metadata;
        if bound_uid(meta).is_none() || annotation(meta, DELETION_HELD) == Some(HELD_BY_CONTENT) {
            return Ok(Next::OnChange);
        }
        let blocked = Blocked::of(namespace);
        self.annotate(namespace, orphaned_since(meta), Some(HELD_BY_CONTENT))
            .await?;
        let note = format!(
            "the deletion of this namespace does not come to its end; in the way: {blocked}. Kite removes no finalizer of \
             others: see what keeps them with kubectl describe namespace, and who should remove them"
        );
        self.events
            .warning(namespace, HELD_BY_CONTENT, "Delete", note)
            .await;
        Ok(Next::OnChange)
    }

    async fn annotate(
        &self,
        namespace: &Namespace,
        since: Option<Timestamp>,
        held: Option<&str>,
    ) -> Result<(), Error> {
        apply::mark(
            &self.writer,
            &self.caches.namespaces,
            namespace,
            since,
            held,
        )
        .await?;
        Ok(())
    }

    /// Counts a deletion that was due and not carried out.
    fn suppress(&self, reason: &str, pause: Duration) -> Next {
        self.measures.suppressed.with_label_values(&[reason]).inc();
        tracing::warn!(
            reason,
            "a namespace that nobody seems to need is not deleted"
        );
        if pause.is_zero() {
            Next::OnChange
        } else {
            Next::Within(pause)
        }
    }
}

/// Whether the deletion of a user's namespace takes longer than this.
pub(crate) fn takes_long(namespace: &Namespace, limit: Duration) -> bool {
    let meta = &namespace.metadata;
    let since = meta.deletion_timestamp.as_ref().map(|t| t.0);
    let long = since.is_some_and(|since| until_due(since, limit, now()).is_none());
    long && bound_uid(meta).is_some()
}

/// The time, to the second, as the mark has it.
fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}
