//! The pass over one managed Namespace, from top to bottom: is it needed, since
//! when not, is it due, and does the server itself agree.
//!
//! It has no status to write: what it thinks of a namespace stands in the
//! namespace's annotations, its events and the metrics.

pub mod measure;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kite_api::acknowledge::acknowledged;
use kite_api::labels::{ACKNOWLEDGE_DELETION, DELETION_HELD, DELETION_PROTECTED};
use kite_runtime::apply::{WriteError, Writer};
use kite_runtime::errors::{refusal, words};
use kite_runtime::events::Events;
use kite_runtime::patience::Patience;
use kite_runtime::{Availability, Class, Failure, Key, Next, Pass};
use kube::ResourceExt;

use self::measure::Measures;
use crate::apply;
use crate::observe::recent::Recent;
use crate::observe::{Caches, NamespaceMeta, kinds_now, users_now};
use crate::plan::brake::Brake;
use crate::plan::{
    Doubt, HELD_BY_BRAKE, HELD_BY_PROTECTION, Needs, annotation, bound_uid, count, doubt,
    is_marked, is_needed_by, is_protected, orphaned_since, until_due,
};

/// How long until a doubt is looked into again, of which no watch tells.
const DOUBT_PAUSE: Duration = Duration::from_secs(60);
/// How long until the cache should show what the server just said.
const LAG_PAUSE: Duration = Duration::from_secs(2);

/// Everything that a pass works with.
pub struct Reconciler {
    /// What the watches show.
    pub caches: Caches,
    /// How long an unneeded namespace is kept.
    pub grace: Duration,
    /// When deletions stop.
    pub brake: Brake,
    /// What was deleted lately.
    pub recent: Recent,
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
        self.measure();
        let Some(namespace) = self.caches.namespaces.get(&key) else {
            self.patience.reset(&key);
            return Ok(Next::Gone);
        };
        let meta = &namespace.metadata;
        if meta.deletion_timestamp.is_some() {
            return Ok(Next::OnChange);
        }
        if bound_uid(meta).is_none() {
            // A label alone proves nothing (rule N-1).
            tracing::warn!(namespace = %key, "has Kite's label and is bound to no KiteUser; it is left alone");
            return Ok(Next::OnChange);
        }
        if self.caches.users.availability() != Availability::Ready {
            return Ok(self.suppress("kind_absent", DOUBT_PAUSE));
        }
        if !self
            .caches
            .users
            .select(|user| is_needed_by(meta, user))
            .is_empty()
        {
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
    fn since(&self, namespace: &NamespaceMeta, now: Timestamp) -> Option<Timestamp> {
        let marked = orphaned_since(&namespace.metadata);
        marked.or_else(|| self.grace.is_zero().then_some(now))
    }

    /// Somebody needs it (again).
    async fn keep(&self, key: &Key, namespace: &NamespaceMeta) -> Result<Next, Error> {
        self.patience.reset(key);
        if is_marked(&namespace.metadata) {
            self.annotate(namespace, None, None).await?;
            let note = "a KiteUser needs this namespace again; it is kept".to_owned();
            self.events.normal(namespace, "Needed", "Keep", note).await;
        }
        Ok(Next::OnChange)
    }

    async fn mark_orphaned(
        &self,
        namespace: &NamespaceMeta,
        now: Timestamp,
    ) -> Result<Next, Error> {
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

    /// The grace period is over: nothing is in the way but what the server itself says.
    async fn due(
        &self,
        namespace: &Arc<NamespaceMeta>,
        since: Timestamp,
        now: Timestamp,
    ) -> Result<Next, Error> {
        let meta = &namespace.metadata;
        if is_protected(meta) {
            let note = format!(
                "nobody needs this namespace; it is kept because of its annotation {DELETION_PROTECTED}"
            );
            return self.hold(namespace, since, HELD_BY_PROTECTION, note).await;
        }
        let kinds = kinds_now(self.writer.client()).await?;
        if let Some(doubt) = doubt(&kinds, self.grace, now) {
            let pause = match doubt {
                Doubt::KindYoung(left) => left,
                Doubt::KindAbsent | Doubt::KindTerminating | Doubt::RemovalHeld => DOUBT_PAUSE,
            };
            return Ok(self.suppress(doubt.label(), pause));
        }
        let users = users_now(self.writer.client()).await?;
        let needs = Needs::of(&users);
        if needs.include(meta) {
            // The watch of KiteUsers will say so too, and then any mark is removed.
            return Ok(self.suppress("needed", LAG_PAUSE));
        }
        if !acknowledged(meta, since, now) {
            if annotation(meta, DELETION_HELD) == Some(HELD_BY_BRAKE) {
                return Ok(self.suppress("brake", Duration::ZERO));
            }
            let known = self.caches.namespaces.all();
            let count = count(known.iter().map(Arc::as_ref), &needs, self.recent.names());
            if let Some(why) = self.brake.trips(&count) {
                let note = format!(
                    "nobody needs this namespace, but {why}, which looks like a mistake; it is deleted once an administrator \
                     says that it is meant: kubectl annotate namespace {} {ACKNOWLEDGE_DELETION}=$(date -u +%FT%TZ)",
                    namespace.name_any()
                );
                self.measures.suppressed.with_label_values(&["brake"]).inc();
                return self.hold(namespace, since, HELD_BY_BRAKE, note).await;
            }
        }
        self.delete(namespace).await
    }

    async fn delete(&self, namespace: &NamespaceMeta) -> Result<Next, Error> {
        apply::delete(&self.writer, &self.caches.namespaces, namespace).await?;
        self.recent.add(&namespace.name_any());
        self.measures.deleted.inc();
        let note = "no KiteUser needed this namespace for the whole grace period".to_owned();
        self.events
            .normal(namespace, "Deleted", "Delete", note)
            .await;
        Ok(Next::OnChange)
    }

    /// Keeps it and says why, once; a change of its annotations wakes the next pass.
    async fn hold(
        &self,
        namespace: &NamespaceMeta,
        since: Timestamp,
        why: &str,
        note: String,
    ) -> Result<Next, Error> {
        if annotation(&namespace.metadata, DELETION_HELD) != Some(why) {
            self.annotate(namespace, Some(since), Some(why)).await?;
            self.events.warning(namespace, why, "Hold", note).await;
        }
        Ok(Next::OnChange)
    }

    async fn annotate(
        &self,
        namespace: &NamespaceMeta,
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
        self.measure();
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

    fn measure(&self) {
        let number = |pick: fn(&NamespaceMeta) -> bool| {
            let picked = self.caches.namespaces.select(pick).len();
            i64::try_from(picked).unwrap_or(i64::MAX)
        };
        let held = number(|ns| annotation(&ns.metadata, DELETION_HELD) == Some(HELD_BY_BRAKE));
        self.measures.held.set(held);
        let unbound = number(|ns| bound_uid(&ns.metadata).is_none());
        self.measures.unbound.set(unbound);
    }
}

/// The time, to the second, as the mark has it.
fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}
