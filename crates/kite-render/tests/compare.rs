//! What counts as drift of a child and what does not (rules C-7, C-8, E-1, U-9).

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{hardware, machine, platform, user, value};
use kite_kubevirt::read;
use kite_render::compare::Compare;
use kite_render::machine::{ingress, run_strategy, service, virtual_machine};
use kite_render::user::{
    limit_range, namespace, network_policies, resource_quota, tenant_role_binding,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The object with parts of it set to something else, as somebody might have left it.
fn edited<T: Serialize + DeserializeOwned>(object: &T, edits: &[(&str, Value)]) -> T {
    let mut value = value(object);
    for (path, edit) in edits {
        let (parent, key) = path.rsplit_once('/').unwrap();
        match value.pointer_mut(parent).unwrap() {
            Value::Array(items) if key == "-" => items.push(edit.clone()),
            Value::Array(items) => items[key.parse::<usize>().unwrap()] = edit.clone(),
            parent => parent[key.replace("~1", "/")] = edit.clone(),
        }
    }
    serde_json::from_value(value).unwrap()
}

fn seen<T: Compare + Serialize + DeserializeOwned>(
    wanted: &T,
    edits: &[(&str, Value)],
) -> (Vec<String>, Vec<String>) {
    let live = edited(wanted, edits);
    let differences = wanted
        .differences(&live)
        .iter()
        .map(|d| d.field.clone())
        .collect();
    let additions = wanted
        .additions(&live)
        .iter()
        .map(|a| a.pointer.clone())
        .collect();
    assert_eq!(
        wanted.matches(&live),
        wanted.differences(&live).is_empty() && wanted.additions(&live).is_empty()
    );
    (differences, additions)
}

fn nothing() -> (Vec<String>, Vec<String>) {
    (Vec::new(), Vec::new())
}

// C-8: a Service as the server completes it is no drift.
#[test]
fn what_the_server_fills_in_is_no_difference() {
    let filled = [
        ("/spec/clusterIP", json!("10.96.0.7")),
        ("/spec/clusterIPs", json!(["10.96.0.7"])),
        ("/spec/ipFamilies", json!(["IPv4"])),
        ("/spec/ipFamilyPolicy", json!("SingleStack")),
        ("/spec/internalTrafficPolicy", json!("Cluster")),
        ("/spec/sessionAffinity", json!("None")),
        ("/status", json!({"loadBalancer": {}})),
        ("/metadata/uid", json!("x")),
        ("/metadata/labels/others", json!("y")),
        ("/metadata/annotations/others", json!("y")),
    ];
    assert_eq!(seen(&service(&machine().owner), &filled), nothing());
    let filled = [
        ("/spec/finalizers", json!(["kubernetes"])),
        (
            "/metadata/labels/kubernetes.io~1metadata.name",
            json!("alice"),
        ),
    ];
    let mut namespace = namespace(&user());
    namespace.spec = Some(k8s_openapi::api::core::v1::NamespaceSpec::default());
    let mut wanted = namespace.clone();
    wanted.spec = None;
    assert!(wanted.matches(&edited(&namespace, &filled)));
}

// E-1
#[test]
fn each_drift_of_a_service_is_seen() {
    let wanted = service(&machine().owner);
    let udp = json!({"name": "ssh", "port": 22, "targetPort": 22, "protocol": "UDP"});
    for (edit, field) in [
        (("/spec/type", json!("NodePort")), "spec.type"),
        (
            ("/spec/ports/0/targetPort", json!(2222)),
            "spec.ports[22/TCP].targetPort",
        ),
        (
            ("/spec/ports/1/name", json!("web")),
            "spec.ports[80/TCP].name",
        ),
        (
            ("/spec/selector/kite.dev~1vm-uid", json!("other")),
            "spec.selector.kite.dev/vm-uid",
        ),
        (
            ("/metadata/labels/kite.dev~1vm-uid", json!("other")),
            "metadata.labels.kite.dev/vm-uid",
        ),
        (
            ("/metadata/annotations/kite.dev~1vm-uid", json!("other")),
            "metadata.annotations.kite.dev/vm-uid",
        ),
        (
            ("/metadata/ownerReferences/0/controller", json!(false)),
            "metadata.ownerReferences[22222222-2222-2222-2222-222222222222].controller",
        ),
    ] {
        assert_eq!(
            seen(&wanted, std::slice::from_ref(&edit)),
            (vec![field.to_owned()], Vec::new())
        );
    }
    let (differences, additions) = seen(&wanted, &[("/spec/ports/0", udp)]);
    assert_eq!(
        (differences, additions),
        (
            vec!["spec.ports[22/TCP]".to_owned()],
            vec!["/spec/ports/0".to_owned()]
        )
    );
}

// C-7 (e), E-1
#[test]
fn additions_that_matter_are_told_apart_with_the_place_to_remove_them() {
    let wanted = service(&machine().owner);
    let edits = [
        (
            "/spec/ports/-",
            json!({"name": "x", "port": 8080, "protocol": "TCP"}),
        ),
        (
            "/spec/ports/-",
            json!({"name": "y", "port": 8081, "protocol": "TCP"}),
        ),
        ("/spec/externalIPs", json!(["203.0.113.9"])),
        ("/spec/selector/a~1b", json!("c")),
    ];
    let pointers = [
        "/spec/ports/3",
        "/spec/ports/2",
        "/spec/selector/a~1b",
        "/spec/externalIPs",
    ];
    assert_eq!(
        seen(&wanted, &edits),
        (Vec::new(), pointers.map(str::to_owned).into())
    );
    let quota = resource_quota(&user(), &platform(), 1).unwrap();
    let edits = [
        ("/spec/hard/pods", json!("1")),
        ("/spec/scopes", json!(["BestEffort"])),
    ];
    assert_eq!(seen(&quota, &edits).1, ["/spec/hard/pods", "/spec/scopes"]);
    let machine = machine();
    let host = platform()
        .host(machine.domain_prefix.as_ref().unwrap())
        .unwrap()
        .unwrap();
    let wanted = ingress(&machine.owner, &host, &platform());
    let backend = json!({"service": {"name": "other", "port": {"number": 1}}});
    assert_eq!(
        seen(&wanted, &[("/spec/defaultBackend", backend)]).1,
        ["/spec/defaultBackend"]
    );
    assert_eq!(
        seen(
            &wanted,
            &[("/spec/rules/0/host", json!("evil.example.org"))]
        )
        .0,
        ["spec.rules[0].host"]
    );
}

// U-9
#[test]
fn a_policy_that_was_widened_or_narrowed_by_hand_is_no_longer_the_same() {
    let [isolation, clone] = network_policies(&user(), &platform());
    assert_eq!(
        seen(&isolation, &[("/metadata/labels/others", json!("y"))]),
        nothing()
    );
    for edit in [
        ("/spec/podSelector/matchLabels", json!({"some": "pods"})),
        ("/spec/ingress/-", json!({})),
        ("/spec/egress/-", json!({})),
        (
            "/spec/ingress/0/from/-",
            json!({"ipBlock": {"cidr": "0.0.0.0/0"}}),
        ),
        (
            "/spec/ingress/0/ports",
            json!([{"port": 1, "protocol": "TCP"}]),
        ),
        ("/spec/egress/2/to/0/ipBlock/except", json!([])),
        ("/spec/policyTypes", json!(["Ingress"])),
        ("/spec/ingress", json!([])),
    ] {
        let name = edit.0;
        assert_eq!(seen(&isolation, &[edit]).0.len(), 1, "{name}");
    }
    assert_eq!(seen(&clone, &[("/spec/egress", json!([{}]))]).0.len(), 1);
}

// IN1, U-7
#[test]
fn a_quota_is_compared_by_value() {
    let quota = resource_quota(&user(), &platform(), 1).unwrap();
    let same = [
        ("/spec/hard/services.loadbalancers", json!("0")),
        ("/spec/hard/requests.ephemeral-storage", json!("10240Mi")),
    ];
    assert_eq!(seen(&quota, &same), nothing());
    let more = [("/spec/hard/requests.cpu", json!("1000"))];
    assert_eq!(seen(&quota, &more).0, ["spec.hard.requests.cpu"]);
    let range = limit_range(&user()).unwrap();
    assert_eq!(
        seen(
            &range,
            &[(
                "/spec/limits/0/defaultRequest/ephemeral-storage",
                json!("50000k")
            )]
        ),
        nothing()
    );
    assert_eq!(
        seen(&range, &[("/spec/limits/0/max", json!({"memory": "1Mi"}))]).0,
        ["spec.limits[0].max"]
    );
}

#[test]
fn one_more_or_one_other_subject_is_a_difference() {
    let binding = tenant_role_binding(&user()).unwrap();
    let mallory =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"});
    assert_eq!(
        seen(&binding, &[("/subjects/-", mallory.clone())]).0,
        ["subjects"]
    );
    assert_eq!(
        seen(&binding, &[("/subjects/0", mallory)]).0,
        ["subjects[0].name"]
    );
}

// V-16: a maximum that suffices stays, or growing would take the restart that it is meant to spare.
#[test]
fn maxima_stay_while_they_suffice() {
    let (mut machine, platform) = (machine(), platform());
    let strategy = run_strategy(machine.power, machine.on_guest_shutdown);
    let first = virtual_machine(&machine, strategy, &hardware(&platform));
    let live: read::VirtualMachine = serde_json::from_value(value(&first)).unwrap();
    let again = |machine: &_| {
        let mut hardware = hardware(&platform);
        hardware.live = Some(&live);
        let rendered = virtual_machine(machine, strategy, &hardware);
        let domain = rendered.spec.template.spec.domain;
        (domain.cpu.max_sockets, domain.memory.max_guest.map(|q| q.0))
    };
    assert_eq!(again(&machine), (8, Some("16Gi".to_owned())));
    machine.cpu = 4;
    assert_eq!(again(&machine).0, 8);
    machine.cpu = 16;
    assert_eq!(again(&machine).0, 64);
    assert!(first.matches(&live));
}

// V-16: KubeVirt's webhook refuses a maximum for small or odd guests.
#[test]
fn a_maximum_of_memory_is_only_given_where_kubevirt_takes_one() {
    use kite_render::validate::Bytes;
    let (mut machine, platform) = (machine(), platform());
    let strategy = run_strategy(machine.power, machine.on_guest_shutdown);
    let mut max = |memory: Bytes, grows: bool| {
        machine.memory = memory;
        let mut hardware = hardware(&platform);
        hardware.memory_grows = grows;
        virtual_machine(&machine, strategy, &hardware)
            .spec
            .template
            .spec
            .domain
            .memory
            .max_guest
            .map(|q| q.0)
    };
    assert_eq!(max(Bytes::mebi(1024), true).as_deref(), Some("4Gi"));
    assert_eq!(max(Bytes::mebi(1024), false), None);
    assert_eq!(max(Bytes::mebi(1022), true), None);
    assert_eq!(max(Bytes::mebi(1025), true), None);
    assert_eq!(max(Bytes::mebi(200 << 10), true).as_deref(), Some("256Gi"));
}
