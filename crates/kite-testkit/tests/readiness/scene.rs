//! One cluster for all tables, and a watch of everything that happens in it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use kite_api::{Condition, condition};
use kite_testkit::kstatus::Judge;
use kite_testkit::{Cluster, ClusterOptions, install, wait};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::{OnceCell, oneshot};
use tokio::task::JoinHandle;

/// The image of the disks in trouble, so that they hold up no others.
const SLOW_IMAGE: &str = "slow";

/// All six controllers, with an isolation and a platform that let every case be.
pub(crate) async fn cluster() -> &'static Cluster {
    static CLUSTER: OnceCell<Cluster> = OnceCell::const_new();
    CLUSTER
        .get_or_init(|| async {
            let options = ClusterOptions {
                // As long as a busy machine may take between two ticks of a clone that goes on.
                args: vec![
                    ("kite-datavolume", "--stuck-after=60s".to_owned()),
                    ("kite-vm", "--deletion-patience=5s".to_owned()),
                ],
                ..ClusterOptions::default()
            };
            let cluster = Cluster::start(options).await.unwrap();
            let platform = json!({
                "apiVersion": "kite.dev/v1alpha1", "kind": "KitePlatform", "metadata": {"name": "default"},
                "spec": {"baseDomain": "vms.example.org", "limits": {"clonesPerImage": 100}},
            });
            let client = cluster.client().await;
            install::apply(&client, &platform.to_string()).await.unwrap();
            cluster.publish(SLOW_IMAGE).await.unwrap();
            cluster
        })
        .await
}

/// What is asked of both kinds.
pub(crate) trait Judged:
    Resource<DynamicType = ()> + Serialize + Clone + Debug + Send + Sync + DeserializeOwned + 'static
{
    /// Their conditions.
    fn conditions(&self) -> &[Condition];
    /// The generation that their status speaks of.
    fn observed(&self) -> Option<i64>;
}

impl Judged for kite_api::KiteVirtualMachine {
    fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map_or(&[], |s| &s.conditions)
    }

    fn observed(&self) -> Option<i64> {
        self.status.as_ref()?.observed_generation
    }
}

impl Judged for kite_api::KiteUser {
    fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map_or(&[], |s| &s.conditions)
    }

    fn observed(&self) -> Option<i64> {
        self.status.as_ref()?.observed_generation
    }
}

/// `status reason` of a condition, or nothing.
pub(crate) fn says<K: Judged>(object: &K, type_: &str) -> Option<String> {
    let found = condition::find(object.conditions(), type_);
    found.map(|c| format!("{} {}", c.status, c.reason))
}

/// Everything that happened to the objects of one kind, each with kstatus' verdict.
pub(crate) struct Seen<K> {
    events: Arc<Mutex<Vec<(K, String)>>>,
    task: JoinHandle<()>,
}

impl<K> Drop for Seen<K> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<K: Judged> Seen<K> {
    /// Watches from before the first step.
    pub(crate) async fn start(api: Api<K>, judge: Arc<Judge>) -> Self {
        let events = Arc::<Mutex<Vec<(K, String)>>>::default();
        let (tell, told) = oneshot::channel();
        let into = Arc::clone(&events);
        let task = tokio::spawn(async move {
            let mut tell = Some(tell);
            let changes = watcher(api, watcher::Config::default()).default_backoff();
            let mut changes = Box::pin(changes);
            while let Some(change) = changes.next().await {
                match change {
                    Ok(Event::Apply(object) | Event::InitApply(object)) => {
                        let verdict = judge.status_of(&object).unwrap().status;
                        into.lock().unwrap().push((object, verdict));
                    }
                    Ok(Event::InitDone) => {
                        let _ = tell.take().map(|tell| tell.send(()));
                    }
                    _ => {}
                }
            }
        });
        told.await.unwrap();
        Self { events, task }
    }

    /// The verdicts on one object until now, each once in a row, and why it was Failed.
    pub(crate) fn verdicts(&self, name: &str) -> Vec<String> {
        let events = self.events.lock().unwrap();
        let mut own: Vec<String> = events
            .iter()
            .filter(|(object, _)| object.name_any() == name)
            .map(|(object, verdict)| {
                match condition::find(object.conditions(), condition::STALLED) {
                    Some(stalled) if verdict == "Failed" => format!("Failed {}", stalled.reason),
                    _ => verdict.clone(),
                }
            })
            .collect();
        own.dedup();
        own
    }

    /// Whether a verdict was ever given on one object until now.
    pub(crate) fn ever(&self, name: &str, verdict: &str) -> bool {
        let verdicts = self.verdicts(name);
        verdicts.iter().any(|given| given.starts_with(verdict))
    }

    /// The newest state of each object, in words.
    pub(crate) fn newest(&self) -> BTreeMap<String, String> {
        let events = self.events.lock().unwrap();
        let words = |(object, verdict): &(K, String)| {
            let conditions = object.conditions().iter();
            let all: Vec<String> = conditions
                .map(|c| format!("{}={} {}", c.type_, c.status, c.reason))
                .collect();
            (object.name_any(), format!("{verdict}: {}", all.join(", ")))
        };
        events.iter().map(words).collect()
    }

    /// C-9, C-11: at every event Current means Ready, Failed means Stalled, for the generation that
    /// stands there; and nobody is said to be stalled and under way at once. Ready has another writer
    /// than Stalled and may come a moment later; Stalled goes before it in the eyes of kstatus.
    pub(crate) fn was_right_at_every_event(&self) {
        let events = self.events.lock().unwrap();
        for (object, verdict) in events.iter() {
            let is = |type_| condition::is_true(object.conditions(), type_);
            let current = object.observed() == object.meta().generation;
            let expected = if object.meta().deletion_timestamp.is_some() {
                "Terminating"
            } else if current && is(condition::STALLED) {
                "Failed"
            } else if current && is(condition::READY) {
                "Current"
            } else {
                "InProgress"
            };
            assert_eq!(verdict, expected, "{object:#?}");
            let both = is(condition::STALLED) && is(condition::RECONCILING);
            assert!(!both, "{object:#?}");
        }
        println!("{} events were judged rightly", events.len());
    }

    /// Whether a state comes about in time.
    pub(crate) async fn comes_to(
        &self,
        name: &str,
        what: &str,
        limit: Duration,
        holds: impl Fn(&K, &str) -> bool,
    ) -> bool {
        let there = async || {
            let events = self.events.lock().unwrap();
            let last = events
                .iter()
                .rev()
                .find(|(object, _)| object.name_any() == name);
            last.is_some_and(|(object, verdict)| holds(object, verdict))
                .then_some(())
        };
        wait::eventually(what, limit, there).await.is_ok()
    }
}

/// Waits until a state holds.
///
/// # Panics
///
/// With what there is, when it does not come about.
pub(crate) async fn reached<K: Judged>(
    seen: &Seen<K>,
    name: &str,
    what: &str,
    limit: Duration,
    holds: impl Fn(&K, &str) -> bool,
) {
    let came = seen.comes_to(name, what, limit, holds).await;
    assert!(
        came,
        "{name} never was {what}; it is {:?}, and was {:?}",
        seen.newest().get(name),
        seen.verdicts(name)
    );
}
