//! Wiring: the flags, the rights, and which watches wake which users.
//!
//! Nothing is decided here.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use k8s_openapi::api::core::v1::{Namespace, ResourceQuota};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kite_api::condition::{
    ISOLATION_READY, NAMESPACE_READY, QUOTA_READY, READY, RECONCILING, STALLED,
};
use kite_api::labels::{Controller, MANAGED_SELECTOR, TENANT_ROLE, VM_SECRETS_ROLE};
use kite_api::{KitePlatform, KiteUser};
use kite_render::platform::InForce;
use kite_render::user::ServiceAccount;
use kite_render::validate::DnsLabel;
use kite_runtime::apply::Writer;
use kite_runtime::feed::Item;
use kite_runtime::pass::drive;
use kite_runtime::patience::Patience;
use kite_runtime::rbac::Rule;
use kite_runtime::{AsJson, Cache, Feeds, Key, Process, Watch};
use kube::core::PartialObjectMeta as Meta;

use crate::observe::siblings::Siblings;
use crate::observe::{BY_UID, Caches, USER_CRD};
use crate::plan::is_counted;
use crate::reconcile::Reconciler;

/// What may pass by itself before it is told in a status: the server fills in a fresh quota, or
/// the end of a user, within a fraction of this.
const MOMENT: Duration = Duration::from_secs(1);

/// The conditions of a user; nobody else writes them.
const CONDITIONS: &[&str] = &[
    READY,
    RECONCILING,
    STALLED,
    NAMESPACE_READY,
    ISOLATION_READY,
    QUOTA_READY,
];

/// What this controller may do, beyond what every controller may.
pub const RULES: &[Rule] = &[
    Rule::cluster(
        "kite.dev",
        &["kiteusers"],
        &["list", "watch", "patch"],
        "the users; a patch adds and removes the finalizer",
    ),
    Rule::cluster(
        "kite.dev",
        &["kiteusers/status"],
        &["patch"],
        "tell how a user's namespace stands",
    ),
    Rule::cluster(
        "kite.dev",
        &["kiteplatforms"],
        &["list", "watch"],
        "networks, reserved names and the default quota",
    ),
    Rule::cluster(
        "kite.dev",
        &["kitevirtualmachines"],
        &["list"],
        "see that no machine is left before isolation is taken away",
    ),
    Rule::cluster(
        "",
        &["pods"],
        &["list"],
        "see that no launcher pod is left before isolation is taken away",
    ),
    Rule::cluster(
        "",
        &["namespaces"],
        &["get", "list", "watch", "create", "patch"],
        "make and keep users' namespaces; deleting them is kite-namespace's",
    ),
    Rule::cluster(
        "networking.k8s.io",
        &["networkpolicies"],
        &["get", "list", "watch", "create", "patch", "delete"],
        "make, keep and remove users' isolation",
    ),
    Rule::cluster(
        "",
        &["resourcequotas", "limitranges"],
        &["get", "list", "watch", "create", "patch", "delete"],
        "make, keep and remove users' quotas",
    ),
    Rule::cluster(
        "rbac.authorization.k8s.io",
        &["rolebindings"],
        &["get", "list", "watch", "create", "patch", "delete"],
        "give tenants and kite-vm their rights in a user's namespace",
    ),
    Rule::cluster(
        "rbac.authorization.k8s.io",
        &["clusterroles"],
        &["bind"],
        "hand out exactly these two roles, whose rights it does not have itself",
    )
    .named(&[TENANT_ROLE, VM_SECRETS_ROLE]),
    Rule::cluster(
        "apiextensions.k8s.io",
        &["customresourcedefinitions"],
        &["list", "watch"],
        "notice that the kind itself is being removed, which takes all users at once",
    )
    .named(&[USER_CRD]),
];

/// Flags of this controller alone.
#[derive(Args, Clone, Debug)]
pub struct Flags {
    /// kite-vm's ServiceAccount, which gets its rights on Secrets in each user's namespace.
    #[arg(long, env = "KITE_VM_SERVICE_ACCOUNT", default_value = "kite-system/kite-vm", value_parser = service_account, value_name = "NAMESPACE/NAME", help_heading = "Work")]
    pub vm_service_account: ServiceAccount,
    /// Namespaces that no user may have, beside those that the KitePlatform names.
    #[arg(long, env = "KITE_RESERVED_NAMESPACES", default_value = "kite-system,kubevirt,cdi", value_delimiter = ',', value_parser = label, value_name = "NAME,…", help_heading = "Work")]
    pub reserved_namespaces: Vec<DnsLabel>,
    /// For how many disks that are filled at the same time a user's quota leaves room.
    #[arg(long, env = "KITE_QUOTA_CLONES", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000), value_name = "N", help_heading = "Work")]
    pub quota_clones: u16,
}

fn label(text: &str) -> Result<DnsLabel, String> {
    DnsLabel::parse(text).map_err(|wrong| format!("{text:?} {wrong}"))
}

