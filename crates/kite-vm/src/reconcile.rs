//! The pass over one machine, in its five steps; a machine that is to go takes a way of its own.

mod removal;

use std::sync::Arc;
use std::time::Duration;

use kite_api::condition::{self, RESOURCES_APPLIED, STALLED, Wanted};
use kite_api::labels::{Controller, VM_FINALIZER};
use kite_api::machine::{KiteVirtualMachineStatus, Phase};
use kite_api::ownership::part_of;
use kite_api::{KitePlatform, KiteVirtualMachine};
use kite_render::platform::InForce;
use kite_render::validate::{MachineOwner, Problems, ValidPlatform};
use kite_runtime::apply::{Place, WriteError, Writer};
use kite_runtime::events::Events;
use kite_runtime::patience::Patience;
use kite_runtime::{Class, Failure, Key, Next, Pass, Refusal};
use kube::{Api, ResourceExt};

use crate::apply::delete::left_behind;
use crate::apply::{self, Trouble, previous};
use crate::controller::{Flags, World};
use crate::observe::Observed;
use crate::standstill::Standstill;
use crate::status::{self, Outcome};
use crate::validate;

/// CDI makes the claim within a tenth of a second; a status that says "waiting for the claim"
/// in between would be one write that nobody can read.
const CLAIM_PATIENCE: Duration = Duration::from_secs(2);

/// Why a pass is tried again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A write did not come to be.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A child is not as wanted, which the status tells.
    #[error("{}", .0.message)]
    Trouble(Trouble),
    /// The object lacks what every object has.
    #[error("the object cannot be worked on: {0}")]
    Identity(Problems),
}

impl Failure for Error {
    fn class(&self) -> Class {
        match self {
            Self::Write(error) => error.class(),
            Self::Trouble(trouble) => trouble.class,
            Self::Identity(_) => Class::Invalid,
        }
    }
}

/// Makes machines exist, or cease to.
pub struct VmPass {
    /// What is watched.
    pub world: World,
    /// How it writes.
    pub writer: Writer,
    /// What it tells people.
    pub events: Events,
    /// Its own flags.
    pub flags: Flags,
    /// Deletions that stand still.
    pub standstill: Standstill,
    platform: InForce,
    claims: Patience,
}

impl VmPass {
    /// A pass over what is watched.
    pub fn new(
        world: World,
        writer: Writer,
        events: Events,
        flags: Flags,
        standstill: Standstill,
    ) -> Self {
        Self {
            world,
            writer,
            events,
            flags,
            standstill,
            platform: InForce::default(),
            claims: Patience::new(CLAIM_PATIENCE),
        }
    }
}

impl Pass for VmPass {
    type Error = Error;

    async fn pass(&self, key: Key) -> Result<Next, Error> {
        if key.namespace.is_empty() {
            return self.platform(&key).await;
        }
        let machine = self.world.machines.get(&key);
        let platform = self
            .platform
            .current(self.world.platform_object().as_deref());
        let waits = machine.as_ref().filter(|m| apply::disk::waits_by_status(m));
        let standing = waits.map(|m| {
            let image = Key::new(platform.image_namespace.as_str(), &m.spec.image);
            (image, m.metadata.creation_timestamp.clone())
        });
        self.world.turns.begin(&key, standing);
        let next = match machine {
            Some(machine) => Box::pin(self.present(machine, platform)).await,
            None => self.absent(&key).await,
        };
        self.world.turns.end(&key);
        next
    }
}

impl VmPass {
    async fn present(
        &self,
        machine: Arc<KiteVirtualMachine>,
        platform: Arc<ValidPlatform>,
    ) -> Result<Next, Error> {
        let owner = MachineOwner::of(&machine).map_err(Error::Identity)?;
        let seen = Observed::of(&self.world, machine, owner, platform);
        if seen.is_going() {
            return self.delete(seen).await;
        }
        let seen = self.with_finalizer(seen).await?;
        if seen.is_paused() {
            self.tell(&seen, &Outcome::Paused).await?;
            return Ok(Next::OnChange);
        }
        match validate::accept(&seen) {
            Ok(machine) => {
                let seen = previous::make_way(self, seen)
                    .await
                    .map_err(Error::Trouble)?;
                let applied = apply::everything(self, &seen, &machine).await;
                self.conclude(&seen, &applied).await
            }
            Err(refused) => {
                let applied = apply::power_only(self, &seen).await;
                self.tell(&seen, &Outcome::Refused(&refused, &applied))
                    .await?;
                Ok(applied.again.map_or(Next::OnChange, Next::Within))
            }
        }
    }

