//! The writer's promises (rule C-7), held on the newest and the oldest server.
#![allow(missing_docs, clippy::unwrap_used)]

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use kite_runtime::apply::{Ensured, Place, WriteError, Writer};
use kite_runtime::events::Events;
use kite_runtime::metrics::Metrics;
use kite_runtime::{Cache, Key, Refusal};
use kite_testkit::{ControlPlane, Options, ServerVersion};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, PropagationPolicy};
use kube::core::ObjectMeta;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

/// One server, a writer on it, and a cache that no watch fills: it may lag as far as a test wants.
struct Bench {
    control_plane: ControlPlane,
    api: Api<ConfigMap>,
    writer: Writer,
    cache: Cache<ConfigMap>,
}

impl Bench {
    async fn start(version: ServerVersion) -> Self {
        let options = Options {
            version,
            controller_manager: false,
            ..Options::default()
        };
        let control_plane = ControlPlane::start(options).await.unwrap();
        let client: Client = control_plane.admin_client().await.unwrap();
        let metrics = Arc::new(Metrics::new("kite-test").unwrap());
        Self {
            control_plane,
            api: Api::namespaced(client.clone(), "default"),
            writer: Writer::new(client, "kite-test", metrics),
            cache: Cache::new(|c| c.resource_version().map_or(0, |v| v.parse().unwrap())),
        }
    }

    /// The client of somebody who may do nothing.
    async fn stranger(&self) -> Client {
        let identity = self.control_plane.identity("default", "stranger").await;
        identity.unwrap().client().await.unwrap()
    }

    fn place(&self, name: &str) -> Place<'_, ConfigMap> {
        Place {
            api: self.api.clone(),
            cache: &self.cache,
            key: Key::new("default", name),
        }
    }

    async fn ensure(&self, name: &str, value: &str) -> Result<Ensured<ConfigMap>, WriteError> {
        let wanted = wanted(name, value);
        let value = value.to_owned();
        let same = move |live: &ConfigMap| {
            live.data
                .as_ref()
                .is_some_and(|d| d.get("key") == Some(&value))
        };
        self.writer
            .ensure(&self.place(name), &wanted, is_ours, same)
            .await
    }
}

fn wanted(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "annotations": {"kite.dev/vm-uid": "ours"}},
        "data": {"key": value},
    })
}

fn is_ours(meta: &ObjectMeta) -> bool {
    meta.annotations
        .iter()
        .flatten()
        .any(|(k, v)| k == "kite.dev/vm-uid" && v == "ours")
}

// C-5, C-7
#[tokio::test]
async fn the_writer_keeps_its_promises_on_the_newest_and_the_oldest_server() {
    for version in [ServerVersion::Newest, ServerVersion::Oldest] {
        let bench = Bench::start(version).await;
        what_is_as_wanted_is_not_written_again(&bench).await;
        an_object_the_cache_missed_is_taken_up_if_ours_and_left_alone_if_not(&bench).await;
        a_successor_is_never_written_to_or_deleted_by_mistake(&bench).await;
        finalizers_of_others_stay(&bench).await;
        what_is_told_again_is_counted_and_other_words_are_read(&bench).await;
    }
}

async fn what_is_as_wanted_is_not_written_again(bench: &Bench) {
    assert!(matches!(
        bench.ensure("a", "1").await.unwrap(),
        Ensured::Created(_)
    ));
    let first = bench.api.get("a").await.unwrap();
    assert!(matches!(
        bench.ensure("a", "1").await.unwrap(),
        Ensured::Unchanged(_)
    ));
    assert!(matches!(
        bench.ensure("a", "2").await.unwrap(),
        Ensured::Updated(_)
    ));
    let second = bench.api.get("a").await.unwrap();
    assert_eq!(first.uid(), second.uid());
    assert_eq!(second.data.unwrap()["key"], "2");
}

async fn an_object_the_cache_missed_is_taken_up_if_ours_and_left_alone_if_not(bench: &Bench) {
    // Ours, made by a process that died before its watch could show it (row CR2).
    let params = PatchParams::apply("kite-test").force();
    let made = bench
        .api
        .patch("b", &params, &Patch::Apply(wanted("b", "1")))
        .await
        .unwrap();
    assert!(matches!(
        bench.ensure("b", "1").await.unwrap(),
        Ensured::Unchanged(_)
    ));
    assert!(matches!(
        bench.ensure("b", "2").await.unwrap(),
        Ensured::Updated(_)
    ));
    assert_eq!(bench.api.get("b").await.unwrap().uid(), made.uid());

    let mut foreign = ConfigMap::default();
    foreign.metadata.name = Some("c".into());
    foreign.data = Some([("key".to_owned(), "theirs".to_owned())].into());
    let foreign = bench
        .api
        .create(&PostParams::default(), &foreign)
        .await
        .unwrap();
    let error = bench.ensure("c", "1").await.unwrap_err();
    assert!(matches!(error, WriteError::NameConflict { .. }), "{error}");
    assert!(error.to_string().contains("ConfigMap c exists"), "{error}");
    assert_eq!(
        bench.api.get("c").await.unwrap(),
        foreign,
        "a foreign object was written to"
    );
    bench
        .api
        .delete("c", &DeleteParams::default())
        .await
        .unwrap();
    assert!(matches!(
        bench.ensure("c", "1").await.unwrap(),
        Ensured::Created(_)
    ));
}

