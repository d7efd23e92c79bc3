//! What kite-vm-status says while KubeVirt, CDI and the other controllers go through what they
//! go through: on a real API server, with stand-ins for KubeVirt and CDI.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod blocked;
mod guest;
mod words;

use kite_api::KiteVirtualMachine;
use kite_api::condition::READY;
use kite_testkit::audit::{Mark, Request};
use kite_testkit::place::{Place, condition_of, phase};
use kite_testkit::{Cluster, ClusterOptions};
use tokio::sync::OnceCell;

/// The controller under test.
pub(crate) const NAME: &str = "kite-vm-status";

/// One cluster for all tests, without those that have nothing to do with one machine.
pub(crate) async fn cluster() -> &'static Cluster {
    static CLUSTER: OnceCell<Cluster> = OnceCell::const_new();
    CLUSTER
        .get_or_init(|| async {
            let options = ClusterOptions {
                without: vec!["kite-user", "kite-namespace"],
                ..ClusterOptions::default()
            };
            Cluster::start(options).await.unwrap()
        })
        .await
}

/// A namespace that is ready for machines.
pub(crate) async fn place(name: &str) -> Place {
    let place = Place {
        client: cluster().await.client().await,
        namespace: name.to_owned(),
    };
    place.make().await;
    place.prepare().await;
    place
}

/// `phase power ready-status ready-reason`, with `-` for nothing.
pub(crate) fn line(machine: &KiteVirtualMachine) -> String {
    let status = machine.status.as_ref();
    let phase = phase(machine).map_or_else(|| "-".to_owned(), |p| format!("{p:?}"));
    let power = status.and_then(|s| s.current_power_state);
    let power = power.map_or_else(|| "-".to_owned(), |p| format!("{p:?}"));
    let ready = condition_of(machine, READY);
    let ready = ready.map_or_else(
        || "absent".to_owned(),
        |c| format!("{} {}", c.status, c.reason),
    );
    format!("{phase} {power} {ready}")
}

/// The line without what of `blockedBy` there is.
pub(crate) fn blocked(machine: &KiteVirtualMachine) -> &str {
    let status = machine.status.as_ref();
    status
        .and_then(|s| s.blocked_by.as_deref())
        .unwrap_or_default()
}

/// Where the audit log stands.
pub(crate) async fn mark(place: &Place) -> Mark {
    let audit = cluster().await.control_plane.audit().unwrap();
    audit.settled_mark(&place.client).await.unwrap()
}

/// How often the controller wrote about the namespace since then, events left out. A write that
/// met another's and was made again is one: who is first is nobody's choice.
pub(crate) async fn writes(place: &Place, since: Mark) -> usize {
    mark(place).await;
    let audit = cluster().await.control_plane.audit().unwrap();
    let all = audit.since(since).unwrap();
    let own = |r: &&Request| {
        r.is_by(NAME) && !r.is_event() && !r.is_watch() && r.namespace == place.namespace
    };
    all.iter().filter(own).filter(|r| r.code != 409).count()
}
