//! What the API server itself answers to the two forms of apply that every
//! write of Kite uses. When one of these fails, Kite's own guard has a hole.

use kite_testkit::{ControlPlane, Options, ServerVersion, install};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

const SPACE: &str = "facts";

/// One object of each kind that Kite writes first with a create-only apply, and
/// a change to its content.
fn objects() -> Vec<(ApiResource, Value)> {
    let of = |group: &str, kind: &str, plural: &str, version: &str| {
        let kind = GroupVersionKind::gvk(group, version, kind);
        ApiResource::from_gvk_with_plural(&kind, plural)
    };
    vec![
        (
            of("", "Namespace", "namespaces", "v1"),
            // An apply that owns no field leaves no trace in managedFields, and
            // the next one would change the object to write down who was before.
            json!({"metadata": {"labels": {"kite.dev/user": "fact"}}}),
        ),
        (
            of("", "ConfigMap", "configmaps", "v1"),
            json!({"data": {"a": "b"}}),
        ),
        (
            of("", "Secret", "secrets", "v1"),
            json!({"stringData": {"a": "b"}}),
        ),
        (
            of("", "Service", "services", "v1"),
            json!({"spec": {"ports": [{"name": "ssh", "port": 22}]}}),
        ),
        (
            of("kubevirt.io", "VirtualMachine", "virtualmachines", "v1"),
            json!({"spec": {"runStrategy": "Halted", "template": {"spec": {"domain": {
                "devices": {}
            }}}}}),
        ),
    ]
}

fn body(resource: &ApiResource, content: &Value, metadata: &Value) -> Value {
    let mut body = content.clone();
    body["apiVersion"] = json!(resource.api_version);
    body["kind"] = json!(resource.kind);
    body["metadata"]["name"] = json!("fact");
    for (field, value) in metadata.as_object().unwrap() {
        body["metadata"][field] = value.clone();
    }
    body
}

async fn apply(api: &Api<DynamicObject>, body: Value) -> Result<DynamicObject, u16> {
    let how = PatchParams::apply("kite-vm").force();
    match api.patch("fact", &how, &Patch::Apply(body)).await {
        Ok(object) => Ok(object),
        Err(kube::Error::Api(status)) => Err(status.code),
        Err(error) => panic!("{error}"),
    }
}

async fn facts_hold_on(version: ServerVersion) {
    let options = Options {
        version,
        controller_manager: false,
        ..Options::default()
    };
    let cp = ControlPlane::start(options).await.unwrap();
    let client = cp.admin_client().await.unwrap();
    eprintln!(
        "{} {:?}",
        client.apiserver_version().await.unwrap().git_version,
        cp.start_times()
    );
    install::upstream_crds(&cp).await.unwrap();
    let space = ["create", "namespace", SPACE];
    cp.kubectl(&space).await.unwrap().ok().unwrap();
    for (resource, content) in objects() {
        let kind = resource.kind.as_str();
        let api = match kind {
            "Namespace" => Api::all_with(client.clone(), &resource),
            _ => Api::namespaced_with(client.clone(), SPACE, &resource),
        };
        let only_create = || body(&resource, &content, &json!({"resourceVersion": "1"}));
        let before = cp.audit().unwrap().mark();
        let first = apply(&api, only_create()).await.unwrap();
        let seen = cp.audit().unwrap();
        seen.settled_mark(&client).await.unwrap();
        let requests = seen.since(before).unwrap();
        let made = requests.iter().find(|request| request.name == "fact");
        let made = made.map(|request| (request.verb.as_str(), request.code));
        assert_eq!(made, Some(("create", 201)), "absent {kind}");
        let again = apply(&api, only_create()).await;
        assert_eq!(again.unwrap_err(), 409, "create-only apply of a {kind}");
        let stays = api.get("fact").await.unwrap();
        assert_eq!(stays.resource_version(), first.resource_version());

        let uid = first.uid().unwrap();
        let with = |uid: &str| body(&resource, &content, &json!({"uid": uid}));
        let same = apply(&api, with(&uid)).await.unwrap();
        assert_eq!(same.resource_version(), first.resource_version(), "{kind}");
        let other = "11111111-2222-3333-4444-555555555555";
        let other = apply(&api, with(other)).await.unwrap_err();
        let gone = if kind == "Namespace" {
            // Nothing finishes a namespace without its controller; another name is as absent.
            let mut absent = with(&uid);
            absent["metadata"]["name"] = json!("absent");
            let how = PatchParams::apply("kite-vm").force();
            let answer = api.patch("absent", &how, &Patch::Apply(absent)).await;
            match answer.unwrap_err() {
                kube::Error::Api(status) => status.code,
                error => panic!("{error}"),
            }
        } else {
            let now = kube::api::DeleteParams::default();
            api.delete("fact", &now).await.unwrap();
            apply(&api, with(&uid)).await.unwrap_err()
        };
        eprintln!("{kind}: another UID answers {other}, a gone one {gone}");
        assert_eq!(gone, 409, "apply with the UID of a {kind} that is gone");
        assert_eq!(other, 422, "another UID on {kind}");
    }
    cp.shutdown().await;
}

// C-7
#[tokio::test]
async fn create_only_and_uid_bound_applies_answer_as_kite_relies_on_newest() {
    facts_hold_on(ServerVersion::Newest).await;
}

// C-7
#[tokio::test]
async fn create_only_and_uid_bound_applies_answer_as_kite_relies_on_oldest() {
    facts_hold_on(ServerVersion::Oldest).await;
}
