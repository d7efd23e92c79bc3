//! Scenarios that need kite-user and its cluster for themselves, one after the
//! other: failover, silence, restarts, the platform, missing rights, and the
//! removal of the kind itself.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout
)]
#![allow(missing_docs, unreachable_pub, reason = "a test binary has no users")]

mod cluster;
mod failover;
mod odd;
mod restored;
#[path = "../support/mod.rs"]
mod support;

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kite_testkit::audit::{Mark, Request};
use kite_testkit::{ControlPlane, Identity, KiteOptions, KiteProcess};
use kube::Api;
use support::*;

/// Short times, in the relation that the flags demand.
const LEASE: Duration = Duration::from_secs(5);
const RETRY: Duration = Duration::from_secs(1);
const TIMES: [&str; 8] = [
    "--lease-duration",
    "5s",
    "--renew-interval",
    "1s",
    "--renew-deadline",
    "3s",
    "--retry-interval",
    "1s",
];

struct Scene {
    plane: &'static ControlPlane,
    identity: Identity,
    admin: Admin,
}

impl Scene {
    async fn start(&self, args: &[&str]) -> KiteProcess {
        let options = KiteOptions::new("kite-user", self.identity.kubeconfig());
        let args = TIMES.iter().chain(args).copied();
        KiteProcess::start(self.plane, options.args(args))
            .await
            .unwrap()
    }

    async fn mark(&self) -> Mark {
        self.plane
            .audit()
            .unwrap()
            .settled_mark(&self.admin.client)
            .await
            .unwrap()
    }

    /// All that kite-user asked since a mark, but leases, watches and events.
    async fn sent(&self, since: Mark) -> Vec<Request> {
        let mut sent = self.asked(since).await;
        sent.retain(|r| !r.is_watch() && !r.is_event());
        sent
    }

    /// What kite-user asked for but its lease.
    async fn asked(&self, since: Mark) -> Vec<Request> {
        self.mark().await;
        let mut asked = self.plane.audit().unwrap().since(since).unwrap();
        asked.retain(|r| r.is_by("kite-user") && !r.is_lease());
        asked
    }
}

// C-5, C-15, C-20, P-1, P-3, U-3, U-10, N-6, DE10, LE8, LE11, NS3, NS7, #40, #50: each part says which it shows.
#[tokio::test]
async fn kite_user_alone_in_its_cluster() {
    let (plane, identity) = prepared().await;
    let admin = Admin::new(plane).await;
    let scene = Scene {
        plane,
        identity,
        admin,
    };
    failover::a_killed_leader_is_followed_within_lease_and_retry(&scene).await;
    failover::two_that_both_work_do_no_harm(&scene).await;
    restored::what_went_on_while_kite_user_was_away_is_caught_up_with(&scene).await;
    let process = a_restart_and_a_quiet_time_send_nothing(&scene).await;
    cluster::a_changed_platform_reaches_each_user_once_and_a_wrong_one_none(&scene).await;
    cluster::without_the_right_to_bind_nothing_is_handed_out(&scene).await;
    odd::an_object_of_an_unknown_shape_harms_only_itself(&scene).await;
    let before = restored::before_the_kind_is_removed(&scene).await;
    cluster::a_removed_kind_takes_nobody_away_until_it_is_acknowledged(&scene).await;
    restored::users_made_again_after_their_kind_have_their_namespaces_again(&scene, before).await;
    let status = process.terminate(Duration::from_secs(10)).await.unwrap();
    assert!(status.success(), "{status}: {}", process.log());
    let leases: Api<Lease> = Api::namespaced(scene.admin.client.clone(), "kite-system");
    let lease = leases.get("kite-user").await.unwrap();
    assert_eq!(
        lease.spec.unwrap().holder_identity.as_deref(),
        Some(""),
        "released at the end"
    );
}

// C-5: 0 requests but leases and watches when nothing changes, and after a restart.
async fn a_restart_and_a_quiet_time_send_nothing(scene: &Scene) -> KiteProcess {
    let mark = scene.mark().await;
    let process = scene.start(&[]).await;
    tokio::time::sleep(Duration::from_secs(15)).await;
    let asked = scene.asked(mark).await;
    let (watches, others): (Vec<_>, Vec<_>) = asked.into_iter().partition(Request::streams_list);
    println!("after a restart: {} watches", watches.len());
    assert!(others.is_empty(), "{others:?}");
    assert_eq!(watches.len(), 8, "each begins with its list: {watches:?}");
    process
}
