//! Two and three pods of a controller: on different nodes, drained one at a time,
//! rolled, killed and frozen under a stream of new machines.
//!
//! Who may write when is judged by the audit log and the Lease; what the processes
//! say of themselves is only measured beside it.

mod leading;
mod written;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use k8s_openapi::jiff::Timestamp;
use kite_api::condition::{self, READY};
use kite_api::{KiteUser, KiteVirtualMachine};
use kite_testkit::cluster::CONTROLLERS;
use kite_testkit::control_plane::Options;
use kite_testkit::followed::Followed;
use kite_testkit::helm::Helm;
use kite_testkit::install::SYSTEM_NAMESPACE;
use kite_testkit::installed::Installed;
use kite_testkit::snapshot::{NAMESPACED, list};
use kite_testkit::tenant::{LONG, Tenant, is_ready, user_conditions};
use kite_testkit::wait::{eventually, wait_until};
use kite_testkit::{AgentOptions, ClusterOptions};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use leading::Watch;
use written::Thawed;

const NODES: usize = 3;

/// The one that is rolled, killed and frozen.
pub(crate) const LEADER_OF: &str = "kite-vm";

/// Its pods; the other controllers have two, as the preset has it.
const PODS: usize = 3;

/// The chart's own: how long a Lease lasts, and when a follower looks again.
const LEASE: Duration = Duration::from_secs(15);
const RETRY: Duration = Duration::from_secs(2);

/// What a busy machine may add to a time that is measured from outside. The times are printed to
/// be read; only one that no machine explains fails.
const SLACK: Duration = Duration::from_secs(20);

/// Between two new machines.
const STREAM: Duration = Duration::from_millis(1500);

/// How fast KubeVirt and CDI are played: few clones of an image run at once, and none is to wait for long.
const SPEED: f64 = 40.0;

/// Fewer would not be a stream.
const FEWEST: usize = 20;

/// What a busy machine may need to catch up with all of them.
const CATCH_UP: Duration = Duration::from_mins(5);

fn pods_of(controller: &str) -> usize {
    if controller == LEADER_OF { PODS } else { 2 }
}

async fn ground() -> Installed {
    let options = ClusterOptions {
        kite: false,
        speed: SPEED,
        control_plane: Options {
            scheduler: true,
            ..Options::default()
        },
        ..ClusterOptions::default()
    };
    let nodes = AgentOptions {
        nodes: NODES,
        // Who is killed for the second time stays away longer than a Lease lasts.
        backoff: Duration::from_mins(1),
    };
    Installed::on(options, nodes).await.unwrap()
}

// C-2, V-16, LE9, LE11, LE12
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_that_are_rolled_killed_frozen_and_drained_lose_nothing_and_work_one_at_a_time() {
    let _turn = crate::TURN.write().await;
    let installed = ground().await;
    // Given the preset, and a leader whose probes have patience while it is frozen,
    let values = ["vm.replicas=3", "vm.livenessProbe.failureThreshold=30"];
    installed
        .install_available(Helm::Four, &values)
        .await
        .unwrap();
    the_pods_stand_on_different_nodes_and_have_a_budget(&installed).await;
    let alice = a_user_with_room(&installed).await;

    let machines = a_stream_of_machines_passes_through_all_of_it(&installed, &alice).await;
    each_machine_has_everything_once(&alice, &machines).await;
    a_drained_node_gives_up_one_pod_at_a_time(&installed).await;
}

fn api<K>(client: &kube::Client) -> Api<K>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    Api::namespaced(client.clone(), SYSTEM_NAMESPACE)
}

/// The nodes of a controller's pods that are not going.
async fn nodes_of(installed: &Installed, controller: &str) -> Vec<String> {
    let client = installed.cluster.client().await;
    let own = ListParams::default().labels(&format!("app.kubernetes.io/name={controller}"));
    let pods = api::<Pod>(&client).list(&own).await.unwrap();
    let stays = |pod: &Pod| pod.metadata.deletion_timestamp.is_none();
    let node = |pod: Pod| pod.spec?.node_name;
    pods.into_iter().filter(stays).filter_map(node).collect()
}

async fn the_pods_stand_on_different_nodes_and_have_a_budget(installed: &Installed) {
    let client = installed.cluster.client().await;
    let budgets = api::<PodDisruptionBudget>(&client);
    for name in CONTROLLERS {
        let nodes = nodes_of(installed, name).await;
        let different: BTreeSet<_> = nodes.iter().collect();
        assert_eq!(nodes.len(), pods_of(name), "{name}");
        assert_eq!(nodes.len(), different.len(), "{name}: {nodes:?}");
        // Outside kube-system too, the server takes the priority of the preset.
        let own = ListParams::default().labels(&format!("app.kubernetes.io/name={name}"));
        for pod in api::<Pod>(&client).list(&own).await.unwrap() {
            let spec = pod.spec.unwrap();
            let class = spec.priority_class_name.as_deref();
            assert_eq!(class, Some("system-cluster-critical"), "{name}");
            assert_eq!(spec.priority, Some(2_000_000_000), "{name}");
        }
        let spare = |b: &PodDisruptionBudget| {
            let allowed = b.status.as_ref().map(|s| s.disruptions_allowed);
            allowed == Some(1)
        };
        let budget = wait_until(&budgets, name, LONG, spare).await.unwrap();
        let most = budget.spec.unwrap().max_unavailable;
        assert_eq!(most, Some(IntOrString::Int(1)), "{name}");
    }
}

