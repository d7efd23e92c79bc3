//! The pass over a machine that is to go (rules V-18, V-20, V-21).

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use kite_api::condition::{self, DELETING, DEPENDENCY_MISSING};
use kite_api::labels::VM_FINALIZER;
use kite_api::machine::Phase;
use kite_runtime::{Class, Next};
use kube::ResourceExt;

use super::{Error, VmPass};
use crate::apply::Trouble;
use crate::apply::delete::{self, Progress, blocked};
use crate::observe::Observed;
use crate::reconcile::standstill::{Obstacle, Standing};
use crate::status::Outcome;

/// The reason of a deletion that cannot go on.
const DELETION_BLOCKED: &str = "DeletionBlocked";

impl VmPass {
    /// Takes away what may go now, and tells what is in the way.
    pub(super) async fn delete(&self, seen: Observed) -> Result<Next, Error> {
        let mine = seen.machine.finalizers().iter().any(|f| f == VM_FINALIZER);
        if !mine && seen.machine.metadata.deletion_timestamp.is_some() {
            // Nothing is written after our finalizer is gone.
            return Ok(Next::OnChange);
        }
        if seen.status().phase != Some(Phase::Deleting) {
            self.tell(&seen, &Outcome::Deleting(None)).await?;
        }
        if self.world.removal_held(Timestamp::now()) {
            let held = Trouble::stalled(
                "RemovalHeld",
                "the kind KiteVirtualMachine itself is being removed, which would take every machine away; nothing is removed until its CustomResourceDefinition carries the annotation kite.dev/acknowledge-deletion with the time of now, for instance kubectl annotate crd kitevirtualmachines.kite.dev kite.dev/acknowledge-deletion=$(date -u +%FT%TZ)",
            );
            self.tell(&self.again(&seen), &Outcome::Deleting(Some(&held)))
                .await?;
            return Ok(Next::OnChange);
        }
        let result = delete::children(self, &seen).await;
        match result {
            Ok(Progress::Done) => {
                self.standstill.forget(&seen.key);
                self.finish(&seen).await
            }
            Ok(Progress::Waiting) => self.waits(&self.again(&seen)).await,
            Err(trouble) => self.fails(&self.again(&seen), trouble).await,
        }
    }

    /// Something is still going.
    async fn waits(&self, seen: &Observed) -> Result<Next, Error> {
        let blockers = blocked::blockers(seen);
        let Some(first) = blockers.first() else {
            self.standstill.forget(&seen.key);
            self.tell(seen, &Outcome::Deleting(None)).await?;
            return Ok(Next::OnChange);
        };
        let obstacle = Obstacle {
            kind: first.kind,
            words: blocked::message(&blockers),
        };
        let told = told(seen).is_some_and(|message| obstacle.words.starts_with(&message));
        match self.standstill.note(&seen.key, &obstacle, told) {
            Standing::For(left) => {
                self.tell(seen, &Outcome::Deleting(None)).await?;
                Ok(Next::Within(left))
            }
            Standing::Long => {
                self.blocked(seen, obstacle.words, told).await?;
                Ok(Next::OnChange)
            }
        }
    }

    /// The server does not carry out what the deletion asks for.
    async fn fails(&self, seen: &Observed, trouble: Trouble) -> Result<Next, Error> {
        if trouble.reason == DEPENDENCY_MISSING {
            self.tell(seen, &Outcome::Deleting(Some(&trouble))).await?;
            return Err(Error::Trouble(trouble));
        }
        // The words of an error may differ each time; those that were told first stay.
        let told = told(seen).is_some();
        let obstacle = Obstacle {
            kind: "Request",
            words: String::new(),
        };
        match self.standstill.note(&seen.key, &obstacle, told) {
            Standing::Long if told => {}
            Standing::Long => self.blocked(seen, trouble.message.clone(), false).await?,
            // It passes by itself, most of the time.
            Standing::For(_) if matches!(trouble.class, Class::Transient | Class::Conflict) => {}
            Standing::For(_) => self.tell(seen, &Outcome::Deleting(Some(&trouble))).await?,
        }
        Err(Error::Trouble(trouble))
    }

    /// Says so, and once as an event.
    async fn blocked(&self, seen: &Observed, words: String, told: bool) -> Result<(), Error> {
        let trouble = Trouble::waiting(DELETION_BLOCKED, words);
        self.tell(seen, &Outcome::Deleting(Some(&trouble))).await?;
        if !told {
            self.events
                .warning(
                    seen.machine.as_ref(),
                    DELETION_BLOCKED,
                    "Delete",
                    trouble.message,
                )
                .await;
        }
        Ok(())
    }

    /// Everything is gone: the object itself, then our finalizer.
    async fn finish(&self, seen: &Observed) -> Result<Next, Error> {
        let mut machine = Arc::clone(&seen.machine);
        if machine.metadata.deletion_timestamp.is_none() {
            if !seen.machine.spec.delete {
                // The namespace goes; its controller deletes the object.
                return Ok(Next::OnChange);
            }
            let fresh = self.world.machines.get(&seen.key).unwrap_or(machine);
            delete::object(self, &fresh, &seen.key).await?;
            match self.world.machines.get(&seen.key) {
                Some(going) => machine = going,
                None => return Ok(Next::Gone),
            }
        }
        self.writer
            .remove_finalizer(&self.place(&seen.key), machine.as_ref(), VM_FINALIZER)
            .await?;
        self.world.logins.forget(seen.owner.uid.as_str());
        Ok(Next::OnChange)
    }
}

/// What the status says about a deletion that cannot go on, if it says so.
fn told(seen: &Observed) -> Option<String> {
    let status = seen.status();
    let deleting = condition::find(&status.conditions, DELETING)?;
    (deleting.reason == DELETION_BLOCKED).then(|| deleting.message.clone())
}
