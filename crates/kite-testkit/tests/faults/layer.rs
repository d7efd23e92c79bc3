//! The layer itself: each fault does what its name says to the real server and
//! to a client, and nothing else.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::ConfigMap;
use kite_testkit::fault_layer::{Act, Answer, EventAct, EventMatch, FaultLayer, Link, Match};
use kite_testkit::{Cluster, KiteOptions, KiteProcess, install, wait};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use kube::config::Kubeconfig;
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use tokio::sync::MutexGuard;

use crate::stage::cluster;

const LIMIT: Duration = Duration::from_mins(1);
/// Long enough to say that nothing comes, for a request that takes a hundredth of it.
const NOTHING: Duration = Duration::from_millis(500);
const KIND: &str = "configmaps";

/// A layer, a client behind it that does not retry, and one past it.
struct Bench {
    faults: FaultLayer,
    through: Api<ConfigMap>,
    direct: Api<ConfigMap>,
    cluster: &'static Cluster,
    _turn: MutexGuard<'static, ()>,
}

impl Bench {
    async fn new(namespace: &str) -> Self {
        let (cluster, turn) = cluster().await;
        let client = cluster.client().await;
        let space =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        install::apply(&client, &space.to_string()).await.unwrap();
        let identity = cluster.control_plane.identity(namespace, "tester");
        let identity = identity.await.unwrap();
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "tester", "namespace": namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "tester", "namespace": namespace}],
        });
        install::apply(&client, &binding.to_string()).await.unwrap();
        let faults = FaultLayer::start(identity.kubeconfig()).await.unwrap();
        let config = Kubeconfig::read_from(faults.kubeconfig()).unwrap();
        let options = kube::config::KubeConfigOptions::default();
        let mut config = kube::Config::from_custom_kubeconfig(config, &options)
            .await
            .unwrap();
        config.default_retry = false;
        Self {
            faults,
            through: Api::namespaced(Client::try_from(config).unwrap(), namespace),
            direct: Api::namespaced(client, namespace),
            cluster,
            _turn: turn,
        }
    }

    /// A process that the layer may kill; it has no rights, and need not get far.
    async fn process(&self) -> Arc<KiteProcess> {
        let options = KiteOptions {
            wait_ready: false,
            ..self
                .cluster
                .kite_options("kite-service", "kite-service", &[])
        };
        let plane = &self.cluster.control_plane;
        self.faults.run(plane, options).await.unwrap();
        self.faults.process()
    }

    /// Writes a value through the layer; the code of a refusal, or 0 when there was no answer.
    async fn write(&self, name: &str, value: &str) -> Result<ConfigMap, u16> {
        write(&self.through, name, value).await
    }

    /// The value as the server has it.
    async fn there(&self, name: &str) -> Option<String> {
        let object = self.direct.get_opt(name).await.unwrap();
        object.map(|object| object.data.unwrap()["value"].clone())
    }

    async fn open(&self) -> BoxStream<'static, kube::Result<WatchEvent<ConfigMap>>> {
        let now = self.direct.list(&ListParams::default()).await.unwrap();
        let version = now.metadata.resource_version.unwrap();
        let params = WatchParams::default();
        let stream = self.through.watch(&params, &version).await;
        stream.unwrap().boxed()
    }
}

async fn write(api: &Api<ConfigMap>, name: &str, value: &str) -> Result<ConfigMap, u16> {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value},
    });
    let how = PatchParams::apply("tester").force();
    let written = api.patch(name, &how, &Patch::Apply(&object)).await;
    written.map_err(|error| match error {
        kube::Error::Api(status) => status.code,
        _ => 0,
    })
}

