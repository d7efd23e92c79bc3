//! Wiring: the flags, the rights, and which watches wake which namespaces.
//!
//! Nothing is decided here.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim};
use kite_api::labels::{Controller, MANAGED_SELECTOR, RETAINED};
use kite_runtime::apply::Writer;
use kite_runtime::pass::drive;
use kite_runtime::patience::Patience;
use kite_runtime::rbac::Rule;
use kite_runtime::settings::duration;
use kite_runtime::{Feeds, Key, Process, Watch};
use kube::core::PartialObjectMeta;
use tokio::sync::Mutex;

use crate::observe::{BY_NAMESPACE, BY_UID, Caches, KITE_CRDS, UserView, trim};
use crate::plan::blocked::Blocked;
use crate::plan::brake::Brake;
use crate::reconcile::measure::Measures;
use crate::reconcile::{Reconciler, takes_long};

/// A namespace can be seen a moment before the KiteUser that it was made for; only what stays
/// unneeded for longer is marked.
const MOMENT: Duration = Duration::from_secs(2);
/// The least window over which deletions are counted for the brake, however short the grace period is.
const LEAST_WINDOW: Duration = Duration::from_mins(10);

/// What this controller may do, beyond what every controller may.
///
/// It may not create namespaces, so that no apply of an annotation can ever bring one back.
pub const RULES: &[Rule] = &[
    Rule::cluster(
        "",
        &["namespaces"],
        &["get", "list", "watch", "patch", "delete"],
        "mark a namespace that nobody needs, and delete it after the grace period; keep on Kite's own which ones were deleted lately",
    ),
    Rule::cluster(
        "",
        &["persistentvolumeclaims"],
        &["list", "watch"],
        "see whether a retained disk is in a namespace; a live list comes before every deletion",
    ),
    Rule::cluster(
        "kite.dev",
        &["kiteusers"],
        &["list", "watch"],
        "see who needs a namespace; a live list comes before every deletion",
    ),
    Rule::cluster(
        "apiextensions.k8s.io",
        &["customresourcedefinitions"],
        &["get"],
        "an empty list proves nothing while a kind is being removed or has only just been installed",
    )
    .named(&KITE_CRDS),
];

/// Flags of this controller alone.
#[derive(Args, Clone, Debug)]
pub struct Flags {
    /// How long a namespace that nobody needs is kept; 0s deletes it at once.
    #[arg(long, env = "KITE_GRACE_PERIOD", default_value = "10m", value_parser = duration, value_name = "TIME", help_heading = "Work")]
    pub grace_period: Duration,
    /// Up to this share of all managed namespaces, in percent, may be deleted within one window.
    #[arg(long, env = "KITE_BRAKE_SHARE", default_value_t = 20, value_parser = clap::value_parser!(u8).range(0..=100), value_name = "PERCENT", help_heading = "Work")]
    pub brake_share: u8,
    /// This many may be deleted within one window whatever the share, unless they are all there are.
    #[arg(
        long,
        env = "KITE_BRAKE_LEAST",
        default_value_t = 3,
        value_name = "N",
        help_heading = "Work"
    )]
    pub brake_least: u16,
    /// When a namespace that is being deleted is said to be blocked, and by what.
    #[arg(long, env = "KITE_BLOCKED_AFTER", default_value = "10m", value_parser = duration, value_name = "TIME", help_heading = "Work")]
    pub blocked_after: Duration,
}

/// Watches, and runs passes until the process is told to stop.
pub async fn run(process: Process, flags: Flags) -> anyhow::Result<()> {
    let mut feeds = Feeds::new(process.health.clone());
    let namespaces = feeds.primary(
        Watch::objects("Namespace", process.client.clone())
            .packed()
            .labels(MANAGED_SELECTOR)
            .trim(trim)
            .reads(|namespace: &Namespace| {
                let meta = &namespace.metadata;
                let going = meta.deletion_timestamp.is_some();
                // Only of one that goes does the server say what is in the way.
                let way = going.then(|| Blocked::of(namespace).to_string());
                hash(&(way, &meta.labels, &meta.annotations))
            }),
    );
    let users = feeds.watch(
        Watch::objects("KiteUser", process.client.clone())
            .trim(UserView::trim)
            .index(BY_NAMESPACE)
            .index(BY_UID)
            .reads(|user: &UserView| hash(&user.namespace())),
        |_, user| {
            let namespace = user.and_then(UserView::namespace);
            namespace.map(Key::cluster).into_iter().collect()
        },
    );
    let retained = feeds.watch(
        Watch::<PartialObjectMeta<PersistentVolumeClaim>>::metadata(
            "PersistentVolumeClaim",
            process.client.clone(),
        )
        .labels(RETAINED),
        |key, _| vec![Key::cluster(&key.namespace)],
    );
    process
        .metrics
        .objects("Namespace", &namespaces, &[], |_| &[])?;
    let measures = Measures::new(process.metrics.registry())?;
    let (counted, known) = (measures.clone(), namespaces.clone());
    process.metrics.at_scrape(move || {
        counted.count(&known.all(), |ns| takes_long(ns, flags.blocked_after));
    });
    let reconciler = Reconciler {
        caches: Caches {
            namespaces,
            users,
            retained,
        },
        own: process.settings.namespace.clone(),
        grace: flags.grace_period,
        brake: Brake {
            share: u64::from(flags.brake_share),
            least: u64::from(flags.brake_least),
        },
        window: flags.grace_period.max(LEAST_WINDOW),
        blocked_after: flags.blocked_after,
        deciding: Mutex::default(),
        writer: Writer::new(
            process.client.clone(),
            Controller::Namespace.name(),
            Arc::clone(&process.metrics),
        ),
        events: process.events.clone(),
        measures,
        patience: Patience::new(MOMENT),
    };
    drive(&process, feeds, reconciler).await
}

fn hash(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}