fn service_account(text: &str) -> Result<ServiceAccount, String> {
    let (namespace, name) = text.split_once('/').ok_or_else(|| {
        format!("{text:?} must be NAMESPACE/NAME, for instance kite-system/kite-vm")
    })?;
    Ok(ServiceAccount {
        namespace: label(namespace)?,
        name: label(name)?,
    })
}

/// Watches, and runs passes until the process is told to stop.
pub async fn run(process: Process, flags: Flags) -> anyhow::Result<()> {
    let mut feeds = Feeds::new(process.health.clone());
    let siblings = Arc::new(Siblings::default());
    let caches = watch(&mut feeds, &process, &siblings);
    process
        .metrics
        .objects("KiteUser", &caches.users, CONDITIONS, |user| {
            let status = user.status.as_ref();
            status.map(|s| s.conditions.as_slice()).unwrap_or_default()
        })?;
    let mut reserved = flags.reserved_namespaces;
    reserved.push(label(&process.settings.namespace).map_err(anyhow::Error::msg)?);
    let reconciler = Reconciler {
        caches,
        siblings,
        in_force: InForce::default(),
        reserved,
        vm_account: flags.vm_service_account,
        clones: i64::from(flags.quota_clones),
        writer: Writer::new(
            process.client.clone(),
            Controller::User.name(),
            Arc::clone(&process.metrics),
        ),
        events: process.events.clone(),
        waker: feeds.waker(),
        patience: Patience::new(MOMENT),
    };
    drive(&process, feeds, reconciler).await
}

fn watch(feeds: &mut Feeds, process: &Process, siblings: &Arc<Siblings>) -> Caches {
    let client = || process.client.clone();
    let users = feeds.primary(
        Watch::objects("KiteUser", client())
            .packed()
            .reads(|user: &KiteUser| {
                // A status is compared too, so that one edited by hand is mended.
                let status = AsJson(&user.status);
                let meta = &user.metadata;
                hash(&(meta.generation, going(meta), &meta.finalizers, status))
            })
            .index(BY_UID),
    );
    let all = |users: &Cache<KiteUser>| {
        let users = users.clone();
        move || users.keys()
    };
    let (all_for_platform, all_for_crd) = (all(&users), all(&users));
    let platforms = feeds.watch(
        Watch::objects("KitePlatform", client())
            .fields("metadata.name=default")
            .reads(|p: &KitePlatform| hash(&p.metadata.generation)),
        move |_, _| all_for_platform(),
    );
    let crd = feeds.watch(
        Watch::<Meta<CustomResourceDefinition>>::metadata("CustomResourceDefinition", client())
            .fields("metadata.name=kiteusers.kite.dev")
            .reads(|crd| hash(&(going(&crd.metadata), &crd.metadata.annotations))),
        move |_, _| all_for_crd(),
    );
    let by_name = Arc::clone(siblings);
    let namespaces = feeds.watch(
        Watch::<Meta<Namespace>>::metadata("Namespace", client())
            .packed()
            .labels(MANAGED_SELECTOR)
            .reads(|ns| {
                let meta = &ns.metadata;
                hash(&(going(meta), &meta.labels, &meta.annotations))
            }),
        move |key, _| by_name.of(&key.name),
    );
    let quotas =
        Watch::objects("ResourceQuota", client())
            .packed()
            .reads(|quota: &ResourceQuota| {
                // How much is used changes with every pod and concerns no pass.
                let hard = quota.status.as_ref().and_then(|s| s.hard.as_ref());
                let said = (&quota.spec, hard);
                let meta = &quota.metadata;
                let stands = (going(meta), &meta.labels, &meta.annotations);
                hash(&(stands, AsJson(&said), is_counted(quota)))
            });
    Caches {
        users,
        platforms,
        crd,
        namespaces,
        policies: child(
            feeds,
            siblings,
            Watch::objects("NetworkPolicy", client()).packed(),
        ),
        quotas: child(feeds, siblings, quotas),
        limit_ranges: child(
            feeds,
            siblings,
            Watch::objects("LimitRange", client()).packed(),
        ),
        bindings: child(
            feeds,
            siblings,
            Watch::objects("RoleBinding", client()).packed(),
        ),
    }
}

/// What stands in a namespace wakes all its users.
fn child<I: Item>(
    feeds: &mut Feeds,
    siblings: &Arc<Siblings>,
    watch: Watch<I>,
) -> Cache<I::Object> {
    let siblings = Arc::clone(siblings);
    feeds.watch(watch.labels(MANAGED_SELECTOR), move |key: &Key, _| {
        siblings.of(&key.namespace)
    })
}

fn going(meta: &ObjectMeta) -> bool {
    meta.deletion_timestamp.is_some()
}

fn hash(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_account_is_a_namespace_and_a_name() {
        let account = service_account("kite-system/kite-vm").unwrap();
        assert_eq!(account.name.as_str(), "kite-vm");
        assert!(
            service_account("kite-vm")
                .unwrap_err()
                .contains("NAMESPACE/NAME")
        );
        assert!(service_account("a/B").is_err());
    }
}
