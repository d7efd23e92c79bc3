//! A server that is away, refuses, has not time, or lacks a kind.

use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use kite_api::KiteVirtualMachine;
use kite_api::condition::{ACCEPTED, DEPENDENCY_MISSING, RESOURCES_APPLIED};
use kite_kubevirt::VirtualMachine;
use kite_testkit::cluster::CONTROLLERS;
use kite_testkit::fault_layer::{Act, Answer, Match};
use kite_testkit::tenant::{LONG, condition_of, message_of};
use kite_testkit::wait;
use kube::Api;
use serde_json::json;

use crate::stage::{SHORT_LEASE, Stage, asked, runs};

const VMS: &str = "kubevirt.io/virtualmachines";

/// A leader that outlives a restart of the API server on a busy machine.
const LONG_LEASE: [&str; 4] = [
    "--lease-duration=120s",
    "--renew-interval=2s",
    "--renew-deadline=100s",
    "--retry-interval=1s",
];

// AP1, C-5
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_of_the_api_server_is_outlived_without_a_storm() {
    let stage = Stage::new(&CONTROLLERS, &LONG_LEASE).await;
    let tenant = stage.tenant("restarted").await;
    tenant.machine("web", json!({})).await;
    tenant.ready("web").await;
    let pids = CONTROLLERS.map(|c| stage.layer(c).process().process().pid());
    let start = CONTROLLERS.map(|c| stage.layer(c).now());
    let plane = &stage.cluster.control_plane;
    plane.stop_apiserver().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    plane.start_apiserver().await.unwrap();

    let off = json!({"spec": {"powerState": "Off"}});
    let patched = async || {
        let machines: Api<KiteVirtualMachine> = tenant.api();
        let how = kube::api::PatchParams::default();
        machines
            .patch("web", &how, &kube::api::Patch::Merge(&off))
            .await
            .ok()
    };
    wait::eventually("the server to be back", LONG, patched)
        .await
        .unwrap();
    tenant.ready("web").await;
    for (controller, (pid, start)) in CONTROLLERS.into_iter().zip(pids.into_iter().zip(start)) {
        let layer = stage.layer(controller);
        let process = layer.process();
        assert_eq!(process.process().exited(), None, "{controller} ended");
        assert_eq!(process.process().pid(), pid);
        let seen: Vec<_> = layer.seen().into_iter().filter(|s| s.at >= start).collect();
        let lists = seen.iter().filter(|s| s.asked.verb == "list");
        let (all, lists) = (seen.len(), lists.count());
        println!("{controller}: {all} requests, of them {lists} lists, over the restart");
        // A watch goes on from where it was; each tries a few times while the server is away.
        assert!(all <= 250, "{controller} sent {all} requests");
    }
}

// AP3, C-12
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_says_when_to_come_back_is_not_asked_before() {
    // A request may take less than twice the time that the server names.
    let stage = Stage::new(&["kite-vm"], &["--request-timeout=5s"]).await;
    let tenant = stage.tenant("busy").await;
    let layer = stage.layer("kite-vm");
    let busy = Match::writes().within(&tenant.name);
    let busy = layer.on(busy).then(Act::Answer(Answer::too_many(4)));
    tenant.machine("web", json!({})).await;
    busy.hit(3, LONG).await.unwrap();
    busy.end();
    let refused: Vec<_> = layer
        .writes()
        .into_iter()
        .filter(|w| w.fault.is_some())
        .map(|w| w.at)
        .collect();
    println!("refused at {refused:.1?}");
    for pair in refused.windows(2) {
        let waited = pair[1].saturating_sub(pair[0]);
        assert!(waited >= Duration::from_millis(3200), "{refused:?}");
    }
    runs(&tenant, "web").await;
}

