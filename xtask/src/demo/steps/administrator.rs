//! What an administrator does: settings, an image, users.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Namespace, ResourceQuota};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kite_api::condition::{self, ACCEPTED, READY};
use kite_api::labels::USER_UID;
use kite_api::{KitePlatform, KiteUser};
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use super::{SECOND_USER, USER};
use crate::demo::follow::follow;
use crate::demo::story::Story;
use crate::up::{IMAGE, IMAGE_NAMESPACE, publish};

/// Settings, an image, and a user who stays: when every namespace would have to
/// go at once, kite-namespace suspects a mistake and asks first.
pub(super) async fn platform(story: &Story<'_>) -> Result<()> {
    let apply = ["apply", "-f", "docs/examples/platform.yaml"];
    story.kubectl.run(&apply).await?;
    let platforms: Api<KitePlatform> = Api::all(story.client.clone());
    let conditions = |platform: &KitePlatform| {
        let status = platform.status.as_ref();
        status
            .map(|status| status.conditions.clone())
            .unwrap_or_default()
    };
    follow(
        story.report,
        &platforms,
        "default",
        story.limit,
        |platform| platform.map(|p| words(&conditions(p))).unwrap_or_default(),
        |platform| platform.is_some_and(|p| condition::is_true(&conditions(p), ACCEPTED)),
    )
    .await?;
    story.report.line(&format!(
        "the image {IMAGE} is published: a claim with its contents, and a labelled DataSource"
    ));
    publish(story.cluster).await?;
    let get = ["get", "datasource", "-n", IMAGE_NAMESPACE, "--show-labels"];
    story.kubectl.run(&get).await?;
    let apply = ["apply", "-f", "docs/examples/second-user.yaml"];
    story.kubectl.run(&apply).await?;
    user_ready(story, SECOND_USER).await
}

/// One KiteUser becomes a namespace that is isolated and limited.
pub(super) async fn user(story: &Story<'_>) -> Result<()> {
    let apply = ["apply", "-f", "docs/examples/user.yaml"];
    story.kubectl.run(&apply).await?;
    user_ready(story, USER).await?;
    let users: Api<KiteUser> = Api::all(story.client.clone());
    let uid = users.get(USER).await?.uid();
    let namespaces: Api<Namespace> = Api::all(story.client.clone());
    let namespace = namespaces.get(USER).await?;
    ensure!(
        namespace.annotations().get(USER_UID) == uid.as_ref(),
        "the Namespace {USER} is not bound to its user: {:?}",
        namespace.annotations()
    );
    let all = ListParams::default();
    let policies: Api<NetworkPolicy> = Api::namespaced(story.client.clone(), USER);
    ensure!(
        !policies.list(&all).await?.items.is_empty(),
        "the Namespace {USER} is not isolated"
    );
    let quotas: Api<ResourceQuota> = Api::namespaced(story.client.clone(), USER);
    let quota = quotas.list(&all).await?.items.into_iter().next();
    let quota = quota.context("there is no ResourceQuota")?;
    let wanted = quota.spec.and_then(|spec| spec.hard);
    let in_force = quota.status.and_then(|status| status.hard);
    ensure!(
        wanted.is_some() && wanted == in_force,
        "the quota is not in force: {wanted:?} is wanted, {in_force:?} holds"
    );
    let get = [
        "get",
        "networkpolicies,resourcequotas,rolebindings",
        "-n",
        USER,
    ];
    story
        .kubectl
        .run(&[&get[..], &["-o", "name"]].concat())
        .await
}

async fn user_ready(story: &Story<'_>, name: &str) -> Result<()> {
    let users: Api<KiteUser> = Api::all(story.client.clone());
    let conditions = |user: &KiteUser| {
        let status = user.status.as_ref();
        status
            .map(|status| status.conditions.clone())
            .unwrap_or_default()
    };
    let ready = |user: &KiteUser| {
        let observed = user.status.as_ref().and_then(|s| s.observed_generation);
        observed == user.metadata.generation && condition::is_true(&conditions(user), READY)
    };
    follow(
        story.report,
        &users,
        name,
        story.limit,
        |user| {
            user.map(|user| words(&conditions(user)))
                .unwrap_or_default()
        },
        |user| user.is_some_and(ready),
    )
    .await?;
    Ok(())
}

/// Conditions in one line; the reason where one is not True.
fn words(conditions: &[Condition]) -> String {
    let words = conditions.iter().map(|condition| match &*condition.status {
        "True" => condition.type_.clone(),
        status => format!("{} {status} ({})", condition.type_, condition.reason),
    });
    words.collect::<Vec<_>>().join(" · ")
}
