//! Writes that fail, are lost, come late or meet a change by somebody else.

use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use kite_api::KiteVirtualMachine;
use kite_api::labels::{VM_FINALIZER, VM_UID};
use kite_kubevirt::VirtualMachine;
use kite_testkit::fault_layer::{Act, Answer, Asked, Match};
use kite_testkit::tenant::{LONG, Tenant};
use kite_testkit::wait;
use kube::core::PartialObjectMeta;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use crate::stage::{Stage, asked, runs};

const MACHINES: &str = "kite.dev/kitevirtualmachines";
const DISKS: &str = "cdi.kubevirt.io/datavolumes";

fn about(name: &'static str) -> impl Fn(&Asked) -> bool {
    move |asked| asked.name == name || asked.name.starts_with(&format!("{name}-"))
}

// AP4, AP7, AP8, CR7, C-12
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_that_go_wrong_in_every_way_are_made_good_and_nothing_is_made_twice() {
    let stage = Stage::new(&["kite-vm", "kite-vm-status"], &[]).await;
    let tenant = stage.tenant("wrong-writes").await;
    let ways = [
        ("lost", Act::LoseReply),
        ("late", Act::AnswerAfterApplied(Answer::refusal(504))),
        ("dropped", Act::Drop),
        ("cut", Act::Truncate),
        ("odd", Act::Answer(Answer::wrong_kind())),
        ("conflict", Act::Answer(Answer::refusal(409))),
        ("busy", Act::Answer(Answer::too_many(1))),
        ("broken", Act::Answer(Answer::refusal(500))),
        ("down", Act::Answer(Answer::refusal(503))),
        ("twice", Act::Duplicate),
    ];
    let mut rules = Vec::new();
    for (name, act) in &ways {
        for controller in ["kite-vm", "kite-vm-status"] {
            let writes = Match::writes().percent(30).when(about(name));
            let rule = stage.layer(controller).on(writes).then(act.clone());
            rules.push((*name, controller, rule));
        }
    }
    let mark = stage.mark().await;
    for (name, _) in &ways {
        tenant.machine(name, json!({})).await;
    }
    for (name, _) in &ways {
        tenant.ready(name).await;
    }
    let made = stage.made(&tenant.name, mark).await;
    let again: Vec<_> = made.iter().filter(|(_, times)| **times != 1).collect();
    assert!(again.is_empty(), "{again:?}");
    assert_eq!(made.len(), ways.len() * 5, "{made:#?}");

    let mark = stage.mark().await;
    for (name, _) in &ways {
        let delete = json!({"spec": {"delete": true}});
        tenant.edit::<KiteVirtualMachine>(name, delete).await;
    }
    for (name, _) in &ways {
        tenant.machine_gone(name).await;
    }
    let made = stage.made(&tenant.name, mark).await;
    assert!(made.keys().all(|k| k.starts_with("deleted")), "{made:#?}");
    for (name, controller, rule) in &rules {
        println!("{name}: {} writes of {controller} went wrong", rule.hits());
        assert!(rule.hits() > 0 || *controller != "kite-vm", "{name}");
    }
    for controller in ["kite-vm", "kite-vm-status"] {
        let lives = stage.layer(controller).process().process().exited();
        assert_eq!(lives, None, "{controller} ended");
    }
}

// CR9, CR10, F-13, V-2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn finalizers_that_others_add_or_move_while_kite_writes_are_never_lost() {
    let stage = Stage::new(&["kite-vm"], &[]).await;
    let tenant = stage.tenant("finalizers").await;
    let machines: Api<KiteVirtualMachine> = tenant.api();
    let first = |finalizers: Value| {
        let machines = machines.clone();
        Act::first(move || {
            let (machines, finalizers) = (machines.clone(), finalizers.clone());
            async move { set_finalizers(&machines, finalizers).await }
        })
    };
    let patches = || Match::any().verb("patch").of(MACHINES).part("").nth(1);
    let layer = stage.layer("kite-vm");

    // Somebody else's comes between Kite's look and its own.
    let adds = layer
        .on(patches())
        .then(first(json!(["example.org/early"])));
    tenant.machine("web", json!({})).await;
    let machine = runs(&tenant, "web").await;
    assert_eq!(adds.hits(), 1);
    assert_eq!(machine.finalizers(), ["example.org/early", VM_FINALIZER]);

    // One more comes while Kite takes the children away, and the order changes at the last moment.
    let cleans = Match::any().verb("delete").of(DISKS).nth(1);
    let added = json!([VM_FINALIZER, "example.org/early", "example.org/late"]);
    let cleans = layer.on(cleans).then(first(added));
    let order = json!(["example.org/late", "example.org/early", VM_FINALIZER]);
    let moves = layer.on(patches()).then(first(order));
    let delete = json!({"spec": {"delete": true}});
    tenant.edit::<KiteVirtualMachine>("web", delete).await;
    let left = |m: &KiteVirtualMachine| !m.finalizers().iter().any(|f| f == VM_FINALIZER);
    let machine = tenant.until("web", LONG, left).await;
    assert_eq!((cleans.hits(), moves.hits()), (1, 1));
    assert_eq!(
        machine.finalizers(),
        ["example.org/late", "example.org/early"]
    );
    assert_eq!(
        tenant
            .api::<VirtualMachine>()
            .get_opt("web")
            .await
            .unwrap()
            .map(|v| v.name_any()),
        None
    );
    set_finalizers(&machines, json!([])).await;
    tenant.machine_gone("web").await;
}

