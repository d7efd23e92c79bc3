//! KubeVirt's webhooks for VirtualMachines: what they fill in and refuse.
//!
//! Pure. Only what Kite can run into is checked.

use serde_json::{Value, json};

use super::{Answer, is_going};
use crate::stand_ins::value::{bytes, list, text};

/// The mutating webhook's mark on the machine.
const PCI_TOPOLOGY: &str = "kubevirt.io/pci-topology-version";
/// Largest user data that may stand in the machine itself.
const INLINE_CLOUD_INIT: usize = 2048;
/// Longest name of a disk or volume.
const LONGEST_NAME: usize = 63;
/// Least memory that can be plugged into.
const HOTPLUG_MINIMUM: u64 = 1024 * 1024 * 1024;
/// Memory is plugged in blocks of this.
const HOTPLUG_BLOCK: u64 = 2 * 1024 * 1024;
/// Least memory at all.
const LEAST_MEMORY: u64 = 1_000_000;

const DOMAIN: &str = "/spec/template/spec/domain";

/// Answers, as the real one does, with the whole of spec and metadata.
pub(super) fn mutate(request: &Value, more: bool) -> Answer {
    if is_going(request) {
        return Answer::Allow;
    }
    let create = text(request, "/operation") == "CREATE";
    let mut vm = request["object"].clone();
    let template = &mut vm["spec"]["template"]["spec"];
    fill(&mut template["architecture"], json!("amd64"));
    fill(&mut template["domain"]["machine"]["type"], json!("q35"));
    if create {
        // The request's own UID is random enough for a firmware.
        let firmware = &mut template["domain"]["firmware"];
        fill(&mut firmware["uuid"], request["uid"].clone());
        fill(&mut firmware["serial"], request["uid"].clone());
        fill(
            &mut vm["metadata"]["annotations"][PCI_TOPOLOGY],
            json!("v3"),
        );
    }
    if more {
        add(&mut vm["spec"]["template"]["spec"]);
    }
    if vm == request["object"] {
        return Answer::Allow;
    }
    Answer::Change(vec![
        json!({"op": "replace", "path": "/spec", "value": vm["spec"]}),
        json!({"op": "replace", "path": "/metadata", "value": vm["metadata"]}),
    ])
}

/// What a newer KubeVirt may come to fill in beside Kite's fields.
fn add(template: &mut Value) {
    fill(&mut template["evictionStrategy"], json!("LiveMigrate"));
    fill(&mut template["terminationGracePeriodSeconds"], json!(30));
    let domain = &mut template["domain"];
    fill(&mut domain["cpu"]["model"], json!("host-model"));
    fill(&mut domain["features"], json!({"acpi": {"enabled": true}}));
    fill(&mut domain["devices"]["rng"], json!({}));
}

fn fill(place: &mut Value, value: Value) {
    if place.is_null() {
        *place = value;
    }
}

/// Refuses what KubeVirt refuses.
pub(super) fn validate(request: &Value, refusal: Option<String>) -> Answer {
    if is_going(request) {
        return Answer::Allow;
    }
    let vm = &request["object"];
    let wrong = refusal
        .or_else(|| power(vm))
        .or_else(|| names(vm))
        .or_else(|| disks(vm))
        .or_else(|| interfaces(vm))
        .or_else(|| cloud_init(vm))
        .or_else(|| memory(vm))
        .or_else(|| hotplug(vm));
    wrong.map_or(Answer::Allow, Answer::Refuse)
}

fn power(vm: &Value) -> Option<String> {
    let running = !vm["spec"]["running"].is_null();
    let strategy = text(vm, "/spec/runStrategy");
    let known = [
        "Always",
        "Halted",
        "Manual",
        "RerunOnFailure",
        "Once",
        "WaitAsReceiver",
    ];
    match (running, strategy) {
        (true, "") => None,
        (true, _) => Some("Running and RunStrategy are mutually exclusive. Note that Running is deprecated, please use RunStrategy instead".to_owned()),
        (false, "") => Some("One of Running or RunStrategy must be specified".to_owned()),
        (false, strategy) if known.contains(&strategy) => None,
        (false, strategy) => Some(format!("Invalid RunStrategy ({strategy})")),
    }
}

