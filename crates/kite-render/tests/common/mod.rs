//! One user, one machine and one platform for the tests of this crate.

// Each test binary uses its own part of this.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::panic)]

use kite_api::{KitePlatformSpec, KiteUser, KiteVirtualMachine};
use kite_render::machine::Hardware;
use kite_render::validate::{ValidMachine, ValidPlatform, ValidUser};
use serde_json::{Value, json};

/// A key that opens nothing.
pub const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti alice";

pub fn platform_spec() -> KitePlatformSpec {
    serde_json::from_value(json!({
        "baseDomain": "vms.example.org",
        "ingress": {"className": "nginx", "controllerNamespace": "ingress-nginx", "tls": "Wildcard"},
        "network": {
            "clusterRanges": ["10.244.0.0/16", "11.96.0.0/12", "2001:db8:42::/48"],
            "privateRanges": ["198.51.100.0/24"],
            "sshSources": [{"cidr": "203.0.113.0/24"}, {"namespace": "bastion"}]
        },
        "cpuAllocationRatio": 10
    }))
    .unwrap()
}

pub fn platform() -> ValidPlatform {
    ValidPlatform::parse(&platform_spec()).unwrap()
}

pub fn raw_user() -> KiteUser {
    serde_json::from_value(json!({
        "apiVersion": "kite.dev/v1alpha1", "kind": "KiteUser",
        "metadata": {"name": "alice", "uid": "11111111-1111-1111-1111-111111111111"},
        "spec": {
            "namespace": "alice",
            "quota": {
                "cpu": 8, "memory": "16Gi", "storage": "100Gi", "virtualMachines": 4,
                "hard": {"services.loadbalancers": "0", "requests.ephemeral-storage": "10Gi"}
            },
            "network": {
                "allowFromNamespaces": ["monitoring"],
                "extraEgress": [{"cidr": "10.20.0.0/16", "ports": [{"port": 5432}]}]
            },
            "subjects": [{"kind": "User", "name": "alice@example.org"}, {"kind": "Group", "name": "team: a"}]
        }
    }))
    .unwrap()
}

pub fn user() -> ValidUser {
    ValidUser::parse(&raw_user(), &platform()).unwrap()
}

pub fn raw_machine() -> KiteVirtualMachine {
    serde_json::from_value(json!({
        "apiVersion": "kite.dev/v1alpha1", "kind": "KiteVirtualMachine",
        "metadata": {"name": "web", "namespace": "alice", "uid": "22222222-2222-2222-2222-222222222222"},
        "spec": {
            "cpu": 2, "memory": "4Gi", "disk": "25Gi", "image": "ubuntu-24.04",
            "domainPrefix": "alice-web", "sshAuthorizedKeys": [KEY]
        }
    }))
    .unwrap()
}

pub fn machine() -> ValidMachine {
    ValidMachine::parse(&raw_machine(), &platform()).unwrap()
}

pub fn hardware(platform: &ValidPlatform) -> Hardware<'_> {
    Hardware {
        limits: &platform.limits,
        memory_grows: true,
        live: None,
        login_hash: "0123456789abcdef",
    }
}

pub fn value<T: serde::Serialize>(object: &T) -> Value {
    serde_json::to_value(object).unwrap()
}
