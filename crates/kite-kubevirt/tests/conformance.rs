//! Everything Kite writes exists upstream with the type that Kite gives it, and
//! the read views take what upstream really wrote.

// Helpers of tests may fail loudly, as tests may.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kite_kubevirt::{read, write};
use kube::core::ObjectMeta;
use serde_json::{Value, json};

/// The schema of the given version in the copy of an upstream CRD.
fn schema(file: &str, version: &str) -> Value {
    let path: PathBuf = [
        env!("CARGO_MANIFEST_DIR"),
        "..",
        "kite-testkit",
        "crds",
        file,
    ]
    .iter()
    .collect();
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let crd: Value = serde_json::from_str(&text).unwrap();
    let versions = crd["spec"]["versions"].as_array().unwrap();
    let version = versions.iter().find(|v| v["name"] == version).unwrap();
    version["schema"]["openAPIV3Schema"].clone()
}

/// What of `value` the schema does not know, or knows otherwise.
fn faults(path: &str, value: &Value, schema: &Value, out: &mut Vec<String>) {
    if schema["x-kubernetes-int-or-string"] == true {
        if !(value.is_string() || value.is_i64()) {
            out.push(format!("{path}: neither a number nor text"));
        }
        return;
    }
    if let Some(words) = schema["enum"].as_array()
        && !words.contains(value)
    {
        out.push(format!("{path}: {value} is none of {words:?}"));
    }
    let fits = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64(),
        Some("boolean") => value.is_boolean(),
        _ => schema["x-kubernetes-preserve-unknown-fields"] == true,
    };
    if !fits {
        out.push(format!("{path}: {value} does not fit {}", schema["type"]));
    }
    for required in schema["required"].as_array().into_iter().flatten() {
        if value.get(required.as_str().unwrap()).is_none() {
            out.push(format!("{path}.{required}: required and not sent"));
        }
    }
    let open = schema["x-kubernetes-preserve-unknown-fields"] == true || path == ".metadata";
    for (key, value) in value.as_object().into_iter().flatten() {
        let path = format!("{path}.{key}");
        match schema["properties"]
            .get(key)
            .or(schema.get("additionalProperties"))
        {
            Some(schema) => faults(&path, value, schema, out),
            None if open => {}
            None => out.push(format!("{path}: unknown upstream")),
        }
    }
    for item in value.as_array().into_iter().flatten() {
        faults(&format!("{path}[]"), item, &schema["items"], out);
    }
}

fn check(value: &Value, schema: &Value) -> Vec<String> {
    let mut out = Vec::new();
    faults("", value, schema, &mut out);
    out
}

fn machine() -> write::VirtualMachine {
    let text = |t: &str| t.to_owned();
    let volume = |name: &str, source| write::Volume {
        name: text(name),
        source,
    };
    let disk = |name: &str| write::Disk {
        name: text(name),
        disk: write::DiskTarget {
            bus: write::DiskBus::Virtio,
        },
    };
    let domain = write::Domain {
        cpu: write::Cpu {
            sockets: 2,
            cores: 1,
            threads: 1,
            max_sockets: 8,
        },
        memory: write::Memory {
            guest: Quantity(text("4Gi")),
            max_guest: Some(Quantity(text("16Gi"))),
        },
        devices: write::Devices {
            disks: vec![disk("root"), disk("cloud-init")],
            interfaces: vec![write::Interface {
                name: text("default"),
                masquerade: write::Marker {},
            }],
        },
    };
    let data_volume = write::VolumeSource::DataVolume(write::NamedVolume { name: text("web") });
    let cloud_init = write::VolumeSource::CloudInitNoCloud(write::CloudInit {
        secret_ref: write::LocalReference {
            name: text("web-cloud-init"),
        },
    });
    let spec = write::VirtualMachineSpec {
        run_strategy: write::RunStrategy::Always,
        template: write::Template {
            metadata: write::TemplateMetadata {
                labels: BTreeMap::from([(text("kite.dev/vm-uid"), text("u"))]),
            },
            spec: write::TemplateSpec {
                domain,
                networks: vec![write::Network {
                    name: text("default"),
                    pod: write::Marker {},
                }],
                volumes: vec![
                    volume("root", data_volume),
                    volume("cloud-init", cloud_init),
                ],
            },
        },
    };
    write::VirtualMachine::new(metadata(), spec)
}

