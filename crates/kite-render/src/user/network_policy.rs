//! The isolation of a user's namespace (rule U-5): two NetworkPolicies.
//!
//! `kite-isolation` selects every pod for both directions, so that whatever it
//! does not allow is denied. `kite-clone` opens one port of CDI's receiving pods
//! to CDI's sending pods; it is apart because it must not open that port on
//! machines. IPv4 and IPv6 are treated alike, and no address of the API server
//! is written down.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use k8s_openapi::api::networking::v1::{
    IPBlock, NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyIngressRule, NetworkPolicyPeer,
    NetworkPolicyPort, NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kite_api::user::Protocol;
use kite_kubevirt::names::{CDI_CLONE_SOURCE, CDI_UPLOAD_PORT, CDI_UPLOAD_SERVER, CDI_WORKER};

use crate::meta::{Component, bound_to_user, pair};
use crate::validate::{Cidr, DnsLabel, SshSource, ValidPlatform, ValidUser};

/// Name of the policy that denies both ways and holds the allowances.
pub const ISOLATION_POLICY: &str = "kite-isolation";
/// Name of the policy for the traffic of a clone.
pub const CLONE_POLICY: &str = "kite-clone";

/// Label that the API server puts on every namespace.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// The ports on which a machine serves, as its Service has them.
const SSH: u16 = 22;
const HTTP: u16 = 80;
const DNS: u16 = 53;

/// IPv4 ranges that are not the internet: RFC 1918, carrier-grade NAT, link-local with the metadata service.
const PRIVATE_V4: [(Ipv4Addr, u8); 5] = [
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
];
/// IPv6 ranges that are not the internet: unique local (a cloud's metadata service among them) and link-local.
const PRIVATE_V6: [(Ipv6Addr, u8); 2] = [
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10),
];

/// Both policies of a user's namespace.
pub fn network_policies(user: &ValidUser, platform: &ValidPlatform) -> [NetworkPolicy; 2] {
    [isolation(user, platform), clone(user, platform)]
}

fn isolation(user: &ValidUser, platform: &ValidPlatform) -> NetworkPolicy {
    let spec = NetworkPolicySpec {
        pod_selector: Some(LabelSelector::default()),
        policy_types: Some(vec!["Ingress".to_owned(), "Egress".to_owned()]),
        ingress: Some(ingress(user, platform)),
        egress: Some(egress(user, platform)),
    };
    policy(user, ISOLATION_POLICY, spec)
}

/// The sending pod of a host-assisted clone stands in the image's namespace; CSI clones use no pods.
fn clone(user: &ValidUser, platform: &ValidPlatform) -> NetworkPolicy {
    let sender = NetworkPolicyPeer {
        pod_selector: Some(selector(pair(CDI_WORKER, CDI_CLONE_SOURCE))),
        ..pods_of(&platform.image_namespace)
    };
    let spec = NetworkPolicySpec {
        pod_selector: Some(selector(pair(CDI_WORKER, CDI_UPLOAD_SERVER))),
        policy_types: Some(vec!["Ingress".to_owned()]),
        ingress: Some(vec![NetworkPolicyIngressRule {
            from: Some(vec![sender]),
            ports: Some(vec![port(Protocol::TCP, CDI_UPLOAD_PORT)]),
        }]),
        // Empty and not absent: an apply takes away only what it names.
        egress: Some(Vec::new()),
    };
    policy(user, CLONE_POLICY, spec)
}

fn policy(user: &ValidUser, name: &str, spec: NetworkPolicySpec) -> NetworkPolicy {
    NetworkPolicy {
        metadata: bound_to_user(
            &user.owner,
            &user.namespace,
            name.to_owned(),
            Component::Isolation,
        ),
        spec: Some(spec),
    }
}

/// In this order: the namespace itself, HTTP from the ingress controller, SSH, and what was asked for.
fn ingress(user: &ValidUser, platform: &ValidPlatform) -> Vec<NetworkPolicyIngressRule> {
    let rule = |from: Vec<NetworkPolicyPeer>, ports: Option<Vec<NetworkPolicyPort>>| {
        NetworkPolicyIngressRule {
            from: Some(from),
            ports,
        }
    };
    let mut rules = vec![rule(vec![same_namespace()], None)];
    if let Some(controller) = &platform.ingress_namespace {
        rules.push(rule(
            vec![pods_of(controller)],
            Some(vec![port(Protocol::TCP, HTTP)]),
        ));
    }
    // A rule with an empty `from` would let everybody in, so no source means no rule.
    if !platform.ssh_sources.is_empty() {
        let sources = platform.ssh_sources.iter().map(|s| match s {
            SshSource::Range(cidr) => block(cidr, &[]),
            SshSource::Namespace(namespace) => pods_of(namespace),
        });
        rules.push(rule(
            sources.collect(),
            Some(vec![port(Protocol::TCP, SSH)]),
        ));
    }
    if !user.allow_from.is_empty() {
        rules.push(rule(user.allow_from.iter().map(pods_of).collect(), None));
    }
    rules
}

