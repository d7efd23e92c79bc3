//! The pass: look, say what should stand, write it when its time has come.

use std::sync::Arc;
use std::time::Duration;

use kite_api::condition::{DISK_READY, Status, find};
use kite_api::ownership::is_leaving;
use kite_api::{KiteVirtualMachine, KiteVirtualMachineStatus};
use kite_runtime::apply::WriteError;
use kite_runtime::mirror::{Decision, Memory, Mirror, changed};
use kite_runtime::{Key, Next, Pass, clock};
use tokio::time::Instant;

use crate::observe::{Found, World};
use crate::status::clocks::{Clocks, Holds};
use crate::status::{EXPANDING, GUEST_HINT, standing, tell};

/// What every pass works with.
pub struct DiskPass {
    world: World,
    mirror: Mirror<KiteVirtualMachine>,
    holds: Holds,
    memory: Memory<Clocks>,
}

impl Pass for DiskPass {
    type Error = WriteError;

    async fn pass(&self, key: Key) -> Result<Next, WriteError> {
        let Some(machine) = self.world.machines.get(&key) else {
            self.memory.forget(&key);
            return Ok(Next::Gone);
        };
        // Once deletion is requested nothing more is told (rule C-10).
        if is_leaving(&machine) {
            self.memory.forget(&key);
            return Ok(Next::OnChange);
        }
        let found = self.world.found(&key);
        let look = self.look(&key, &machine, &found).await?;
        match self.decide(&machine, found, look) {
            Decision::Wait(wait) => Ok(Next::after(wait)),
            Decision::Write(status) => {
                self.mirror.write(&key, &status, None, false).await?;
                self.announce(&machine, &status).await;
                // The answer may hold what others changed meanwhile, and of that no watch tells again.
                Ok(Next::Within(Duration::ZERO))
            }
        }
    }
}

impl DiskPass {
    /// A pass over this world.
    pub fn new(world: World, mirror: Mirror<KiteVirtualMachine>, holds: Holds) -> Self {
        Self {
            world,
            mirror,
            holds,
            memory: Memory::default(),
        }
    }

    /// Asks the server for a claim that no watch shows, where a rule rests on its absence
    /// (rules D-5, D-7). Tells when to ask again.
    async fn look(
        &self,
        key: &Key,
        machine: &KiteVirtualMachine,
        found: &Found,
    ) -> Result<Option<Duration>, WriteError> {
        let doubt = found.doubt(machine);
        let due = |clocks: &mut Clocks| {
            clocks
                .looks
                .due(doubt.as_ref(), &self.holds, Instant::now())
        };
        let (due_now, next) = self.memory.with(machine, due);
        let Some(doubt) = doubt.clone().filter(|_| due_now) else {
            return Ok(next);
        };
        let claim = self.mirror.live(&self.world.claims, key).await?;
        let next = self.memory.with(machine, |clocks| {
            let claim = claim.map(Arc::new);
            clocks.looks.met(doubt, claim, Instant::now());
            due(clocks).1
        });
        Ok(next)
    }

    fn decide(
        &self,
        machine: &KiteVirtualMachine,
        found: Found,
        look: Option<Duration>,
    ) -> Decision<KiteVirtualMachineStatus> {
        let now = Instant::now();
        self.memory.with(machine, |clocks| {
            let disk = clocks.looks.complete(found).disk(machine);
            let (elapsed, next) = clocks.note(machine, &disk, &self.holds, now);
            let next = next.into_iter().chain(look).min();
            let told = tell(machine, &disk, elapsed, &clock::now());
            clocks.decide(told, &standing(machine), next, &self.holds, now)
        })
    }

    /// A trouble that has stood long enough is news, and its end; progress is seen in the status.
    async fn announce(&self, machine: &KiteVirtualMachine, status: &KiteVirtualMachineStatus) {
        let before = standing(machine).conditions;
        let Some(ready) = changed(&before, &status.conditions, DISK_READY) else {
            return;
        };
        let ordinary = |reason: &str| ["InProgress", "WaitingForFirstBoot"].contains(&reason);
        let is_trouble =
            |status: &str, reason: &str| status == Status::False.as_str() && !ordinary(reason);
        let was = find(&before, DISK_READY);
        if is_trouble(&ready.status, &ready.reason) {
            self.mirror
                .warn(machine, &ready.reason, &ready.message)
                .await;
        } else if was.is_some_and(|c| c.reason == EXPANDING)
            && ready.status == Status::True.as_str()
        {
            let note = format!("the disk has grown; {GUEST_HINT}");
            self.mirror.inform(machine, "Expanded", &note).await;
        } else if was.is_some_and(|c| is_trouble(&c.status, &c.reason)) {
            self.mirror
                .inform(machine, "DiskRecovered", &ready.message)
                .await;
        }
    }
}