fn disk() -> write::DataVolume {
    let spec = write::DataVolumeSpec {
        source_ref: write::SourceRef {
            kind: write::SourceKind::DataSource,
            namespace: "kite-images".to_owned(),
            name: "ubuntu".to_owned(),
        },
        storage: write::Storage {
            storage_class_name: Some("fast".to_owned()),
            resources: write::Resources {
                requests: write::Requests {
                    storage: Quantity("25Gi".to_owned()),
                },
            },
        },
    };
    write::DataVolume::new(metadata(), spec)
}

fn metadata() -> ObjectMeta {
    ObjectMeta {
        name: Some("web".to_owned()),
        namespace: Some("alice".to_owned()),
        labels: Some(BTreeMap::from([("a".to_owned(), "b".to_owned())])),
        ..ObjectMeta::default()
    }
}

/// The live form of a rendered object, as the API would give it back.
fn live(wanted: &write::VirtualMachine) -> Value {
    serde_json::to_value(wanted).unwrap()
}

fn read_back(value: Value) -> read::VirtualMachine {
    serde_json::from_value(value).unwrap()
}

#[test]
fn every_field_of_a_virtual_machine_exists_upstream() {
    let schema = schema("virtualmachines.kubevirt.io.json", "v1");
    assert_eq!(check(&live(&machine()), &schema), Vec::<String>::new());
}

#[test]
fn every_field_of_a_data_volume_exists_upstream() {
    let schema = schema("datavolumes.cdi.kubevirt.io.json", "v1beta1");
    let value = serde_json::to_value(disk()).unwrap();
    assert_eq!(check(&value, &schema), Vec::<String>::new());
}

#[test]
fn the_check_itself_finds_a_misspelt_a_mistyped_and_a_missing_field() {
    let schema = schema("virtualmachines.kubevirt.io.json", "v1");
    let mut value = live(&machine());
    value["spec"]["runStrategie"] = json!("Always");
    value["spec"]["template"]["spec"]["domain"]["cpu"]["sockets"] = json!("2");
    value["spec"]["template"]["spec"]["networks"][0] = json!({"pod": {}});
    assert_eq!(
        check(&value, &schema).len(),
        3,
        "{:?}",
        check(&value, &schema)
    );
}

// V-16
#[test]
fn a_machine_matches_itself_with_whatever_upstream_added() {
    let wanted = machine();
    let mut value = live(&wanted);
    assert!(wanted.matches(&read_back(value.clone())));
    value["metadata"]["annotations"] = json!({"kubevirt.io/pci-topology-version": "v3"});
    value["spec"]["template"]["metadata"]["creationTimestamp"] = Value::Null;
    value["spec"]["template"]["spec"]["architecture"] = json!("amd64");
    let domain = &mut value["spec"]["template"]["spec"]["domain"];
    domain["firmware"] = json!({"uuid": "5d307ca9", "serial": "e4686d2c"});
    domain["machine"] = json!({"type": "q35"});
    domain["memory"]["guest"] = json!("4096Mi");
    domain["devices"]["interfaces"][0]["macAddress"] = json!("02:00:00:00:00:01");
    assert_eq!(wanted.differences(&read_back(value)), Vec::new());
}

// V-16
#[test]
fn every_hand_edit_of_a_field_that_kite_owns_is_seen() {
    let wanted = machine();
    let edits: [(&str, Value); 9] = [
        ("/spec/runStrategy", json!("Halted")),
        (
            "/spec/template/metadata/labels/kite.dev~1vm-uid",
            json!("other"),
        ),
        ("/spec/template/spec/domain/cpu/sockets", json!(4)),
        ("/spec/template/spec/domain/memory/guest", json!("8Gi")),
        (
            "/spec/template/spec/domain/devices/disks/1/name",
            json!("x"),
        ),
        ("/spec/template/spec/domain/devices/interfaces", json!([])),
        (
            "/spec/template/spec/networks/0",
            json!({"name": "default", "multus": {"networkName": "n"}}),
        ),
        (
            "/spec/template/spec/volumes/0",
            json!({"name": "root", "containerDisk": {"image": "evil"}}),
        ),
        ("/metadata/labels/a", json!("c")),
    ];
    for (path, edit) in edits {
        let mut value = live(&wanted);
        *value.pointer_mut(path).unwrap() = edit;
        assert_eq!(wanted.differences(&read_back(value)).len(), 1, "{path}");
    }
}

