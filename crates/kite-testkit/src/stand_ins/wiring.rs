//! The watches, and which event makes which object be looked at.
//!
//! Nothing is decided here. Work begins only when every list has been read
//! once, so that a restart never mistakes what it has not seen for what is gone.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, pin_mut};
use kube::ResourceExt;
use kube::api::{Api, DynamicObject};
use kube::runtime::WatchStreamExt;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event, watcher};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::agenda::{Task, work};
use super::cache::Key;
use super::cdi::{claims as storage, data_source, data_volume};
use super::kubevirt::{disks::claims, pod_vmi, vm, vmi};
use super::names::{FILLS, LAUNCHER, LAUNCHER_LABEL, Res, STAND_IN_LABEL};
use super::value::text;
use super::world::{Pass, World, uid};

/// A watch that failed is tried again after this: CRDs may come late.
const WATCH_AGAIN: Duration = Duration::from_secs(1);
/// A pass that found its object changed by somebody else.
const AFTER_CONFLICT: Duration = Duration::from_millis(50);
/// A pass that failed otherwise.
const AFTER_ERROR: Duration = Duration::from_millis(500);
/// No object is looked at more often than this: a wrong rule must not spin.
const SHORTEST: Duration = Duration::from_millis(2);

#[derive(Clone)]
struct Steady;

impl Iterator for Steady {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(WATCH_AGAIN)
    }
}

impl Backoff for Steady {
    fn reset(&mut self) {}
}

/// Starts the watches, and the work once all of them have listed.
pub(super) fn spawn(world: &Arc<World>, slots: usize, tasks: &mut JoinSet<()>) {
    let (listed, mut all_listed) = mpsc::channel(Res::ALL.len());
    for kind in Res::ALL {
        let world = world.clone();
        let listed = listed.clone();
        tasks.spawn(async move { follow(&world, kind, listed).await });
    }
    let world = world.clone();
    tasks.spawn(async move {
        for _ in Res::ALL {
            if all_listed.recv().await.is_none() {
                return;
            }
        }
        let agenda = world.agenda.clone();
        work(agenda, slots, move |task| look(world.clone(), task)).await;
    });
}

async fn follow(world: &World, kind: Res, listed: mpsc::Sender<()>) {
    let api: Api<DynamicObject> = Api::all_with(world.client.clone(), &kind.api_resource());
    let config = watcher::Config::default();
    let config = match kind {
        Res::Pod => config.labels(&format!("{LAUNCHER_LABEL}={LAUNCHER}")),
        Res::Volume => config.labels(&format!("{STAND_IN_LABEL}=true")),
        _ => config,
    };
    let events = watcher(api, config).backoff(Steady);
    pin_mut!(events);
    let mut listed = Some(listed);
    let mut seen = HashSet::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => seen.clear(),
            Ok(Event::InitApply(object)) => {
                seen.insert(Key::of(&object));
                changed(world, kind, &object);
            }
            Ok(Event::InitDone) => {
                for object in world.store(kind).keep_only(&seen) {
                    gone(world, kind, &object);
                }
                tell(&mut listed).await;
            }
            Ok(Event::Apply(object)) => changed(world, kind, &object),
            Ok(Event::Delete(object)) => {
                world.store(kind).remove(&object);
                gone(world, kind, &object);
            }
            Err(error) => {
                tracing::debug!(?kind, %error, "stand-in: watch failed");
                if kind_is_absent(&error) {
                    tell(&mut listed).await;
                }
            }
        }
    }
}

async fn tell(listed: &mut Option<mpsc::Sender<()>>) {
    if let Some(listed) = listed.take() {
        // Nobody listens only when everything is being stopped.
        let _ = listed.send(()).await;
    }
}

fn kind_is_absent(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status)) => status.code == 404,
        _ => false,
    }
}

fn changed(world: &World, kind: Res, object: &DynamicObject) {
    world.store(kind).put(object.clone());
    wake(world, kind, object, object.annotations());
}

fn gone(world: &World, kind: Res, object: &DynamicObject) {
    world.forget(object);
    wake(world, kind, object, &BTreeMap::new());
}

fn wake(world: &World, kind: Res, object: &DynamicObject, notes: &BTreeMap<String, String>) {
    let key = Key::of(object);
    let agenda = &world.agenda;
    match kind {
        Res::Vm => {
            for claim in claims(&object.data, "/spec/template/spec/volumes") {
                let claim = Key::new(key.namespace.clone(), claim);
                for on in [Res::Claim, Res::DataVolume] {
                    for who in [Res::Vm, Res::Vmi] {
                        world.links.add((on, claim.clone()), (who, key.clone()));
                    }
                }
            }
        }
        Res::Vmi => {
            agenda.wake(Res::Vm, key.clone());
            for claim in claims(&object.data, "/spec/volumes") {
                agenda.wake(Res::DataVolume, Key::new(key.namespace.clone(), claim));
            }
        }
        Res::Claim => {
            let namespace = &key.namespace;
            let filled = object.annotations().get(FILLS).unwrap_or(&key.name);
            agenda.wake(Res::DataVolume, Key::new(namespace.clone(), filled));
            let temporary = format!("tmp-pvc-{}", uid(object));
            agenda.wake(Res::Claim, Key::new(namespace.clone(), temporary));
        }
        Res::Pod => {
            if let Some(vmi) = pod_vmi(object) {
                agenda.wake(Res::Vmi, vmi);
            }
        }
        Res::Volume => {
            let claim = |field: &str| text(&object.data, &format!("/spec/claimRef/{field}"));
            agenda.wake(Res::Claim, Key::new(claim("namespace"), claim("name")));
        }
        Res::Namespace => {
            if world.behaviour.read_namespace(&key.name, notes) {
                wake_all(world, &key.name);
            }
        }
        Res::DataVolume | Res::DataSource => {}
    }
    for (who, other) in world.links.of(&(kind, key.clone())) {
        agenda.wake(who, other);
    }
    if !matches!(kind, Res::Pod | Res::Namespace) {
        agenda.wake(kind, key);
    }
}

fn wake_all(world: &World, namespace: &str) {
    for kind in [Res::Vm, Res::Vmi, Res::DataVolume, Res::Claim] {
        let inside =
            |object: &DynamicObject| object.metadata.namespace.as_deref() == Some(namespace);
        for object in world.store(kind).find(inside) {
            world.agenda.wake(kind, Key::of(&object));
        }
    }
}

async fn look(world: Arc<World>, task: Task) -> Option<Duration> {
    let Task { kind, key } = task;
    let pass: Pass = match kind {
        Res::Vm => vm::pass(&world, &key).await,
        Res::Vmi => vmi::pass(&world, &key).await,
        Res::DataVolume => data_volume::pass(&world, &key).await,
        Res::DataSource => data_source::pass(&world, &key).await,
        Res::Claim => storage::pass(&world, &key).await,
        Res::Volume => storage::volume_pass(&world, &key).await,
        Res::Pod | Res::Namespace => Ok(None),
    };
    match pass {
        Ok(again) => again.map(|delay| delay.max(SHORTEST)),
        // It is gone; its event says so too.
        Err(kube::Error::Api(status)) if status.code == 404 => None,
        Err(kube::Error::Api(status)) if status.code == 409 => Some(AFTER_CONFLICT),
        Err(error) => {
            tracing::debug!(?kind, ?key, %error, "stand-in: pass failed");
            Some(AFTER_ERROR)
        }
    }
}