async fn a_user_with_room(installed: &Installed) -> Tenant<'_> {
    let alice = Tenant::new(&installed.cluster, "alice").await;
    alice.create().await;
    let room = json!({"cpu": 500, "memory": "1Ti", "storage": "2Ti", "virtualMachines": 400});
    let users: Api<KiteUser> = Api::all(alice.client.clone());
    let patch = Patch::Merge(json!({"spec": {"quota": room}}));
    let user = users.patch("alice", &PatchParams::default(), &patch).await;
    let generation = user.unwrap().metadata.generation;
    let settled = |user: &KiteUser| {
        let ready = condition::find(user_conditions(user), READY);
        ready.is_some_and(|c| c.status == "True" && c.observed_generation == generation)
    };
    alice.user_until(settled).await;
    alice
}

/// The names of the machines that were made meanwhile.
async fn a_stream_of_machines_passes_through_all_of_it(
    installed: &Installed,
    alice: &Tenant<'_>,
) -> Vec<String> {
    let audit = installed.cluster.control_plane.audit().unwrap();
    let start = audit.settled_mark(&alice.client).await.unwrap();
    let lease = Followed::<Lease>::start(api(&alice.client), LEADER_OF).await;
    let over = AtomicBool::new(false);
    let watch = Watch::new(installed);
    let troubles = async {
        rolled(installed, &watch).await;
        killed(installed, &watch).await;
        let thawed = frozen(installed, &watch).await;
        over.store(true, Ordering::Relaxed);
        thawed
    };
    let (machines, (), thawed) = tokio::join!(stream(alice, &over), watch.until(&over), troubles);
    println!("{} machines made meanwhile", machines.len());
    assert!(machines.len() >= FEWEST, "{}", machines.len());
    let ready = machines
        .iter()
        .map(|name| alice.until(name, CATCH_UP, is_ready));
    join_all(ready).await;

    let versions = lease.so_far();
    audit.settled_mark(&alice.client).await.unwrap();
    let requests = audit.since(start).unwrap();
    written::judge(&requests, &versions, &thawed);
    machines
}

async fn stream(alice: &Tenant<'_>, over: &AtomicBool) -> Vec<String> {
    let mut machines = Vec::new();
    let mut clock = tokio::time::interval(STREAM);
    clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while !over.load(Ordering::Relaxed) {
        clock.tick().await;
        let name = format!("m{:03}", machines.len());
        let power = if machines.len() % 4 == 0 { "On" } else { "Off" };
        alice.machine(&name, json!({"powerState": power})).await;
        machines.push(name);
    }
    machines
}

/// A clean stop gives the Lease back, so nobody waits for it to end.
async fn rolled(installed: &Installed, watch: &Watch<'_>) {
    let before = watch.pods();
    let began = Instant::now();
    installed.restart(LEADER_OF).await.unwrap();
    let ended = async || {
        let pods = watch.pods();
        (!pods.iter().any(|pod| before.contains(pod))).then_some(())
    };
    eventually("the old pods to end", LONG, ended)
        .await
        .unwrap();
    let leader = watch.holder().await;
    watch.leads(&leader).await;
    let (took, gap) = (began.elapsed(), watch.longest_gap(began));
    println!("rolled in {took:?}: {gap:?} without a leader at most");
    assert!(gap <= LEASE + SLACK, "{gap:?}");
}

/// Where the process is back at once it goes on under its Lease; where it is not, another takes it.
async fn killed(installed: &Installed, watch: &Watch<'_>) {
    let leader = watch.holder().await;
    let kill = || {
        let process = installed.agent.process(SYSTEM_NAMESPACE, &leader).unwrap();
        process.kill();
        (process.pid(), Instant::now())
    };
    let (first, at) = kill();
    let again = async || {
        let process = installed.agent.process(SYSTEM_NAMESPACE, &leader).ok()?;
        (process.pid() != first).then_some(())
    };
    eventually("the killed process to be back", LONG, again)
        .await
        .unwrap();
    watch.leads(&leader).await;
    let gap = watch.longest_gap(at);
    println!("killed, and started again in its pod: {gap:?} without a leader");
    assert!(gap <= LEASE + RETRY + SLACK, "{gap:?}");

    let (_, at) = kill();
    let next = watch.next_holder(&leader).await;
    watch.leads(&next).await;
    let gap = watch.longest_gap(at);
    println!("killed, and not started again: {gap:?} without a leader");
    assert!(gap <= LEASE + RETRY + SLACK, "{gap:?}");
}

