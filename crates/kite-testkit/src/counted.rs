//! Kite's requests since a moment, by the audit log, against a budget.
//!
//! What is counted is what the API server answered; leases, watches and events
//! go on by themselves and are counted apart.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kube::Client;

use crate::Cluster;
use crate::audit::{Mark, Request, Table};
use crate::fit::Counts;

/// Kite's requests since a mark, leases and watches left out, events apart.
pub struct Counted {
    /// In the order of their answers.
    pub requests: Vec<Request>,
    /// Events written.
    pub events: usize,
    /// Leases and watches, which go on for ever.
    pub upkeep: usize,
    /// Watches that were opened, those of leases left out.
    pub watches: Vec<Request>,
}

impl Counted {
    /// Everything that was answered after the mark.
    pub async fn since(cluster: &Cluster, client: &Client, mark: Mark) -> Self {
        let audit = cluster.control_plane.audit().unwrap();
        audit.settled_mark(client).await.unwrap();
        let by_kite = |r: &Request| {
            r.user
                .starts_with("system:serviceaccount:kite-system:kite-")
        };
        let all: Vec<Request> = audit
            .since(mark)
            .unwrap()
            .into_iter()
            .filter(by_kite)
            .collect();
        let upkeep = all.iter().filter(|r| r.is_lease() || r.is_watch()).count();
        let events = all.iter().filter(|r| r.is_event()).count();
        let (watches, requests) = all
            .into_iter()
            .filter(|r| !r.is_event() && !r.is_lease())
            .partition(Request::is_watch);
        Self {
            requests,
            events,
            upkeep,
            watches,
        }
    }

    /// The requests by controller, verb and resource.
    pub fn counts(&self) -> Counts {
        Counts::of(&self.requests)
    }

    /// How many requests, events left out.
    pub fn total(&self) -> usize {
        self.requests.len()
    }

    /// Prints the table of a step, and fails when there are more than allowed.
    pub fn at_most(&self, what: &str, limit: usize) {
        println!(
            "\n{what}: {} requests (at most {limit}), {} events\n{}",
            self.total(),
            self.events,
            Table::of(&self.requests)
        );
        let conflicts: Vec<_> = self.requests.iter().filter(|r| r.code == 409).collect();
        assert!(
            self.total() <= limit,
            "{what} took {} requests, {limit} are allowed; conflicts: {conflicts:?}",
            self.total()
        );
    }

    /// One controller's requests.
    #[must_use]
    pub fn only(mut self, controller: &str) -> Self {
        self.requests.retain(|r| r.is_by(controller));
        self
    }

    /// Requests by controller.
    pub fn by_controller(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for request in &self.requests {
            let name = request
                .user
                .rsplit(':')
                .next()
                .unwrap_or_default()
                .to_owned();
            *counts.entry(name).or_default() += 1;
        }
        counts
    }
}

/// Longer than any status is held back: the longest hold is two seconds.
const STILL: Duration = Duration::from_millis(2500);

/// Between two looks whether something was sent.
const GLANCE: Duration = Duration::from_millis(400);

/// Lets the last write of a step and its echo go by, until nothing has been sent for a while.
pub async fn quiet(cluster: &Cluster) {
    let audit = cluster.control_plane.audit().unwrap();
    let client = cluster.client().await;
    let mut mark = audit.settled_mark(&client).await.unwrap();
    let mut since = Instant::now();
    while since.elapsed() < STILL {
        tokio::time::sleep(GLANCE).await;
        let next = audit.settled_mark(&client).await.unwrap();
        if Counted::since(cluster, &client, mark).await.total() > 0 {
            (mark, since) = (next, Instant::now());
        }
    }
}
