//! CDI's webhooks for DataVolumes: clone rights, tokens, and what is refused.
//!
//! Whether the requesting user may clone, the server itself is asked.

use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

use super::{Answer, is_going, key};
use crate::stand_ins::cache::Key;
use crate::stand_ins::names::Res;
use crate::stand_ins::value::text;
use crate::stand_ins::world::World;

/// Annotation that proves that the creator was allowed to clone.
const TOKEN: &str = "cdi.kubevirt.io~1storage.clone.token";

/// Checks the creator's right to clone and writes the token.
pub(super) async fn mutate(world: &World, request: &Value) -> Answer {
    if is_going(request) || text(request, "/operation") != "CREATE" {
        return Answer::Allow;
    }
    let own = text(request, "/namespace");
    let Some(source) = source(world, own, &request["object"]["spec"]) else {
        return Answer::Allow;
    };
    if source.namespace != own && !may_clone(world, request, &source.namespace).await {
        let user = text(request, "/userInfo/username");
        return Answer::Refuse(format!(
            "Authorization failed, message is: User {user} has insufficient permissions in clone source namespace {}",
            source.namespace
        ));
    }
    let mut operations = Vec::new();
    if request.pointer("/object/metadata/annotations").is_none() {
        operations.push(json!({"op": "add", "path": "/metadata/annotations", "value": {}}));
    }
    operations.push(json!({
        "op": "add",
        "path": format!("/metadata/annotations/{TOKEN}"),
        "value": format!("stand-in-token-{}", text(request, "/uid")),
    }));
    Answer::Change(operations)
}

/// The claim that a DataVolume clones, if it clones one that is known.
fn source(world: &World, own: &str, spec: &Value) -> Option<Key> {
    let mut pvc = spec.pointer("/source/pvc").cloned();
    if spec.get("sourceRef").is_some() {
        let namespace = match text(spec, "/sourceRef/namespace") {
            "" => own,
            namespace => namespace,
        };
        let key = Key::new(namespace, text(spec, "/sourceRef/name"));
        let found = world.get(Res::DataSource, &key)?;
        pvc = found.data.pointer("/spec/source/pvc").cloned();
    }
    let pvc = pvc?;
    Some(Key::new(text(&pvc, "/namespace"), text(&pvc, "/name")))
}

/// Asks the server: create on `datavolumes/source`, or on Pods, in the source's
/// Namespace.
async fn may_clone(world: &World, request: &Value, namespace: &str) -> bool {
    let source = json!({
        "namespace": namespace, "verb": "create",
        "group": "cdi.kubevirt.io", "resource": "datavolumes", "subresource": "source",
    });
    let pods = json!({"namespace": namespace, "verb": "create", "resource": "pods"});
    for attributes in [source, pods] {
        if allowed(world, &request["userInfo"], attributes).await {
            return true;
        }
    }
    false
}

async fn allowed(world: &World, user: &Value, attributes: Value) -> bool {
    let review = json!({
        "metadata": {},
        "spec": {
            "user": user["username"],
            "uid": user["uid"],
            "groups": user["groups"],
            "extra": user["extra"],
            "resourceAttributes": attributes,
        },
    });
    let Ok(review) = serde_json::from_value::<SubjectAccessReview>(review) else {
        return false;
    };
    let api: Api<SubjectAccessReview> = Api::all(world.client.clone());
    match api.create(&PostParams::default(), &review).await {
        Ok(answer) => answer.status.is_some_and(|status| status.allowed),
        Err(error) => {
            tracing::warn!(%error, "stand-in: no answer about a clone right");
            false
        }
    }
}

/// Refuses what CDI refuses.
pub(super) async fn validate(world: &World, request: &Value, refusal: Option<String>) -> Answer {
    if is_going(request) {
        return Answer::Allow;
    }
    if let Some(words) = refusal {
        return Answer::Refuse(words);
    }
    let spec = &request["object"]["spec"];
    if text(request, "/operation") == "UPDATE" {
        return if spec == &request["oldObject"]["spec"] {
            Answer::Allow
        } else {
            Answer::Refuse("Cannot update DataVolume Spec".to_owned())
        };
    }
    if let Some(words) = shape(spec) {
        return Answer::Refuse(words.to_owned());
    }
    let Key { namespace, name } = key(request);
    match world.api(Res::Claim, &namespace).get_opt(&name).await {
        Ok(None) => Answer::Allow,
        Ok(Some(_)) => Answer::Refuse(format!("Destination PVC {namespace}/{name} already exists")),
        Err(error) => Answer::Refuse(error.to_string()),
    }
}

fn shape(spec: &Value) -> Option<&'static str> {
    let has = |field: &str| spec.get(field).is_some();
    if has("source") == has("sourceRef") {
        return Some(
            "Data volume should have either Source or SourceRef, or be externally populated",
        );
    }
    if has("pvc") == has("storage") {
        return Some("Data volume should have either PVC or Storage");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_source_and_one_target_are_wanted() {
        assert_eq!(shape(&json!({"sourceRef": {}, "storage": {}})), None);
        assert!(shape(&json!({"sourceRef": {}, "source": {}, "storage": {}})).is_some());
        assert!(shape(&json!({"sourceRef": {}})).is_some());
    }
}
