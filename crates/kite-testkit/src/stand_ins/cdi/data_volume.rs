//! cdi-controller's pass over a DataVolume.
//!
//! What the next step is, [`super::clone`] decides; here it is carried out.

use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::claim::{self, claim_ref, populated, size, temporary_name};
use super::clone::{Claim, Facts, Source, Step, Wishes, next};
use crate::stand_ins::cache::Key;
use crate::stand_ins::clock::spread;
use crate::stand_ins::fault::Fault;
use crate::stand_ins::names::{
    BIND_IMMEDIATELY, CDI_MANAGER, DISK_FINALIZER, POPULATOR_FINALIZER, Res, USE_POPULATOR,
};
use crate::stand_ins::value::{merge_patch, status, text};
use crate::stand_ins::world::{Pass, World, controlled_by, going, uid};

/// The claim appears after this many seconds.
const FIRST_LOOK: (f64, f64) = (0.01, 0.11);

/// One pass.
pub(in crate::stand_ins) async fn pass(world: &World, key: &Key) -> Pass {
    let Some(data_volume) = world.get(Res::DataVolume, key) else {
        return Ok(None);
    };
    if world.behaviour.has(key, &Fault::DiskUnseen) {
        return Ok(None);
    }
    let stays = world.behaviour.has(key, &Fault::DiskFinalizerStays);
    if stays != has_finalizer(&data_volume) {
        world
            .finalizer(
                Res::DataVolume,
                CDI_MANAGER,
                &data_volume,
                DISK_FINALIZER,
                stays,
            )
            .await?;
        return Ok(Some(Duration::ZERO));
    }
    if going(&data_volume) {
        return Ok(None);
    }
    if let Some(phase) = world.behaviour.disk_phase(key) {
        if text(&status(&data_volume), "/phase") != phase {
            let patch = json!({"phase": phase});
            world
                .merge_status(Res::DataVolume, CDI_MANAGER, &data_volume, patch)
                .await?;
        }
        return Ok(None);
    }
    let at = Situation::of(world, key, &data_volume);
    let old = status(&data_volume);
    let refused = world.refusal(uid(&data_volume));
    let facts = at.facts(world, key, &data_volume, &old, refused.as_deref());
    let (seconds, step) = next(&facts);
    if step == Step::Rest {
        return Ok(None);
    }
    let stage = format!(
        "{} {} {:?} {:?} {refused:?}",
        text(&old, "/phase"),
        text(&old, "/progress"),
        old["restartCount"],
        facts.claim.map(|claim| claim.bound)
    );
    let wait = world.clock.wait(uid(&data_volume), "life", &stage, seconds);
    if wait.is_some() {
        return Ok(wait);
    }
    at.carry_out(world, &data_volume, &old, step).await
}

fn has_finalizer(data_volume: &DynamicObject) -> bool {
    let finalizers = data_volume.finalizers();
    finalizers.iter().any(|known| known == DISK_FINALIZER)
}

/// The objects around a DataVolume.
struct Situation {
    source: Source,
    source_claim: Option<Arc<DynamicObject>>,
    claim: Option<Arc<DynamicObject>>,
    temporary: Option<Arc<DynamicObject>>,
}

impl Situation {
    fn of(world: &World, key: &Key, data_volume: &DynamicObject) -> Self {
        let (source, source_claim) = find_source(world, key, data_volume);
        let claim = world
            .get(Res::Claim, key)
            .filter(|claim| controlled_by(claim, data_volume));
        let temporary = claim.as_deref().and_then(|claim| {
            let name = temporary_name(claim);
            world.get(Res::Claim, &Key::new(key.namespace.clone(), name))
        });
        Self {
            source,
            source_claim,
            claim,
            temporary,
        }
    }

