//! virt-controller's pass over a VirtualMachine.
//!
//! Level-based: finalizer and small spec edits first, then power, then status,
//! each from what the caches say.

use std::time::Duration;

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::disks::{claims, disks};
use super::live_update;
use super::power::{Power, Situation, decide, strategy};
use super::vm_status::{Facts, Instance, failed_starts, next_status};
use crate::stand_ins::cache::Key;
use crate::stand_ins::clock::{hash, spread};
use crate::stand_ins::fault::Fault;
use crate::stand_ins::names::{KUBEVIRT_MANAGER, Res, TEMPLATE_HASH, VM_FINALIZER, VM_GENERATION};
use crate::stand_ins::value::{list, merge_patch, status, text};
use crate::stand_ins::world::{Pass, World, controlled_by, going, owner, uid};

/// virt-controller first looks at a machine after this many seconds.
const FIRST_LOOK: (f64, f64) = (0.05, 0.2);
/// How long after a failed start the next one is tried; doubled each time.
const FIRST_RETRY: f64 = 10.0;
/// And never longer than this.
const LONGEST_RETRY: f64 = 300.0;

/// One pass.
pub(in crate::stand_ins) async fn pass(world: &World, key: &Key) -> Pass {
    let Some(vm) = world.get(Res::Vm, key) else {
        return Ok(None);
    };
    if world.behaviour.has(key, &Fault::Unseen) {
        return Ok(None);
    }
    let vmi = world
        .get(Res::Vmi, key)
        .filter(|vmi| controlled_by(vmi, &vm));
    if going(&vm) {
        return end(world, key, &vm, vmi.as_deref()).await;
    }
    if !vm.finalizers().iter().any(|known| known == VM_FINALIZER) {
        let delay = spread(uid(&vm), FIRST_LOOK.0, FIRST_LOOK.1);
        let wait = world.clock.wait(uid(&vm), "seen", "", delay);
        if wait.is_some() {
            return Ok(wait);
        }
        return adopt(world, &vm).await;
    }
    if world.behaviour.take(key, &Fault::VirtctlStop) {
        virtctl_stop(world, &vm).await?;
        return Ok(Some(Duration::ZERO));
    }
    let (done, again) = act(world, &vm, vmi.as_deref()).await?;
    write_status(world, key, &vm, vmi.as_deref(), &done).await?;
    Ok(again)
}

/// Where the run strategy leaves the stop to whoever asks, virtctl queues a request instead of
/// changing the spec.
async fn virtctl_stop(world: &World, vm: &DynamicObject) -> Result<(), kube::Error> {
    if matches!(strategy(&vm.data), "RerunOnFailure" | "Manual") {
        let queued = json!({"stateChangeRequests": [{"action": "Stop"}]});
        return world.merge_status(Res::Vm, "virt-api", vm, queued).await;
    }
    let halted = json!({"spec": {"runStrategy": "Halted"}});
    world.merge(Res::Vm, "virt-api", vm, halted).await
}

/// What a pass did before it wrote the status.
#[derive(Default)]
struct Done {
    started: bool,
    queue_start: bool,
    refused: Option<String>,
}

/// The edits by which virt-controller takes a machine over: it fills in what
/// no webhook did, and its whole-object writes leave an empty struct behind.
async fn adopt(world: &World, vm: &DynamicObject) -> Pass {
    let domain = "/spec/template/spec/domain";
    if text(&vm.data, &format!("{domain}/firmware/uuid")).is_empty() {
        let firmware = json!({"uuid": vm.metadata.uid, "serial": vm.metadata.uid});
        let spec = json!({"template": {"spec": {"domain": {"firmware": firmware}}}});
        world
            .merge(Res::Vm, KUBEVIRT_MANAGER, vm, json!({"spec": spec}))
            .await?;
        return Ok(Some(Duration::ZERO));
    }
    world
        .finalizer(Res::Vm, KUBEVIRT_MANAGER, vm, VM_FINALIZER, true)
        .await?;
    if vm.data.pointer(&format!("{domain}/resources")).is_none() {
        let spec = json!({"template": {"spec": {"domain": {"resources": {}}}}});
        world
            .merge(Res::Vm, KUBEVIRT_MANAGER, vm, json!({"spec": spec}))
            .await?;
    }
    Ok(Some(Duration::ZERO))
}

