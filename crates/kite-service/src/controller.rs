//! Wiring: which changes wake which machines, and the rights that takes.

use std::hash::{DefaultHasher, Hash, Hasher};

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use kite_api::KiteVirtualMachine;
use kite_api::condition::SERVICE_READY;
use kite_api::labels::{Controller, MANAGED_SELECTOR};
use kite_api::ownership::is_leaving;
use kite_runtime::mirror::{Mirror, namesake};
use kite_runtime::pass::drive;
use kite_runtime::rbac::Rule;
use kite_runtime::{AsJson, Feeds, Key, Process, Program, Watch};

use crate::observe::{BY_SERVICE, World, is_ready, service_of};
use crate::reconcile::ServicePass;
use crate::status::standing;

/// What this controller may do, beyond what every controller may.
pub const RULES: &[Rule] = &[
    Rule::cluster(
        "kite.dev",
        &["kitevirtualmachines"],
        &["list", "watch"],
        "whose Service it is, and whether anything should answer",
    ),
    Rule::cluster(
        "kite.dev",
        &["kitevirtualmachines/status"],
        &["patch"],
        "its own part of the status",
    ),
    Rule::cluster(
        "",
        &["services"],
        &["list", "watch"],
        "whether the Service is as declared",
    ),
    Rule::cluster(
        "discovery.k8s.io",
        &["endpointslices"],
        &["list", "watch"],
        "whether anything answers behind it",
    ),
];

/// Flags of kite-service alone.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {}

/// The program.
pub struct KiteService;

impl Program for KiteService {
    const CONTROLLER: Controller = Controller::Service;
    const ABOUT: &'static str = "Tells whether each virtual machine can be reached.";
    type Flags = Flags;

    async fn run(process: Process, _flags: Flags) -> anyhow::Result<()> {
        let mut feeds = Feeds::new(process.health.clone());
        let world = watch(&mut feeds, &process);
        process
            .metrics
            .machines(Controller::Service, &world.machines)?;
        let mirror = Mirror::new(&process, Controller::Service.name(), world.machines.clone());
        let pass = ServicePass::new(world, mirror);
        drive(&process, feeds, pass).await
    }
}

fn watch(feeds: &mut Feeds, process: &Process) -> World {
    let client = || process.client.clone();
    World {
        machines: feeds.primary(
            Watch::objects("KiteVirtualMachine", client())
                .packed()
                .reads(reads_of_machine)
                .trim(trim_machine),
        ),
        // A Service has the machine's name; whose it is is the pass's question.
        services: feeds.watch(
            Watch::objects("Service", client())
                .packed()
                .labels(MANAGED_SELECTOR)
                .reads(reads_of_service),
            namesake,
        ),
        slices: feeds.watch(
            Watch::objects("EndpointSlice", client())
                .packed()
                .index(BY_SERVICE)
                .labels(MANAGED_SELECTOR)
                .reads(reads_of_slice)
                .trim(trim_slice),
            |_: &Key, slice: Option<&EndpointSlice>| {
                slice.and_then(service_of).into_iter().collect()
            },
        ),
    }
}

fn reads_of_machine(machine: &KiteVirtualMachine) -> u64 {
    let mut hasher = DefaultHasher::new();
    is_leaving(machine).hash(&mut hasher);
    AsJson(&machine.spec.power_state).hash(&mut hasher);
    if let Some(status) = &machine.status {
        status.service_name.is_some().hash(&mut hasher);
        let own = standing(machine);
        AsJson(&own).hash(&mut hasher);
    }
    hasher.finish()
}

fn trim_machine(machine: &mut KiteVirtualMachine) {
    machine.spec.ssh_authorized_keys = Vec::new();
    machine.metadata.annotations = None;
    if let Some(status) = &mut machine.status {
        status.conditions.retain(|c| c.type_ == SERVICE_READY);
    }
}

fn reads_of_service(service: &Service) -> u64 {
    let mut hasher = DefaultHasher::new();
    let meta = &service.metadata;
    (&meta.labels, &meta.annotations).hash(&mut hasher);
    let rest = (&meta.owner_references, &service.spec, &service.status);
    AsJson(&rest).hash(&mut hasher);
    hasher.finish()
}

fn reads_of_slice(slice: &EndpointSlice) -> u64 {
    u64::from(is_ready(slice))
}

/// Who the endpoints are is kube-proxy's business; whether one is ready is all that is read.
fn trim_slice(slice: &mut EndpointSlice) {
    slice.metadata.annotations = None;
    slice.metadata.owner_references = None;
    slice.ports = None;
    for endpoint in &mut slice.endpoints {
        let conditions = endpoint.conditions.take();
        *endpoint = Endpoint {
            conditions,
            ..Endpoint::default()
        };
    }
}