    fn facts<'a>(
        &self,
        world: &World,
        key: &'a Key,
        data_volume: &DynamicObject,
        status: &'a Value,
        refused: Option<&'a str>,
    ) -> Facts<'a> {
        let view = |claim: &Arc<DynamicObject>| Claim {
            bound: text(&claim.data, "/status/phase") == "Bound",
            populating: claim
                .finalizers()
                .iter()
                .any(|known| known == POPULATOR_FINALIZER),
        };
        let has = |fault| world.behaviour.has(key, &fault);
        let waits = has(Fault::WaitForFirstConsumer)
            && !data_volume.annotations().contains_key(BIND_IMMEDIATELY);
        Facts {
            name: &key.name,
            status,
            source: self.source.clone(),
            claim: self.claim.as_ref().map(view),
            temporary: self.temporary.as_ref().map(view),
            populator: populated(data_volume).unwrap_or(world.temporary_claims),
            ticks: world.ticks,
            refused,
            wishes: Wishes {
                stuck: has(Fault::CloneStuck),
                restarts: has(Fault::CloneRestarts),
                failed: has(Fault::CloneFailed),
                no_consumer: waits && !consumed(world, key),
            },
            first_look: spread(uid(data_volume), FIRST_LOOK.0, FIRST_LOOK.1),
        }
    }

    async fn carry_out(
        &self,
        world: &World,
        data_volume: &DynamicObject,
        old: &Value,
        step: Step,
    ) -> Pass {
        match step {
            Step::Rest => return Ok(None),
            Step::Write(wanted) => {
                if let Some(patch) = merge_patch(old, &wanted) {
                    world
                        .merge_status(Res::DataVolume, CDI_MANAGER, data_volume, patch)
                        .await?;
                }
            }
            Step::MakeClaim => return self.make_claim(world, data_volume).await,
            Step::MakeTemporary => {
                let Some(target) = &self.claim else {
                    return Ok(None);
                };
                let temporary = claim::temporary(data_volume, target);
                return make(world, data_volume, temporary).await;
            }
            Step::Rebind => return self.rebind(world).await,
            Step::Finish => {
                if let Some(claim) = &self.claim {
                    world
                        .finalizer(Res::Claim, CDI_MANAGER, claim, POPULATOR_FINALIZER, false)
                        .await?;
                }
            }
        }
        Ok(Some(Duration::ZERO))
    }

    async fn make_claim(&self, world: &World, data_volume: &DynamicObject) -> Pass {
        // Somebody else's claim of that name is in the way until it goes.
        if world.get(Res::Claim, &Key::of(data_volume)).is_some() {
            return Ok(None);
        }
        let Some(populator) = populated(data_volume) else {
            let note = json!({USE_POPULATOR: world.temporary_claims.to_string()});
            let patch = json!({"metadata": {"annotations": note}});
            world
                .merge(Res::DataVolume, CDI_MANAGER, data_volume, patch)
                .await?;
            return Ok(Some(Duration::ZERO));
        };
        let Some(size) = size(data_volume, self.source_claim.as_deref()) else {
            return Ok(None);
        };
        make(
            world,
            data_volume,
            claim::claim(data_volume, size, populator),
        )
        .await
    }

    /// The volume that was filled is handed to the claim; the server's own
    /// controller then binds it there and calls the temporary claim lost.
    async fn rebind(&self, world: &World) -> Pass {
        let (Some(claim), Some(temporary)) = (&self.claim, &self.temporary) else {
            return Ok(None);
        };
        let name = text(&temporary.data, "/spec/volumeName");
        let Some(volume) = world.get(Res::Volume, &Key::new("", name)) else {
            return Ok(None);
        };
        if text(&volume.data, "/spec/claimRef/uid") == uid(claim) {
            return Ok(None);
        }
        let mut reference = claim_ref(claim);
        reference["resourceVersion"] = Value::Null;
        let patch = json!({"spec": {"claimRef": reference}});
        world
            .merge(Res::Volume, CDI_MANAGER, &volume, patch)
            .await?;
        Ok(None)
    }
}

/// Creates a claim; the server's refusal goes into the DataVolume's status.
async fn make(world: &World, data_volume: &DynamicObject, claim: Value) -> Pass {
    match world
        .create(Res::Claim, CDI_MANAGER, uid(data_volume), claim)
        .await
    {
        Ok(()) => Ok(Some(Duration::ZERO)),
        Err(kube::Error::Api(refusal)) if matches!(refusal.code, 400..500) => {
            world.clock.forget(uid(data_volume));
            Ok(Some(Duration::ZERO))
        }
        Err(error) => Err(error),
    }
}

/// The source of a DataVolume, with a note that it concerns it.
fn find_source(
    world: &World,
    key: &Key,
    data_volume: &DynamicObject,
) -> (Source, Option<Arc<DynamicObject>>) {
    let spec = &data_volume.data["spec"];
    let who = (Res::DataVolume, key.clone());
    let mut pvc = spec.pointer("/source/pvc").cloned();
    if spec.get("sourceRef").is_some() {
        let name = text(spec, "/sourceRef/name");
        let namespace = match text(spec, "/sourceRef/namespace") {
            "" => key.namespace.as_str(),
            namespace => namespace,
        };
        let source = Key::new(namespace, name);
        world
            .links
            .add((Res::DataSource, source.clone()), who.clone());
        let Some(source) = world.get(Res::DataSource, &source) else {
            return (Source::DataSourceAbsent, None);
        };
        pvc = source.data.pointer("/spec/source/pvc").cloned();
    }
    let Some(pvc) = pvc else {
        return (Source::Found, None);
    };
    let name = text(&pvc, "/name");
    let source = Key::new(text(&pvc, "/namespace"), name);
    world.links.add((Res::Claim, source.clone()), who);
    match world.get(Res::Claim, &source) {
        Some(found) => (Source::Found, Some(found)),
        None => (Source::ClaimAbsent(name.to_owned()), None),
    }
}

/// Whether an instance stands on the claim.
fn consumed(world: &World, key: &Key) -> bool {
    let uses = |vmi: &DynamicObject| {
        vmi.metadata.namespace.as_ref() == Some(&key.namespace)
            && crate::stand_ins::kubevirt::disks::claims(&vmi.data, "/spec/volumes")
                .contains(&key.name)
    };
    !world.store(Res::Vmi).find(uses).is_empty()
}
