//! Writing kite-vm's part of the status where it differs, and telling what of it is news.

use std::sync::Arc;

use kite_api::KiteVirtualMachine;
use kite_api::labels::Controller;
use kite_api::machine::Phase;
use kite_api::ownership::{conditions_of, part_of};
use kite_runtime::Refusal;

use super::{Error, VmPass};
use crate::observe::Observed;
use crate::status::news::{News, news};
use crate::status::{self, Outcome};

impl VmPass {
    /// Writes kite-vm's part of the status where it differs.
    pub(super) async fn tell(&self, seen: &Observed, outcome: &Outcome<'_>) -> Result<(), Error> {
        let part = status::part(seen, outcome, &kite_runtime::clock::now());
        let status = seen.status();
        let mut there = part_of(Controller::Vm, status);
        there.phase = if part.phase.is_some() {
            status.phase
        } else {
            None
        };
        if there == part {
            return Ok(());
        }
        let force = part.phase == Some(Phase::Deleting) && status.phase != Some(Phase::Deleting);
        let decided_on = part.phase.map(|_| self.newest_alike(seen));
        let version = decided_on
            .as_ref()
            .and_then(|m| m.metadata.resource_version.as_deref());
        match self
            .writer
            .status(&self.place(&seen.key), &part, version, force)
            .await
        {
            // Deleted between our look and the write.
            Err(error) if error.refusal() == Some(Refusal::NotFound) => Ok(()),
            Err(error) => Err(error.into()),
            Ok(_) => {
                let mut after = status.clone();
                let own = conditions_of(Controller::Vm);
                after
                    .conditions
                    .retain(|c| !own.contains(&c.type_.as_str()));
                after.conditions.extend(part.conditions);
                self.announce(seen, news(status, &after)).await;
                Ok(())
            }
        }
    }

    async fn announce(&self, seen: &Observed, news: Option<News>) {
        let Some(News {
            warning,
            reason,
            note,
        }) = news
        else {
            return;
        };
        let (machine, events) = (seen.machine.as_ref(), &self.events);
        if warning {
            events.warning(machine, &reason, "Apply", note).await;
        } else {
            events.normal(machine, &reason, "Apply", note).await;
        }
    }

    /// The newest view of the machine that would lead to the same phase: others write their
    /// parts while a pass runs, and a version that is old for their sake is no reason to be refused.
    fn newest_alike(&self, seen: &Observed) -> Arc<KiteVirtualMachine> {
        let alike = |m: &Arc<KiteVirtualMachine>| {
            let uid = |m: &KiteVirtualMachine| {
                m.status
                    .as_ref()
                    .and_then(|s| s.virtual_machine_uid.clone())
            };
            m.metadata.uid == seen.machine.metadata.uid
                && m.metadata.generation == seen.machine.metadata.generation
                && uid(m) == uid(&seen.machine)
        };
        let newest = self.world.machines.get(&seen.key).filter(alike);
        newest.unwrap_or_else(|| Arc::clone(&seen.machine))
    }
}
