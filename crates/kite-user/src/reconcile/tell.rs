//! Step 5, the half with I/O: the status and the events that go with its changes.
//!
//! What a status says is decided in `status`; nothing is decided here but
//! whether there is anything new to say.

use std::sync::Arc;

use kite_api::KiteUser;
use kite_api::condition::{self, READY, STALLED, Wanted, settle};
use kite_api::user::{KiteUserStatus, UserPhase};
use kite_runtime::apply::Place;
use kite_runtime::{Cache, Key, Next};
use kube::Api;
use kube::api::PartialObjectMeta;
use kube::core::error_boundary::InvalidObject;

use crate::reconcile::{Error, Reconciler, now};
use crate::status::{self, Part};

impl Reconciler {
    /// Writes a status if it says anything new.
    pub(crate) async fn tell(&self, user: &KiteUser, status: KiteUserStatus) -> Result<(), Error> {
        if user.status.as_ref() == Some(&status) {
            return Ok(());
        }
        // Nobody else writes here, so what a hand wrote is taken back.
        let place = self.place(user);
        self.writer.status(&place, &status, None, true).await?;
        self.tell_change(user, &status).await;
        Ok(())
    }

    /// An event when the summary has changed for good or needs a person.
    async fn tell_change(&self, user: &KiteUser, status: &KiteUserStatus) {
        let before = user.status.as_ref().map(|s| s.conditions.as_slice());
        let before = condition::find(before.unwrap_or_default(), READY);
        let Some(ready) = condition::find(&status.conditions, READY) else {
            return;
        };
        if before.is_some_and(|b| b.status == ready.status && b.reason == ready.reason) {
            return;
        }
        let note = ready.message.clone();
        if ready.status == "True" {
            self.events.normal(user, &ready.reason, "Apply", note).await;
        } else if condition::is_true(&status.conditions, STALLED) {
            self.events
                .warning(user, &ready.reason, "Apply", note)
                .await;
        }
    }

    pub(crate) async fn tell_readopted(&self, user: &KiteUser) {
        let note = format!(
            "the namespace {} was bound to an earlier KiteUser of this name and is now bound to this one",
            user.spec.namespace
        );
        self.events.normal(user, "Readopted", "Bind", note).await;
    }

    /// An event when something was mended that had been in order.
    pub(crate) async fn tell_restored(&self, user: &KiteUser, wrote: &[String]) {
        let Some(status) = &user.status else { return };
        let settled = status.observed_generation == user.metadata.generation
            && condition::is_true(&status.conditions, READY);
        if settled {
            let note = format!("was not as declared and is again: {}", wrote.join(", "));
            self.events.normal(user, "Restored", "Apply", note).await;
        }
    }

    /// Tells what a user that goes waits for, once it has waited for a moment.
    pub(crate) async fn tell_going(
        &self,
        user: &Arc<KiteUser>,
        part: &Part,
        next: Next,
    ) -> Result<Next, Error> {
        if let Some(left) = self.patience.left(&Key::of(user.as_ref())) {
            return Ok(Next::Within(left));
        }
        let status = status::of_going(user, part, &now());
        self.tell(user, status).await?;
        Ok(next)
    }

    /// Says of an object whose shape this version does not know that a person must mend it.
    ///
    /// Its status cannot be read either, so this is written once in a process's life and for
    /// each change; nothing else is done about it.
    pub(crate) async fn tell_malformed(
        &self,
        key: &Key,
        invalid: &InvalidObject,
    ) -> Result<Next, Error> {
        let words = format!(
            "this KiteUser cannot be read: {}; correct it",
            invalid.error
        );
        let wanted = [(READY, false), (STALLED, true)]
            .map(|(type_, status)| Wanted::new(type_, status, "InvalidObject", words.clone()));
        let generation = invalid.metadata.generation;
        let status = KiteUserStatus {
            observed_generation: generation,
            phase: Some(UserPhase::Failed),
            conditions: settle(&[], wanted.into(), generation, &now()),
            ..KiteUserStatus::default()
        };
        let unused = Cache::<PartialObjectMeta<KiteUser>>::new(|_| 0);
        let place = Place {
            api: Api::all(self.writer.client().clone()),
            cache: &unused,
            key: key.clone(),
        };
        self.writer.status(&place, &status, None, true).await?;
        Ok(Next::OnChange)
    }
}
