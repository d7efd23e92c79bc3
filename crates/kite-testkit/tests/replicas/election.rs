//! With the election: one copy works, the other waits.

use std::time::{Duration, Instant};

use futures::future::join_all;
use k8s_openapi::api::core::v1::{ResourceQuota, Service};
use kite_api::condition::{self, READY};
use kite_api::machine::Phase;
use kite_api::{KiteUser, KiteVirtualMachine};
use kite_testkit::cluster::CONTROLLERS;
use kite_testkit::http_get::get;
use kite_testkit::{Cluster, ClusterOptions, KiteProcess, wait};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::TURN;
use crate::copies::{copy, holders, led_after, metrics, only_these_lead, run_all};
use kite_testkit::counted::{Counted, quiet};
use kite_testkit::tenant::{LONG, REPAIR, Tenant, condition_of, is_ready, phase, user_conditions};

/// The one that keeps the default times; it is slow to take over.
const BY_DEFAULT: &str = "kite-datavolume";

/// Times of the Lease of a controller.
struct Times {
    lease: Duration,
    retry: Duration,
    flags: Vec<&'static str>,
}

fn times(controller: &str) -> Times {
    let (lease, retry, flags) = if controller == BY_DEFAULT {
        (15_000, 2_000, vec![])
    } else {
        let flags = vec![
            "--lease-duration=3s",
            "--renew-interval=1s",
            "--renew-deadline=2s",
            "--retry-interval=500ms",
        ];
        (3_000, 500, flags)
    };
    Times {
        lease: Duration::from_millis(lease),
        retry: Duration::from_millis(retry),
        flags,
    }
}

/// What two busy cores may add to a time that is measured from outside.
const SLACK: Duration = Duration::from_millis(250);

