//! The claim by which a machine holds a host (rule V-9).
//!
//! It is cluster-scoped, so no owner reference to the machine is possible;
//! kite-vm takes it away, or over.

use kite_api::claim::{KiteHostClaim, KiteHostClaimSpec};

use crate::meta::{Component, bound_to_machine};
use crate::validate::{DnsName, MachineOwner};

/// The claim of a host, named like it, so that the API server lets only one machine make it.
pub fn host_claim(owner: &MachineOwner, host: &DnsName) -> KiteHostClaim {
    let spec = KiteHostClaimSpec {
        namespace: owner.namespace.to_string(),
        name: owner.name.to_string(),
        uid: owner.uid.to_string(),
    };
    let mut claim = KiteHostClaim::new(host.as_str(), spec);
    claim.metadata = bound_to_machine(owner, host.to_string(), Component::Ingress);
    claim.metadata.namespace = None;
    claim
}
