//! Who reaches whom under the rendered policies, asked by a small evaluator of
//! NetworkPolicies (rule U-5, SE19), and what the API server would refuse (SE20).

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::net::IpAddr;

use common::{platform, user};
use k8s_openapi::api::networking::v1::{NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kite_render::user::network_policies;
use kite_render::validate::{Cidr, ValidPlatform};

/// One end of a connection: a pod of a namespace, or an address outside the cluster.
enum End {
    Pod(&'static str, Labels),
    Address(&'static str),
}

use End::{Address, Pod};

/// Labels of a pod.
type Labels = &'static [(&'static str, &'static str)];

const MACHINE: Labels = &[("kubevirt.io", "virt-launcher")];
const UPLOAD: Labels = &[("cdi.kubevirt.io", "cdi-upload-server")];
const SOURCE: Labels = &[("cdi.kubevirt.io", "cdi-clone-source")];
const DNS: Labels = &[("k8s-app", "kube-dns")];

fn selects(selector: &LabelSelector, labels: &[(&str, &str)]) -> bool {
    assert!(selector.match_expressions.is_none());
    let wanted = selector.match_labels.iter().flatten();
    wanted
        .into_iter()
        .all(|(k, v)| labels.contains(&(k.as_str(), v.as_str())))
}

fn covers(peer: &NetworkPolicyPeer, end: &End) -> bool {
    match (end, &peer.ip_block) {
        (Address(address), Some(block)) => {
            let address = Cidr::single(address.parse::<IpAddr>().unwrap());
            let inside = |text: &String| Cidr::parse(text).unwrap().contains(&address);
            inside(&block.cidr) && !block.except.iter().flatten().any(inside)
        }
        (Pod(namespace, labels), None) => {
            let own = *namespace == "alice";
            let name = [("kubernetes.io/metadata.name", *namespace)];
            let there = peer
                .namespace_selector
                .as_ref()
                .map_or(own, |s| selects(s, &name));
            there
                && peer
                    .pod_selector
                    .as_ref()
                    .is_none_or(|s| selects(s, labels))
        }
        _ => false,
    }
}

fn open(ports: Option<&Vec<NetworkPolicyPort>>, protocol: &str, port: i32) -> bool {
    ports.is_none_or(|ports| {
        let fits = |p: &NetworkPolicyPort| {
            p.protocol.as_deref() == Some(protocol) && p.port == Some(IntOrString::Int(port))
        };
        ports.iter().any(fits)
    })
}

/// Whether the namespace's pod may talk to (or be talked to by) the other end.
fn allowed(
    policies: &[NetworkPolicy],
    inward: bool,
    pod: &[(&str, &str)],
    other: &End,
    protocol: &str,
    port: i32,
) -> bool {
    let direction = if inward { "Ingress" } else { "Egress" };
    let selecting: Vec<_> = policies
        .iter()
        .filter_map(|p| p.spec.as_ref())
        .filter(|s| s.policy_types.iter().flatten().any(|t| t == direction))
        .filter(|s| s.pod_selector.as_ref().is_some_and(|p| selects(p, pod)))
        .collect();
    assert!(
        !selecting.is_empty(),
        "a pod that no policy selects is open to all"
    );
    let peers = |peers: Option<&Vec<NetworkPolicyPeer>>| {
        peers.is_none_or(|p| p.iter().any(|p| covers(p, other)))
    };
    selecting.iter().any(|spec| {
        if inward {
            let mut rules = spec.ingress.iter().flatten();
            rules.any(|r| open(r.ports.as_ref(), protocol, port) && peers(r.from.as_ref()))
        } else {
            let mut rules = spec.egress.iter().flatten();
            rules.any(|r| open(r.ports.as_ref(), protocol, port) && peers(r.to.as_ref()))
        }
    })
}

// SE19, U-5
#[test]
fn every_probe_into_the_namespace_is_answered_as_the_table_says() {
    let policies = network_policies(&user(), &platform());
    let table: [(End, Labels, &str, i32, bool); 17] = [
        (Pod("alice", &[]), MACHINE, "TCP", 9999, true),
        (Pod("bob", MACHINE), MACHINE, "TCP", 80, false),
        (Pod("bob", MACHINE), MACHINE, "TCP", 22, false),
        (Pod("ingress-nginx", &[]), MACHINE, "TCP", 80, true),
        (Pod("ingress-nginx", &[]), MACHINE, "TCP", 22, false),
        (Pod("ingress-nginx", &[]), MACHINE, "UDP", 80, false),
        (Pod("bastion", &[]), MACHINE, "TCP", 22, true),
        (Pod("bastion", &[]), MACHINE, "TCP", 80, false),
        (Pod("monitoring", &[]), MACHINE, "TCP", 9100, true),
        (Address("203.0.113.7"), MACHINE, "TCP", 22, true),
        (Address("203.0.113.7"), MACHINE, "TCP", 80, false),
        (Address("198.18.0.1"), MACHINE, "TCP", 22, false),
        (Address("2001:db8::1"), MACHINE, "TCP", 22, false),
        (Pod("kite-images", SOURCE), UPLOAD, "TCP", 8443, true),
        (Pod("kite-images", SOURCE), MACHINE, "TCP", 8443, false),
        (Pod("kite-images", &[]), UPLOAD, "TCP", 8443, false),
        (Pod("bob", SOURCE), UPLOAD, "TCP", 8443, false),
    ];
    for (i, (from, pod, protocol, port, answer)) in table.iter().enumerate() {
        assert_eq!(
            allowed(&policies, true, pod, from, protocol, *port),
            *answer,
            "row {i}"
        );
    }
}

// SE19, U-5
#[test]
fn every_probe_out_of_the_namespace_is_answered_as_the_table_says() {
    let policies = network_policies(&user(), &platform());
    let table: [(End, &str, i32, bool); 33] = [
        (Pod("alice", &[]), "TCP", 9999, true),
        (Pod("bob", MACHINE), "TCP", 22, false),
        (Pod("kube-system", DNS), "UDP", 53, true),
        (Pod("kube-system", DNS), "TCP", 53, true),
        (Pod("kube-system", DNS), "TCP", 9153, false),
        (Pod("kube-system", &[]), "UDP", 53, false),
        (Address("169.254.20.10"), "UDP", 53, true),
        (Address("169.254.20.10"), "TCP", 53, true),
        (Address("169.254.20.10"), "TCP", 80, false),
        (Address("169.254.20.11"), "UDP", 53, false),
        (Address("169.254.169.254"), "TCP", 80, false),
        (Address("fd00:ec2::254"), "TCP", 80, false),
        (Address("fe80::1"), "TCP", 80, false),
        (Address("1.1.1.1"), "TCP", 443, true),
        (Address("2606:4700::1111"), "TCP", 443, true),
        (Address("10.0.0.1"), "TCP", 443, false),
        (Address("10.255.255.255"), "TCP", 443, false),
        (Address("172.16.0.1"), "TCP", 443, false),
        (Address("172.31.255.255"), "TCP", 443, false),
        (Address("172.32.0.1"), "TCP", 443, true),
        (Address("192.168.1.1"), "TCP", 443, false),
        (Address("100.64.0.1"), "TCP", 443, false),
        (Address("100.127.255.255"), "TCP", 443, false),
        (Address("100.128.0.1"), "TCP", 443, true),
        (Address("10.244.1.1"), "TCP", 443, false),
        (Address("11.96.0.1"), "TCP", 443, false),
        (Address("11.112.0.1"), "TCP", 443, true),
        (Address("2001:db8:42::1"), "TCP", 443, false),
        (Address("2001:db8:43::1"), "TCP", 443, true),
        (Address("198.51.100.7"), "TCP", 443, false),
        (Address("10.20.3.4"), "TCP", 5432, true),
        (Address("10.20.3.4"), "TCP", 22, false),
        (Address("10.21.3.4"), "TCP", 5432, false),
    ];
    for (i, (to, protocol, port, answer)) in table.iter().enumerate() {
        assert_eq!(
            allowed(&policies, false, MACHINE, to, protocol, *port),
            *answer,
            "row {i}"
        );
    }
}

// U-5
#[test]
fn without_sources_nobody_is_let_in_and_no_rule_is_empty() {
    let mut user = user();
    user.allow_from.clear();
    let policies = network_policies(&user, &ValidPlatform::default());
    for port in [22, 80] {
        for other in [
            Pod("bob", &[]),
            Address("203.0.113.7"),
            Address("2001:db8::1"),
        ] {
            assert!(!allowed(&policies, true, MACHINE, &other, "TCP", port));
        }
    }
    for rule in policies
        .iter()
        .flat_map(|p| p.spec.iter())
        .flat_map(|s| s.ingress.iter().flatten())
    {
        assert!(
            rule.from.as_ref().is_some_and(|f| !f.is_empty()),
            "an empty `from` lets everybody in"
        );
    }
}

// SE20
#[test]
fn every_except_lies_inside_its_range_and_is_not_all_of_it() {
    let policies = network_policies(&user(), &platform());
    let mut seen = 0;
    let specs = policies.iter().flat_map(|p| p.spec.iter());
    for peer in specs
        .flat_map(|s| s.egress.iter().flatten())
        .flat_map(|r| r.to.iter().flatten())
    {
        let Some(block) = &peer.ip_block else {
            continue;
        };
        let cidr = Cidr::parse(&block.cidr).unwrap();
        for except in block.except.iter().flatten() {
            let except = Cidr::parse(except).unwrap();
            assert!(
                cidr.contains(&except) && cidr != except,
                "{except} in {cidr}"
            );
            seen += 1;
        }
    }
    assert!(seen > 8, "{seen}");
}
