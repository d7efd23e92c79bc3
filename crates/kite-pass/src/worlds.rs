//! The four controllers that look at a machine, as they are once their watches have shown
//! everything that was recorded.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use k8s_openapi::api::core::v1::Service;
use kite_api::labels::Controller;
use kite_kubevirt::VirtualMachineInstance;
use kite_runtime::apply::Writer;
use kite_runtime::events::Events;
use kite_runtime::health::Health;
use kite_runtime::metrics::Metrics;
use kite_runtime::mirror::Mirror;
use kite_runtime::settings::Settings;
use kite_runtime::{Cache, Key, Process};
use kite_service::observe::BY_SERVICE;
use kite_vm::apply::login::Logins;
use kite_vm::controller::{BY_IMAGE, BY_MACHINE, BY_NAMESPACE};
use kite_vm::observe::turns::Turns;
use kite_vm::reconcile::VmPass;
use kite_vm::reconcile::standstill::Standstill;
use tokio::sync::{mpsc, watch};

use crate::recorded::Recorded;
use crate::server::Line;

/// The controllers' defaults, as their flags have them.
const TICK: Duration = Duration::from_secs(10);
const HOLD: Duration = Duration::from_secs(10);
const SETTLE: Duration = Duration::from_secs(2);
const MINUTES: Duration = Duration::from_mins(5);

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    shared: Settings,
}

/// A process with nothing but its client.
fn process(line: &Line, controller: Controller) -> Result<Process> {
    let metrics = Arc::new(Metrics::new(controller.name())?);
    let (_, stop) = watch::channel(false);
    Ok(Process {
        client: line.client.clone(),
        settings: Arc::new(Flags::try_parse_from(["kite"])?.shared),
        health: Health::new(Arc::clone(&metrics))?,
        events: Events::new(line.client.clone(), controller.name(), "bench"),
        metrics,
        stop,
    })
}

/// What kite-vm has seen.
fn seen_by_vm(recorded: &Recorded) -> Result<kite_vm::controller::World> {
    let (waker, _) = mpsc::unbounded_channel();
    Ok(kite_vm::controller::World {
        machines: recorded.cache()?,
        vms: recorded.cache()?,
        vmis: recorded.cache()?,
        disks: recorded.indexed(BY_IMAGE)?,
        claims: recorded.cache()?,
        services: recorded.cache()?,
        ingresses: recorded.cache()?,
        namespaces: recorded.cache()?,
        users: recorded.indexed(BY_NAMESPACE)?,
        platform: recorded.cache()?,
        images: recorded.cache()?,
        classes: recorded.cache()?,
        hosts: recorded.indexed(BY_MACHINE)?,
        crd: recorded.cache()?,
        malformed: Cache::new(|_| 0),
        logins: Logins::default(),
        witness: Arc::default(),
        turns: Turns::new(MINUTES, waker),
    })
}

/// kite-vm. `prepare` changes what it has seen.
pub(crate) fn vm(
    recorded: &Recorded,
    line: &Line,
    prepare: impl FnOnce(&mut kite_vm::controller::World) -> Result<()>,
) -> Result<VmPass> {
    let process = process(line, Controller::Vm)?;
    let flags = kite_vm::controller::Flags {
        memory_grows: true,
        clone_patience: MINUTES,
        deletion_patience: Duration::from_mins(1),
    };
    let mut world = seen_by_vm(recorded)?;
    prepare(&mut world)?;
    let writer = Writer::new(
        process.client,
        Controller::Vm.name(),
        Arc::clone(&process.metrics),
    );
    let standstill = Standstill::new(flags.deletion_patience, process.metrics.registry())?;
    Ok(VmPass::new(
        world,
        writer,
        process.events,
        flags,
        standstill,
    ))
}

/// kite-vm-status.
pub(crate) fn vm_status(
    recorded: &Recorded,
    line: &Line,
) -> Result<kite_vm_status::reconcile::StatusPass> {
    let process = process(line, Controller::VmStatus)?;
    let guests = kite_vm_status::observe::guests::Guests::default();
    for guest in recorded.all::<VirtualMachineInstance>()? {
        guests.look(&Key::of(&guest), &guest);
    }
    let world = kite_vm_status::observe::World {
        machines: recorded.cache()?,
        vms: recorded.cache()?,
        instances: recorded.cache()?,
    };
    let mirror = Mirror::new(
        &process,
        Controller::VmStatus.name(),
        world.machines.clone(),
    );
    let holds = kite_vm_status::status::clocks::Holds {
        error: HOLD,
        settle: SETTLE,
        transition: MINUTES,
    };
    Ok(kite_vm_status::reconcile::StatusPass::new(
        world, guests, mirror, holds,
    ))
}

/// kite-service.
pub(crate) fn service(
    recorded: &Recorded,
    line: &Line,
) -> Result<kite_service::reconcile::ServicePass> {
    let process = process(line, Controller::Service)?;
    let services: Cache<Service> = recorded.cache()?;
    let world = kite_service::observe::World {
        machines: recorded.cache()?,
        services,
        slices: recorded.indexed(BY_SERVICE)?,
    };
    let mirror = Mirror::new(&process, Controller::Service.name(), world.machines.clone());
    Ok(kite_service::reconcile::ServicePass::new(world, mirror))
}

/// kite-datavolume.
pub(crate) fn datavolume(
    recorded: &Recorded,
    line: &Line,
) -> Result<kite_datavolume::reconcile::DiskPass> {
    let process = process(line, Controller::DataVolume)?;
    let world = kite_datavolume::observe::World {
        machines: recorded.cache()?,
        disks: recorded.cache()?,
        claims: recorded.cache()?,
    };
    let mirror = Mirror::new(
        &process,
        Controller::DataVolume.name(),
        world.machines.clone(),
    );
    let holds = kite_datavolume::status::clocks::Holds {
        error: HOLD,
        tick: TICK,
        stuck: Duration::from_mins(15),
    };
    Ok(kite_datavolume::reconcile::DiskPass::new(
        world, mirror, holds,
    ))
}