fn names(vm: &Value) -> Option<String> {
    let disks = list(vm, &format!("{DOMAIN}/devices/disks"));
    let volumes = list(vm, "/spec/template/spec/volumes");
    let long = disks
        .iter()
        .chain(volumes)
        .map(|entry| text(entry, "/name"));
    let name = long.into_iter().find(|name| name.len() > LONGEST_NAME)?;
    Some(format!(
        "spec.template.spec: name {name} must be no more than {LONGEST_NAME} characters"
    ))
}

fn disks(vm: &Value) -> Option<String> {
    let volumes = list(vm, "/spec/template/spec/volumes");
    let disks = list(vm, &format!("{DOMAIN}/devices/disks"));
    disks.iter().enumerate().find_map(|(index, disk)| {
        let name = text(disk, "/name");
        let found = volumes.iter().any(|volume| text(volume, "/name") == name);
        (!found).then(|| {
            format!("spec.template.spec.domain.devices.disks[{index}].Name '{name}' not found.")
        })
    })
}

fn interfaces(vm: &Value) -> Option<String> {
    let networks = list(vm, "/spec/template/spec/networks");
    let interfaces = list(vm, &format!("{DOMAIN}/devices/interfaces"));
    interfaces.iter().enumerate().find_map(|(index, interface)| {
        let name = text(interface, "/name");
        let found = networks.iter().any(|network| text(network, "/name") == name);
        (!found).then(|| {
            format!("spec.template.spec.domain.devices.interfaces[{index}].name '{name}' not found in networks.")
        })
    })
}

fn cloud_init(vm: &Value) -> Option<String> {
    let volumes = list(vm, "/spec/template/spec/volumes");
    volumes.iter().enumerate().find_map(|(index, volume)| {
        ["cloudInitNoCloud", "cloudInitConfigDrive"].iter().find_map(|source| {
            [("userData", "userdata", "UserDataSecretRef"), ("networkData", "networkdata", "NetworkDataSecretRef")]
                .iter()
                .find(|(field, ..)| text(volume, &format!("/{source}/{field}")).len() > INLINE_CLOUD_INIT)
                .map(|(_, what, instead)| {
                    format!("spec.template.spec.volumes[{index}].{source} {what} exceeds {INLINE_CLOUD_INIT} byte limit. Should use {instead} for larger data.")
                })
        })
    })
}

fn memory(vm: &Value) -> Option<String> {
    let at = |place: &str| text(vm, &format!("{DOMAIN}{place}"));
    let guest = at("/memory/guest");
    let requests = at("/resources/requests/memory");
    if guest.is_empty() && requests.is_empty() && at("/memory/hugepages/pageSize").is_empty() {
        return Some("no memory requested, at least one of memory.guest, memory.hugepages.pageSize or resources.requests.memory must be set".to_owned());
    }
    if !requests.is_empty() && bytes(requests).is_none_or(|bytes| bytes < LEAST_MEMORY) {
        return Some(format!(
            "spec.template.spec.domain.resources.requests.memory '{requests}': must be greater than or equal to 1M."
        ));
    }
    None
}

