//! The pass: look, say what should stand, write it when its time has come.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kite_api::condition::{self, DISK_READY};
use kite_api::{KiteVirtualMachine, KiteVirtualMachineStatus};
use kite_runtime::apply::{Place, WriteError, Writer};
use kite_runtime::clock;
use kite_runtime::events::Events;
use kite_runtime::{Class, Failure, Key, Next, Pass};
use kube::Api;
use tokio::time::Instant;

use crate::observe::World;
use crate::status::clocks::{Clocks, Decision, Holds};
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
pub struct DiskPass {
    world: World,
    writer: Writer,
    events: Events,
    holds: Holds,
    /// Locked by a pass for single operations on its own machine's entry.
    clocks: Mutex<HashMap<Key, Clocks>>,
}

impl Pass for DiskPass {
    type Error = Error;

    async fn pass(&self, key: Key) -> Result<Next, Error> {
        let Some(machine) = self.world.machines.get(&key) else {
            self.clocks().remove(&key);
            return Ok(Next::Gone);
        };
        // Once deletion is requested nothing more is told (rule C-10).
        if is_leaving(&machine) {
            self.clocks().remove(&key);
            return Ok(Next::OnChange);
        }
        match self.decide(&key, &machine) {
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

impl DiskPass {
    /// A pass over this world.
    pub fn new(world: World, writer: Writer, events: Events, holds: Holds) -> Self {
        Self {
            world,
            writer,
            events,
            holds,
            clocks: Mutex::default(),
        }
    }

    fn decide(&self, key: &Key, machine: &KiteVirtualMachine) -> Decision {
        let now = Instant::now();
        let disk = self.world.disk(key, machine);
        let mut all = self.clocks();
        let clocks = all.entry(key.clone()).or_default();
        clocks.meet(machine);
        let (elapsed, next) = clocks.note(machine, &disk, &self.holds, now);
        let told = tell(machine, &disk, elapsed, &clock::now());
        clocks.decide(told, &standing(machine), next, &self.holds, now)
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

    /// A trouble that has stood long enough is news, once; progress is seen in the status.
    async fn announce(&self, machine: &KiteVirtualMachine, status: &KiteVirtualMachineStatus) {
        let stands = standing(machine);
        let reason = |s: &KiteVirtualMachineStatus| {
            condition::find(&s.conditions, DISK_READY).map(|c| c.reason.clone())
        };
        if reason(&stands) == reason(status) {
            return;
        }
        let Some(ready) = condition::find(&status.conditions, DISK_READY) else {
            return;
        };
        let ordinary = ["InProgress", "WaitingForFirstBoot"].contains(&ready.reason.as_str());
        if ready.status == "False" && !ordinary {
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