/// The next event's kind and value, `end` when the watch ended, nothing when none comes.
async fn next(stream: &mut BoxStream<'static, kube::Result<WatchEvent<ConfigMap>>>) -> String {
    match tokio::time::timeout(NOTHING, stream.next()).await {
        Err(_) => "nothing".to_owned(),
        Ok(None) => "end".to_owned(),
        Ok(Some(Ok(WatchEvent::Added(o) | WatchEvent::Modified(o) | WatchEvent::Deleted(o)))) => {
            o.data.unwrap()["value"].clone()
        }
        Ok(Some(Ok(WatchEvent::Error(status)))) => status.code.to_string(),
        Ok(Some(other)) => format!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_rule_does_to_a_request_the_server_and_the_client_see() {
    let bench = Bench::new("layer-requests").await;
    let on = |act: Act| bench.faults.on(Match::write(1)).then(act);

    assert!(bench.write("plain", "1").await.is_ok());
    assert_eq!(bench.there("plain").await.as_deref(), Some("1"));

    on(Act::Drop);
    assert_eq!(bench.write("dropped", "1").await, Err(0));
    assert_eq!(bench.there("dropped").await, None);

    on(Act::LoseReply);
    assert_eq!(bench.write("lost", "1").await, Err(0));
    assert_eq!(bench.there("lost").await.as_deref(), Some("1"));

    for code in [401, 403, 404, 409, 410, 422, 500, 503, 504] {
        on(Act::Answer(Answer::refusal(code)));
        assert_eq!(bench.write("refused", "1").await, Err(code));
    }
    on(Act::Answer(Answer::too_many(7)));
    assert_eq!(bench.write("refused", "1").await, Err(429));
    assert_eq!(bench.there("refused").await, None);

    on(Act::AnswerAfterApplied(Answer::refusal(504)));
    assert_eq!(bench.write("late", "1").await, Err(504));
    assert_eq!(bench.there("late").await.as_deref(), Some("1"));

    on(Act::Truncate);
    assert_eq!(bench.write("cut", "1").await, Err(0));
    assert_eq!(bench.there("cut").await.as_deref(), Some("1"));

    on(Act::Answer(Answer::wrong_kind()));
    let odd = bench.write("odd", "1").await;
    assert!(odd.is_err() || odd.is_ok_and(|o| o.data.is_none()));
    assert_eq!(bench.there("odd").await, None);

    let delayed = Instant::now();
    on(Act::Delay(NOTHING));
    assert!(bench.write("delayed", "1").await.is_ok());
    assert!(delayed.elapsed() >= NOTHING);

    let twice = on(Act::Duplicate);
    let first = bench.write("twice", "1").await.unwrap();
    twice.hit(1, LIMIT).await.unwrap();
    assert_eq!(bench.there("twice").await.as_deref(), Some("1"));
    assert!(first.resource_version().is_some());

    let direct = bench.direct.clone();
    on(Act::first(move || {
        let direct = direct.clone();
        async move { drop(write(&direct, "before", "1").await) }
    }));
    assert!(bench.write("after", "1").await.is_ok());
    assert_eq!(bench.there("before").await.as_deref(), Some("1"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_process_dies_before_a_request_is_sent_when_it_is_applied_or_when_it_is_answered() {
    let bench = Bench::new("layer-kills").await;
    for (act, name, answer, there) in [
        (Act::KillBefore, "unsent", Err(0), None),
        (Act::KillAfterApplied, "applied", Err(0), Some("1")),
        (Act::KillAfterReply, "answered", Ok(()), Some("1")),
    ] {
        let process = bench.process().await;
        let killing = bench.faults.on(Match::writes().named(name)).then(act);
        assert!(process.process().exited().is_none(), "{name}: too early");
        assert_eq!(bench.write(name, "1").await.map(drop), answer, "{name}");
        let dead = async || process.process().exited();
        let died = wait::eventually("the process's end", LIMIT, dead).await;
        died.unwrap();
        assert_eq!(bench.there(name).await.as_deref(), there, "{name}");
        assert_eq!(killing.hits(), 1, "{name}");
        killing.end();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_held_is_delivered_when_the_test_says_so_and_what_is_withheld_never() {
    let bench = Arc::new(Bench::new("layer-held").await);
    let spawn = |name: &'static str| {
        let bench = Arc::clone(&bench);
        tokio::spawn(async move { bench.write(name, "1").await })
    };
    let held = bench
        .faults
        .on(Match::writes().named("a"))
        .then(Act::HoldBefore);
    let writing = spawn("a");
    held.hit(1, LIMIT).await.unwrap();
    assert_eq!(bench.there("a").await, None);
    // Its sender is gone: what was sent is delivered all the same.
    writing.abort();
    assert_eq!(held.deliver().await, [Some(201)]);
    assert_eq!(bench.there("a").await.as_deref(), Some("1"));

    let applied = bench
        .faults
        .on(Match::writes().named("b"))
        .then(Act::HoldApplied);
    let writing = spawn("b");
    applied.hit(1, LIMIT).await.unwrap();
    assert_eq!(bench.there("b").await.as_deref(), Some("1"));
    assert!(!writing.is_finished());
    assert_eq!(applied.deliver().await, [Some(201)]);
    assert!(writing.await.unwrap().is_ok());

    bench
        .faults
        .on(Match::writes().named("c"))
        .then(Act::Withhold);
    let waited = tokio::time::timeout(NOTHING, bench.write("c", "1")).await;
    assert!(waited.is_err(), "{waited:?}");
    assert_eq!(bench.there("c").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_numbered_and_counted_and_a_share_is_spread_evenly() {
    let bench = Bench::new("layer-numbers").await;
    let start = bench.faults.now();
    let second = bench
        .faults
        .on(Match::write(2))
        .then(Act::Answer(Answer::refusal(409)));
    let codes = async |n: usize| {
        let mut codes = Vec::new();
        for i in 0..n {
            codes.push(
                bench
                    .write(&format!("n{i}"), "1")
                    .await
                    .err()
                    .unwrap_or(200),
            );
        }
        codes
    };
    assert_eq!(codes(3).await, [200, 409, 200]);
    assert_eq!((second.hits(), second.matched()), (1, 3));
    second.end();
    let every = Match::writes().every(2);
    let every = bench
        .faults
        .on(every)
        .then(Act::Answer(Answer::refusal(409)));
    assert_eq!(codes(4).await, [200, 409, 200, 409]);
    every.end();
    let share = Match::writes().percent(30);
    bench
        .faults
        .on(share)
        .then(Act::Answer(Answer::refusal(500)));
    let failed = codes(20).await.iter().filter(|c| **c == 500).count();
    assert_eq!(failed, 6);
    bench.faults.end_rules();
    assert_eq!(codes(2).await, [200, 200]);

    let writes = bench.faults.writes();
    assert_eq!(writes.len(), 29);
    let numbers: Vec<_> = writes.iter().filter_map(|w| w.write).collect();
    assert_eq!(numbers, (1..=29).collect::<Vec<_>>());
    let first = &writes[0];
    assert_eq!(
        (first.asked.verb, first.asked.resource.as_str()),
        ("patch", KIND)
    );
    assert_eq!((first.code, first.fault.as_deref()), (Some(201), None));
    assert!(first.answer_version.is_some() && first.at >= start);
    assert!(first.answered.is_some_and(|answered| answered >= first.at));
    assert_eq!(writes[1].fault.as_deref(), Some("answered 409"));
    assert_eq!(writes[0].asked.body_hash, writes[3].asked.body_hash);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_was_kept_is_served_as_it_was() {
    let bench = Bench::new("layer-lists").await;
    let names = async || {
        let list = bench.through.list(&ListParams::default()).await.unwrap();
        let mut names: Vec<_> = list.iter().map(ConfigMap::name_any).collect();
        names.retain(|name| name != "kube-root-ca.crt");
        names
    };
    bench.write("a", "1").await.unwrap();
    assert_eq!(names().await, ["a"]);
    bench.faults.remember_lists().await.unwrap();
    bench.write("b", "1").await.unwrap();
    let stale = bench.faults.on(Match::lists(KIND)).then(Act::StaleList);
    assert_eq!(names().await, ["a"]);
    stale.end();
    assert_eq!(names().await, ["a", "b"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_are_frozen_cut_delayed_and_lose_or_repeat_single_events() {
    let bench = Bench::new("layer-watches").await;
    let watches = bench.faults.watches(KIND);
    let mut open = bench.open().await;
    let put =
        async |name: &str, value: &str| drop(write(&bench.direct, name, value).await.unwrap());
    put("a", "1").await;
    assert_eq!(next(&mut open).await, "1");

    watches.freeze();
    put("a", "2").await;
    assert_eq!(next(&mut open).await, "nothing");
    put("a", "3").await;
    watches.thaw();
    assert_eq!(next(&mut open).await, "2");
    assert_eq!(next(&mut open).await, "3");

    watches.lag(2 * NOTHING);
    put("a", "4").await;
    let came = Instant::now();
    assert_eq!(next(&mut open).await, "nothing");
    let seen = wait::eventually("the event", LIMIT, async || {
        (next(&mut open).await == "4").then_some(())
    });
    seen.await.unwrap();
    assert!(came.elapsed() >= NOTHING);
    watches.lag(Duration::ZERO);

    let one = |name: &str| EventMatch {
        name: name.to_owned(),
        times: 1,
        ..EventMatch::default()
    };
    watches.events(one("b"), EventAct::Swallow);
    watches.events(one("c"), EventAct::Twice);
    for (name, value) in [("b", "5"), ("b", "6"), ("c", "7"), ("c", "8")] {
        put(name, value).await;
    }
    for value in ["6", "7", "7", "8"] {
        assert_eq!(next(&mut open).await, value);
    }
    assert_eq!(watches.hits(), 2);

    watches.gone();
    assert_eq!(next(&mut open).await, "410");
    assert_eq!(next(&mut open).await, "end");
    let mut open = bench.open().await;
    watches.cut();
    assert_eq!(next(&mut open).await, "end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_way_to_the_server_goes_silent_or_is_closed_and_opens_again() {
    let bench = Bench::new("layer-link").await;
    let mut open = bench.open().await;
    bench.faults.link(Link::Silent);
    let waited = tokio::time::timeout(NOTHING, bench.write("a", "1")).await;
    assert!(waited.is_err(), "{waited:?}");
    write(&bench.direct, "b", "2").await.unwrap();
    assert_eq!(next(&mut open).await, "nothing");
    bench.faults.link(Link::Up);
    assert_eq!(next(&mut open).await, "2");

    bench.faults.link(Link::Refused);
    assert_eq!(bench.write("c", "1").await, Err(0));
    assert_eq!(next(&mut open).await, "end");
    bench.faults.link(Link::Up);
    assert!(bench.write("c", "1").await.is_ok());
    bench
        .through
        .delete("c", &DeleteParams::default())
        .await
        .unwrap();
}
