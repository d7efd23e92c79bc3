//! Events on Kite's objects, for people who type `kubectl describe`.
//!
//! One recorder a process, because what makes repeats merge lives in it. An
//! event that cannot be written is logged and forgotten: no pass fails for it.

use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Client, Resource};

/// The server refuses longer notes.
const NOTE_LIMIT: usize = 1024;

/// Writes events.
#[derive(Clone)]
pub struct Events {
    recorder: Recorder,
}

impl Events {
    /// A recorder under the controller's name.
    pub fn new(client: Client, controller: &str, instance: &str) -> Self {
        let reporter = Reporter {
            controller: controller.to_owned(),
            instance: Some(instance.to_owned()),
        };
        Self {
            recorder: Recorder::new(client, reporter),
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
        self.publish(EventType::Normal, about, reason, action, note)
            .await;
    }

    /// Something happened that a person may have to act on.
    pub async fn warning<K: Resource<DynamicType = ()>>(
        &self,
        about: &K,
        reason: &str,
        action: &str,
        note: String,
    ) {
        self.publish(EventType::Warning, about, reason, action, note)
            .await;
    }

    async fn publish<K: Resource<DynamicType = ()>>(
        &self,
        type_: EventType,
        about: &K,
        reason: &str,
        action: &str,
        mut note: String,
    ) {
        note.truncate(note.floor_char_boundary(NOTE_LIMIT));
        let event = Event {
            type_,
            reason: reason.to_owned(),
            note: Some(note),
            action: action.to_owned(),
            secondary: None,
        };
        if let Err(error) = self.recorder.publish(&event, &about.object_ref(&())).await {
            tracing::warn!(reason, %error, "an event could not be written");
        }
    }
}
