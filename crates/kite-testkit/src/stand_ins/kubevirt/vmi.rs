//! The pass over a VirtualMachineInstance and its launcher Pod.
//!
//! What the next step is, [`super::phases`] decides; here it is carried out.

use std::time::Duration;

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::disks::{claims, disks};
use super::launcher;
use super::phases::{Facts, Requests, Step, next};
use super::secrets;
use crate::stand_ins::cache::Key;
use crate::stand_ins::clock::hash;
use crate::stand_ins::fault::Fault;
use crate::stand_ins::names::{DOMAIN, KUBEVIRT_MANAGER, NODES, Res, VM_FINALIZER};
use crate::stand_ins::value::{condition_is, merge_patch, status, text};
use crate::stand_ins::world::{Pass, World, going, uid};

/// How often a launcher looks for a Secret that is missing.
const MOUNT_AGAIN: f64 = 2.0;

/// One pass.
pub(in crate::stand_ins) async fn pass(world: &World, key: &Key) -> Pass {
    clear_orphans(world, key).await?;
    let Some(vmi) = world.get(Res::Vmi, key) else {
        return Ok(None);
    };
    let old = status(&vmi);
    let pod = world.get(Res::Pod, &launcher::key(&vmi));
    let disks = disks(world, &key.namespace, claims(&vmi.data, "/spec/volumes"));
    let refused = world.refusal(uid(&vmi));
    let facts = Facts {
        namespace: &key.namespace,
        status: &old,
        going: going(&vmi),
        disks: &disks,
        launcher: pod.as_deref().map(launcher::view),
        requests: requests(world, key, &old),
        refused: refused.as_deref(),
        other_node: other_node(&old),
    };
    let (seconds, step) = next(&facts);
    if step == Step::Rest {
        return Ok(None);
    }
    let stage = stage(&facts);
    let wait = world.clock.wait(uid(&vmi), "life", &stage, seconds);
    if wait.is_some() {
        return Ok(wait);
    }
    carry_out(world, &vmi, pod.as_deref(), step).await
}

/// Where an instance stands, for the time it has stood there.
fn stage(facts: &Facts<'_>) -> String {
    let running = facts.launcher.as_ref().map(|launcher| launcher.running);
    let bound = facts.disks.iter().all(|disk| disk.bound);
    let moving = facts.status.get("migrationState").is_some();
    format!(
        "{:x} {} {running:?} {bound} {moving} {:?}",
        hash(text(facts.status, "/phase")),
        facts.going,
        facts.refused
    )
}

fn requests(world: &World, key: &Key, old: &Value) -> Requests {
    let has = |fault| world.behaviour.has(key, &fault);
    // What happens once happens only to a guest that runs.
    let runs = text(old, "/phase") == "Running";
    let ready = runs && condition_is(old, "Ready", "True");
    let once = |fault| runs && world.behaviour.take(key, &fault);
    Requests {
        paused: has(Fault::Paused),
        agent: has(Fault::AgentConnected),
        node_lost: has(Fault::NodeLost),
        finalizer_stays: has(Fault::VmiFinalizerStays) || has(Fault::NodeLost),
        shutdown: once(Fault::GuestShutdown),
        crash: once(Fault::GuestCrash),
        migrate: ready && once(Fault::Migrate),
    }
}

fn other_node(status: &Value) -> &'static str {
    if text(status, "/nodeName") == NODES[0] {
        NODES[1]
    } else {
        NODES[0]
    }
}

async fn carry_out(
    world: &World,
    vmi: &DynamicObject,
    pod: Option<&DynamicObject>,
    step: Step,
) -> Pass {
    match step {
        Step::Rest => return Ok(None),
        Step::Write(wanted) => {
            // Instances keep no status apart: this counts up their generation.
            if let Some(patch) = merge_patch(&status(vmi), &wanted) {
                world
                    .merge(Res::Vmi, KUBEVIRT_MANAGER, vmi, json!({"status": patch}))
                    .await?;
            }
        }
        Step::Launch => return launch(world, vmi).await,
        Step::RunLauncher => {
            let namespace = vmi.namespace().unwrap_or_default();
            if !secrets::all_there(world, &namespace, vmi).await? {
                return Ok(Some(world.clock.scaled(MOUNT_AGAIN)));
            }
            if let Some(pod) = pod {
                let running = launcher::running(pod);
                world
                    .merge_status(Res::Pod, KUBEVIRT_MANAGER, pod, running)
                    .await?;
            }
        }
        Step::KillLauncher => {
            if let Some(pod) = pod {
                world.delete(Res::Pod, pod, true).await?;
                world.store(Res::Pod).remove(pod);
            }
        }
        Step::Release => {
            world
                .finalizer(Res::Vmi, KUBEVIRT_MANAGER, vmi, VM_FINALIZER, false)
                .await?;
            return Ok(None);
        }
    }
    Ok(Some(Duration::ZERO))
}

/// Creates the launcher; the server's refusal goes into the instance's status.
async fn launch(world: &World, vmi: &DynamicObject) -> Pass {
    let try_with = |limits| {
        world.create(
            Res::Pod,
            KUBEVIRT_MANAGER,
            uid(vmi),
            launcher::pod(vmi, limits),
        )
    };
    let mut made = try_with(false).await;
    if matches!(&made, Err(kube::Error::Api(refusal)) if refusal.message.contains("must specify limits"))
    {
        made = try_with(true).await;
    }
    match made {
        Ok(()) => Ok(Some(Duration::ZERO)),
        Err(kube::Error::Api(refusal)) if matches!(refusal.code, 400..500) => {
            // A refusal that repeats counts from now.
            world.clock.forget(uid(vmi));
            Ok(Some(Duration::ZERO))
        }
        Err(error) => Err(error),
    }
}

/// Launchers whose instance is gone, or that somebody else deleted: there is no
/// kubelet to end them.
async fn clear_orphans(world: &World, key: &Key) -> Result<(), kube::Error> {
    let vmi = world.get(Res::Vmi, key);
    let own = vmi.as_deref().map(launcher::key);
    if world.behaviour.has(key, &Fault::NodeLost) {
        return Ok(());
    }
    let orphans = world.store(Res::Pod).find(|pod| {
        pod.annotations().get(DOMAIN) == Some(&key.name)
            && pod.metadata.namespace.as_ref() == Some(&key.namespace)
            && (going(pod)
                || own
                    .as_ref()
                    .is_none_or(|own| pod.metadata.name.as_ref() != Some(&own.name)))
    });
    for pod in orphans {
        world.delete(Res::Pod, &pod, true).await?;
        world.store(Res::Pod).remove(&pod);
    }
    Ok(())
}
