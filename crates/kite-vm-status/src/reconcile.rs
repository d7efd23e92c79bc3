//! The pass: look, say what should stand, write it when its time has come.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kite_api::condition::{self, READY};
use kite_api::{KiteVirtualMachine, KiteVirtualMachineStatus};
use kite_runtime::apply::{Place, WriteError, Writer};
use kite_runtime::clock;
use kite_runtime::events::Events;
use kite_runtime::{Class, Failure, Key, Next, Pass};
use kube::Api;
use tokio::time::Instant;

use crate::observe::World;
use crate::observe::guests::Guests;
use crate::status::clocks::{Clocks, Decision, Holds};
use crate::status::news::news;
use crate::status::stop::judged;
use crate::status::vigil::End;
use crate::status::{farewell, is_leaving, standing, takes_over, tell};

/// Why a pass ended early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The status was not taken.
    #[error(transparent)]
    Status(#[from] WriteError),
}

impl Failure for Error {
    fn class(&self) -> Class {
        let Self::Status(error) = self;
        error.class()
    }
}

/// What every pass works with.
pub struct StatusPass {
    world: World,
    writer: Writer,
    events: Events,
    holds: Holds,
    guests: Guests,
    /// Locked by a pass for single operations on its own machine's entry.
    clocks: Mutex<HashMap<Key, Clocks>>,
}

impl Pass for StatusPass {
    type Error = Error;

    async fn pass(&self, key: Key) -> Result<Next, Error> {
        let Some(machine) = self.world.machines.get(&key) else {
            self.clocks().remove(&key);
            self.guests.forget(&key);
            return Ok(Next::Gone);
        };
        if let Some(end) = self.ended(&key, &machine) {
            let note = end.note(machine.spec.on_guest_shutdown).to_owned();
            self.events
                .warning(machine.as_ref(), end.reason(), "Watch", note)
                .await;
        }
        match self.decide(&key, &machine) {
            Decision::Wait(None) => Ok(Next::OnChange),
            Decision::Wait(Some(left)) => Ok(Next::Within(left)),
            Decision::Write(status) => {
                self.write(&key, &machine, &status).await?;
                self.announce(&machine, &status).await;
                // What was held back together with this has its own time to wait for.
                match self.world.machines.get(&key).map(|m| self.decide(&key, &m)) {
                    Some(Decision::Wait(Some(left))) => Ok(Next::Within(left)),
                    Some(Decision::Wait(None)) | None => Ok(Next::OnChange),
                    Some(Decision::Write(_)) => Ok(Next::Within(self.holds.settle)),
                }
            }
        }
    }
}

impl StatusPass {
    /// A pass over this world.
    pub fn new(world: World, guests: Guests, writer: Writer, events: Events, holds: Holds) -> Self {
        Self {
            guests,
            world,
            writer,
            events,
            holds,
            clocks: Mutex::default(),
        }
    }

    fn decide(&self, key: &Key, machine: &KiteVirtualMachine) -> Decision {
        let now = Instant::now();
        let stands = standing(machine);
        let mut all = self.clocks();
        let clocks = all.entry(key.clone()).or_default();
        clocks.meet(machine);
        if is_leaving(machine) {
            return clocks.decide(farewell(machine), &stands, None, &self.holds, now);
        }
        let time = clock::now();
        let mut reading = self.world.reading(key, machine);
        let vm = reading
            .vm_uid
            .as_ref()
            .or(stands.virtual_machine_uid.as_ref());
        let present = self.world.present(key, machine);
        reading.ended = self.guests.with(key, |vigil| {
            vigil.last_end(vm.map(String::as_str), present.as_deref())
        });
        let reading = judged(reading, &stands, &time);
        let (elapsed, next) = clocks.note(machine, &reading, &self.holds, now);
        let told = tell(machine, &reading, elapsed, &time);
        clocks.decide(told, &stands, next, &self.holds, now)
    }

    /// How the guest has ended, if it was to go on and its end is news.
    fn ended(&self, key: &Key, machine: &KiteVirtualMachine) -> Option<End> {
        // What cannot be seen has not ended (rule C-14).
        if is_leaving(machine) || !self.world.is_seen(key, machine) {
            return None;
        }
        let stands = standing(machine);
        let ready = condition::is_true(&stands.conditions, READY);
        let told = stands.last_stop.and_then(|s| s.instance_uid);
        let present = self.world.present(key, machine);
        self.guests.with(key, |vigil| {
            vigil.news(
                machine.spec.power_state,
                ready,
                present.as_deref(),
                told.as_deref(),
            )
        })
    }

    /// The write is bound to what it was decided on, since it speaks of a generation and carries
    /// `phase`.
    async fn write(
        &self,
        key: &Key,
        machine: &KiteVirtualMachine,
        status: &KiteVirtualMachineStatus,
    ) -> Result<(), Error> {
        let place = Place {
            api: Api::namespaced(self.writer.client().clone(), &key.namespace),
            cache: &self.world.machines,
            key: key.clone(),
        };
        let force = takes_over(&standing(machine), status);
        let version = machine.metadata.resource_version.as_deref();
        self.writer.status(&place, status, version, force).await?;
        Ok(())
    }

    async fn announce(&self, machine: &KiteVirtualMachine, status: &KiteVirtualMachineStatus) {
        for news in news(&standing(machine), status) {
            let (reason, note) = (news.reason.as_str(), news.note);
            if news.warning {
                self.events.warning(machine, reason, "Watch", note).await;
            } else {
                self.events.normal(machine, reason, "Watch", note).await;
            }
        }
    }

    fn clocks(&self) -> MutexGuard<'_, HashMap<Key, Clocks>> {
        self.clocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
