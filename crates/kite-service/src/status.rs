//! kite-service's whole part of the status, from what was seen.
//!
//! Pure: the clock is the caller's, and what should exist is kite-render's, the
//! same that kite-vm compares with.

pub mod clocks;

use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service, ServicePort};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kite_api::condition::{self, SERVICE_READY, Wanted};
use kite_api::labels::Controller;
use kite_api::machine::{Endpoint, PowerState};
use kite_api::ownership::part_of;
use kite_api::{KiteVirtualMachine, KiteVirtualMachineStatus};
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

/// The schema's bound of `endpoints`.
const ENDPOINT_LIMIT: usize = 16;

/// Whether somebody has asked for the machine to go.
pub fn is_leaving(machine: &KiteVirtualMachine) -> bool {
    machine.spec.delete || machine.metadata.deletion_timestamp.is_some()
}

/// What stands in the status now of what is ours.
pub fn standing(machine: &KiteVirtualMachine) -> KiteVirtualMachineStatus {
    let status = machine.status.as_ref();
    status
        .map(|s| part_of(Controller::Service, s))
        .unwrap_or_default()
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

/// Where the machine is reached, port by port (rule E-4).
fn endpoints(service: &Service) -> Vec<Endpoint> {
    let spec = service.spec.as_ref();
    let name = service.metadata.name.as_deref().unwrap_or_default();
    let namespace = service.metadata.namespace.as_deref().unwrap_or_default();
    let address = spec.and_then(|s| s.cluster_ip.clone());
    let address = address.filter(|a| !a.is_empty() && a != "None");
    let external = external_address(service);
    let endpoint = |port: &ServicePort| Endpoint {
        name: port.name.clone().unwrap_or_else(|| port.port.to_string()),
        address: address.clone(),
        // The cluster's own domain is not known here; every pod's resolver adds it.
        dns_name: format!("{name}.{namespace}.svc"),
        port: port.port,
        external_address: external.clone(),
    };
    let ports = spec.and_then(|s| s.ports.as_ref()).into_iter().flatten();
    ports.take(ENDPOINT_LIMIT).map(endpoint).collect()
}

/// The address outside the cluster that a Service's type has given it.
fn external_address(service: &Service) -> Option<String> {
    let balancer = service.status.as_ref()?.load_balancer.as_ref()?;
    let ingress: &LoadBalancerIngress = balancer.ingress.as_ref()?.first()?;
    ingress.ip.clone().or_else(|| ingress.hostname.clone())
}
