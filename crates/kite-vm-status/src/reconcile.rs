//! The pass: look, say what should stand, write it when its time has come.

use kite_api::condition::{self, READY};
use kite_api::ownership::is_leaving;
use kite_api::{KiteVirtualMachine, KiteVirtualMachineStatus};
use kite_runtime::apply::WriteError;
use kite_runtime::mirror::{Decision, Memory, Mirror, Pulse};
use kite_runtime::{Key, Next, Pass, clock};
use tokio::time::Instant;

use crate::observe::World;
use crate::observe::guests::Guests;
use crate::status::clocks::{Clocks, Holds};
use crate::status::news::news;
use crate::status::stop::judged;
use crate::status::vigil::End;
use crate::status::{farewell, standing, takes_over, tell};

/// What every pass works with.
pub struct StatusPass {
    world: World,
    mirror: Mirror<KiteVirtualMachine>,
    holds: Holds,
    guests: Guests,
    memory: Memory<Clocks>,
    kite_vm: Pulse,
}

impl Pass for StatusPass {
    type Error = WriteError;

    async fn pass(&self, key: Key) -> Result<Next, WriteError> {
        let Some(machine) = self.world.machines.get(&key) else {
            self.memory.forget(&key);
            self.guests.forget(&key);
            return Ok(Next::Gone);
        };
        if let Some(end) = self.ended(&key, &machine) {
            let note = end.note(machine.spec.on_guest_shutdown);
            self.mirror.warn(&machine, end.reason(), note).await;
        }
        match self.decide(&key, &machine) {
            Decision::Wait(wait) => Ok(Next::after(wait)),
            Decision::Write(status) => {
                self.write(&key, &machine, &status).await?;
                self.announce(&machine, &status).await;
                // What was held back together with this has its own time to wait for.
                match self.world.machines.get(&key).map(|m| self.decide(&key, &m)) {
                    Some(Decision::Wait(wait)) => Ok(Next::after(wait)),
                    None => Ok(Next::OnChange),
                    Some(Decision::Write(_)) => Ok(Next::Within(self.holds.settle)),
                }
            }
        }
    }
}

impl StatusPass {
    /// A pass over this world.
    pub fn new(
        world: World,
        guests: Guests,
        mirror: Mirror<KiteVirtualMachine>,
        holds: Holds,
    ) -> Self {
        Self {
            world,
            mirror,
            holds,
            guests,
            memory: Memory::default(),
            kite_vm: Pulse::default(),
        }
    }

    fn decide(
        &self,
        key: &Key,
        machine: &KiteVirtualMachine,
    ) -> Decision<KiteVirtualMachineStatus> {
        let now = Instant::now();
        let stands = standing(machine);
        if is_leaving(machine) {
            let told = farewell(machine);
            return self.memory.with(machine, |clocks| {
                clocks.decide(told, &stands, None, &self.holds, now)
            });
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
        self.memory.with(machine, |clocks| {
            let (elapsed, next) = clocks.note(machine, &reading, &self.holds, &self.kite_vm, now);
            let told = tell(machine, &reading, elapsed, &time);
            clocks.decide(told, &stands, next, &self.holds, now)
        })
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
    ) -> Result<(), WriteError> {
        let force = takes_over(&standing(machine), status);
        let version = machine.metadata.resource_version.as_deref();
        self.mirror.write(key, status, version, force).await
    }

    async fn announce(&self, machine: &KiteVirtualMachine, status: &KiteVirtualMachineStatus) {
        for news in news(&standing(machine), status) {
            if news.warning {
                self.mirror.warn(machine, &news.reason, &news.note).await;
            } else {
                self.mirror.inform(machine, &news.reason, &news.note).await;
            }
        }
    }
}