// AP6, C-20
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_right_that_is_missing_is_named_and_stops_nothing_else() {
    let stage = Stage::new(&["kite-vm"], &[]).await;
    let tenant = stage.tenant("forbidden").await;
    let layer = stage.layer("kite-vm");
    let forbidden = |what: &str| {
        let message = format!(
            "{what} is forbidden: User \"system:serviceaccount:kite-system:kite-vm\" cannot do this"
        );
        Act::Answer(Answer::status(403, "Forbidden", &message))
    };
    let writes = Match::writes().of("services");
    let writes = layer.on(writes).then(forbidden("services \"web\""));
    tenant.machine("web", json!({})).await;
    let up = |vm: &VirtualMachine| vm.printable_status() == "Running";
    tenant.until("web", LONG, up).await;
    let machine = tenant.says("web", RESOURCES_APPLIED, "Forbidden").await;
    let message = message_of(&machine, RESOURCES_APPLIED);
    println!("{message}");
    assert!(message.contains("Service web") && message.contains("cannot"));
    writes.end();
    // It would be tried again within a minute; a change of the machine is a reason to look at once.
    let more = json!({"spec": {"memory": "2Gi"}});
    tenant.edit::<KiteVirtualMachine>("web", more).await;
    runs(&tenant, "web").await;

    // A watch that is refused while the process runs is named, and the others go on.
    let all = |a: &kite_testkit::fault_layer::Asked| a.resource == "services";
    let reads = Match::any().when(move |a| all(a) && !a.is_write());
    let reads = layer.on(reads).then(forbidden("services"));
    layer.watches("services").gone();
    reads.hit(1, LONG).await.unwrap();
    let named = async || {
        let (_, text) = layer.process().get("/readyz?verbose").await.ok()?;
        let line = text.lines().find(|l| l.contains("watch Service"))?;
        line.contains("forbidden").then(|| line.to_owned())
    };
    let named = wait::eventually("the kind to be named", LONG, named).await;
    println!("{}", named.unwrap());
    tenant.machine("second", json!({})).await;
    runs(&tenant, "second").await;
    reads.end();
    let services: Api<Service> = tenant.api();
    services
        .delete("web", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    tenant.until("web", LONG, |_: &Service| true).await;
}

// AP5, AP9
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_answers_and_a_token_that_is_not_known_yet_cost_neither_leadership_nor_life() {
    let stage = Stage::new(&["kite-vm", "kite-vm-status"], &SHORT_LEASE).await;
    let tenant = stage.tenant("slow").await;
    let slow: Vec<_> = ["kite-vm", "kite-vm-status"]
        .map(|c| {
            let all = Match::any().when(|a| a.verb != "watch");
            stage
                .layer(c)
                .on(all)
                .then(Act::Delay(Duration::from_secs(1)))
        })
        .into();
    let names: Vec<String> = (0..10).map(|i| format!("m{i}")).collect();
    for name in &names {
        tenant.machine(name, json!({"powerState": "Off"})).await;
    }
    for name in &names {
        tenant.ready(name).await;
    }
    slow.iter().for_each(kite_testkit::fault_layer::Rule::end);
    let unknown = stage
        .layer("kite-vm")
        .on(Match::any())
        .then(Act::Answer(Answer::refusal(401)));
    let on = json!({"spec": {"powerState": "On"}});
    tenant.edit::<KiteVirtualMachine>("m0", on).await;
    unknown.hit(2, LONG).await.unwrap();
    unknown.end();
    tenant.ready("m0").await;
    for controller in ["kite-vm", "kite-vm-status"] {
        let process = stage.layer(controller).process();
        assert_eq!(process.process().exited(), None, "{controller} ended");
        let metrics = process.metrics().await.unwrap();
        let leads = metrics.sum("leader_election_master_status", &[]);
        assert!(leads > 0.5, "{controller} does not lead");
    }
}

// DE5, DE2, C-14
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_one_of_the_two_dependencies_missing_the_right_one_is_named() {
    for (group, word) in [
        ("cdi.kubevirt.io/", "CDI"),
        ("kubevirt.io/", "VirtualMachine"),
    ] {
        let stage = Stage::new(&["kite-vm"], &[]).await;
        let tenant = stage.tenant(&format!("no-{}", word.to_lowercase())).await;
        let layer = stage.layer("kite-vm");
        let missing = Match::any().when(move |a| a.resource.starts_with(group));
        let missing = layer.on(missing).then(Act::Answer(Answer::refusal(404)));
        stage.start("kite-vm").await;
        tenant.machine("web", json!({})).await;
        let says_so = |m: &KiteVirtualMachine| {
            [ACCEPTED, RESOURCES_APPLIED].iter().any(|type_| {
                condition_of(m, type_).is_some_and(|c| {
                    c.reason == DEPENDENCY_MISSING
                        && c.message.contains(word)
                        && c.message.contains("does not serve")
                })
            })
        };
        let machine = tenant.until("web", LONG, says_so).await;
        println!("{:?}", message_of(&machine, RESOURCES_APPLIED));
        missing.end();
        runs(&tenant, "web").await;
        assert!(!asked(layer, "patch", VMS, Duration::ZERO).is_empty());
    }
}
