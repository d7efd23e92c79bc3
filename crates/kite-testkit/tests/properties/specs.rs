//! Valid specifications, the extreme ones among them, and what Kite renders for them.

use kite_api::KitePlatformSpec;
use kite_render::machine::{
    Hardware, Login, Password, cloud_init, data_volume, host_claim, ingress, login_hash,
    run_strategy, service, virtual_machine,
};
use kite_render::user::{
    ServiceAccount, closing_quota, limit_range, namespace, network_policies, resource_quota,
    tenant_role_binding, vm_secrets_role_binding,
};
use kite_render::validate::{CryptHash, DnsLabel, ValidMachine, ValidPlatform, ValidUser};
use proptest::prelude::*;
use proptest::sample::select;
use serde::Serialize;
use serde_json::{Value, json};

/// The namespaces of the samples: a short one and one as long as can be.
pub(crate) const NAMESPACES: [&str; 2] = [
    "alice",
    "a-namespace-whose-name-is-as-long-as-a-label-may-be-63-in-all-b",
];

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti";

/// A platform with everything set and no limit of its own below the schema's.
pub(crate) fn platform() -> ValidPlatform {
    let spec: KitePlatformSpec = serde_json::from_value(json!({
        "baseDomain": "vms.example.org",
        "ingress": {"className": "nginx", "controllerNamespace": "ingress-nginx", "tls": "Wildcard"},
        "network": {
            "clusterRanges": ["10.244.0.0/16", "2001:db8:42::/48"],
            "sshSources": [{"cidr": "203.0.113.0/24"}, {"namespace": "bastion"}],
        },
        "limits": {"cpu": 256, "memory": "12Ti", "disk": "64Ti"},
    }))
    .unwrap();
    ValidPlatform::parse(&spec).unwrap()
}

/// A DNS label of any length, the longest often.
fn label(first: &'static str) -> impl Strategy<Value = String> {
    let any = format!("{first}[a-z0-9]?|{first}[-a-z0-9]{{0,61}}[a-z0-9]");
    let longest = format!("{first}[-a-z0-9]{{61}}[a-z0-9]");
    prop_oneof![
        3 => proptest::string::string_regex(&any).unwrap(),
        1 => proptest::string::string_regex(&longest).unwrap(),
    ]
}

fn dns_name() -> impl Strategy<Value = String> {
    let part = proptest::string::string_regex("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?").unwrap();
    prop::collection::vec(part, 1..4).prop_map(|parts| parts.join("."))
}

/// Comments of keys that YAML, shells and templates could take for something else.
fn comment() -> impl Strategy<Value = String> {
    let hostile = select(vec![
        "",
        "a: b",
        "\"]}]}",
        "'; reboot #",
        "---",
        "{{ x }}",
        "${x}",
        "$(reboot)",
        "`id`",
        "- a",
        "&a *a",
        "!!binary x",
        "|",
        ">-",
        "%TAG",
        "@",
        "\\n\\x00",
        "{\"a\":1}",
        "null",
        "yes",
        "1e3",
        "0x1",
        "~",
        "  two  spaces ",
        "ünïcode 漢字 🚀",
        "# no comment",
        "<<: *x",
        "?",
        "a\\",
    ]);
    prop_oneof![
        2 => hostile.prop_map(str::to_owned),
        1 => "[a-zA-Z0-9@._-]{1,64}",
    ]
}

/// A public key of its own: the same one twice would be one key.
fn key((bytes, comment): ([u8; 32], String)) -> String {
    use ssh_key::public::{Ed25519PublicKey, KeyData};
    let key = ssh_key::PublicKey::new(KeyData::Ed25519(Ed25519PublicKey(bytes)), "");
    let line = key.to_openssh().unwrap();
    format!("{} {comment}", line.trim_end())
}

fn keys() -> impl Strategy<Value = Vec<String>> {
    let one = (any::<[u8; 32]>(), comment()).prop_map(key).boxed();
    prop_oneof![
        3 => prop::collection::vec(one.clone(), 0..4),
        1 => prop::collection::vec(one, 32),
    ]
}