async fn set_finalizers(machines: &Api<KiteVirtualMachine>, finalizers: Value) {
    let patch = json!({"metadata": {"finalizers": finalizers}});
    let patch = kube::api::Patch::Merge(&patch);
    let how = kube::api::PatchParams::default();
    machines.patch("web", &how, &patch).await.unwrap();
}

// CR12, C-12, F-27
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_is_never_answered_is_given_up_and_holds_up_no_other_machine() {
    let stage = Stage::new(&["kite-vm"], &["--request-timeout=2s"]).await;
    let tenant = stage.tenant("unanswered").await;
    let layer = stage.layer("kite-vm");
    let start = layer.now();
    let stuck = Match::writes().of("services").named("stuck");
    let stuck = layer.on(stuck).then(Act::Withhold);
    for name in ["stuck", "other"] {
        tenant.machine(name, json!({})).await;
    }
    runs(&tenant, "other").await;
    let tries = async || {
        let tries = asked(layer, "patch", "services", start);
        let own: Vec<_> = tries.iter().filter(|s| s.asked.name == "stuck").collect();
        (own.len() >= 3).then(|| own.iter().map(|s| s.at).collect::<Vec<_>>())
    };
    let tries = wait::eventually("three tries", LONG, tries).await.unwrap();
    for pair in tries.windows(2) {
        // Two seconds by the process's clock; the layer sees both ends a moment late.
        let waited = pair[1].saturating_sub(pair[0]);
        assert!(waited >= Duration::from_millis(1800), "{tries:?}");
    }
    let services: Api<Service> = tenant.api();
    assert!(services.get_opt("stuck").await.unwrap().is_none());
    stuck.end();
    runs(&tenant, "stuck").await;
}

// CR5, V-22
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_dead_process_sent_for_a_machine_that_is_gone_never_becomes_part_of_the_next() {
    let stage = Stage::new(&["kite-vm"], &[]).await;
    let tenant = stage.tenant("late-writes").await;
    let layer = stage.layer("kite-vm");
    let disk = || Match::writes().of(DISKS).named("web").nth(1);
    let late = layer.on(disk()).then(Act::HoldBefore);
    tenant.machine("web", json!({"disk": "3Gi"})).await;
    late.hit(1, LONG).await.unwrap();
    stage.start("kite-vm").await;
    let before = runs(&tenant, "web").await;
    let delete = json!({"spec": {"delete": true}});
    tenant.edit::<KiteVirtualMachine>("web", delete).await;
    tenant.machine_gone("web").await;

    // The disk of the first machine comes just before that of the second is asked for.
    let next = layer.on(disk()).then(Act::HoldBefore);
    tenant.machine("web", json!({"disk": "2Gi"})).await;
    next.hit(1, LONG).await.unwrap();
    assert_eq!(late.deliver().await, [Some(201)]);
    assert_eq!(next.deliver().await, [Some(409)]);
    let machine = runs(&tenant, "web").await;
    assert_ne!(machine.uid(), before.uid());
    let disk = the_disk(&tenant).await;
    assert_eq!(disk.annotations().get(VM_UID), machine.uid().as_ref());
    let claims: Api<k8s_openapi::api::core::v1::PersistentVolumeClaim> = tenant.api();
    let claim = claims.get("web").await.unwrap();
    let size = &claim.spec.unwrap().resources.unwrap().requests.unwrap()["storage"];
    println!("the second machine's claim asks for {}", size.0);
    assert!(size.0.starts_with('2'), "{}", size.0);
}

async fn the_disk(tenant: &Tenant<'_>) -> PartialObjectMeta<kite_kubevirt::DataVolume> {
    let disks: Api<kite_kubevirt::DataVolume> = tenant.api();
    disks.get_metadata("web").await.unwrap()
}
