//! What a watcher sees of one object.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use futures::StreamExt as _;
use kite_testkit::wait;
use kube::runtime::watcher::{self, Event as Change, watcher};
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::task::JoinHandle;

use super::REPAIR;

/// What a watcher saw of one object.
pub struct Followed<K> {
    seen: Arc<Mutex<Vec<K>>>,
    task: JoinHandle<()>,
}

impl<K> Followed<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    pub fn new(api: Api<K>, name: &str) -> Self {
        let seen = Arc::<Mutex<Vec<K>>>::default();
        let (into, name) = (Arc::clone(&seen), name.to_owned());
        let task = tokio::spawn(async move {
            let mut changes = Box::pin(watcher(api, watcher::Config::default()));
            while let Some(change) = changes.next().await {
                if let Ok(Change::Apply(object) | Change::InitApply(object)) = change
                    && object.name_any() == name
                {
                    into.lock().unwrap().push(object);
                }
            }
        });
        Self { seen, task }
    }

    /// Ends the watch when it has shown this version, which another watch has shown before.
    pub async fn end(self, last: &K) -> Vec<K> {
        let version = last.resource_version();
        let shown = |seen: &[K]| seen.iter().any(|o| o.resource_version() == version);
        wait::eventually("a watcher to come along", REPAIR, async || {
            shown(&self.seen.lock().unwrap()).then_some(())
        })
        .await
        .unwrap();
        self.task.abort();
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}
