//! One machine that Kite made, as a mould for the bodies that the bare client sends: so both send
//! the same, and nothing of Kite's decisions is written a second time.

use anyhow::{Context, Result};
use kite_api::labels::Controller;
use kite_api::machine::Phase;
use kite_api::{KiteVirtualMachine, ownership};
use kite_kubevirt::read::{DataVolume, VirtualMachine};
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::load::{Made, Name};

/// Names that occur nowhere else in an object.
const NAMESPACE: &str = "mouldspace";
const MACHINE: &str = "mouldling";

/// The machine whose objects are the mould.
pub fn original() -> Name {
    Name {
        namespace: NAMESPACE.to_owned(),
        name: MACHINE.to_owned(),
    }
}

/// Path and body of one request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The path, without parameters.
    pub path: String,
    /// The body.
    pub body: String,
}

/// What is sent for each machine.
#[derive(Clone, Debug)]
pub struct Mould {
    uid: String,
    children: Vec<Request>,
    parts: Vec<(Controller, Value)>,
}

/// The kinds of a machine's children, as the API server serves them.
const CHILDREN: [(&str, &str, &str, &str); 4] = [
    ("", "v1", "Secret", "secrets"),
    ("cdi.kubevirt.io", "v1beta1", "DataVolume", "datavolumes"),
    ("kubevirt.io", "v1", "VirtualMachine", "virtualmachines"),
    ("", "v1", "Service", "services"),
];

impl Mould {
    /// Takes the mould of the original, which is Running.
    pub async fn of(client: &Client) -> Result<Self> {
        let api: Api<KiteVirtualMachine> = Api::namespaced(client.clone(), NAMESPACE);
        let machine = api.get(MACHINE).await?;
        let status = machine
            .status
            .clone()
            .context("the original has a status")?;
        let uid = machine.uid().context("the original has a UID")?;
        let mut children = Vec::new();
        for (group, version, kind, plural) in CHILDREN {
            let kind = GroupVersionKind::gvk(group, version, kind);
            let resource = ApiResource::from_gvk_with_plural(&kind, plural);
            let api: Api<DynamicObject> =
                Api::namespaced_with(client.clone(), NAMESPACE, &resource);
            let all = api.list(&ListParams::default()).await?;
            let own = all.into_iter().filter(|object| {
                let owners = object.owner_references().iter();
                let labels = object.labels().values();
                owners
                    .map(|owner| &owner.uid)
                    .chain(labels)
                    .any(|u| *u == uid)
            });
            children.extend(own.map(|object| applied(&object, &resource)));
        }
        let writers = [
            Controller::Vm,
            Controller::VmStatus,
            Controller::Service,
            Controller::DataVolume,
        ];
        let part = |who| {
            let part = serde_json::to_value(ownership::part_of(who, &status))?;
            anyhow::Ok((who, part))
        };
        Ok(Self {
            uid,
            children,
            parts: writers.into_iter().map(part).collect::<Result<_>>()?,
        })
    }

    /// How many children there are.
    pub fn children(&self) -> usize {
        self.children.len()
    }

    /// The children of a machine.
    pub fn children_of(&self, made: &Made) -> Vec<Request> {
        let fill = |text: &str| self.fill(text, made);
        let children = self.children.iter().map(|child| Request {
            path: fill(&child.path),
            body: fill(&child.body),
        });
        children.collect()
    }

    /// A controller's part of a machine's status.
    pub fn part(&self, who: Controller, made: &Made) -> Value {
        let found = self.parts.iter().find(|(writer, _)| *writer == who);
        let text = found.map_or_else(String::new, |(_, part)| part.to_string());
        serde_json::from_str(&self.fill(&text, made)).unwrap_or_default()
    }

    fn fill(&self, text: &str, made: &Made) -> String {
        text.replace(NAMESPACE, &made.name.namespace)
            .replace(MACHINE, &made.name.name)
            .replace(&self.uid, &made.uid)
    }
}

/// What was applied to make this object, as near as the object shows it.
fn applied(object: &DynamicObject, resource: &ApiResource) -> Request {
    let meta = &object.metadata;
    let mut body = object.data.clone();
    if let Some(fields) = body.as_object_mut() {
        fields.remove("status");
    }
    // The server chooses these itself.
    for chosen in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if let Some(spec) = body.get_mut("spec").and_then(Value::as_object_mut)
            && resource.kind == "Service"
            && spec.get("clusterIP") != Some(&json!("None"))
        {
            spec.remove(chosen);
        }
    }
    body["apiVersion"] = json!(resource.api_version);
    body["kind"] = json!(resource.kind);
    body["metadata"] = json!({
        "name": meta.name,
        "namespace": meta.namespace,
        "labels": meta.labels,
        "annotations": meta.annotations,
        "ownerReferences": meta.owner_references,
    });
    let root = if resource.group.is_empty() {
        "/api"
    } else {
        "/apis"
    };
    Request {
        path: format!(
            "{root}/{}/namespaces/{NAMESPACE}/{}/{}",
            resource.api_version,
            resource.plural,
            object.name_any()
        ),
        body: body.to_string(),
    }
}

/// What a clone's progress looks like in a status.
pub fn disk_part(mut part: Value, disk: &DataVolume) -> Value {
    part["dataVolumePhase"] = json!(disk.phase());
    if let Some(progress) = disk.status.as_ref().and_then(|s| s.progress.clone()) {
        part["dataVolumeProgress"] = json!(progress);
    }
    part
}

/// What a machine's power looks like in a status.
pub fn power_part(mut part: Value, phase: Phase, vm: &VirtualMachine) -> Value {
    part["phase"] = json!(phase);
    part["virtualMachineUID"] = json!(vm.metadata.uid);
    part
}
