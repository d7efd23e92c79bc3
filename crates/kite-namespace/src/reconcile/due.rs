//! The grace period is over: what is still in the way, in the order of what it
//! costs to know, and the deletion.
//!
//! Everything that rests on something being absent is asked of the server itself
//! (rules C-6, N-2, N-5). Deletions are decided one at a time, so that the brake
//! always knows of the one before.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::jiff::Timestamp;
use kite_api::acknowledge::acknowledged;
use kite_api::labels::{ACKNOWLEDGE_DELETION, DELETION_HELD, DELETION_PROTECTED, RETAINED};
use kite_runtime::Next;
use kube::ResourceExt;

use super::{DOUBT_PAUSE, Error, Reconciler};
use crate::apply;
use crate::observe::record::Record;
use crate::observe::{kinds_now, own_now, retained_now, users_now};
use crate::plan::{
    Doubt, HELD_BY_BRAKE, HELD_BY_PROTECTION, Needs, annotation, count, doubt, is_protected,
};

/// How long until the cache should show what the server just said.
const LAG_PAUSE: Duration = Duration::from_secs(2);

impl Reconciler {
    /// Nothing is in the way any more but what the server itself says.
    pub(super) async fn due(
        &self,
        namespace: &Arc<Namespace>,
        since: Timestamp,
        now: Timestamp,
    ) -> Result<Next, Error> {
        let meta = &namespace.metadata;
        if let Some(why) = self.why_kept(namespace) {
            return self.hold(namespace, since, HELD_BY_PROTECTION, why).await;
        }
        let client = self.writer.client();
        let kinds = kinds_now(client).await?;
        if let Some(doubt) = doubt(&kinds, self.grace, now) {
            let pause = match doubt {
                Doubt::KindYoung(left) => left,
                Doubt::KindAbsent | Doubt::KindTerminating | Doubt::RemovalHeld => DOUBT_PAUSE,
            };
            return Ok(self.suppress(doubt.label(), pause));
        }
        let users = users_now(client).await?;
        let needs = Needs::of(&users);
        if needs.include(meta) {
            // The watch of KiteUsers will say so too, and then any mark is removed.
            return Ok(self.suppress("needed", LAG_PAUSE));
        }
        let claims = retained_now(client, &namespace.name_any()).await?;
        if !claims.is_empty() {
            let why = why_retained(&claims);
            return self.hold(namespace, since, HELD_BY_PROTECTION, why).await;
        }
        let meant = acknowledged(meta, since, now);
        if !meant && annotation(meta, DELETION_HELD) == Some(HELD_BY_BRAKE) {
            return Ok(self.suppress("brake", Duration::ZERO));
        }
        let _one_at_a_time = self.deciding.lock().await;
        let own = own_now(client, &self.own).await?;
        let record = Record::read(&own.metadata);
        if !meant && let Some(why) = self.why_braked(&needs, &record, now) {
            let note = brake_note(namespace, &why);
            self.measures.suppressed.with_label_values(&["brake"]).inc();
            return self.hold(namespace, since, HELD_BY_BRAKE, note).await;
        }
        let recorded = record.with(&namespace.name_any(), self.window, now);
        apply::record(&self.writer, &own, recorded).await?;
        self.delete(namespace, meant).await
    }

    /// Why an administrator or a disk keeps it, as far as the caches show.
    fn why_kept(&self, namespace: &Namespace) -> Option<String> {
        if is_protected(&namespace.metadata) {
            return Some(format!(
                "nobody needs this namespace; it is kept because of its annotation {DELETION_PROTECTED}"
            ));
        }
        let claims = self.caches.retained_in(&namespace.name_any());
        (!claims.is_empty()).then(|| why_retained(&claims))
    }

    /// Why the brake holds it, if it does.
    fn why_braked(&self, needs: &Needs, record: &Record, now: Timestamp) -> Option<String> {
        let known = self.caches.namespaces.all();
        let recent = record.within(self.window, now);
        let kept = |namespace: &Namespace| self.why_kept(namespace).is_some();
        let count = count(known.iter().map(Arc::as_ref), needs, recent, kept);
        self.brake.trips(&count)
    }

    async fn delete(&self, namespace: &Namespace, meant: bool) -> Result<Next, Error> {
        apply::delete(&self.writer, &self.caches.namespaces, namespace).await?;
        self.measures.deleted.inc();
        let note = if meant {
            "no KiteUser needed this namespace, and an administrator acknowledged its deletion"
        } else {
            "no KiteUser needed this namespace for the whole grace period"
        };
        self.events
            .normal(namespace, "Deleted", "Delete", note.to_owned())
            .await;
        Ok(Next::Within(self.blocked_after))
    }

    /// Keeps it and says why, once; a change of its annotations or claims wakes the next pass.
    async fn hold(
        &self,
        namespace: &Namespace,
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
}

fn why_retained(claims: &[String]) -> String {
    let names = claims.join(", ");
    format!(
        "nobody needs this namespace; it is kept because of the retained disks in it: PersistentVolumeClaim {names}. \
         Name the namespace in a KiteUser to use them, or remove them or their label {RETAINED} to let it go"
    )
}

fn brake_note(namespace: &Namespace, why: &str) -> String {
    format!(
        "nobody needs this namespace, but {why}, which looks like a mistake; it is deleted once an administrator \
         says that it is meant: kubectl annotate namespace {} --overwrite {ACKNOWLEDGE_DELETION}=$(date -u +%FT%TZ)",
        namespace.name_any()
    )
}