/// In this order: the namespace itself, DNS, the internet, and what was asked for.
fn egress(user: &ValidUser, platform: &ValidPlatform) -> Vec<NetworkPolicyEgressRule> {
    let rule = |to: Vec<NetworkPolicyPeer>, ports: Option<Vec<NetworkPolicyPort>>| {
        NetworkPolicyEgressRule {
            to: Some(to),
            ports,
        }
    };
    let mut resolvers = vec![NetworkPolicyPeer {
        pod_selector: Some(selector(platform.dns_labels.clone())),
        ..pods_of(&platform.dns_namespace)
    }];
    resolvers.extend(
        platform
            .node_local_dns
            .map(|address| block(&Cidr::single(address), &[])),
    );
    let dns = vec![port(Protocol::UDP, DNS), port(Protocol::TCP, DNS)];
    let mut rules = vec![
        rule(vec![same_namespace()], None),
        rule(resolvers, Some(dns)),
        rule(internet(platform), None),
    ];
    rules.extend(user.extra_egress.iter().map(|e| {
        let ports: Vec<_> = e.ports.iter().map(|p| port(p.protocol, p.port)).collect();
        rule(
            vec![block(&e.cidr, &[])],
            Some(ports).filter(|p| !p.is_empty()),
        )
    }));
    rules
}

/// Every address of both families but the private ones, the cluster's and those that the platform closes.
fn internet(platform: &ValidPlatform) -> Vec<NetworkPolicyPeer> {
    let v4 = PRIVATE_V4.map(|(address, length)| Cidr::new(IpAddr::V4(address), length));
    let v6 = PRIVATE_V6.map(|(address, length)| Cidr::new(IpAddr::V6(address), length));
    let closed: Vec<Cidr> = v4
        .into_iter()
        .chain(v6)
        .chain(platform.closed_ranges.iter().copied())
        .collect();
    [
        IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    ]
    .map(|any| block(&Cidr::new(any, 0), &closed))
    .into()
}

/// A range with holes. Holes outside of it are left out, for the server refuses them, and so are
/// holes within other holes.
fn block(cidr: &Cidr, holes: &[Cidr]) -> NetworkPolicyPeer {
    let mut holes: Vec<Cidr> = holes
        .iter()
        .filter(|h| cidr.contains(h) && *h != cidr)
        .copied()
        .collect();
    holes.sort();
    holes.dedup();
    let outer = |hole: &Cidr| {
        !holes
            .iter()
            .any(|other| other != hole && other.contains(hole))
    };
    let except: Vec<String> = holes
        .iter()
        .filter(|h| outer(h))
        .map(ToString::to_string)
        .collect();
    NetworkPolicyPeer {
        ip_block: Some(IPBlock {
            cidr: cidr.to_string(),
            except: Some(except).filter(|e| !e.is_empty()),
        }),
        ..NetworkPolicyPeer::default()
    }
}

fn same_namespace() -> NetworkPolicyPeer {
    NetworkPolicyPeer {
        pod_selector: Some(LabelSelector::default()),
        ..NetworkPolicyPeer::default()
    }
}

fn pods_of(namespace: &DnsLabel) -> NetworkPolicyPeer {
    NetworkPolicyPeer {
        namespace_selector: Some(selector(pair(NAMESPACE_NAME, namespace.as_str()))),
        ..NetworkPolicyPeer::default()
    }
}

fn selector(labels: BTreeMap<String, String>) -> LabelSelector {
    LabelSelector {
        match_labels: Some(labels),
        match_expressions: None,
    }
}

/// The protocol is always named, so that the server fills in nothing.
fn port(protocol: Protocol, number: u16) -> NetworkPolicyPort {
    NetworkPolicyPort {
        protocol: Some(match protocol {
            Protocol::TCP => "TCP".to_owned(),
            Protocol::UDP => "UDP".to_owned(),
        }),
        port: Some(IntOrString::Int(i32::from(number))),
        end_port: None,
    }
}