    async fn with_finalizer(&self, mut seen: Observed) -> Result<Observed, Error> {
        if !seen.machine.finalizers().iter().any(|f| f == VM_FINALIZER) {
            let place = self.place(&seen.key);
            seen.machine = self
                .writer
                .add_finalizer(&place, seen.machine.as_ref(), VM_FINALIZER)
                .await?;
        }
        Ok(seen)
    }

    /// Writes the status and decides when to look again.
    async fn conclude(&self, seen: &Observed, applied: &apply::Applied) -> Result<Next, Error> {
        let passing = |t: &&Trouble| matches!(t.class, Class::Transient | Class::Conflict);
        if let Some(trouble) = applied.troubles.iter().find(passing) {
            // It passes by itself; a status that said so would be old when it is read.
            return Err(Error::Trouble(trouble.clone()));
        }
        if !applied.waits_for_claim {
            self.claims.reset(&seen.key);
        } else if applied.troubles.is_empty()
            && let Some(left) = self.claims.left(&seen.key)
        {
            return Ok(Next::Within(left));
        }
        self.tell(seen, &Outcome::Applied(applied)).await?;
        let retried = applied.troubles.iter().find(|t| t.class != Class::Invalid);
        let conflict = applied
            .troubles
            .iter()
            .find(|t| t.reason == condition::NAME_CONFLICT);
        match retried.or(conflict) {
            Some(trouble) => Err(Error::Trouble(Trouble {
                class: retry_class(trouble),
                ..trouble.clone()
            })),
            None => Ok(applied.again.map_or(Next::OnChange, Next::Within)),
        }
    }

    /// The same machine after this pass's own writes.
    pub fn again(&self, seen: &Observed) -> Observed {
        let machine = self
            .world
            .machines
            .get(&seen.key)
            .unwrap_or_else(|| Arc::clone(&seen.machine));
        Observed::of(
            &self.world,
            machine,
            seen.owner.clone(),
            Arc::clone(&seen.platform),
        )
    }

    /// No machine of that name can be read: a malformed one, or none.
    async fn absent(&self, key: &Key) -> Result<Next, Error> {
        if let Some(invalid) = self.world.machines.malformed(key) {
            let message = format!(
                "the object does not have the shape of a KiteVirtualMachine: {}; change or remove it",
                invalid.error
            );
            let generation = invalid.metadata.generation;
            let wanted = [RESOURCES_APPLIED, STALLED]
                .map(|type_| Wanted::new(type_, type_ == STALLED, "InvalidSpec", message.as_str()));
            let part = KiteVirtualMachineStatus {
                phase: Some(Phase::Failed),
                conditions: condition::settle(
                    &[],
                    wanted.into(),
                    generation,
                    &kite_runtime::clock::now(),
                ),
                ..KiteVirtualMachineStatus::default()
            };
            let version = invalid.metadata.resource_version.as_deref();
            let place = Place {
                api: Api::<kube::core::PartialObjectMeta<KiteVirtualMachine>>::namespaced(
                    self.writer.client().clone(),
                    &key.namespace,
                ),
                cache: &self.world.malformed,
                key: key.clone(),
            };
            self.writer.status(&place, &part, version, false).await?;
            return Ok(Next::OnChange);
        }
        self.standstill.forget(key);
        left_behind::collect(self, key)
            .await
            .map_err(Error::Trouble)?;
        Ok(Next::Gone)
    }

    /// Writes kite-vm's part of the status where it differs.
    async fn tell(&self, seen: &Observed, outcome: &Outcome<'_>) -> Result<(), Error> {
        let part = status::part(seen, outcome, &kite_runtime::clock::now());
        let status = seen.status();
        let mut there = part_of(Controller::Vm, &status);
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
            result => result.map(|_| ()).map_err(Error::from),
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

    fn place(&self, key: &Key) -> Place<'_, KiteVirtualMachine> {
        Place {
            api: Api::namespaced(self.writer.client().clone(), &key.namespace),
            cache: &self.world.machines,
            key: key.clone(),
        }
    }

    /// The KitePlatform's own status (rule P-3).
    async fn platform(&self, key: &Key) -> Result<Next, Error> {
        let Some(platform) = self.world.platform.get(key) else {
            return Ok(Next::Gone);
        };
        let problems = self.platform.problems(Some(&platform));
        let part = status::platform(&platform, problems.as_ref(), &kite_runtime::clock::now());
        if platform.status.as_ref() != Some(&part) {
            let place = Place {
                api: Api::<KitePlatform>::all(self.writer.client().clone()),
                cache: &self.world.platform,
                key: key.clone(),
            };
            self.writer.status(&place, &part, None, false).await?;
        }
        Ok(Next::OnChange)
    }
}

/// A foreign object in the way is looked for again, although only a person can remove it (rule C-7).
fn retry_class(trouble: &Trouble) -> Class {
    if trouble.reason == condition::NAME_CONFLICT {
        Class::NotReady
    } else {
        trouble.class
    }
}
