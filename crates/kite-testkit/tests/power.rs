//! Power that others change, and readiness that tools believe: a machine that
//! was stopped comes back and says why, and a specification that cannot work is
//! Failed in the eyes of the real kstatus until it is mended.

#[path = "power/stay_off.rs"]
mod stay_off;

use std::time::Instant;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kite_api::KiteVirtualMachine;
use kite_api::condition::{ACCEPTED, READY, RESOURCES_APPLIED, STALLED};
use kite_api::machine::{Phase, PowerState};
use kite_kubevirt::{VirtualMachine, VirtualMachineInstance};
use kite_testkit::cluster::shared_cluster;
use kite_testkit::kstatus::Judge;
use kite_testkit::tenant::{LONG, REPAIR, Tenant, condition_of, is_ready, message_of, phase};
use kite_testkit::wait;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};

/// What every note about restored power ends with.
const HOW_TO_STOP: &str = "set spec.powerState: Off";

/// One test at a time, so that none is measured with another's work.
static TURN: Mutex<()> = Mutex::const_new(());

async fn tenant(name: &str) -> (Tenant<'static>, MutexGuard<'static, ()>) {
    let turn = TURN.lock().await;
    let tenant = Tenant::new(shared_cluster().await, name).await;
    tenant.create().await;
    (tenant, turn)
}

fn uid<K: ResourceExt>(object: &K) -> String {
    object.uid().unwrap()
}

/// The guest that runs now.
async fn guest(tenant: &Tenant<'_>) -> VirtualMachineInstance {
    tenant
        .until("web", LONG, |i: &VirtualMachineInstance| {
            i.phase() == "Running"
        })
        .await
}

/// Waits until the machine is Ready with another guest than before, and says how long that took.
async fn on_again(
    tenant: &Tenant<'_>,
    before: &VirtualMachineInstance,
    what: &str,
) -> KiteVirtualMachine {
    let began = Instant::now();
    tenant
        .until("web", LONG, |i: &VirtualMachineInstance| {
            uid(i) != uid(before) && i.phase() == "Running"
        })
        .await;
    let machine = tenant
        .until("web", LONG, |m: &KiteVirtualMachine| {
            is_ready(m) && phase(m) == Some(Phase::Running)
        })
        .await;
    let status = machine.status.as_ref().unwrap();
    assert_eq!(status.current_power_state, Some(PowerState::On));
    println!("{what}: on again after {:?}", began.elapsed());
    machine
}

// V-16, S-2: virtctl stop writes the run strategy; the specification wins, once, and says how to really switch off.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_virtctl_stopped_is_on_again_and_an_event_says_how_to_switch_it_off() {
    let (alice, _turn) = tenant("virtctl").await;
    alice.machine("web", json!({})).await;
    alice.ready("web").await;
    let before = guest(&alice).await;
    let seen = alice.follow::<VirtualMachine>("web").await;
    alice.fault("web", Some("virtctl-stop")).await;
    let note = alice.event("web", "PowerRestored").await;
    println!("PowerRestored: {note}");
    assert!(
        note.contains(HOW_TO_STOP) && note.contains("Halted"),
        "{note}"
    );
    on_again(&alice, &before, "stopped by virtctl").await;
    let vm = alice.api::<VirtualMachine>().get("web").await.unwrap();
    let mut strategies: Vec<_> = seen
        .end(&vm)
        .await
        .iter()
        .map(|vm| vm.run_strategy().unwrap_or_default().to_owned())
        .collect();
    strategies.dedup();
    assert_eq!(
        strategies,
        ["Always", "Halted", "Always"],
        "set back other than once"
    );

    // The other way round: a machine that is off on purpose stays off.
    alice.switch("web", PowerState::Off).await;
    alice
        .edit::<VirtualMachine>("web", json!({"spec": {"runStrategy": "Always"}}))
        .await;
    alice
        .until("web", REPAIR, |vm: &VirtualMachine| {
            vm.run_strategy() == Some("Halted")
        })
        .await;
    let told = |(reason, note): &(String, String)| {
        reason == "PowerRestored" && note.contains("set spec.powerState: On")
    };
    wait::eventually("an event about the start", REPAIR, async || {
        alice.events("web").await.iter().any(told).then_some(())
    })
    .await
    .unwrap();
    alice
        .until("web", LONG, |m: &KiteVirtualMachine| {
            is_ready(m) && phase(m) == Some(Phase::Stopped)
        })
        .await;
}

// V-16: the deletion of a guest is no way to switch a machine off either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_whose_instance_was_deleted_is_on_again_and_an_event_says_why() {
    let (bob, _turn) = tenant("deleted-guest").await;
    bob.machine("web", json!({})).await;
    bob.ready("web").await;
    let before = guest(&bob).await;
    let seen = bob.follow::<KiteVirtualMachine>("web").await;
    bob.api::<VirtualMachineInstance>()
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    let note = bob.event("web", "GuestStopped").await;
    println!("GuestStopped: {note}");
    assert!(
        note.contains("stopped from outside") && note.contains(HOW_TO_STOP),
        "{note}"
    );
    let machine = on_again(&bob, &before, "instance deleted").await;
    never_ready_while_down(&seen.end(&machine).await);
}

