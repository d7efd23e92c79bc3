//! Registering the webhooks with the server, and taking them back.

use anyhow::Result;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::stand_ins::names::{KUBEVIRT_MANAGER, STAND_IN_LABEL};

/// Name of both registrations.
const NAME: &str = "stand-in-kubevirt-cdi";
/// As long as the real ones may take.
const TIMEOUT_SECONDS: u8 = 10;

/// One webhook: its name as the real project has it, its path, and what it sees.
struct Hook {
    name: &'static str,
    path: &'static str,
    group: &'static str,
    version: &'static str,
    resource: &'static str,
}

const MUTATING: [Hook; 2] = [
    Hook {
        name: "virtualmachines-mutator.kubevirt.io",
        path: "vm/mutate",
        group: "kubevirt.io",
        version: "v1",
        resource: "virtualmachines",
    },
    Hook {
        name: "datavolume-mutate.cdi.kubevirt.io",
        path: "dv/mutate",
        group: "cdi.kubevirt.io",
        version: "v1beta1",
        resource: "datavolumes",
    },
];

const VALIDATING: [Hook; 2] = [
    Hook {
        name: "virtualmachine-validator.kubevirt.io",
        path: "vm/validate",
        group: "kubevirt.io",
        version: "v1",
        resource: "virtualmachines",
    },
    Hook {
        name: "datavolume-validate.cdi.kubevirt.io",
        path: "dv/validate",
        group: "cdi.kubevirt.io",
        version: "v1beta1",
        resource: "datavolumes",
    },
];

/// Registers all four.
pub(super) async fn apply(client: &Client, port: u16, authority: &str) -> Result<()> {
    apply_one::<MutatingWebhookConfiguration>(client, &MUTATING, port, authority).await?;
    apply_one::<ValidatingWebhookConfiguration>(client, &VALIDATING, port, authority).await
}

async fn apply_one<K>(client: &Client, hooks: &[Hook], port: u16, authority: &str) -> Result<()>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Serialize,
{
    let hooks: Vec<Value> = hooks
        .iter()
        .map(|hook| hook.registration(port, authority))
        .collect();
    let object = json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        "metadata": {"name": NAME, "labels": {STAND_IN_LABEL: "true"}},
        "webhooks": hooks,
    });
    let params = PatchParams::apply(KUBEVIRT_MANAGER).force();
    let api: Api<K> = Api::all(client.clone());
    api.patch(NAME, &params, &Patch::Apply(&object)).await?;
    Ok(())
}

/// Takes both registrations back.
pub(super) async fn remove(client: &Client) -> Result<()> {
    let params = DeleteParams::default();
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    mutating.delete(NAME, &params).await?;
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    validating.delete(NAME, &params).await?;
    Ok(())
}

impl Hook {
    fn registration(&self, port: u16, authority: &str) -> Value {
        json!({
            "name": self.name,
            "clientConfig": {
                "url": format!("https://127.0.0.1:{port}/{}", self.path),
                "caBundle": ByteString(authority.as_bytes().to_vec()),
            },
            "rules": [{
                "apiGroups": [self.group],
                "apiVersions": [self.version],
                "operations": ["CREATE", "UPDATE"],
                "resources": [self.resource],
                "scope": "Namespaced",
            }],
            "failurePolicy": "Fail",
            "matchPolicy": "Equivalent",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": TIMEOUT_SECONDS,
        })
    }
}
