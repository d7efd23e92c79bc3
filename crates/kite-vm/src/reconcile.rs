//! The pass over one machine, in its five steps; a machine that is to go takes a way of its own.

pub mod pace;
mod removal;
pub mod standstill;
mod tell;

use std::sync::Arc;
use std::time::Duration;

use kite_api::condition::{self, RESOURCES_APPLIED, STALLED, Wanted};
use kite_api::labels::VM_FINALIZER;
use kite_api::machine::{KiteVirtualMachineStatus, Phase};
use kite_api::{KitePlatform, KiteVirtualMachine};
use kite_render::platform::InForce;
use kite_render::validate::{MachineOwner, Problems, ValidPlatform};
use kite_runtime::apply::{Place, WriteError, Writer};
use kite_runtime::events::Events;
use kite_runtime::patience::Patience;
use kite_runtime::{Class, Failure, Key, Next, Pass};
use kube::{Api, ResourceExt};

use crate::apply::delete::left_behind;
use crate::apply::{self, Trouble, previous};
use crate::controller::{Flags, World};
use crate::observe::Observed;
use crate::observe::looks::Looks;
use crate::reconcile::pace::Pace;
use crate::reconcile::standstill::Standstill;
use crate::status::{self, Outcome};
use crate::validate;

/// CDI makes the claim within a tenth of a second; a status that says "waiting for the claim"
/// in between would be one write that nobody can read.
const CLAIM_PATIENCE: Duration = Duration::from_secs(2);

/// An error that passes by itself is told when it has stood for so long, which is five tries or so.
const ERROR_PATIENCE: Duration = Duration::from_secs(10);

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
    /// How soon a machine without a guest is started again.
    pub pace: Pace,
    /// The looks for claims that no watch shows.
    pub looks: Looks,
    /// Deletions that stand still.
    pub standstill: Standstill,
    platform: InForce,
    claims: Patience,
    errors: Patience,
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
            pace: Pace::default(),
            looks: Looks::default(),
            standstill,
            platform: InForce::default(),
            claims: Patience::new(CLAIM_PATIENCE),
            errors: Patience::new(ERROR_PATIENCE),
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
        let seen = apply::claim::find(self, seen).await;
        match validate::accept(&seen) {
            Ok(machine) => {
                let seen = previous::make_way(self, seen)
                    .await
                    .map_err(Error::Trouble)?;
                let applied = apply::everything(self, &seen, &machine).await;
                self.conclude(&seen, &applied).await
            }
            Err(refused) => {
                let mut applied = apply::power_only(self, &seen).await;
                let trouble = applied.troubles.first().cloned();
                applied.troubles.iter_mut().for_each(Trouble::settle);
                self.tell(&seen, &Outcome::Refused(&refused, &applied))
                    .await?;
                match trouble {
                    Some(trouble) => Err(Error::Trouble(trouble)),
                    None => Ok(applied.again.map_or(Next::OnChange, Next::Within)),
                }
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
            // It passes by itself; a status that said so at once would be old when it is read.
            if self.errors.left(&seen.key).is_none() {
                let mut lasting = applied.clone();
                lasting.troubles.iter_mut().for_each(Trouble::settle);
                self.tell(seen, &Outcome::Applied(&lasting)).await?;
            }
            return Err(Error::Trouble(trouble.clone()));
        }
        self.errors.reset(&seen.key);
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
        self.pace.reset(key);
        self.looks.forget(key);
        self.errors.reset(key);
        self.standstill.forget(key);
        left_behind::collect(self, key)
            .await
            .map_err(Error::Trouble)?;
        Ok(Next::Gone)
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