/// The schema takes at most fifteen digits.
const LONGEST: u64 = 999_999_999_999_999;

fn bytes(least: u64, most: u64, round: Vec<&'static str>) -> impl Strategy<Value = String> {
    prop_oneof![
        2 => select(round).prop_map(str::to_owned),
        1 => (least..=most.min(LONGEST)).prop_map(|n| n.to_string()),
        1 => (least >> 20..=most >> 20).prop_map(|n| format!("{n}Mi")),
    ]
}

/// A KiteVirtualMachine as a user writes it, with the UID that the server would give.
pub(crate) fn machine() -> impl Strategy<Value = Value> {
    let memory = bytes(
        32 << 20,
        12 << 40,
        vec![
            "32Mi", "1Gi", "1025Mi", "1.5Gi", "4G", "12Ti", "1536Mi", "33554433",
        ],
    );
    let disk = bytes(
        64 << 20,
        64 << 40,
        vec!["64Mi", "25Gi", "20G", "64Ti", "0.1Ti"],
    );
    let size = (1..=256_i32, memory, disk);
    let names = (label("[a-z]"), select(NAMESPACES.to_vec()), dns_name());
    let choices = (any::<bool>(), any::<bool>(), any::<bool>(), any::<u128>());
    let rest = (
        prop::option::of(label("[a-z0-9]")),
        "[a-z_][a-z0-9_-]{0,31}",
        keys(),
        prop::option::of((dns_name(), "[-_a-zA-Z0-9][-._a-zA-Z0-9]{0,252}")),
        prop::option::of(dns_name()),
    );
    (size, names, choices, rest).prop_map(|(size, names, (on, restart, keep, uid), rest)| {
        let (prefix, user, keys, password, class) = rest;
        let mut spec = json!({
            "cpu": size.0, "memory": size.1, "disk": size.2, "image": names.2,
            "loginUser": user, "sshAuthorizedKeys": keys,
            "powerState": if on { "On" } else { "Off" },
            "onGuestShutdown": if restart { "Restart" } else { "StayOff" },
            "deletionPolicy": if keep { "Retain" } else { "Delete" },
        });
        let optional = [
            ("domainPrefix", prefix.map(Value::from)),
            (
                "passwordSecretRef",
                password.map(|(name, key)| json!({"name": name, "key": key})),
            ),
            ("storageClassName", class.map(Value::from)),
        ];
        for (field, value) in optional {
            if let Some(value) = value {
                spec[field] = value;
            }
        }
        object("KiteVirtualMachine", &names.0, uid, Some(names.1), &spec)
    })
}

/// A KiteUser as an administrator writes it.
pub(crate) fn user() -> impl Strategy<Value = Value> {
    let amounts = (
        bytes(32 << 20, 1 << 50, vec!["32Mi", "16Gi", "1Pi"]),
        bytes(64 << 20, 64 << 50, vec!["64Mi", "100G", "64Pi"]),
    );
    let quota = (1..=100_000_i32, amounts, 0..=10_000_i32).prop_map(|(cpu, (memory, storage), machines)| {
        json!({
            "cpu": cpu, "memory": memory, "storage": storage, "virtualMachines": machines,
            "hard": {"services.loadbalancers": "0", "requests.ephemeral-storage": "10Gi", "count/pods": "100"},
        })
    });
    let range = prop_oneof![
        (any::<[u8; 4]>(), 0..=32_u8)
            .prop_map(|(a, n)| format!("{}/{n}", std::net::Ipv4Addr::from(a))),
        (any::<[u8; 16]>(), 0..=128_u8)
            .prop_map(|(a, n)| format!("{}/{n}", std::net::Ipv6Addr::from(a))),
    ];
    let port = (any::<bool>(), 1..=65535_i32)
        .prop_map(|(udp, port)| json!({"protocol": if udp { "UDP" } else { "TCP" }, "port": port}));
    let ports = prop::collection::vec(port, 0..4);
    let egress = (range, ports).prop_map(|(cidr, ports)| json!({"cidr": cidr, "ports": ports}));
    let network = (
        prop::collection::vec(label("[a-z0-9]"), 0..4),
        prop::collection::vec(egress, 0..6),
    )
        .prop_map(|(from, egress)| json!({"allowFromNamespaces": from, "extraEgress": egress}));
    let subject = (any::<bool>(), comment())
        .prop_map(|(user, name)| json!({"kind": if user { "User" } else { "Group" }, "name": format!("x{name}")}));
    let subjects = prop::collection::vec(subject, 1..6);
    let names = (
        label("[a-z0-9]"),
        select(NAMESPACES.to_vec()),
        any::<u128>(),
    );
    (names, quota, network, subjects).prop_map(|(names, quota, network, subjects)| {
        let spec =
            json!({"namespace": names.1, "quota": quota, "network": network, "subjects": subjects});
        object("KiteUser", &names.0, names.2, None, &spec)
    })
}