fn hotplug(vm: &Value) -> Option<String> {
    let domain = vm.pointer(DOMAIN)?;
    let sockets = domain
        .pointer("/cpu/sockets")
        .and_then(Value::as_u64)
        .unwrap_or(1);
    let most = domain.pointer("/cpu/maxSockets").and_then(Value::as_u64);
    if most.is_some_and(|most| sockets > most) {
        return Some(
            "Number of sockets in CPU topology is greater than the maximum sockets allowed"
                .to_owned(),
        );
    }
    let most = text(domain, "/memory/maxGuest");
    if most.is_empty() {
        return None;
    }
    let architecture = text(vm, "/spec/template/spec/architecture");
    if !matches!(architecture, "" | "amd64" | "arm64") {
        return Some(format!(
            "Memory hotplug is not available for architecture {architecture}"
        ));
    }
    let (Some(guest), Some(most)) = (bytes(text(domain, "/memory/guest")), bytes(most)) else {
        return Some("Guest memory must be configured when memory hotplug is enabled".to_owned());
    };
    if guest > most {
        return Some("Guest memory is greater than the configured maxGuest memory".to_owned());
    }
    if guest < HOTPLUG_MINIMUM {
        return Some(
            "Memory hotplug is only available for VMs with at least 1Gi of guest memory".to_owned(),
        );
    }
    if guest % HOTPLUG_BLOCK != 0 || most % HOTPLUG_BLOCK != 0 {
        return Some("Guest memory and maxGuest must be 2Mi aligned".to_owned());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vm() -> Value {
        json!({
            "metadata": {"name": "m"},
            "spec": {"runStrategy": "Always", "template": {"spec": {
                "domain": {
                    "cpu": {"sockets": 2, "maxSockets": 4},
                    "memory": {"guest": "2Gi", "maxGuest": "4Gi"},
                    "devices": {"disks": [{"name": "root"}], "interfaces": [{"name": "default"}]},
                },
                "networks": [{"name": "default", "pod": {}}],
                "volumes": [{"name": "root", "dataVolume": {"name": "m"}}],
            }}},
        })
    }

    fn words(vm: &Value) -> String {
        match validate(&json!({"object": vm, "operation": "CREATE"}), None) {
            Answer::Refuse(words) => words,
            _ => String::new(),
        }
    }

    #[test]
    fn a_good_machine_is_let_through_and_filled_in() {
        assert_eq!(words(&vm()), "");
        let request = json!({"uid": "u", "object": vm(), "operation": "CREATE"});
        let Answer::Change(operations) = mutate(&request, false) else {
            panic!("not changed");
        };
        let spec = &operations[0]["value"]["template"]["spec"];
        assert_eq!(spec["domain"]["firmware"]["uuid"], "u");
        assert_eq!(spec["architecture"], "amd64");
        assert_eq!(operations[1]["value"]["annotations"][PCI_TOPOLOGY], "v3");
    }

    #[test]
    fn each_fault_of_a_machine_is_refused_in_words() {
        let cases: [(&str, Value, &str); 7] = [
            ("/spec/running", json!(true), "mutually exclusive"),
            (
                "/spec/template/spec/volumes",
                json!([]),
                "disks[0].Name 'root' not found",
            ),
            (
                "/spec/template/spec/networks",
                json!([]),
                "not found in networks",
            ),
            (
                "/spec/template/spec/domain/memory",
                json!({}),
                "no memory requested",
            ),
            (
                "/spec/template/spec/domain/memory/guest",
                json!("512Mi"),
                "at least 1Gi",
            ),
            (
                "/spec/template/spec/domain/memory/guest",
                json!("1537Mi"),
                "2Mi aligned",
            ),
            (
                "/spec/template/spec/domain/cpu/maxSockets",
                json!(1),
                "maximum sockets",
            ),
        ];
        for (pointer, value, expected) in cases {
            let mut vm = vm();
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            vm.pointer_mut(parent).unwrap()[field] = value;
            assert!(words(&vm).contains(expected), "{pointer}: {}", words(&vm));
        }
    }

    #[test]
    fn long_inline_user_data_is_refused_and_a_secret_is_not() {
        let mut vm = vm();
        let volume = json!({"name": "root", "cloudInitNoCloud": {"userData": "x".repeat(2049)}});
        vm["spec"]["template"]["spec"]["volumes"] = json!([volume]);
        assert!(words(&vm).contains("exceeds 2048 byte limit"));
    }
}
