//! What the admission policies refuse, whom they let through, and what they say; and that each of
//! them is what refuses.
//!
//! The rows are requests of real accounts under real rights. Nothing of Kite's runs here: what its
//! processes do under the policies is shown by every other scenario.

mod off;
mod passing;
mod row;
mod rows;
mod world;

use std::time::Duration;

use serde_json::Value;
use tokio::sync::RwLock;

use row::Row;
use world::{World, world};

/// Longer than the server takes for anything here, on a busy machine too.
const LONG: Duration = Duration::from_secs(90);

/// Held while a policy is off.
static POLICIES: RwLock<()> = RwLock::const_new(());

/// Tries every row without writing anything, and shows what is not as the table says.
async fn holds(world: &World, rows: &[Row]) {
    let mut wrong = Vec::new();
    for row in rows {
        let answer = world.would(row.who, row.method, &row.path, &row.body).await;
        if let Some(trouble) = row.differs(&answer) {
            wrong.push(trouble);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

// U-3, N-3, N-9: the marks of a namespace decide whose it is and whether it goes.
#[tokio::test]
async fn only_kite_and_administrators_mark_namespaces() {
    let _policies = POLICIES.read().await;
    holds(world().await, &rows::namespaces()).await;
}

// C-20, U-7: what kite-user may hand out, where, and to whom.
#[tokio::test]
async fn kite_user_gives_rights_only_in_users_namespaces_and_to_those_whom_they_are_for() {
    let _policies = POLICIES.read().await;
    holds(world().await, &rows::bindings()).await;
}

// C-9, U-9, P-3
#[tokio::test]
async fn only_the_controllers_write_their_status() {
    let _policies = POLICIES.read().await;
    holds(world().await, &rows::status()).await;
}

// C-7, D-7, U-7: what carries Kite's marks is Kite's, and nobody else plants any.
#[tokio::test]
async fn tenants_neither_change_what_kite_keeps_nor_make_what_looks_like_it() {
    let _policies = POLICIES.read().await;
    holds(world().await, &rows::children()).await;
}

// U-3, P-1: what `view` and `edit` gain.
#[tokio::test]
async fn whoever_may_edit_a_namespace_makes_machines_and_no_users() {
    let _policies = POLICIES.read().await;
    let world = world().await;
    holds(world, &rows::people()).await;
    let users = "/apis/kite.dev/v1alpha1/kiteusers";
    world
        .ask("viewer", "GET", users, &Value::Null)
        .await
        .unwrap();
    let refused = world.ask("tenant", "GET", users, &Value::Null).await;
    refused.unwrap_err();
}
