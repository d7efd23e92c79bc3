//! The Secrets that an instance mounts: while one is missing its launcher does
//! not come up, as a kubelet would have it.

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DynamicObject};
use serde_json::Value;

use crate::stand_ins::value::{list, text};
use crate::stand_ins::world::World;

/// Whether all of them are there. Only names are asked for, never contents.
pub(super) async fn all_there(
    world: &World,
    namespace: &str,
    vmi: &DynamicObject,
) -> Result<bool, kube::Error> {
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), namespace);
    for name in names(&vmi.data) {
        if secrets.get_metadata_opt(&name).await?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn names(vmi: &Value) -> Vec<String> {
    const IN_VOLUME: [&str; 5] = [
        "/cloudInitNoCloud/secretRef/name",
        "/cloudInitNoCloud/networkDataSecretRef/name",
        "/cloudInitConfigDrive/secretRef/name",
        "/cloudInitConfigDrive/networkDataSecretRef/name",
        "/secret/secretName",
    ];
    const IN_CREDENTIAL: [&str; 2] = [
        "/sshPublicKey/source/secret/secretName",
        "/userPassword/source/secret/secretName",
    ];
    let places: [(&str, &[&str]); 2] = [
        ("/spec/volumes", &IN_VOLUME),
        ("/spec/accessCredentials", &IN_CREDENTIAL),
    ];
    let named = places.iter().flat_map(|(pointer, fields)| {
        let entries = list(vmi, pointer).iter();
        entries.flat_map(|entry| fields.iter().map(move |field| text(entry, field)))
    });
    let named = named.filter(|name| !name.is_empty());
    named.map(ToOwned::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_found_in_volumes_and_credentials() {
        let source = json!({"secret": {"secretName": "keys"}});
        let vmi = json!({"spec": {
            "volumes": [
                {"name": "root", "dataVolume": {"name": "m"}},
                {"name": "init", "cloudInitNoCloud": {"secretRef": {"name": "init"}}},
            ],
            "accessCredentials": [{"sshPublicKey": {"source": source}}],
        }});
        assert_eq!(names(&vmi), ["init", "keys"]);
    }
}