// V-16, F-24: a guest that was shut down from inside is not restarted without a word.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_that_shut_itself_down_is_on_again_and_an_event_says_why() {
    let (carol, _turn) = tenant("shutdown").await;
    carol.machine("web", json!({})).await;
    carol.ready("web").await;
    let before = guest(&carol).await;
    let seen = carol.follow::<KiteVirtualMachine>("web").await;
    carol.fault("web", Some("guest-shutdown")).await;
    let note = carol.event("web", "GuestShutDown").await;
    println!("GuestShutDown: {note}");
    assert!(
        note.contains("shut itself down") && note.contains(HOW_TO_STOP),
        "{note}"
    );
    let machine = on_again(&carol, &before, "shut down from inside").await;
    never_ready_while_down(&seen.end(&machine).await);
    let reasons: Vec<_> = carol
        .events("web")
        .await
        .into_iter()
        .map(|e| e.0)
        .filter(|reason| reason.starts_with("Guest"))
        .collect();
    assert_eq!(reasons, ["GuestShutDown"]);
}

/// C-10: the loss of a guest is seen as such, and readiness comes back with the next one.
fn never_ready_while_down(seen: &[KiteVirtualMachine]) {
    let mut ready: Vec<_> = seen.iter().map(is_ready).collect();
    ready.dedup();
    assert_eq!(ready, [true, false, true], "{seen:#?}");
    let reasons: Vec<_> = seen
        .iter()
        .filter_map(|m| condition_of(m, READY))
        .map(|c| c.reason.clone())
        .collect();
    println!("Ready said: {reasons:?}");
}

// C-11: what kubectl waits for is so when it returns, for the generation that was asked about.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_wait_returns_when_the_machine_is_as_asked_and_not_before() {
    let (dave, _turn) = tenant("waiting").await;
    let command = "wait ktvm/web -n waiting --for=condition=Ready --timeout=60s";
    for power in ["On", "Off", "On", "Off"] {
        let began = Instant::now();
        dave.machine("web", json!({"powerState": power})).await;
        let args: Vec<&str> = command.split(' ').collect();
        let said = dave.cluster.control_plane.kubectl(&args).await.unwrap();
        println!("kubectl wait after {power}: {:?}", began.elapsed());
        assert!(said.success, "{said:?}");
        let vm = dave.api::<VirtualMachine>().get("web").await.unwrap();
        let guests = dave.api::<VirtualMachineInstance>();
        let guest = guests.get_opt("web").await.unwrap();
        if power == "On" {
            let runs = guest.is_some_and(|g| g.phase() == "Running");
            assert!(runs && vm.printable_status() == "Running", "{vm:?}");
        } else {
            assert!(guest.is_none(), "it still runs: {guest:?}");
            assert_eq!(vm.run_strategy(), Some("Halted"));
        }
    }
}

// C-9, C-11, V-10: a refused specification reads Failed, and heals.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_specification_is_failed_for_kstatus_until_what_it_needs_is_there() {
    let (erin, _turn) = tenant("refused").await;
    let judge = Judge::start().await.unwrap();
    let seen = erin.follow::<KiteVirtualMachine>("web").await;
    erin.machine("web", json!({"image": "debian-13"})).await;
    let failed = is_failed(&erin, &judge, "web").await;
    println!("kstatus says Failed: {failed}");
    assert!(
        failed.contains("no image debian-13 is published"),
        "{failed}"
    );
    let machine = erin.says("web", ACCEPTED, "ImageNotFound").await;
    assert_eq!(failed, message_of(&machine, STALLED));
    assert_eq!(phase(&machine), Some(Phase::Failed));
    // A machine that is refused and then edited in vain is Failed for its new generation as well.
    erin.machine("web", json!({"image": "debian-13", "cpu": 2}))
        .await;
    is_failed(&erin, &judge, "web").await;

    let began = Instant::now();
    erin.cluster.publish("debian-13").await.unwrap();
    let machine = erin.ready("web").await;
    println!(
        "Current {:?} after the image was published",
        began.elapsed()
    );
    let answers = judged(&judge, &seen.end(&machine).await);
    assert_eq!(
        answers,
        [
            "InProgress",
            "Failed",
            "InProgress",
            "Failed",
            "InProgress",
            "Current"
        ]
    );
}

