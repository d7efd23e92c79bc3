//! Whatever people make of a Service: what is told fits the schema, and is the same every time.

use k8s_openapi::api::core::v1::Service;
use kite_api::condition::{SERVICE_READY, find};
use kite_api::machine::PowerState;
use kite_runtime::mirror::{Decision, Pulse};
use kite_service::status::clocks::Clocks;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

use crate::{live, machine, told};

/// A word that is known here, or any text.
fn word(known: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop_oneof![select(known).prop_map(str::to_owned), ".{0,300}"]
}

fn port() -> impl Strategy<Value = Value> {
    let number = prop_oneof![select(&[22, 80, 0, -1, 65535, 65536][..]), any::<i32>()];
    let target = prop_oneof![
        Just(Value::Null),
        any::<i32>().prop_map(Value::from),
        word(&["ssh"]).prop_map(Value::from),
    ];
    (option::of(word(&["ssh", "http"])), number, option::of(word(&["TCP", "UDP"])), target).prop_map(
        |(name, port, protocol, target)| {
            json!({"name": name, "port": port, "protocol": protocol, "targetPort": target})
        },
    )
}

fn spec() -> impl Strategy<Value = Value> {
    let pairs = || btree_map(word(&["kite.dev/vm-uid", "app"]), word(&["x"]), 0..3);
    (
        option::of(word(&["ClusterIP", "NodePort", "LoadBalancer"])),
        option::of(vec(port(), 0..20)),
        option::of(pairs()),
        option::of(word(&["10.96.0.7", "fd00::7", "None", ""])),
        option::of(vec(word(&["192.0.2.1"]), 0..3)),
    )
        .prop_map(|(type_, ports, selector, cluster_ip, external)| {
            json!({
                "type": type_, "ports": ports, "selector": selector, "clusterIP": cluster_ip,
                "externalIPs": external,
            })
        })
}

fn service() -> impl Strategy<Value = Service> {
    let address = (
        option::of(word(&["192.0.2.7"])),
        option::of(word(&["lb.example"])),
    )
        .prop_map(|(ip, hostname)| json!({"ip": ip, "hostname": hostname}));
    let status = option::of(vec(address, 0..3));
    (any::<bool>(), any::<bool>(), option::of(spec()), status).prop_map(
        |(labelled, owned, spec, ingress)| {
            let mut value = serde_json::to_value(live(&[])).unwrap();
            if !labelled {
                value["metadata"]["labels"] = Value::Null;
            }
            if !owned {
                value["metadata"]["ownerReferences"] = Value::Null;
            }
            if let Some(spec) = spec {
                value["spec"] = spec;
            }
            value["status"] = json!({"loadBalancer": {"ingress": ingress}});
            serde_json::from_value(value).unwrap()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    // C-4, C-5, C-15, E-1 to E-4, TS3
    #[test]
    fn whatever_a_service_is_it_is_told_once_and_within_bounds(
        service in option::of(service()), answers in any::<bool>(), off in any::<bool>(),
    ) {
        let mut machine = machine();
        machine.spec.power_state = if off { PowerState::Off } else { PowerState::On };
        let status = told(&machine, service.as_ref(), answers);
        prop_assert_eq!(&status, &told(&machine, service.as_ref(), answers));
        prop_assert!(status.endpoints.len() <= 16);
        for endpoint in &status.endpoints {
            let short = |text: &Option<String>, limit| text.as_ref().is_none_or(|t| !t.is_empty() && t.len() <= limit);
            prop_assert!((1..=63).contains(&endpoint.name.len()));
            prop_assert!(endpoint.dns_name.len() <= 253);
            prop_assert!((1..=65535).contains(&endpoint.port));
            prop_assert!(short(&endpoint.address, 64) && short(&endpoint.external_address, 253));
        }
        let ready = find(&status.conditions, SERVICE_READY).unwrap();
        prop_assert!(!ready.message.is_empty() && ready.message.len() <= 1024);
        let as_declared = service.as_ref().is_some_and(|s| {
            let wanted = live(&[]);
            s.spec.as_ref().map(|s| (&s.type_, &s.ports, &s.selector, &s.external_ips))
                == wanted.spec.as_ref().map(|s| (&s.type_, &s.ports, &s.selector, &s.external_ips))
                && s.metadata == wanted.metadata
        });
        prop_assert_eq!(ready.status == "True", as_declared);
        machine.status = Some(status.clone());
        let later = Instant::now() + Duration::from_hours(1);
        prop_assert_eq!(Clocks::default().decide(&machine, status, &Pulse::default(), later), Decision::Wait(None));
    }
}
