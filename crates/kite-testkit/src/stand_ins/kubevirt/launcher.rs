//! The launcher Pod of an instance, and the nodes it stands on.
//!
//! The Pod is real and is bound to a Node that nobody runs: what a quota, a
//! Service or Pod Security make of it is the server's own doing. Like the real
//! one it does not meet the `restricted` level: it sets no seccomp profile.

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::disks::claims;
use super::phases::{Launcher, OVERHEAD};
use crate::stand_ins::cache::Key;
use crate::stand_ins::clock::hash;
use crate::stand_ins::names::{DOMAIN, LAUNCHER, LAUNCHER_LABEL, NODES, Res, STAND_IN_LABEL};
use crate::stand_ins::value::{bytes, now, text};
use crate::stand_ins::world::{going, owner, uid};

/// KubeVirt's default: a vCPU asks for a tenth of a CPU.
const ALLOCATION_RATIO: u64 = 10;
/// The image is never pulled.
const IMAGE: &str = "stand-in.kite.dev/virt-launcher:none";

/// Name of the launcher of an instance.
fn name(vmi: &DynamicObject) -> String {
    let short: String = uid(vmi).chars().take(5).collect();
    format!("{LAUNCHER}-{}-{short}", vmi.name_any())
}

/// Where the launcher of an instance is to be found.
pub(super) fn key(vmi: &DynamicObject) -> Key {
    Key::new(vmi.namespace().unwrap_or_default(), name(vmi))
}

/// The instance that a launcher runs.
pub(in crate::stand_ins) fn pod_vmi(pod: &DynamicObject) -> Option<Key> {
    let name = pod.annotations().get(DOMAIN)?;
    Some(Key::new(pod.namespace().unwrap_or_default(), name))
}

/// What the pass over the instance needs to know of its launcher.
pub(super) fn view(pod: &DynamicObject) -> Launcher {
    Launcher {
        running: text(&pod.data, "/status/phase") == "Running",
        going: going(pod),
        node: text(&pod.data, "/spec/nodeName").to_owned(),
        address: text(&pod.data, "/status/podIP").to_owned(),
    }
}

/// The number of vCPUs that a domain has.
fn vcpus(domain: &Value) -> u64 {
    let part = |name: &str| {
        let count = domain
            .pointer(&format!("/cpu/{name}"))
            .and_then(Value::as_u64);
        count.unwrap_or(1).max(1)
    };
    part("sockets") * part("cores") * part("threads")
}

/// What the launcher asks for: vCPUs by the allocation ratio, and the guest's
/// memory with its overhead.
pub(super) fn requests(domain: &Value) -> Value {
    let guest = [
        text(domain, "/memory/guest"),
        text(domain, "/resources/requests/memory"),
    ]
    .into_iter()
    .find_map(bytes)
    .unwrap_or_default();
    let memory = guest + bytes(OVERHEAD).unwrap_or_default();
    let cpu = match text(domain, "/resources/requests/cpu") {
        "" => format!("{}m", vcpus(domain) * 1000 / ALLOCATION_RATIO),
        asked => asked.to_owned(),
    };
    json!({"cpu": cpu, "memory": memory.to_string()})
}

/// The Pod. With `limits` it has some too, as KubeVirt gives where a quota
/// names them.
pub(super) fn pod(vmi: &DynamicObject, limits: bool) -> Value {
    let domain = vmi
        .data
        .pointer("/spec/domain")
        .cloned()
        .unwrap_or_default();
    let mut resources = json!({"requests": requests(&domain)});
    if limits {
        let memory = resources["requests"]["memory"].clone();
        resources["limits"] = json!({"cpu": vcpus(&domain).to_string(), "memory": memory});
    }
    let names = claims(&vmi.data, "/spec/volumes");
    let volume =
        |name: &String| json!({"name": name, "persistentVolumeClaim": {"claimName": name}});
    let mount = |name: &String| json!({"name": name, "mountPath": format!("/var/run/kubevirt-private/vmi-disks/{name}")});
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name(vmi),
            "namespace": vmi.namespace(),
            "labels": labels(vmi),
            "annotations": {DOMAIN: vmi.name_any()},
            "ownerReferences": [owner(Res::Vmi, vmi)],
        },
        "spec": {
            "nodeName": NODES[0],
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": grace(vmi),
            "securityContext": {"runAsUser": 107, "runAsGroup": 107, "runAsNonRoot": true, "fsGroup": 107},
            "containers": [{
                "name": "compute",
                "image": IMAGE,
                "resources": resources,
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "runAsNonRoot": true,
                    "runAsUser": 107,
                    "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]},
                },
                "volumeMounts": names.iter().map(mount).collect::<Vec<_>>(),
            }],
            "volumes": names.iter().map(volume).collect::<Vec<_>>(),
        },
    })
}

fn grace(vmi: &DynamicObject) -> u64 {
    let asked = vmi.data.pointer("/spec/terminationGracePeriodSeconds");
    // KubeVirt leaves the launcher a margin after the guest's own time.
    asked.and_then(Value::as_u64).unwrap_or(30) + 15
}

fn labels(vmi: &DynamicObject) -> Value {
    let mut labels = json!(vmi.labels());
    labels[LAUNCHER_LABEL] = json!(LAUNCHER);
    labels["kubevirt.io/created-by"] = json!(uid(vmi));
    labels["kubevirt.io/nodeName"] = json!(NODES[0]);
    let hostname = vmi.name_any();
    let short: String = hostname
        .split('.')
        .next()
        .unwrap_or_default()
        .chars()
        .take(63)
        .collect();
    labels["vm.kubevirt.io/name"] = json!(short);
    labels["vmi.kubevirt.io/id"] = json!(short);
    labels
}

/// The status of a launcher that runs, with an invented address: nobody
/// connects to it, and EndpointSlices refuse loopback.
pub(super) fn running(pod: &DynamicObject) -> Value {
    let number = hash(uid(pod));
    let address = format!(
        "10.{}.{}.{}",
        192 + (number >> 16 & 63),
        number >> 8 & 255,
        1 + number % 254
    );
    let condition =
        |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now()});
    let conditions = ["PodScheduled", "Initialized", "ContainersReady", "Ready"].map(condition);
    json!({
        "phase": "Running",
        "hostIP": "192.0.2.1",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": now(),
        "conditions": conditions,
        "containerStatuses": [{
            "name": "compute",
            "image": IMAGE,
            "imageID": "",
            "ready": true,
            "started": true,
            "restartCount": 0,
            "state": {"running": {"startedAt": now()}},
        }],
    })
}

/// A node as it is registered: labelled, and closed to anything that is
/// scheduled.
pub(in crate::stand_ins) fn node(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {STAND_IN_LABEL: "true", "kubevirt.io/schedulable": "true", "kubernetes.io/hostname": name},
        },
        "spec": {"unschedulable": true},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_asks_for_a_tenth_of_each_vcpu_and_for_the_overhead() {
        let domain = json!({"cpu": {"sockets": 2, "cores": 1}, "memory": {"guest": "1Gi"}});
        let memory = (1024 + 296) * 1024 * 1024;
        assert_eq!(
            requests(&domain),
            json!({"cpu": "200m", "memory": memory.to_string()})
        );
    }
}
