//! Each policy is switched off, and what it refused is allowed: it was the policy that refused.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use kite_testkit::{install, wait};
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use serde_json::Value;

use crate::row::Row;
use crate::rows;
use crate::world::{World, world};
use crate::{LONG, POLICIES};

/// The row that a policy alone refuses.
fn proof(policy: &str) -> Row {
    let (rows, who, has) = match policy {
        "kite-namespace-marks" => (rows::namespaces(), "helpdesk", "alice"),
        "kite-namespace-deletes" => (rows::namespaces(), "kite-namespace", "vault"),
        "kite-status-writes" => (rows::status(), "administrator", "web/status"),
        "kite-children" => (rows::children(), "editor", "services/web"),
        "kite-user-writes" => return rows::bypass(),
        other => panic!("no row proves {other}; add one"),
    };
    let mut rows = rows.into_iter();
    rows.find(|r| r.refused.is_some() && r.who == who && r.path.contains(has))
        .unwrap()
}

async fn switch_off(policies: &Api<ValidatingAdmissionPolicyBinding>, name: &str) {
    policies
        .delete(name, &DeleteParams::default())
        .await
        .unwrap();
}

async fn allowed(world: &World, row: &Row) {
    wait::eventually("a policy that is off", LONG, async || {
        let answer = world.would(row.who, row.method, &row.path, &row.body).await;
        answer.ok()
    })
    .await
    .unwrap();
}

async fn refused(world: &World, row: &Row) {
    wait::eventually("a policy that is on again", LONG, async || {
        let answer = world.would(row.who, row.method, &row.path, &row.body).await;
        row.differs(&answer).is_none().then_some(())
    })
    .await
    .unwrap();
}

// C-9, C-20, U-3, N-9
#[tokio::test]
async fn without_a_policy_what_it_refuses_is_allowed() {
    let _policies = POLICIES.write().await;
    let world = world().await;
    let admin = world.plane.admin_client().await.unwrap();
    let policies: Api<ValidatingAdmissionPolicyBinding> = Api::all(admin);
    let all = policies
        .list_metadata(&ListParams::default())
        .await
        .unwrap();
    let names: Vec<String> = all
        .items
        .into_iter()
        .filter_map(|p| p.metadata.name)
        .collect();
    assert_eq!(names.len(), 5, "{names:?}");
    let proofs: Vec<Row> = names.iter().map(|name| proof(name)).collect();
    for row in &proofs {
        refused(world, row).await;
    }
    for name in &names {
        switch_off(&policies, name).await;
    }
    for row in &proofs {
        allowed(world, row).await;
    }
    secrets_are_open(world).await;
    install::kite_crds(&world.plane).await.unwrap();
    for row in &proofs {
        refused(world, row).await;
    }
}

/// With its right to bind alone, kite-user could open every Secret of the cluster to anybody.
async fn secrets_are_open(world: &World) {
    let crown = "/api/v1/namespaces/vault/secrets/crown";
    let hidden = world.ask("thief", "GET", crown, &Value::Null).await;
    hidden.unwrap_err();
    let row = rows::bypass();
    world
        .ask(row.who, row.method, &row.path, &row.body)
        .await
        .unwrap();
    let read = async || world.ask("thief", "GET", crown, &Value::Null).await.ok();
    wait::eventually("rights over a Secret", LONG, read)
        .await
        .unwrap();
    let bound = format!("{}/bound", row.path);
    world
        .ask("the last resort", "DELETE", &bound, &Value::Null)
        .await
        .unwrap();
}
