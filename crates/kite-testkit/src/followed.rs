//! What a watcher sees of one object, from before the first step of a test.
//!
//! A watcher may miss states: the API server sends what is new, and a watch
//! that was cut begins again with a list. Nothing here hides that.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event as Change, watcher};
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::wait;

/// One watch may be ahead of another by what a busy machine needs for an event.
const BEHIND: Duration = Duration::from_secs(30);

/// What a watcher saw of one object. Dropping it ends the watch.
pub struct Followed<K> {
    seen: Arc<Mutex<Vec<K>>>,
    task: JoinHandle<()>,
}

impl<K> Followed<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    /// Begins to watch the object of this name, which need not be there yet, and
    /// returns when the watch has told what is there now. Whatever the caller does
    /// next is seen.
    ///
    /// # Panics
    ///
    /// When the watch ends before it begins.
    pub async fn start(api: Api<K>, name: &str) -> Self {
        let seen = Arc::<Mutex<Vec<K>>>::default();
        let (into, name) = (Arc::clone(&seen), name.to_owned());
        let (tell, told) = oneshot::channel();
        let task = tokio::spawn(async move {
            let mut tell = Some(tell);
            let changes = watcher(api, watcher::Config::default()).default_backoff();
            let mut changes = Box::pin(changes);
            while let Some(change) = changes.next().await {
                match change {
                    Ok(Change::Apply(object) | Change::InitApply(object))
                        if object.name_any() == name =>
                    {
                        into.lock().unwrap().push(object);
                    }
                    Ok(Change::InitDone) => {
                        let _ = tell.take().map(|tell| tell.send(()));
                    }
                    _ => {}
                }
            }
        });
        told.await.expect("the watch begins");
        Self { seen, task }
    }

    /// Ends the watch when it has shown this version, which another watch has shown before.
    ///
    /// # Panics
    ///
    /// When the watch does not come along.
    pub async fn end(self, last: &K) -> Vec<K> {
        let version = last.resource_version();
        let shown = |seen: &[K]| seen.iter().any(|o| o.resource_version() == version);
        wait::eventually("a watcher to come along", BEHIND, async || {
            shown(&self.seen.lock().unwrap()).then_some(())
        })
        .await
        .unwrap();
        self.so_far()
    }
}

impl<K: Clone> Followed<K> {
    /// What was seen until now, oldest first.
    pub fn so_far(&self) -> Vec<K> {
        self.seen.lock().unwrap().clone()
    }
}

impl<K> Drop for Followed<K> {
    fn drop(&mut self) {
        self.task.abort();
    }
}