fn situation<'a>(
    vm: &'a DynamicObject,
    status: &'a Value,
    vmi: Option<&'a DynamicObject>,
) -> Situation<'a> {
    let asked = |action: &str| {
        list(status, "/stateChangeRequests")
            .iter()
            .any(|request| text(request, "/action") == action)
    };
    Situation {
        strategy: strategy(&vm.data),
        recorded: text(status, "/runStrategy"),
        phase: vmi.map(|vmi| text(&vmi.data, "/status/phase")),
        going: vmi.is_some_and(going),
        start_requested: asked("Start"),
        stop_requested: asked("Stop"),
    }
}

async fn act(
    world: &World,
    vm: &DynamicObject,
    vmi: Option<&DynamicObject>,
) -> Result<(Done, Option<Duration>), kube::Error> {
    let status = status(vm);
    let mut done = Done::default();
    match decide(&situation(vm, &status, vmi)) {
        Power::Rest => {
            if let Some(vmi) = vmi {
                follow(world, vm, vmi).await?;
            }
        }
        Power::Start => {
            let wait = back_off(world, vm, &status);
            if wait.is_some() {
                return Ok((done, wait));
            }
            if failed_starts(&status) > 0 && !all_ready(world, vm) {
                return Ok((done, None));
            }
            match start(world, vm).await {
                Ok(()) => done.started = true,
                Err(kube::Error::Api(refusal)) if refusal.code == 403 || refusal.code == 422 => {
                    done.refused = Some(refusal.message.clone());
                    return Ok((done, Some(world.clock.scaled(FIRST_RETRY))));
                }
                Err(error) => return Err(error),
            }
        }
        Power::Stop | Power::StopThenStart => {
            if let Some(vmi) = vmi {
                follow(world, vm, vmi).await?;
                world.delete(Res::Vmi, vmi, false).await?;
                done.queue_start = text(&vmi.data, "/status/phase") == "Failed"
                    && strategy(&vm.data) == "RerunOnFailure";
            }
        }
    }
    Ok((done, None))
}

/// The time that must pass after failed starts.
fn back_off(world: &World, vm: &DynamicObject, status: &Value) -> Option<Duration> {
    let failed = failed_starts(status);
    if failed == 0 {
        return None;
    }
    let doublings = i32::try_from(failed - 1).unwrap_or(i32::MAX).min(10);
    let seconds = (FIRST_RETRY * 2_f64.powi(doublings)).min(LONGEST_RETRY);
    world
        .clock
        .wait(uid(vm), "back-off", &failed.to_string(), seconds)
}

fn all_ready(world: &World, vm: &DynamicObject) -> bool {
    let claims = claims(&vm.data, "/spec/template/spec/volumes");
    disks(world, &vm.namespace().unwrap_or_default(), claims)
        .iter()
        .all(super::disks::Disk::ready)
}

/// Fingerprint of what an instance is made from.
fn template_hash(vm: &DynamicObject) -> String {
    let spec = vm
        .data
        .pointer("/spec/template/spec")
        .cloned()
        .unwrap_or_default();
    format!("{:016x}", hash(&spec.to_string()))
}

async fn start(world: &World, vm: &DynamicObject) -> Result<(), kube::Error> {
    let template = vm
        .data
        .pointer("/spec/template")
        .cloned()
        .unwrap_or_default();
    let mut annotations = template["metadata"]["annotations"].clone();
    if annotations.is_null() {
        annotations = json!({});
    }
    annotations[VM_GENERATION] = json!(vm.metadata.generation.unwrap_or_default().to_string());
    annotations[TEMPLATE_HASH] = json!(template_hash(vm));
    let vmi = json!({
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {
            "name": vm.name_any(),
            "namespace": vm.namespace(),
            "labels": template["metadata"]["labels"],
            "annotations": annotations,
            "ownerReferences": [owner(Res::Vm, vm)],
            "finalizers": [VM_FINALIZER],
        },
        "spec": template["spec"],
        "status": {"guestOSInfo": {}},
    });
    world.create(Res::Vmi, KUBEVIRT_MANAGER, uid(vm), vmi).await
}