pub(crate) fn object(
    kind: &str,
    name: &str,
    uid: u128,
    namespace: Option<&str>,
    spec: &Value,
) -> Value {
    let hex = format!("{uid:032x}");
    let uid = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ]
    .join("-");
    let mut object = json!({
        "apiVersion": "kite.dev/v1alpha1", "kind": kind,
        "metadata": {"name": name, "uid": uid}, "spec": spec,
    });
    if let Some(namespace) = namespace {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}

/// The smallest machine.
pub(crate) fn plain_machine() -> Value {
    let spec = json!({"cpu": 1, "memory": "1Gi", "disk": "2Gi", "image": "ubuntu-24.04", "sshAuthorizedKeys": [KEY]});
    object("KiteVirtualMachine", "web", 1, Some(NAMESPACES[0]), &spec)
}

/// The smallest user.
pub(crate) fn plain_user() -> Value {
    object("KiteUser", "bob", 1, None, &json!({"namespace": "bob"}))
}

fn value(object: &impl Serialize) -> Value {
    serde_json::to_value(object).unwrap()
}

/// Every object of a machine, its login with and without a password.
pub(crate) fn children_of_machine(machine: &ValidMachine, platform: &ValidPlatform) -> Vec<Value> {
    let hash =
        CryptHash::parse(format!("$6$saltsalt${}", "./0Az".repeat(17) + "a").as_bytes()).unwrap();
    let password = machine.password.as_ref().map(|_| Password {
        hash: &hash,
        version: "7",
    });
    let login = Login {
        keys: &machine.ssh_keys,
        password,
    };
    let login_hash = login_hash(machine, &login).unwrap();
    let hardware = Hardware {
        limits: &platform.limits,
        memory_grows: true,
        live: None,
        login_hash: &login_hash,
    };
    let strategy = run_strategy(machine.power, machine.on_guest_shutdown);
    let mut out = vec![
        value(&cloud_init(machine, &login).unwrap()),
        value(&data_volume(
            machine,
            platform,
            machine.storage_class.as_ref(),
        )),
        value(&virtual_machine(machine, strategy, &hardware)),
        value(&service(&machine.owner)),
    ];
    if let Some(prefix) = &machine.domain_prefix {
        let host = platform.host(prefix).unwrap().unwrap();
        out.push(value(&ingress(&machine.owner, &host, platform)));
        out.push(value(&host_claim(&machine.owner, &host)));
    }
    out
}

/// Every object of a user, and the quota by which it is closed.
pub(crate) fn children_of_user(user: &ValidUser, platform: &ValidPlatform) -> Vec<Value> {
    let kite_vm = ServiceAccount {
        namespace: DnsLabel::parse("kite-system").unwrap(),
        name: DnsLabel::parse("kite-vm").unwrap(),
    };
    let [isolation, clone] = network_policies(user, platform);
    let mut out = vec![
        value(&namespace(user)),
        value(&isolation),
        value(&clone),
        value(&closing_quota(user, platform, 3)),
        value(&vm_secrets_role_binding(user, &kite_vm)),
    ];
    out.extend(resource_quota(user, platform, 1).iter().map(value));
    out.extend(limit_range(user).iter().map(value));
    out.extend(tenant_role_binding(user).iter().map(value));
    out
}
