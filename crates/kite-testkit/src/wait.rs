//! Waiting for something to become true, always with a limit, and saying on
//! failure what was seen last.
//!
//! [`wait_for`] watches and misses no intermediate state of the object;
//! [`eventually`] asks again and is for what cannot be watched.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Result, anyhow};
use futures::StreamExt;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::watch_object;
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout_at};

/// First and longest pause between two questions of [`eventually`].
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Watches the object called `name` until `condition` holds for it; `None` is
/// the object's absence. Returns what fulfilled the condition.
pub async fn wait_for<K>(
    api: &Api<K>,
    name: &str,
    limit: Duration,
    mut condition: impl FnMut(&Option<K>) -> bool,
) -> Result<Option<K>>
where
    K: Resource + Clone + Debug + Send + Serialize + DeserializeOwned + 'static,
{
    let deadline = Instant::now() + limit;
    let mut stream = Box::pin(watch_object(api.clone(), name).default_backoff());
    let mut last = None;
    let mut trouble = None;
    while let Ok(Some(seen)) = timeout_at(deadline, stream.next()).await {
        match seen {
            Ok(object) if condition(&object) => return Ok(object),
            Ok(object) => last = Some(object),
            Err(error) => trouble = Some(error),
        }
    }
    Err(anyhow!(
        "waited {} s in vain for {} {name}{}; last seen: {}",
        limit.as_secs_f32(),
        api.resource_url(),
        trouble.map_or_else(String::new, |error| format!(" (watching failed: {error})")),
        match last {
            Some(Some(object)) => serde_json::to_string_pretty(&object)?,
            Some(None) => "it is not there".to_owned(),
            None => "nothing".to_owned(),
        }
    ))
}

/// Watches until the object called `name` is there and `condition` holds for it.
pub async fn wait_until<K>(
    api: &Api<K>,
    name: &str,
    limit: Duration,
    mut condition: impl FnMut(&K) -> bool,
) -> Result<K>
where
    K: Resource + Clone + Debug + Send + Serialize + DeserializeOwned + 'static,
{
    let holds = |object: &Option<K>| object.as_ref().is_some_and(&mut condition);
    let object = wait_for(api, name, limit, holds).await?;
    object.ok_or_else(|| anyhow!("{name} is not there"))
}

/// Watches until no object is called `name`.
pub async fn wait_gone<K>(api: &Api<K>, name: &str, limit: Duration) -> Result<()>
where
    K: Resource + Clone + Debug + Send + Serialize + DeserializeOwned + 'static,
{
    wait_for(api, name, limit, Option::is_none).await?;
    Ok(())
}

/// Asks until the answer is `Some`, with growing pauses. `what` completes the
/// sentence "waited in vain for …".
pub async fn eventually<T, F>(what: &str, limit: Duration, mut ask: F) -> Result<T>
where
    F: AsyncFnMut() -> Option<T>,
{
    let deadline = Instant::now() + limit;
    let mut pause = FIRST_PAUSE;
    loop {
        let answer = timeout_at(deadline, ask()).await;
        if let Ok(Some(answer)) = answer {
            return Ok(answer);
        }
        if answer.is_err() || Instant::now() + pause > deadline {
            let seconds = limit.as_secs_f32();
            return Err(anyhow!("waited {seconds} s in vain for {what}"));
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
