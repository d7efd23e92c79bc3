//! Who leads: by the Lease, and by what each pod says in its metrics.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use k8s_openapi::api::coordination::v1::Lease;
use kite_testkit::http_get;
use kite_testkit::install::SYSTEM_NAMESPACE;
use kite_testkit::installed::Installed;
use kite_testkit::kite_process::Metrics;
use kite_testkit::tenant::LONG;
use kite_testkit::wait::{eventually, wait_until};
use kube::Api;

use super::LEADER_OF;

/// Between two looks at all pods.
const LOOK: Duration = Duration::from_millis(100);

/// A frozen pod never answers; the others do sooner than this.
const IMPATIENT: Duration = Duration::from_millis(500);

/// Where the pods serve their metrics.
const PORT: u16 = 8080;

/// Looks at the pods of the controller all the time.
pub(super) struct Watch<'a> {
    installed: &'a Installed,
    /// When it was looked, and who said that it leads.
    looks: Mutex<Vec<(Instant, Vec<String>)>>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(installed: &'a Installed) -> Self {
        Self {
            installed,
            looks: Mutex::default(),
        }
    }

    /// Looks until it is over.
    pub(super) async fn until(&self, over: &AtomicBool) {
        while !over.load(Ordering::Relaxed) {
            let leaders = self.leaders().await;
            self.looks.lock().unwrap().push((Instant::now(), leaders));
            tokio::time::sleep(LOOK).await;
        }
        let looks = self.looks.lock().unwrap();
        let most = looks.iter().map(|(_, leaders)| leaders.len()).max();
        println!(
            "{} looks; at most {most:?} said that they lead",
            looks.len()
        );
    }

    /// The controller's pods that have a process.
    pub(super) fn pods(&self) -> Vec<String> {
        let mut pods = self.installed.agent.pods(SYSTEM_NAMESPACE);
        pods.retain(|pod| {
            let rest = pod.strip_prefix(LEADER_OF);
            // kite-vm-status begins like kite-vm.
            rest.is_some_and(|rest| !rest.starts_with("-status"))
        });
        pods
    }

    /// The pods that say that they lead.
    async fn leaders(&self) -> Vec<String> {
        let agent = &self.installed.agent;
        let said = self.pods().into_iter().map(async |pod| {
            let address = agent.address(SYSTEM_NAMESPACE, &pod)?;
            let address = SocketAddr::from((address, PORT));
            let answer = http_get::get(address, "/metrics");
            let answer = tokio::time::timeout(IMPATIENT, answer).await;
            let metrics = Metrics::parse(&answer.ok()?.ok()?.1).ok()?;
            let status = metrics.sum("leader_election_master_status", &[]);
            (status > 0.5).then_some(pod)
        });
        join_all(said).await.into_iter().flatten().collect()
    }

    /// Waits until it was seen that this pod says that it leads, from now on.
    pub(super) async fn leads(&self, pod: &str) {
        let now = Instant::now();
        eventually("a pod to lead", LONG, async || {
            let looks = self.looks.lock().unwrap();
            let (at, leaders) = looks.last()?;
            (*at > now && leaders.iter().any(|leader| leader == pod)).then_some(())
        })
        .await
        .unwrap();
    }

    /// The longest time in which nobody was seen to lead, from the last look before `from` until now.
    pub(super) fn longest_gap(&self, from: Instant) -> Duration {
        let looks = self.looks.lock().unwrap();
        let mut last = from;
        let mut longest = Duration::ZERO;
        for (at, leaders) in looks.iter().filter(|(at, _)| *at >= from) {
            if !leaders.is_empty() {
                longest = longest.max(*at - last);
                last = *at;
            }
        }
        longest
    }

    async fn lease(&self, is: impl Fn(&str) -> bool) -> String {
        let client = self.installed.cluster.client().await;
        let leases: Api<Lease> = Api::namespaced(client, SYSTEM_NAMESPACE);
        let holds = |lease: &Lease| is(&holder(lease));
        let lease = wait_until(&leases, LEADER_OF, LONG, holds).await.unwrap();
        holder(&lease)
    }

    /// Who holds the Lease, as soon as somebody does.
    pub(super) async fn holder(&self) -> String {
        self.lease(|holder| !holder.is_empty()).await
    }

    /// Who holds it after this one.
    pub(super) async fn next_holder(&self, before: &str) -> String {
        self.lease(|holder| !holder.is_empty() && holder != before)
            .await
    }
}

/// The holder that a Lease names; nothing when it was given back.
pub(super) fn holder(lease: &Lease) -> String {
    let spec = lease.spec.as_ref();
    let holder = spec.and_then(|s| s.holder_identity.clone());
    holder.unwrap_or_default()
}
