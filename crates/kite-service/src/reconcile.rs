//! The pass: look, say what should stand, write it when its time has come.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kite_api::condition::{self, SERVICE_READY};
use kite_api::{KiteVirtualMachine, KiteVirtualMachineStatus};
use kite_render::machine::service;
use kite_render::validate::MachineOwner;
use kite_runtime::apply::{Place, WriteError, Writer};
use kite_runtime::clock;
use kite_runtime::events::Events;
use kite_runtime::{Class, Failure, Key, Next, Pass};
use kube::Api;
use tokio::time::Instant;

use crate::observe::World;
use crate::status::clocks::{Clocks, Decision};
use crate::status::{is_leaving, standing, tell};

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
pub struct ServicePass {
    world: World,
    writer: Writer,
    events: Events,
    /// Locked by a pass for single operations on its own machine's entry.
    clocks: Mutex<HashMap<Key, Clocks>>,
}

impl Pass for ServicePass {
    type Error = Error;

    async fn pass(&self, key: Key) -> Result<Next, Error> {
        let Some(machine) = self.world.machines.get(&key) else {
            self.clocks().remove(&key);
            self.world.index.forget(&key);
            return Ok(Next::Gone);
        };
        // Once deletion is requested nothing more is told (rule C-10). A machine whose name no
        // Service can have is refused by kite-vm; there is nothing to compare.
        let owner = MachineOwner::of(&machine)
            .ok()
            .filter(|_| !is_leaving(&machine));
        let Some(owner) = owner else {
            return Ok(Next::OnChange);
        };
        match self.decide(&key, &machine, &owner) {
            Decision::Wait(None) => Ok(Next::OnChange),
            Decision::Wait(Some(left)) => Ok(Next::Within(left)),
            Decision::Write(status) => {
                self.write(&key, &status).await?;
                self.announce(&machine, &status).await;
                // The answer may hold what others changed meanwhile, and of that no watch tells again.
                Ok(Next::Within(Duration::ZERO))
            }
        }
    }
}

impl ServicePass {
    /// A pass over this world.
    pub fn new(world: World, writer: Writer, events: Events) -> Self {
        Self {
            world,
            writer,
            events,
            clocks: Mutex::default(),
        }
    }

    fn decide(&self, key: &Key, machine: &KiteVirtualMachine, owner: &MachineOwner) -> Decision {
        let live = self.world.service(key, machine);
        let answers = live.is_some() && self.world.answers(key);
        let told = tell(
            machine,
            &service(owner),
            live.as_deref(),
            answers,
            &clock::now(),
        );
        let mut all = self.clocks();
        let clocks = all.entry(key.clone()).or_default();
        clocks.decide(machine, told, &standing(machine), Instant::now())
    }

    async fn write(&self, key: &Key, status: &KiteVirtualMachineStatus) -> Result<(), Error> {
        let place = Place {
            api: Api::namespaced(self.writer.client().clone(), &key.namespace),
            cache: &self.world.machines,
            key: key.clone(),
        };
        self.writer.status(&place, status, None, false).await?;
        Ok(())
    }

    /// Drift that nobody repaired is news; whether something answers is seen in the status.
    async fn announce(&self, machine: &KiteVirtualMachine, status: &KiteVirtualMachineStatus) {
        let Some(ready) = condition::find(&status.conditions, SERVICE_READY) else {
            return;
        };
        if ready.status == "False" {
            let note = ready.message.clone();
            self.events
                .warning(machine, &ready.reason, "Watch", note)
                .await;
        }
    }

    fn clocks(&self) -> MutexGuard<'_, HashMap<Key, Clocks>> {
        self.clocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