// LE9, LE11, LE12, C-1, V-16
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_copies_one_works_and_the_other_takes_over_what_was_left_undone() {
    let _turn = TURN.lock().await;
    let options = ClusterOptions {
        without: CONTROLLERS.to_vec(),
        ..ClusterOptions::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    let flags = |name: &str| times(name).flags;
    run_all(&cluster, 'a', flags).await;
    only_these_lead(&cluster, 'a').await;
    let alice = Tenant::new(&cluster, "alice").await;
    alice.create().await;
    alice.machine("web", json!({})).await;
    alice.ready("web").await;
    quiet(&cluster).await;

    a_standby_is_ready_and_asks_for_nothing_but_its_lease(&cluster, &alice).await;
    one_is_killed(&cluster, &alice).await;
    the_others_are_killed(&cluster, &alice).await;
    only_these_lead(&cluster, 'b').await;
    a_clean_stop_hands_over_at_once(&cluster, &alice).await;
}

async fn a_standby_is_ready_and_asks_for_nothing_but_its_lease(
    cluster: &Cluster,
    alice: &Tenant<'_>,
) {
    let audit = cluster.control_plane.audit().unwrap();
    let start = audit.settled_mark(&alice.client).await.unwrap();
    run_all(cluster, 'b', |name| times(name).flags).await;
    only_these_lead(cluster, 'a').await;
    // Each has looked at its Lease again and again before it is judged.
    let reads = async || {
        let requests = audit.since(start).unwrap();
        let looked = |name: &&str| {
            let own = requests.iter().filter(|r| r.is_by(name) && r.is_lease());
            own.filter(|r| r.verb == "get").count() >= 2
        };
        CONTROLLERS.iter().all(looked).then_some(())
    };
    wait::eventually("standbys that read their Leases", LONG, reads)
        .await
        .unwrap();
    let since = Counted::since(cluster, &alice.client, start).await;
    println!(
        "two copies at rest: {} requests about leases, {} others, {} events",
        since.upkeep,
        since.total(),
        since.events
    );
    assert!(since.requests.is_empty(), "{:#?}", since.requests);
    assert_eq!(since.events, 0);
    for name in CONTROLLERS {
        let standby = copy(name, 'b');
        let address = cluster.with(&standby, KiteProcess::address);
        let (code, text) = get(address, "/readyz?verbose").await.unwrap();
        assert_eq!(code, 200, "{standby}: {text}");
        assert!(text.contains("Standby"), "{standby}: {text}");
        let metrics = metrics(cluster, &standby).await;
        for metric in ["kite_writes_total", "controller_runtime_reconcile_total"] {
            let count = metrics.sum(metric, &[]);
            assert!(count < 0.5, "{standby} has {metric} {count}");
        }
    }
}

/// SIGKILL at once; the time it took the other copy.
async fn taken_over(cluster: &Cluster, name: &str, killed: Instant) {
    let times = times(name);
    let took = led_after(cluster, name, 'b', killed).await;
    println!(
        "{name}: leader killed, successor led after {took:?} (lease {:?}, retry {:?})",
        times.lease, times.retry
    );
    assert!(
        took <= times.lease + times.retry + SLACK,
        "{name}: {took:?}"
    );
}

fn kill(cluster: &Cluster, name: &str) -> Instant {
    let leader = cluster.take(&copy(name, 'a'));
    leader.kill();
    Instant::now()
}

/// A change made in the gap is carried out, and the other five do not notice (LE12).
async fn one_is_killed(cluster: &Cluster, alice: &Tenant<'_>) {
    let before = holders(cluster).await;
    let killed = kill(cluster, "kite-vm");
    alice
        .edit::<KiteVirtualMachine>("web", json!({"spec": {"powerState": "Off"}}))
        .await;
    let services = alice.api::<Service>();
    let service = services.get("web").await.unwrap();
    services
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    taken_over(cluster, "kite-vm", killed).await;
    alice
        .until("web", REPAIR, |s: &Service| s.uid() != service.uid())
        .await;
    alice
        .until("web", LONG, |m: &KiteVirtualMachine| {
            is_ready(m) && phase(m) == Some(Phase::Stopped)
        })
        .await;
    println!(
        "what was asked for in the gap was done {:?} after the kill",
        killed.elapsed()
    );
    let mut after = holders(cluster).await;
    assert_eq!(
        after.insert("kite-vm".to_owned(), copy("kite-vm", 'a')),
        Some(copy("kite-vm", 'b'))
    );
    assert_eq!(before, after, "another Lease moved");
}

async fn the_others_are_killed(cluster: &Cluster, alice: &Tenant<'_>) {
    let others: Vec<_> = CONTROLLERS
        .into_iter()
        .filter(|n| *n != "kite-vm")
        .collect();
    let killed: Vec<_> = others.iter().map(|n| (*n, kill(cluster, n))).collect();
    let began = Instant::now();
    alice
        .edit::<KiteVirtualMachine>("web", json!({"spec": {"powerState": "On"}}))
        .await;
    alice.machine("late", json!({})).await;
    let users: Api<KiteUser> = Api::all(alice.client.clone());
    let more = json!({"spec": {"quota": {"virtualMachines": 6}}});
    let user = users
        .patch("alice", &PatchParams::default(), &Patch::Merge(&more))
        .await
        .unwrap();
    let generation = user.metadata.generation;

    let takes_over = killed
        .iter()
        .map(|(name, killed)| taken_over(cluster, name, *killed));
    let done = async {
        alice
            .user_until(|u| {
                let ready = condition::find(user_conditions(u), READY);
                ready.is_some_and(|c| c.status == "True" && c.observed_generation == generation)
            })
            .await;
        println!("the user's new quota: in force after {:?}", began.elapsed());
        for name in ["web", "late"] {
            alice
                .until(name, LONG, |m: &KiteVirtualMachine| {
                    let disk = condition_of(m, condition::DISK_READY);
                    is_ready(m)
                        && phase(m) == Some(Phase::Running)
                        && disk.is_some_and(|c| c.status == "True")
                })
                .await;
            println!("machine {name}: Running after {:?}", began.elapsed());
        }
    };
    tokio::join!(join_all(takes_over), done);
    let quotas = alice.api::<ResourceQuota>();
    let quotas = quotas.list(&ListParams::default()).await.unwrap();
    let has_six = |q: &ResourceQuota| {
        let hard = q.spec.as_ref().and_then(|s| s.hard.as_ref());
        hard.is_some_and(|h| h.values().any(|v| v.0 == "6"))
    };
    assert!(quotas.iter().any(has_six), "{quotas:?}");
}

async fn a_clean_stop_hands_over_at_once(cluster: &Cluster, alice: &Tenant<'_>) {
    run_all(cluster, 'c', |name| times(name).flags).await;
    only_these_lead(cluster, 'b').await;
    let hand_over = CONTROLLERS.map(|name| {
        let leader = cluster.take(&copy(name, 'b'));
        async move {
            let asked = Instant::now();
            let status = leader.terminate(Duration::from_secs(25)).await;
            let ended = asked.elapsed();
            assert!(status.is_some_and(|s| s.success()), "{name}: {status:?}");
            let took = led_after(cluster, name, 'c', asked).await;
            println!("{name}: asked to stop, ended after {ended:?}, successor led after {took:?}");
            assert!(took <= times(name).retry + 2 * SLACK, "{name}: {took:?}");
        }
    });
    join_all(hand_over).await;
    only_these_lead(cluster, 'c').await;
    alice
        .edit::<KiteVirtualMachine>("web", json!({"spec": {"delete": true}}))
        .await;
    alice.machine_gone("web").await;
}
