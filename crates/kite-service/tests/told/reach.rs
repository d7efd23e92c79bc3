//! Where a machine is reached, and whether anything answers there.

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kite_api::machine::PowerState;
use kite_service::observe::{is_ready, service_of};
use serde_json::{Value, json};

use crate::{live, machine, ready, told};

// E-3
#[test]
fn nothing_behind_a_service_is_fine_while_the_machine_is_off() {
    let mut machine = machine();
    assert_eq!(
        ready(&told(&machine, Some(&live(&[])), false)),
        "True NoEndpoints"
    );
    machine.spec.power_state = PowerState::Off;
    assert_eq!(
        ready(&told(&machine, Some(&live(&[])), false)),
        "True NoEndpointsStopped"
    );
    assert_eq!(
        ready(&told(&machine, Some(&live(&[])), true)),
        "True Reachable"
    );
}

// E-3
#[test]
fn a_slice_answers_when_one_of_its_endpoints_is_ready_or_says_nothing() {
    let slice = |endpoints: Value| -> EndpointSlice {
        serde_json::from_value(json!({
            "metadata": {"name": "web-x", "namespace": "alice", "labels": {"kubernetes.io/service-name": "web"}},
            "addressType": "IPv6", "endpoints": endpoints,
        }))
        .unwrap()
    };
    let endpoint = |conditions: Value| json!({"addresses": ["fd00::9"], "conditions": conditions});
    for (conditions, answers) in [
        (json!({"ready": true}), true),
        (json!({}), true),
        (json!({"ready": false}), false),
        (
            json!({"ready": false, "serving": true, "terminating": true}),
            false,
        ),
    ] {
        let one = slice(json!([endpoint(conditions.clone())]));
        assert_eq!(is_ready(&one), answers, "{conditions}");
    }
    assert!(!is_ready(&slice(json!([]))));
    let mixed = [json!({"ready": false}), json!({"ready": true})].map(endpoint);
    assert!(is_ready(&slice(json!(mixed))));
    let service = service_of(&slice(json!([]))).unwrap();
    assert_eq!(service.to_string(), "alice/web");
    assert!(service_of(&EndpointSlice::default()).is_none());
}

// E-4
#[test]
fn endpoints_name_each_port_with_the_addresses_that_lead_there() {
    let status = told(&machine(), Some(&live(&[])), true);
    let ports: Vec<_> = status
        .endpoints
        .iter()
        .map(|e| (e.name.as_str(), e.port))
        .collect();
    assert_eq!(ports, [("ssh", 22), ("http", 80)]);
    let first = &status.endpoints[0];
    assert_eq!(first.address.as_deref(), Some("10.96.0.7"));
    assert_eq!(first.dns_name, "web.alice.svc");
    assert_eq!(first.external_address, None);
    let balancer = json!({"loadBalancer": {"ingress": [{"hostname": "lb.example"}]}});
    let mut value = serde_json::to_value(live(&[])).unwrap();
    value["status"] = balancer;
    let service: Service = serde_json::from_value(value).unwrap();
    let status = told(&machine(), Some(&service), true);
    assert_eq!(
        status.endpoints[1].external_address.as_deref(),
        Some("lb.example")
    );
    assert!(told(&machine(), None, false).endpoints.is_empty());
}

/// A Service of both families, or of the other one, with what its balancer has been given.
fn reached(cluster_ip: &str, ingress: &Value) -> Service {
    let mut value = serde_json::to_value(live(&[("/spec/clusterIP", json!(cluster_ip))])).unwrap();
    value["status"] = json!({"loadBalancer": {"ingress": ingress}});
    serde_json::from_value(value).unwrap()
}

// E-4
#[test]
fn addresses_are_told_as_they_are_in_both_families_and_only_if_they_are_addresses() {
    let v4 = json!([{"ip": "192.0.2.7"}]);
    let v6 = json!([{"ip": "2001:db8::7"}, {"ip": "192.0.2.7"}]);
    for (cluster_ip, ingress, address, external) in [
        ("10.96.0.7", &v4, Some("10.96.0.7"), Some("192.0.2.7")),
        ("fd00:96::7", &v6, Some("fd00:96::7"), Some("2001:db8::7")),
        ("None", &json!([]), None, None),
        ("", &json!([{}]), None, None),
        (
            "not an address",
            &json!([{}, {"hostname": "lb.example"}]),
            None,
            Some("lb.example"),
        ),
        (
            "10.96.0.7",
            &json!([{"hostname": "x".repeat(254)}]),
            Some("10.96.0.7"),
            None,
        ),
    ] {
        let status = told(&machine(), Some(&reached(cluster_ip, ingress)), true);
        assert_eq!(status.endpoints.len(), 2);
        for endpoint in &status.endpoints {
            assert_eq!(endpoint.address.as_deref(), address, "{cluster_ip}");
            assert_eq!(endpoint.external_address.as_deref(), external, "{ingress}");
        }
    }
}
