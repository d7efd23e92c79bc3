//! Watches one object, tells each change that shows, and ends when what was
//! waited for is there.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Result, bail};
use futures::StreamExt;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::watch_object;
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::up::Report;

/// Watches the object called `name`; `None` is its absence. `describe` gives the
/// line that is told when it differs from the one before; an empty one is not told.
pub(super) async fn follow<K>(
    report: &Report,
    api: &Api<K>,
    name: &str,
    limit: Duration,
    describe: impl Fn(Option<&K>) -> String,
    mut done: impl FnMut(Option<&K>) -> bool,
) -> Result<Option<K>>
where
    K: Resource + Clone + Debug + Send + Serialize + DeserializeOwned + 'static,
{
    let deadline = Instant::now() + limit;
    let mut stream = Box::pin(watch_object(api.clone(), name).default_backoff());
    let mut told = String::new();
    let mut last = None;
    while let Ok(Some(seen)) = timeout_at(deadline, stream.next()).await {
        // The watch begins again by itself; the API server's log is shown on failure.
        let Ok(object) = seen else { continue };
        let line = describe(object.as_ref());
        if !line.is_empty() && line != told {
            report.line(&format!("  {line}"));
            told = line;
        }
        if done(object.as_ref()) {
            return Ok(object);
        }
        last = object;
    }
    bail!(
        "waited {:.0} s in vain for {name}; last seen: {}",
        limit.as_secs_f64(),
        last.map_or_else(|| Ok("nothing".to_owned()), |object| pretty(&object))?
    )
}

/// [`follow`] without a word.
pub(super) async fn wait<K>(
    report: &Report,
    api: &Api<K>,
    name: &str,
    limit: Duration,
    done: impl FnMut(Option<&K>) -> bool,
) -> Result<Option<K>>
where
    K: Resource + Clone + Debug + Send + Serialize + DeserializeOwned + 'static,
{
    follow(report, api, name, limit, |_| String::new(), done).await
}

/// An object for people: without the bookkeeping of its fields.
fn pretty<K: Serialize>(object: &K) -> Result<String> {
    let mut object = serde_json::to_value(object)?;
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("managedFields");
    }
    Ok(serde_json::to_string_pretty(&object)?)
}