async fn a_successor_is_never_written_to_or_deleted_by_mistake(bench: &Bench) {
    let first = bench.ensure("d", "1").await.unwrap();
    bench
        .api
        .delete("d", &DeleteParams::default())
        .await
        .unwrap();
    // The cache still shows the first: an apply to it must not make a second.
    let error = bench.ensure("d", "2").await.unwrap_err();
    assert_eq!(error.refusal(), Some(Refusal::Conflict), "{error}");
    assert!(bench.api.get_opt("d").await.unwrap().is_none());
    let mut successor = ConfigMap::default();
    successor.metadata.name = Some("d".into());
    let successor = bench
        .api
        .create(&PostParams::default(), &successor)
        .await
        .unwrap();
    assert!(bench.ensure("d", "3").await.is_err());
    let meta = &first.object().metadata;
    let deleted = bench
        .writer
        .delete(&bench.place("d"), meta, PropagationPolicy::Background)
        .await;
    assert!(
        deleted.is_err(),
        "the successor was deleted under its predecessor's UID"
    );
    assert_eq!(bench.api.get("d").await.unwrap(), successor);
}

async fn finalizers_of_others_stay(bench: &Bench) {
    let mut object = ConfigMap::default();
    object.metadata.name = Some("e".into());
    object.metadata.finalizers = Some(vec!["example.org/theirs".into()]);
    let object = bench
        .api
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
    let place = bench.place("e");
    let object = bench
        .writer
        .add_finalizer(&place, &object, "kite.dev/test")
        .await
        .unwrap();
    // CR10: another list than the one that was looked at is not overwritten.
    let stale = bench.api.get("e").await.unwrap();
    let more = json!({"metadata": {"finalizers": ["example.org/first", "example.org/theirs", "kite.dev/test"]}});
    bench
        .api
        .patch("e", &PatchParams::default(), &Patch::Merge(&more))
        .await
        .unwrap();
    assert!(
        bench
            .writer
            .remove_finalizer(&place, &stale, "kite.dev/test")
            .await
            .is_err()
    );
    let fresh = bench.api.get("e").await.unwrap();
    bench
        .writer
        .remove_finalizer(&place, &fresh, "kite.dev/test")
        .await
        .unwrap();
    let left = bench.api.get("e").await.unwrap();
    assert_eq!(
        left.finalizers(),
        ["example.org/first", "example.org/theirs"]
    );
    assert_eq!(left.uid(), object.uid());
}

// C-16: whoever reads an event reads the words of now, and how often they were said
async fn what_is_told_again_is_counted_and_other_words_are_read(bench: &Bench) {
    let client = bench.writer.client().clone();
    let events = Events::new(client.clone(), "kite-test", "kite-test-1");
    let about = bench.ensure("told", "1").await.unwrap().object().clone();
    let tell = async |note: &str| {
        let note = note.to_owned();
        events
            .warning(about.as_ref(), "Stopped", "Watch", note)
            .await;
    };
    tell("by hand").await;
    tell("by hand").await;
    tell("by a drain").await;
    tell(&"€".repeat(2000)).await;
    let api: Api<Event> = Api::namespaced(client, "default");
    let told = async || {
        let all = api.list(&ListParams::default()).await.unwrap().items;
        let mut told: Vec<Event> = all
            .into_iter()
            .filter(|e| e.regarding.as_ref().and_then(|r| r.name.as_deref()) == Some("told"))
            .collect();
        told.sort_by_key(|e| e.event_time.clone().map(|t| t.0));
        told
    };
    let first = told().await;
    let count = |e: &Event| e.series.as_ref().map_or(1, |s| s.count);
    let counts: Vec<i32> = first.iter().map(count).collect();
    assert_eq!(counts, [2, 1, 1], "{first:?}");
    assert_eq!(first[0].note.as_deref(), Some("by hand"));
    assert_eq!(first[1].note.as_deref(), Some("by a drain"));
    assert_eq!(first[2].note.as_ref().unwrap().len(), 1023);
    assert_eq!(first[0].regarding.as_ref().unwrap().uid, about.uid());
    // Events live for an hour, or until somebody clears them away.
    let name = first[0].name_any();
    api.delete(&name, &DeleteParams::default()).await.unwrap();
    tell("by hand").await;
    let last = told().await.pop().unwrap();
    assert_eq!((last.note.as_deref(), count(&last)), (Some("by hand"), 1));
    // What is wrong is logged and disturbs nobody.
    let rightless = Events::new(bench.stranger().await, "kite-test", "kite-test-1");
    let note = "never told".to_owned();
    rightless
        .normal(about.as_ref(), "Told", "Watch", note)
        .await;
    assert_eq!(told().await.len(), 3);
}
