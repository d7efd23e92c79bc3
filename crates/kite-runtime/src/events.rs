//! Events on Kite's objects, for people who type `kubectl describe` (rule C-16).
//!
//! What repeats within a few minutes is counted on the event that is there;
//! other words make another event, because the server lets nobody change the
//! note of one. An event that cannot be written is logged and forgotten: no pass
//! fails for it.

mod ledger;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use serde_json::json;
use tokio::time::Instant;

use self::ledger::{Entry, Known, Ledger, Subject};
use crate::errors::{Refusal, refusal};

/// The server refuses longer notes.
const NOTE_LIMIT: usize = 1024;
/// Events about objects outside of namespaces stand here, as those of Kubernetes do.
const CLUSTER_NAMESPACE: &str = "default";

/// Writes events.
#[derive(Clone)]
pub struct Events {
    client: Client,
    controller: String,
    instance: String,
    /// Locked for one operation of the ledger, by passes.
    ledger: Arc<Mutex<Ledger>>,
}

impl Events {
    /// A recorder under the controller's name.
    pub fn new(client: Client, controller: &str, instance: &str) -> Self {
        Self {
            client,
            controller: controller.to_owned(),
            instance: instance.to_owned(),
            ledger: Arc::default(),
        }
    }

    /// Something happened that a person may want to know.
    pub async fn normal<K: Resource<DynamicType = ()>>(
        &self,
        about: &K,
        reason: &str,
        action: &str,
        note: String,
    ) {
        self.publish("Normal", about, reason, action, note).await;
    }

    /// Something happened that a person may have to act on.
    pub async fn warning<K: Resource<DynamicType = ()>>(
        &self,
        about: &K,
        reason: &str,
        action: &str,
        note: String,
    ) {
        self.publish("Warning", about, reason, action, note).await;
    }

    async fn publish<K: Resource<DynamicType = ()>>(
        &self,
        type_: &'static str,
        about: &K,
        reason: &str,
        action: &str,
        note: String,
    ) {
        let about = about.object_ref(&());
        let entry = Entry {
            subject: Subject {
                uid: about.uid.clone().unwrap_or_default(),
                name: about.name.clone().unwrap_or_default(),
                type_,
                reason: reason.to_owned(),
                action: action.to_owned(),
            },
            note: cut(note),
        };
        if let Err(error) = self.write(about, entry).await {
            tracing::warn!(reason, %error, "an event could not be written");
        }
    }

    async fn write(&self, about: ObjectReference, entry: Entry) -> kube::Result<()> {
        let namespace = about.namespace.as_deref().unwrap_or(CLUSTER_NAMESPACE);
        let events: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        let now = Timestamp::now();
        let known = self.ledger().find(&entry, Instant::now());
        if let Some(Known { name, count }) = known {
            let series = json!([
                // Sets the whole series, whether there was one or not.
                {"op": "add", "path": "/series",
                 "value": {"count": count, "lastObservedTime": MicroTime(now)}},
            ]);
            let patched = match serde_json::from_value(series) {
                Ok(patch) => {
                    let patch = Patch::Json::<()>(patch);
                    events.patch(&name, &PatchParams::default(), &patch).await
                }
                Err(error) => Err(kube::Error::SerdeError(error)),
            };
            match patched {
                Err(error) if refusal(&error) == Refusal::NotFound => self.ledger().forget(&name),
                done => return done.map(|_| ()),
            }
        }
        let event = self.event(about, &entry, now);
        let name = event.metadata.name.clone().unwrap_or_default();
        events.create(&PostParams::default(), &event).await?;
        self.ledger().note(entry, name, Instant::now());
        Ok(())
    }

    fn event(&self, about: ObjectReference, entry: &Entry, now: Timestamp) -> Event {
        let Entry { subject, note } = entry;
        Event {
            action: Some(subject.action.clone()),
            reason: Some(subject.reason.clone()),
            note: Some(note.clone()),
            type_: Some(subject.type_.to_owned()),
            event_time: Some(MicroTime(now)),
            metadata: ObjectMeta {
                namespace: Some(
                    about
                        .namespace
                        .clone()
                        .unwrap_or_else(|| CLUSTER_NAMESPACE.to_owned()),
                ),
                name: Some(format!("{}.{:x}", subject.name, now.as_nanosecond())),
                ..ObjectMeta::default()
            },
            regarding: Some(about),
            reporting_controller: Some(self.controller.clone()),
            reporting_instance: Some(self.instance.clone()),
            ..Event::default()
        }
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A note of a length that the server takes, ending with a whole character.
fn cut(mut note: String) -> String {
    note.truncate(note.floor_char_boundary(NOTE_LIMIT));
    note
}

#[cfg(test)]
mod tests {
    use super::*;

    // C-16
    #[test]
    fn a_long_note_is_cut_between_two_characters() {
        assert_eq!(cut("short".to_owned()), "short");
        let whole = "x".repeat(NOTE_LIMIT);
        assert_eq!(cut(whole.clone()), whole);
        // Three bytes each: the limit is in the middle of one.
        let cut = cut("€".repeat(NOTE_LIMIT));
        assert_eq!(cut.len(), NOTE_LIMIT - 1);
        assert!(cut.chars().all(|c| c == '€'));
    }
}
