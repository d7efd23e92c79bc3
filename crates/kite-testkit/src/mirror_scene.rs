//! A controller that only tells, alone in a cluster where everything it looks at
//! is made by hand.
//!
//! Tests of one binary share the scene, each in a namespace of its own. What the
//! controller should say is the test's own business.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::audit::{Mark, Request};
use crate::by_hand::ByHand;
use crate::cluster::{CONTROLLERS, Cluster, ClusterOptions};
use crate::wait::eventually;

/// The controller, its cluster, and whether it is the only copy.
pub struct Scene {
    /// The controller under test.
    pub name: &'static str,
    /// Its cluster.
    pub cluster: Cluster,
    /// Held for writing while a second copy runs, whose requests would be counted too.
    alone: RwLock<()>,
}

impl Scene {
    /// Starts a cluster in which of Kite only this controller runs, and no stand-in.
    pub async fn start(name: &'static str, options: ClusterOptions) -> Result<Self> {
        let others = CONTROLLERS.into_iter().filter(|c| *c != name);
        let cluster = Cluster::start(ClusterOptions {
            stand_ins: false,
            without: others.collect(),
            ..options
        })
        .await?;
        Ok(Self {
            name,
            cluster,
            alone: RwLock::new(()),
        })
    }

    /// A namespace of a test's own.
    pub async fn by_hand(&self, namespace: &str) -> Result<ByHand> {
        ByHand::new(self.cluster.client().await, namespace).await
    }

    /// For a test that counts requests: no second copy runs until it is dropped.
    pub async fn one_copy(&self) -> RwLockReadGuard<'_, ()> {
        self.alone.read().await
    }

    /// For a test that starts a second copy.
    pub async fn two_copies(&self) -> RwLockWriteGuard<'_, ()> {
        self.alone.write().await
    }

    /// Starts a copy beside the first, which finds everything settled, and tells when it is ready.
    /// It works until it is taken away.
    pub async fn start_second(&self) -> Result<()> {
        let flags = ["--leader-election", "false"];
        self.cluster.run(self.name, "second", &flags).await
    }

    /// Takes the second copy away.
    pub fn end_second(&self) {
        drop(self.cluster.take("second"));
    }

    /// A point in the audit log, with all in it that was answered before.
    pub async fn mark(&self, hand: &ByHand) -> Result<Mark> {
        let audit = self.cluster.control_plane.audit()?;
        audit.settled_mark(&hand.client).await
    }

    /// What the controller asked of the server about a namespace since a mark, events apart.
    pub async fn requests(&self, hand: &ByHand, since: Mark) -> Result<Vec<Request>> {
        self.mark(hand).await?;
        let all = self.cluster.control_plane.audit()?.since(since)?;
        let own = |r: &Request| {
            r.is_by(self.name) && !r.is_watch() && !r.is_event() && r.namespace == hand.namespace
        };
        Ok(all.into_iter().filter(own).collect())
    }

    /// Waits for the controller's event of a reason.
    pub async fn event(&self, hand: &ByHand, reason: &str, limit: Duration) -> Result<Event> {
        eventually("an event", limit, async || {
            let all = self.events(hand, reason).await.ok()?;
            all.into_iter().next()
        })
        .await
    }

    /// The controller's events of a reason.
    pub async fn events(&self, hand: &ByHand, reason: &str) -> Result<Vec<Event>> {
        let all = hand.api::<Event>().list(&ListParams::default()).await?;
        let own = |e: &Event| {
            e.reason.as_deref() == Some(reason)
                && e.reporting_controller.as_deref() == Some(self.name)
        };
        Ok(all.items.into_iter().filter(own).collect())
    }
}
