//! kite-service's whole part of the status, from what was seen.
//!
//! Pure: the clock is the caller's, and what should exist is kite-render's, the
//! same that kite-vm compares with.

pub mod clocks;

use std::net::IpAddr;

use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service, ServicePort};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kite_api::condition::{self, SERVICE_READY, Wanted};
use kite_api::labels::Controller;
use kite_api::machine::{Endpoint, PowerState};
use kite_api::{KiteVirtualMachine, KiteVirtualMachineStatus, ownership};
use kite_render::compare::Compare as _;

/// There is no Service.
pub const MISSING: &str = "Missing";
/// The Service is not as declared; the message says in what, always in the same words (rule C-8).
pub const DRIFTED: &str = "Drifted";
/// The Service is as declared and leads to the guest.
pub const REACHABLE: &str = "Reachable";
/// It is as declared, and nothing answers behind it although something should.
pub const NO_ENDPOINTS: &str = "NoEndpoints";
/// It is as declared, and nothing answers behind it because the machine is off.
pub const NO_ENDPOINTS_STOPPED: &str = "NoEndpointsStopped";

/// The schema's bounds of `endpoints` and of the texts in them.
const ENDPOINT_LIMIT: usize = 16;
const NAME_LIMIT: usize = 63;
const HOST_LIMIT: usize = 253;

/// What stands in the status now of what is ours.
pub fn standing(machine: &KiteVirtualMachine) -> KiteVirtualMachineStatus {
    ownership::standing(Controller::Service, machine)
}

/// What should stand, with the Service that should exist, the one that does, and whether it leads anywhere.
pub fn tell(
    machine: &KiteVirtualMachine,
    wanted: &Service,
    live: Option<&Service>,
    answers: bool,
    now: &Time,
) -> KiteVirtualMachineStatus {
    let before = standing(machine);
    let ready = ready(machine.spec.power_state, wanted, live, answers);
    KiteVirtualMachineStatus {
        endpoints: live.map(endpoints).unwrap_or_default(),
        conditions: condition::settle(
            &before.conditions,
            vec![ready],
            machine.metadata.generation,
            now,
        ),
        ..KiteVirtualMachineStatus::default()
    }
}

fn ready(power: PowerState, wanted: &Service, live: Option<&Service>, answers: bool) -> Wanted {
    let say = |status: bool, reason: &str, message: &str| {
        Wanted::new(SERVICE_READY, status, reason, message)
    };
    let Some(live) = live else {
        return say(false, MISSING, "the machine has no Service");
    };
    let drift = drift(wanted, live);
    if !drift.is_empty() {
        return say(false, DRIFTED, &drift.join("; "));
    }
    match power {
        _ if answers => say(
            true,
            REACHABLE,
            "the Service is as declared and leads to the machine",
        ),
        PowerState::Off => say(
            true,
            NO_ENDPOINTS_STOPPED,
            "the Service is as declared; nothing answers, since the machine is off",
        ),
        PowerState::On => say(
            true,
            NO_ENDPOINTS,
            "the Service is as declared; nothing answers yet, since no ready guest is behind it",
        ),
    }
}

/// Each way in which the Service is not as declared (rule E-1).
fn drift(wanted: &Service, live: &Service) -> Vec<String> {
    let differences = wanted.differences(live).into_iter().map(|d| d.to_string());
    let additions = wanted.additions(live).into_iter().map(|a| a.to_string());
    differences.chain(additions).collect()
}

/// Where the machine is reached, port by port (rule E-4). What the schema has no room for is left
/// out, so that one odd field never keeps the rest from being told.
fn endpoints(service: &Service) -> Vec<Endpoint> {
    let spec = service.spec.as_ref();
    let name = service.metadata.name.as_deref().unwrap_or_default();
    let namespace = service.metadata.namespace.as_deref().unwrap_or_default();
    // The address of the first family; a Service of two has a second one under the same name.
    let address = spec
        .and_then(|s| s.cluster_ip.as_deref())
        .and_then(|a| a.parse::<IpAddr>().ok());
    let external = external_address(service);
    let endpoint = |port: &ServicePort| Endpoint {
        name: port_name(port),
        address: address.map(|a| a.to_string()),
        // The cluster's own domain is not known here; every pod's resolver adds it.
        dns_name: format!("{name}.{namespace}.svc"),
        port: port.port,
        external_address: external.clone(),
    };
    let ports = spec.and_then(|s| s.ports.as_ref()).into_iter().flatten();
    let ports = ports.filter(|p| u16::try_from(p.port).is_ok_and(|n| n > 0));
    ports.take(ENDPOINT_LIMIT).map(endpoint).collect()
}

fn port_name(port: &ServicePort) -> String {
    let name = port.name.as_deref().unwrap_or_default();
    let name = &name[..name.floor_char_boundary(NAME_LIMIT)];
    if name.is_empty() {
        port.port.to_string()
    } else {
        name.to_owned()
    }
}

/// The address outside the cluster that a Service's type has given it.
fn external_address(service: &Service) -> Option<String> {
    let balancer = service.status.as_ref()?.load_balancer.as_ref()?;
    let mut ingress = balancer.ingress.iter().flatten();
    let given = |i: &LoadBalancerIngress| i.ip.clone().or_else(|| i.hostname.clone());
    ingress
        .find_map(given)
        .filter(|a| !a.is_empty() && a.len() <= HOST_LIMIT)
}
