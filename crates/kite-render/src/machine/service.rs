//! The machine's Service: one for all ports (rule V-17).

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kite_api::labels::VM_UID;

use super::child_name;
use crate::meta::{Component, owned_by_machine, pair};
use crate::validate::MachineOwner;

/// A port of the Service, the same in the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its name.
    pub name: &'static str,
    /// Its number.
    pub number: i32,
}

/// The port for logging in.
pub const SSH: Port = Port {
    name: "ssh",
    number: 22,
};
/// The port that the Ingress points to.
pub const HTTP: Port = Port {
    name: "http",
    number: 80,
};

/// The Service. It depends on nothing but whose machine it is, so an invalid spec does not take it away.
pub fn service(owner: &MachineOwner) -> Service {
    let port = |port: Port| ServicePort {
        name: Some(port.name.to_owned()),
        port: port.number,
        target_port: Some(IntOrString::Int(port.number)),
        // Named, since it is a key of the list: left to the server's default, later applies would not find it.
        protocol: Some("TCP".to_owned()),
        ..ServicePort::default()
    };
    Service {
        metadata: owned_by_machine(owner, child_name(owner), Component::Service),
        spec: Some(ServiceSpec {
            type_: Some("ClusterIP".to_owned()),
            // KubeVirt's own name label holds the host name and is not unique.
            selector: Some(pair(VM_UID, owner.uid.as_str())),
            ports: Some(vec![port(SSH), port(HTTP)]),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}