/// It wakes up in the belief that it leads, sees that its time is over, and ends.
async fn frozen(installed: &Installed, watch: &Watch<'_>) -> Thawed {
    let leader = watch.holder().await;
    let process = installed.agent.process(SYSTEM_NAMESPACE, &leader).unwrap();
    process.pause().unwrap();
    let at = Instant::now();
    let next = watch.next_holder(&leader).await;
    watch.leads(&next).await;
    let gap = watch.longest_gap(at);
    println!("frozen: {gap:?} without a leader");
    assert!(gap <= LEASE + RETRY + SLACK, "{gap:?}");
    let thawed = Thawed {
        pod: leader,
        at: Timestamp::now(),
    };
    process.resume().unwrap();
    let woken = Instant::now();
    let ended = process.wait(LONG).await;
    println!("thawed: ended by itself after {:?}", woken.elapsed());
    assert!(
        ended.is_some_and(|status| status.code().is_some()),
        "{ended:?}"
    );
    assert_eq!(watch.holder().await, next);
    thawed
}

/// Nothing is missing and nothing is there twice.
async fn each_machine_has_everything_once(alice: &Tenant<'_>, machines: &[String]) {
    let made: BTreeSet<_> = machines.iter().cloned().collect();
    let mut secrets = BTreeMap::<String, usize>::new();
    for kind in &NAMESPACED {
        let found = list(&alice.client, kind, Some(&alice.namespace)).await;
        let names: Vec<_> = found.iter().map(ResourceExt::name_any).collect();
        match kind.3 {
            "kitevirtualmachines" | "virtualmachines" | "datavolumes" | "services" => {
                let different: BTreeSet<_> = names.iter().cloned().collect();
                assert_eq!(different, made, "{}", kind.3);
                assert_eq!(names.len(), made.len(), "{}", kind.3);
            }
            "secrets" => {
                for name in names {
                    let (of, what) = name.split_once('-').unwrap();
                    assert!(made.contains(of), "{name}");
                    *secrets.entry(what.to_owned()).or_default() += 1;
                }
            }
            _ => {}
        }
    }
    println!("secrets: {secrets:?}");
    assert!(secrets.contains_key("cloud-init"), "{secrets:?}");
    assert!(secrets.values().all(|n| *n == made.len()), "{secrets:?}");
    let machines = alice.api::<KiteVirtualMachine>();
    let machines = machines.list(&ListParams::default()).await.unwrap();
    assert!(machines.iter().all(is_ready));
}

/// Both pods of kite-service stand on one node, so only its budget keeps them from going together.
async fn a_drained_node_gives_up_one_pod_at_a_time(installed: &Installed) {
    let kubectl = async |args: &[&str]| {
        let said = installed.cluster.control_plane.kubectl(args).await.unwrap();
        said.ok().unwrap()
    };
    let drained = "kite-node-0";
    for node in ["kite-node-1", "kite-node-2"] {
        kubectl(&["cordon", node]).await;
    }
    installed.restart("kite-service").await.unwrap();
    let nodes = nodes_of(installed, "kite-service").await;
    assert_eq!(nodes, [drained, drained]);
    for node in ["kite-node-1", "kite-node-2"] {
        kubectl(&["uncordon", node]).await;
    }
    let client = installed.cluster.client().await;
    let follow = CONTROLLERS.map(|name| Followed::<Deployment>::start(api(&client), name));
    let followed = join_all(follow).await;

    let began = Instant::now();
    let drain = ["drain", drained, "--ignore-daemonsets", "--timeout=180s"];
    kubectl(&drain).await;
    println!("drained in {:?}", began.elapsed());

    for (name, followed) in CONTROLLERS.into_iter().zip(followed) {
        let elsewhere = async || {
            let nodes = nodes_of(installed, name).await;
            let moved = nodes.len() == pods_of(name) && !nodes.iter().any(|node| node == drained);
            moved.then_some(())
        };
        eventually("pods on other nodes", LONG, elsewhere)
            .await
            .unwrap();
        let wanted = i32::try_from(pods_of(name)).unwrap();
        let whole = |d: &Deployment| available(d) == wanted;
        let last = wait_until(&api(&client), name, LONG, whole).await.unwrap();
        let fewest = followed.end(&last).await.iter().map(available).min();
        println!("{name}: at least {fewest:?} of {wanted} were there");
        assert!(fewest.unwrap() >= wanted - 1, "{name}: {fewest:?}");
    }
    kubectl(&["uncordon", drained]).await;
}

fn available(deployment: &Deployment) -> i32 {
    let status = deployment.status.as_ref();
    status
        .and_then(|s| s.available_replicas)
        .unwrap_or_default()
}