/// Keeps the instance in line with the machine as far as a running guest can
/// be, and notes up to which generation it is.
async fn follow(world: &World, vm: &DynamicObject, vmi: &DynamicObject) -> Result<(), kube::Error> {
    let generation = vm.metadata.generation.unwrap_or_default().to_string();
    if going(vmi) || vmi.annotations().get(VM_GENERATION) == Some(&generation) {
        return Ok(());
    }
    let mut notes = json!({VM_GENERATION: generation});
    let mut patch = json!({});
    if outdated(vm, vmi) {
        let template = vm.data.pointer("/spec/template/spec");
        let change = template.and_then(|template| live_update::patch(template, &vmi.data["spec"]));
        let Some(change) = change else {
            return Ok(());
        };
        notes[TEMPLATE_HASH] = json!(template_hash(vm));
        patch["spec"] = change;
    }
    patch["metadata"] = json!({"annotations": notes});
    world.merge(Res::Vmi, KUBEVIRT_MANAGER, vmi, patch).await
}

fn outdated(vm: &DynamicObject, vmi: &DynamicObject) -> bool {
    let made_from = vmi.annotations().get(TEMPLATE_HASH);
    made_from.is_some_and(|hash| *hash != template_hash(vm))
}

/// The machine is being deleted: the instance goes first.
async fn end(world: &World, key: &Key, vm: &DynamicObject, vmi: Option<&DynamicObject>) -> Pass {
    if let Some(vmi) = vmi {
        if !going(vmi) {
            world.delete(Res::Vmi, vmi, false).await?;
        }
        write_status(world, key, vm, Some(vmi), &Done::default()).await?;
        return Ok(None);
    }
    if !world.behaviour.has(key, &Fault::VmFinalizerStays) {
        world
            .finalizer(Res::Vm, KUBEVIRT_MANAGER, vm, VM_FINALIZER, false)
            .await?;
    }
    Ok(None)
}

async fn write_status(
    world: &World,
    key: &Key,
    vm: &DynamicObject,
    vmi: Option<&DynamicObject>,
    done: &Done,
) -> Result<(), kube::Error> {
    let old = status(vm);
    let empty = json!({});
    let instance = vmi.map(|vmi| Instance {
        uid: uid(vmi),
        status: vmi.data.get("status").unwrap_or(&empty),
        going: going(vmi),
        generation: noted_generation(world, key, vmi),
        outdated: outdated(vm, vmi),
    });
    let pointer = "/spec/template/spec/volumes";
    let disks = disks(world, &key.namespace, claims(&vm.data, pointer));
    let volumes: Vec<String> = list(&vm.data, pointer)
        .iter()
        .map(|volume| text(volume, "/name").to_owned())
        .collect();
    let facts = Facts {
        deleting: going(vm),
        generation: vm.metadata.generation.unwrap_or_default(),
        situation: situation(vm, &old, vmi),
        instance,
        disks: &disks,
        volumes: &volumes,
        started: done.started,
        refused: done.refused.as_deref(),
        queue_start: done.queue_start,
    };
    let mut next = next_status(&old, &facts);
    if let Some(word) = world.behaviour.printable_status(key) {
        next["printableStatus"] = json!(word);
    }
    match merge_patch(&old, &next) {
        Some(patch) => {
            world
                .merge_status(Res::Vm, KUBEVIRT_MANAGER, vm, patch)
                .await
        }
        None => Ok(()),
    }
}

/// The note may be newer than the instance as this pass saw it.
fn noted_generation(world: &World, key: &Key, vmi: &DynamicObject) -> i64 {
    let newest = world.get(Res::Vmi, key);
    let newest = newest
        .as_deref()
        .filter(|newest| uid(newest) == uid(vmi))
        .unwrap_or(vmi);
    let note = newest.annotations().get(VM_GENERATION);
    note.and_then(|note| note.parse().ok()).unwrap_or_default()
}
