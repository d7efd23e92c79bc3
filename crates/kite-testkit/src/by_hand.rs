//! Plays kite-vm, KubeVirt and CDI by hand, one object at a time, for scenarios
//! of a controller that runs alone.
//!
//! What it writes is what the test says; nothing here has behaviour of its own.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::NamespaceResourceScope;
use kite_api::labels::{MANAGED_BY, MANAGED_BY_VALUE, VM_NAME, VM_UID};
use kite_api::{Condition, KiteVirtualMachine, condition};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::install;
use crate::wait::wait_until;

/// A namespace in which everything is written by hand.
#[derive(Clone)]
pub struct ByHand {
    /// The administrator's client.
    pub client: Client,
    /// The namespace.
    pub namespace: String,
}

impl ByHand {
    /// Makes the namespace.
    pub async fn new(client: Client, namespace: &str) -> Result<Self> {
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        install::apply(&client, &object.to_string()).await?;
        Ok(Self {
            client,
            namespace: namespace.to_owned(),
        })
    }

    /// The API of a kind in the namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Applies a machine as its user would; `spec` adds to the smallest one or changes it.
    pub async fn machine(&self, name: &str, spec: &Value) -> Result<KiteVirtualMachine> {
        let mut whole = json!({"cpu": 1, "memory": "1Gi", "disk": "2Gi", "image": "ubuntu"});
        extend(&mut whole, spec);
        let object = json!({
            "apiVersion": "kite.dev/v1alpha1", "kind": "KiteVirtualMachine",
            "metadata": {"name": name}, "spec": whole,
        });
        self.apply("kubectl", name, &object).await
    }

    /// Applies an object under a field manager.
    pub async fn apply<K>(&self, manager: &str, name: &str, object: &Value) -> Result<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug,
    {
        let params = PatchParams::apply(manager).force();
        let patch = Patch::Apply(object);
        self.api()
            .patch(name, &params, &patch)
            .await
            .with_context(|| format!("cannot apply {object}"))
    }

    /// Says what kite-vm would say of a machine's current generation: its whole part of the
    /// status, with conditions as `(type, status, reason)`.
    pub async fn say(
        &self,
        name: &str,
        fields: &Value,
        conditions: &[(&str, &str, &str)],
    ) -> Result<KiteVirtualMachine> {
        let machine: KiteVirtualMachine = self.api().get(name).await?;
        let generation = machine.metadata.generation;
        let condition = |(type_, status, reason): &(&str, &str, &str)| {
            json!({
                "type": type_, "status": status, "reason": reason, "message": format!("because of {reason}"),
                "observedGeneration": generation, "lastTransitionTime": "2026-01-01T00:00:00Z",
            })
        };
        let conditions: Vec<Value> = conditions.iter().map(condition).collect();
        let mut status = json!({"conditions": conditions});
        extend(&mut status, fields);
        let object = json!({
            "apiVersion": "kite.dev/v1alpha1", "kind": "KiteVirtualMachine",
            "metadata": {"name": name}, "status": status,
        });
        let params = PatchParams::apply("kite-vm").force();
        let api: Api<KiteVirtualMachine> = self.api();
        Ok(api
            .patch_status(name, &params, &Patch::Apply(&object))
            .await?)
    }

    /// Makes a child of a machine with the labels and the annotation that Kite gives it, and
    /// with its owner reference when `owned`.
    pub async fn child<K>(
        &self,
        machine: &KiteVirtualMachine,
        owned: bool,
        mut object: Value,
    ) -> Result<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug,
    {
        let (name, uid) = (machine.name_any(), machine.uid().unwrap_or_default());
        object["metadata"] = json!({
            "name": name,
            "labels": {MANAGED_BY: MANAGED_BY_VALUE, VM_NAME: name, VM_UID: uid},
            "annotations": {VM_UID: uid},
        });
        if owned {
            object["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "kite.dev/v1alpha1", "kind": "KiteVirtualMachine", "name": name,
                "uid": uid, "controller": true, "blockOwnerDeletion": true,
            }]);
        }
        self.apply("kite-vm", &name, &object).await
    }

    /// Replaces the status of an object, as its controller would.
    pub async fn status<K>(&self, name: &str, status: &Value) -> Result<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug,
    {
        let patch = json!([{"op": "add", "path": "/status", "value": status}]);
        let patch = Patch::Json::<()>(serde_json::from_value(patch)?);
        Ok(self
            .api()
            .patch_status(name, &PatchParams::default(), &patch)
            .await?)
    }

    /// Merges into an object, as somebody at a keyboard does.
    pub async fn edit<K>(&self, name: &str, patch: &Value) -> Result<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug,
    {
        let params = PatchParams {
            field_manager: Some("somebody".to_owned()),
            ..PatchParams::default()
        };
        Ok(self
            .api()
            .patch(name, &params, &Patch::Merge(patch))
            .await?)
    }

    /// Waits until something holds for a machine.
    pub async fn until(
        &self,
        name: &str,
        limit: Duration,
        holds: impl FnMut(&KiteVirtualMachine) -> bool,
    ) -> Result<KiteVirtualMachine> {
        wait_until(&self.api(), name, limit, holds).await
    }

    /// The fields of a machine's status that a manager owns, as paths without conditions' insides.
    pub async fn owned(&self, name: &str, manager: &str) -> Result<Vec<String>> {
        let machine: KiteVirtualMachine = self.api().get(name).await?;
        let entries = machine.managed_fields().iter();
        let own = entries.filter(|e| {
            e.manager.as_deref() == Some(manager) && e.subresource.as_deref() == Some("status")
        });
        let mut owned = Vec::new();
        for entry in own {
            let fields = serde_json::to_value(&entry.fields_v1)?;
            let status = fields["f:status"].as_object().cloned().unwrap_or_default();
            for (field, inside) in status {
                match field.as_str() {
                    "f:conditions" => {
                        let keys = inside.as_object().into_iter().flatten();
                        owned.extend(
                            keys.map(|(key, _)| {
                                format!("condition {}", key.trim_start_matches("k:"))
                            }),
                        );
                    }
                    field => owned.push(field.trim_start_matches("f:").to_owned()),
                }
            }
        }
        owned.sort();
        Ok(owned)
    }
}

/// `status reason` of a machine's condition, or `absent`.
pub fn condition(machine: &KiteVirtualMachine, type_: &str) -> String {
    let conditions: &[Condition] = machine.status.as_ref().map_or(&[], |s| &s.conditions);
    condition::find(conditions, type_).map_or_else(
        || "absent".to_owned(),
        |c| format!("{} {}", c.status, c.reason),
    )
}

fn extend(into: &mut Value, from: &impl Serialize) {
    if let (Some(into), Ok(Value::Object(from))) =
        (into.as_object_mut(), serde_json::to_value(from))
    {
        into.extend(from);
    }
}