// C-11, C-17: an object that is older than a rule is told what the rule would have told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_older_than_a_rule_is_failed_with_the_words_of_the_rule_and_heals_when_mended() {
    let (frank, _turn) = tenant("older").await;
    let judge = Judge::start().await.unwrap();
    let wrong = [
        ("small", json!({"memory": "1Mi"})),
        ("root", json!({"loginUser": "root"})),
    ];
    let mut refusals = Vec::new();
    for (name, spec) in &wrong {
        refusals.push(refusal(&frank, name, spec).await.unwrap());
    }

    let strict = crd(&frank).await;
    without_rules(&frank, &strict).await;
    for (name, spec) in &wrong {
        // The server takes a moment to forget a rule.
        let stored = async || frank.try_machine(name, spec.clone()).await.ok();
        wait::eventually("the looser schema", LONG, stored)
            .await
            .unwrap();
    }
    replace_schema(&frank, &strict).await;
    let strict_again = async || refusal(&frank, "other", &wrong[0].1).await;
    wait::eventually("the strict schema", LONG, strict_again)
        .await
        .unwrap();

    for ((name, _), refusal) in wrong.iter().zip(&refusals) {
        let failed = is_failed(&frank, &judge, name).await;
        println!("API server: {refusal}\nkstatus says Failed: {failed}");
        // A platform may be stricter than the rule, in the amount and not in the words.
        let words = failed.trim_start_matches("spec.");
        let words = words.split("and 256Gi").next().unwrap();
        assert!(refusal.contains(words), "{refusal:?} and {words:?} differ");
        let machine = frank.says(name, ACCEPTED, "InvalidSpec").await;
        assert_eq!(failed, message_of(&machine, STALLED));
        assert_eq!(failed, message_of(&machine, READY));
        assert_eq!(failed, message_of(&machine, RESOURCES_APPLIED));
    }
    let children = frank
        .api::<VirtualMachine>()
        .list(&ListParams::default())
        .await;
    assert!(children.unwrap().items.is_empty());

    // Watches that are older than a change of the schema are cut, and miss what is between.
    let seen = frank.follow::<KiteVirtualMachine>("small").await;
    is_failed(&frank, &judge, "small").await;
    frank.machine("small", json!({})).await;
    let machine = frank.ready("small").await;
    let answers = judged(&judge, &seen.end(&machine).await);
    assert_eq!(answers, ["Failed", "InProgress", "Current"]);
    // A user name cannot be mended, and is no reason to refuse what has nothing to do with it.
    let off = json!({"spec": {"powerState": "Off"}});
    frank.edit::<KiteVirtualMachine>("root", off).await;
    let going = json!({"spec": {"delete": true}});
    frank.edit::<KiteVirtualMachine>("root", going).await;
    frank.machine_gone("root").await;
}

/// Waits until kstatus says Failed for the present generation, and returns its message.
async fn is_failed(tenant: &Tenant<'_>, judge: &Judge, name: &str) -> String {
    let machine = tenant
        .until(name, LONG, |m: &KiteVirtualMachine| {
            judge.status_of(m).unwrap().status == "Failed"
        })
        .await;
    let status = machine.status.as_ref().unwrap();
    assert_eq!(status.observed_generation, machine.metadata.generation);
    judge.status_of(&machine).unwrap().message
}

/// What kstatus said over a life, each answer once; a machine is Current only when it is ready.
fn judged(judge: &Judge, seen: &[KiteVirtualMachine]) -> Vec<String> {
    let mut answers = Vec::new();
    for machine in seen {
        let answer = judge.status_of(machine).unwrap();
        assert_eq!(
            answer.status == "Current",
            is_ready(machine),
            "{machine:#?}"
        );
        answers.push(answer.status);
    }
    answers.dedup();
    answers
}

/// The server's words when it refuses a machine; nothing when it would take it.
async fn refusal(tenant: &Tenant<'_>, name: &str, spec: &Value) -> Option<String> {
    match tenant.dry_run(name, spec.clone()).await {
        Err(kube::Error::Api(status)) if status.code == 422 => Some(status.message.clone()),
        Err(error) => panic!("{error}"),
        Ok(_) => None,
    }
}

async fn crd(tenant: &Tenant<'_>) -> Value {
    let crds: Api<CustomResourceDefinition> = Api::all(tenant.client.clone());
    let crd = crds.get("kitevirtualmachines.kite.dev").await.unwrap();
    serde_json::to_value(crd).unwrap()
}

/// The schema as it was before there were rules on the specification and its fields.
async fn without_rules(tenant: &Tenant<'_>, strict: &Value) {
    let mut loose = strict.clone();
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    let spec = loose.pointer_mut(schema).unwrap().as_object_mut().unwrap();
    let rules = spec.remove("x-kubernetes-validations").unwrap();
    assert!(!rules.as_array().unwrap().is_empty());
    let fields = spec["properties"].as_object_mut().unwrap().values_mut();
    let with_rules = fields.filter_map(|f| f.as_object_mut()?.remove("x-kubernetes-validations"));
    assert!(with_rules.count() >= 3);
    replace_schema(tenant, &loose).await;
}

async fn replace_schema(tenant: &Tenant<'_>, crd: &Value) {
    let crds: Api<CustomResourceDefinition> = Api::all(tenant.client.clone());
    let versions =
        json!([{"op": "replace", "path": "/spec/versions", "value": crd["spec"]["versions"]}]);
    let patch = Patch::Json::<()>(serde_json::from_value(versions).unwrap());
    crds.patch(
        "kitevirtualmachines.kite.dev",
        &PatchParams::default(),
        &patch,
    )
    .await
    .unwrap();
}
