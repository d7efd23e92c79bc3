//! Objects as text: byte for byte, or without what differs between any two lives.
//!
//! What is equal is decided here, what should be equal is the scenario's.

use std::collections::BTreeMap;

use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::{Api, Client, ResourceExt};
use serde_json::Value;

/// Group, version, kind and plural.
pub type Kind = (&'static str, &'static str, &'static str, &'static str);

/// Everything that can be Kite's in a namespace, and what people put beside it.
pub const NAMESPACED: [Kind; 12] = [
    (
        "kite.dev",
        "v1alpha1",
        "KiteVirtualMachine",
        "kitevirtualmachines",
    ),
    ("kubevirt.io", "v1", "VirtualMachine", "virtualmachines"),
    ("cdi.kubevirt.io", "v1beta1", "DataVolume", "datavolumes"),
    ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    ("", "v1", "Service", "services"),
    ("", "v1", "Secret", "secrets"),
    ("", "v1", "ResourceQuota", "resourcequotas"),
    ("", "v1", "LimitRange", "limitranges"),
    ("networking.k8s.io", "v1", "Ingress", "ingresses"),
    (
        "networking.k8s.io",
        "v1",
        "NetworkPolicy",
        "networkpolicies",
    ),
    (
        "rbac.authorization.k8s.io",
        "v1",
        "RoleBinding",
        "rolebindings",
    ),
    ("", "v1", "ConfigMap", "configmaps"),
];

/// What is Kite's and in no namespace, and the namespaces themselves.
pub const CLUSTER_WIDE: [Kind; 3] = [
    ("kite.dev", "v1alpha1", "KiteUser", "kiteusers"),
    ("kite.dev", "v1alpha1", "KiteHostClaim", "kitehostclaims"),
    ("", "v1", "Namespace", "namespaces"),
];

/// Fields that no two lives share, or that are not Kite's to tell.
const OWN: [&str; 13] = [
    "resourceVersion",
    "generation",
    "observedGeneration",
    "creationTimestamp",
    "time",
    "clusterIP",
    "clusterIPs",
    "ipAddresses",
    "nodeName",
    "address",
    "volumeName",
    // Hashes of keys that are drawn at random.
    "kite.dev/login-hash",
    "kite.dev/rendered-hash",
];

/// The objects of a kind, of one namespace or of all.
///
/// # Panics
///
/// When the server does not list them.
pub async fn list(client: &Client, kind: &Kind, namespace: Option<&str>) -> Vec<DynamicObject> {
    let (group, version, name, plural) = kind;
    let kind = GroupVersionKind::gvk(group, version, name);
    let resource = ApiResource::from_gvk_with_plural(&kind, plural);
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    api.list(&ListParams::default()).await.unwrap().items
}

/// Every object of a namespace as the server has it, by kind and name.
pub async fn exact(client: &Client, namespace: &str) -> BTreeMap<String, String> {
    let mut objects = BTreeMap::new();
    for kind in &NAMESPACED {
        for object in list(client, kind, Some(namespace)).await {
            let name = format!("{} {}", kind.2, object.name_any());
            objects.insert(name, serde_json::to_string_pretty(&object).unwrap());
        }
    }
    objects
}

/// Every object of a tenant without what is only its own, by kind and name.
pub async fn alike(client: &Client, tenant: &str) -> BTreeMap<String, String> {
    let mut objects = BTreeMap::new();
    for kind in NAMESPACED.iter().chain(&CLUSTER_WIDE) {
        let namespaced = NAMESPACED.contains(kind);
        for object in list(client, kind, namespaced.then_some(tenant)).await {
            if namespaced || object.name_any().contains(tenant) {
                let name = format!("{} {}", kind.2, object.name_any()).replace(tenant, "TENANT");
                objects.insert(name, plain(kind.2, object, tenant));
            }
        }
    }
    objects
}

/// An object of a tenant without what is only its own.
pub fn plain(kind: &str, object: DynamicObject, tenant: &str) -> String {
    let mut value = serde_json::to_value(object).unwrap();
    let fields = value.as_object_mut().unwrap();
    match kind {
        // Keys are drawn at random.
        "Secret" => drop(fields.remove("data")),
        // What the others say of it is theirs.
        "VirtualMachine" | "DataVolume" | "PersistentVolumeClaim" | "Namespace" => {
            fields.remove("status");
            fields["metadata"]
                .as_object_mut()
                .unwrap()
                .remove("managedFields");
        }
        _ => {}
    }
    strip(&mut value);
    scrub(&serde_json::to_string_pretty(&value).unwrap()).replace(tenant, "TENANT")
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !OWN.contains(&name.as_str()));
            fields.values_mut().for_each(strip);
            // Both are maps by key: the order is that of the first writes, and means nothing.
            for list in ["managedFields", "conditions"] {
                if let Some(Value::Array(entries)) = fields.get_mut(list) {
                    entries.sort_by_key(|entry| scrub(&entry.to_string()));
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// Without UIDs and times.
fn scrub(text: &str) -> String {
    let is_uid = |word: &str| {
        word.len() == 36
            && word.bytes().enumerate().all(|(at, b)| match at {
                8 | 13 | 18 | 23 => b == b'-',
                _ => b.is_ascii_hexdigit(),
            })
    };
    let is_time = |word: &str| word.len() == 20 && word.ends_with('Z') && word.contains('T');
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let of = |length: usize| rest.get(..length);
        if of(36).is_some_and(is_uid) {
            out.push_str("UID");
            rest = &rest[36..];
        } else if first.is_ascii_digit() && of(20).is_some_and(is_time) {
            out.push_str("TIME");
            rest = &rest[20..];
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

/// Asserts that two snapshots are the same, and shows the lines that differ.
pub fn assert_same(what: &str, one: &BTreeMap<String, String>, other: &BTreeMap<String, String>) {
    let names = |all: &BTreeMap<String, String>| all.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(one), names(other), "{what}");
    let mut differences = Vec::new();
    for (name, text) in one.iter().filter(|(name, text)| other[*name] != **text) {
        let theirs = &other[name];
        let only = |in_: &str, not: &str| {
            let there: Vec<_> = not.lines().collect();
            in_.lines()
                .filter(|l| !there.contains(l))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        differences.push((name, only(text, theirs), only(theirs, text)));
    }
    assert!(differences.is_empty(), "{what}: {differences:#?}");
}
