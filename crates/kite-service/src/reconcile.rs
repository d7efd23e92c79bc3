//! The pass: look, say what should stand, write it when its time has come.

use std::time::Duration;

use kite_api::condition::SERVICE_READY;
use kite_api::ownership::is_leaving;
use kite_api::{KiteVirtualMachine, KiteVirtualMachineStatus};
use kite_render::machine::service;
use kite_render::validate::MachineOwner;
use kite_runtime::apply::WriteError;
use kite_runtime::mirror::{Decision, Memory, Mirror, Pulse, changed};
use kite_runtime::{Key, Next, Pass, clock};
use tokio::time::Instant;

use crate::observe::World;
use crate::status::clocks::{Clocks, is_recorded};
use crate::status::{standing, tell};

/// What every pass works with.
pub struct ServicePass {
    world: World,
    mirror: Mirror<KiteVirtualMachine>,
    memory: Memory<Clocks>,
    kite_vm: Pulse,
}

impl Pass for ServicePass {
    type Error = WriteError;

    async fn pass(&self, key: Key) -> Result<Next, WriteError> {
        let Some(machine) = self.world.machines.get(&key) else {
            self.memory.forget(&key);
            return Ok(Next::Gone);
        };
        // Once deletion is requested nothing more is told (rule C-10). A machine whose name no
        // Service can have is refused by kite-vm; there is nothing to compare.
        let owner = MachineOwner::of(&machine)
            .ok()
            .filter(|_| !is_leaving(&machine));
        let Some(owner) = owner else {
            self.memory.forget(&key);
            return Ok(Next::OnChange);
        };
        match self.decide(&key, &machine, &owner) {
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

impl ServicePass {
    /// A pass over this world.
    pub fn new(world: World, mirror: Mirror<KiteVirtualMachine>) -> Self {
        Self {
            world,
            mirror,
            memory: Memory::default(),
            kite_vm: Pulse::default(),
        }
    }

    fn decide(
        &self,
        key: &Key,
        machine: &KiteVirtualMachine,
        owner: &MachineOwner,
    ) -> Decision<KiteVirtualMachineStatus> {
        let live = self.world.service(key, machine);
        let answers = live.is_some() && self.world.answers(key);
        let wanted = service(owner);
        let told = tell(machine, &wanted, live.as_deref(), answers, &clock::now());
        self.memory.with(machine, |clocks| {
            clocks.decide(machine, told, &self.kite_vm, Instant::now())
        })
    }

    /// A Service that is not as declared, and that nobody repaired in time, is news, and so is the
    /// repair; one that was never made is kite-vm's to explain, and whether something answers is
    /// seen in the status.
    async fn announce(&self, machine: &KiteVirtualMachine, status: &KiteVirtualMachineStatus) {
        let before = standing(machine).conditions;
        let Some(ready) = changed(&before, &status.conditions, SERVICE_READY) else {
            return;
        };
        let was_bad = before.iter().any(|c| c.status == "False");
        if ready.status == "False" && (is_recorded(machine) || !before.is_empty()) {
            self.mirror
                .warn(machine, &ready.reason, &ready.message)
                .await;
        } else if was_bad && is_recorded(machine) {
            self.mirror
                .inform(machine, "ServiceRepaired", &ready.message)
                .await;
        }
    }
}