// C-15
#[test]
fn what_upstream_invents_later_still_parses() {
    let vm = json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "m"},
        "spec": {"runStrategy": "Sometimes", "template": {"spec": {
            "domain": {"devices": {"disks": [{"name": "a", "floppy": {}}]}, "memory": {"guest": 1_073_741_824}},
            "volumes": [{"name": "a", "quantumDisk": {"spin": 0.5}}], "networks": [{"name": "n", "tube": {}}]
        }}},
        "status": {"printableStatus": "Dreaming", "created": true, "conditions": [{"type": "Odd", "status": "Maybe"}]}
    });
    let vm = read_back(vm);
    assert_eq!(
        (vm.printable_status(), vm.run_strategy()),
        ("Dreaming", Some("Sometimes"))
    );
    let disk: read::DataVolume = serde_json::from_value(json!({
        "metadata": {"name": "m"}, "spec": {"source": {"moon": {}}}, "status": {"phase": "Levitating", "progress": "soon"}
    }))
    .unwrap();
    assert_eq!(disk.phase(), "Levitating");
    let source: read::DataSource =
        serde_json::from_value(json!({"metadata": {}, "spec": {"source": {"tape": {}}}})).unwrap();
    assert!(!source.is_ready() && !source.is_published());
}

// S-4
#[test]
fn the_addresses_of_an_instance_are_sorted_and_each_is_told_once() {
    let instance: read::VirtualMachineInstance = serde_json::from_value(json!({
        "metadata": {}, "status": {"phase": "Running", "interfaces": [
            {"name": "default", "ipAddress": "10.0.0.9", "ipAddresses": ["10.0.0.9", "fd00::9"]},
            {"ipAddress": "10.0.0.10"}, {"mac": "02:00:00:00:00:01"}
        ]}
    }))
    .unwrap();
    assert_eq!(
        instance.ip_addresses(),
        ["10.0.0.10", "10.0.0.9", "fd00::9"]
    );
}

#[test]
fn the_kinds_are_found_where_upstream_serves_them() {
    use kube::core::Resource;
    let url = read::VirtualMachine::url_path(&(), Some("a"));
    assert_eq!(url, "/apis/kubevirt.io/v1/namespaces/a/virtualmachines");
    let url = read::DataVolume::url_path(&(), Some("a"));
    assert_eq!(
        url,
        "/apis/cdi.kubevirt.io/v1beta1/namespaces/a/datavolumes"
    );
}

// C-15
#[test]
fn everything_that_upstream_was_recorded_to_write_parses() {
    let folder: PathBuf = [
        env!("CARGO_MANIFEST_DIR"),
        "..",
        "kite-testkit",
        "recordings",
    ]
    .iter()
    .collect();
    let (mut machines, mut instances, mut disks) = (0, 0, 0);
    for entry in std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
    {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "jsonl") {
            continue;
        }
        for line in std::fs::read_to_string(path).unwrap().lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let object = json!({"metadata": {"name": line["name"]}, "status": line["status"]});
            match line["kind"].as_str() {
                Some("VM") => {
                    let vm = read_back(object);
                    assert_eq!(
                        line["status"]["printableStatus"]
                            .as_str()
                            .unwrap_or_default(),
                        vm.printable_status()
                    );
                    machines += 1;
                }
                Some("VMI") => {
                    let vmi: read::VirtualMachineInstance = serde_json::from_value(object).unwrap();
                    assert_eq!(
                        line["status"]["phase"].as_str().unwrap_or_default(),
                        vmi.phase()
                    );
                    instances += 1;
                }
                Some("DV") => {
                    let dv: read::DataVolume = serde_json::from_value(object).unwrap();
                    assert_eq!(
                        line["status"]["phase"].as_str().unwrap_or_default(),
                        dv.phase()
                    );
                    disks += 1;
                }
                _ => {}
            }
        }
    }
    assert!(
        machines > 50 && instances > 50 && disks > 50,
        "{machines} {instances} {disks}"
    );
}
