//! An object that came under a looser schema than this version's.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kite_testkit::install;
use kite_testkit::wait::eventually;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::Scene;
use crate::support::*;

// C-15, C-17: it alone is told to be wrong, everybody else goes on, and it heals.
pub async fn an_object_of_an_unknown_shape_harms_only_itself(scene: &Scene) {
    let admin = &scene.admin;
    let crds: Api<CustomResourceDefinition> = Api::all(admin.client.clone());
    let path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/subjects";
    let loose = json!([{"op": "replace", "path": path, "value": {"x-kubernetes-preserve-unknown-fields": true}}]);
    let loose: json_patch::Patch = serde_json::from_value(loose).unwrap();
    let params = PatchParams::default();
    crds.patch("kiteusers.kite.dev", &params, &Patch::Json::<()>(loose))
        .await
        .unwrap();
    let odd = user("odd", json!({"namespace": "odd", "subjects": "everybody"}));
    let accepted = async || install::apply(&admin.client, &odd.to_string()).await.ok();
    eventually("the looser schema", LIMIT, accepted)
        .await
        .unwrap();

    let ready = "jsonpath={.status.conditions[?(@.type==\"Stalled\")].reason} {.status.conditions[?(@.type==\"Ready\")].message}";
    let told = async || {
        let said = admin
            .plane
            .kubectl(&["get", "ku", "odd", "-o", ready])
            .await
            .ok()?
            .stdout;
        said.starts_with("InvalidObject").then_some(said)
    };
    let said = eventually("words about the odd one", LIMIT, told)
        .await
        .unwrap();
    assert!(said.contains("this KiteUser cannot be read"), "{said}");
    admin
        .ready_user("beside-odd", plain_spec("beside-odd"))
        .await;
    assert!(admin.namespaces().get_opt("odd").await.unwrap().is_none());

    let mend = json!([{"op": "replace", "path": "/spec/subjects", "value": []}]).to_string();
    let command = ["patch", "ku", "odd", "--type=json", "-p", &mend];
    admin.plane.kubectl(&command).await.unwrap().ok().unwrap();
    install::kite_crds(scene.plane).await.unwrap();
    admin.ready("odd").await;
}
