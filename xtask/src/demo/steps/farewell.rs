//! The end of a machine and of a user: nothing stays behind, and nothing goes too early.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim, Secret, Service};
use kite_api::KiteUser;
use kite_api::labels::{DELETION_HELD, ORPHANED_SINCE, VM_UID};
use kite_api::machine::Phase;
use kite_testkit::wait::eventually;
use kube::api::{DynamicObject, ListParams};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::{MACHINE, SECOND_USER, USER, foreign, instances, machines, patch, virtual_machines};
use crate::demo::follow::follow;
use crate::demo::machine::{describe, phase};
use crate::demo::story::Story;

/// Times on objects are whole seconds.
const ROUNDING: Duration = Duration::from_secs(1);

/// `spec.delete` takes the machine and all that belongs to it.
pub(super) async fn machine(story: &Story<'_>) -> Result<()> {
    let api = machines(&story.client);
    let uid = api.get(MACHINE).await?.uid().context("it has a UID")?;
    patch(story, r#"{"delete":true}"#).await?;
    let mut was_deleting = false;
    follow(
        story.report,
        &api,
        MACHINE,
        story.limit,
        describe,
        |machine| {
            was_deleting |= machine.and_then(phase) == Some(Phase::Deleting);
            machine.is_none()
        },
    )
    .await?;
    ensure!(was_deleting, "nobody could see that it was being deleted");
    let client = &story.client;
    let services: Api<Service> = Api::namespaced(client.clone(), USER);
    let secrets: Api<Secret> = Api::namespaced(client.clone(), USER);
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), USER);
    let disks: Api<DynamicObject> = foreign(client, "cdi.kubevirt.io", "v1beta1", "DataVolume");
    gone(story, "its instance", &instances(client), &uid).await?;
    gone(story, "its VirtualMachine", &virtual_machines(client), &uid).await?;
    gone(story, "its Service", &services, &uid).await?;
    gone(story, "its Secrets", &secrets, &uid).await?;
    gone(story, "its DataVolume", &disks, &uid).await?;
    gone(story, "its claim", &claims, &uid).await?;
    story.report.line(
        "  nothing of it is left: no instance, VirtualMachine, Service, Secret, DataVolume, claim",
    );
    Ok(())
}

async fn gone<K>(story: &Story<'_>, what: &str, api: &Api<K>, uid: &str) -> Result<()>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    let ours = ListParams::default().labels(&format!("{VM_UID}={uid}"));
    let what = format!("{what} to go");
    eventually(&what, story.limit, async || {
        let left = api.list(&ours).await.ok()?;
        left.items.is_empty().then_some(())
    })
    .await
}

/// The user goes at once, the namespace after its grace period, the other user not at all.
pub(super) async fn user(story: &Story<'_>) -> Result<()> {
    story.kubectl.run(&["delete", "kiteuser", USER]).await?;
    let users: Api<KiteUser> = Api::all(story.client.clone());
    ensure!(
        users.get_opt(USER).await?.is_none(),
        "the user is still there"
    );
    let namespaces: Api<Namespace> = Api::all(story.client.clone());
    let (mut orphaned, mut deleted) = (None, None);
    let limit = story.limit + story.grace;
    let seen = |namespace: Option<&Namespace>| {
        if let Some(namespace) = namespace {
            let annotated = namespace.annotations().contains_key(ORPHANED_SINCE);
            orphaned = orphaned.or_else(|| annotated.then(Instant::now));
            let going = namespace.metadata.deletion_timestamp.is_some();
            deleted = deleted.or_else(|| going.then(Instant::now));
        }
        namespace.is_none()
    };
    follow(story.report, &namespaces, USER, limit, fate, seen).await?;
    let orphaned = orphaned.context("nobody could see that the namespace would go")?;
    let stayed = deleted.map_or_else(|| orphaned.elapsed(), |deleted| deleted - orphaned);
    ensure!(
        stayed + ROUNDING >= story.grace,
        "the namespace went after {:.1} s, before its grace period of {:.1} s",
        stayed.as_secs_f64(),
        story.grace.as_secs_f64()
    );
    story.report.line(&format!(
        "  it stayed {:.1} s of grace (ten minutes by default)",
        stayed.as_secs_f64()
    ));
    let other = users.get(SECOND_USER).await?;
    namespaces.get(&other.spec.namespace).await?;
    story.kubectl.run(&["get", "kite", "-A"]).await
}

fn fate(namespace: Option<&Namespace>) -> String {
    let Some(namespace) = namespace else {
        return "the namespace is gone".to_owned();
    };
    let annotations = namespace.annotations();
    if namespace.metadata.deletion_timestamp.is_some() {
        "the namespace is being deleted".to_owned()
    } else if let Some(why) = annotations.get(DELETION_HELD) {
        format!("the namespace is held: {why}")
    } else if let Some(since) = annotations.get(ORPHANED_SINCE) {
        format!("nobody needs the namespace since {since}")
    } else {
        "the namespace is there".to_owned()
    }
}
