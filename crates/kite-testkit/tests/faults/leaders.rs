//! Leaders that are cut off, frozen or told to stop, and what they still write.

use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use kite_api::KiteVirtualMachine;
use kite_testkit::fault_layer::{Act, Answer, FaultLayer, Link, Match, Seen};
use kite_testkit::install::SYSTEM_NAMESPACE;
use kite_testkit::tenant::{LONG, Tenant};
use kite_testkit::wait;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use crate::stage::{SHORT_LEASE, Stage, is_applied, runs};

const LEASE: Duration = Duration::from_secs(3);
const DEADLINE: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_millis(500);
const LEASES: &str = "coordination.k8s.io/leases";
/// The longest time from SIGTERM to the exit.
const STOPPED: Duration = Duration::from_secs(25);

fn leases(stage: &Stage) -> Api<Lease> {
    Api::namespaced(stage.client.clone(), SYSTEM_NAMESPACE)
}

async fn holder_is(stage: &Stage, holder: &'static str) -> Lease {
    let held = move |lease: &Lease| {
        let spec = lease.spec.as_ref();
        spec.and_then(|s| s.holder_identity.as_deref()) == Some(holder)
    };
    wait::wait_until(&leases(stage), "kite-vm", LONG, held)
        .await
        .unwrap()
}

/// The last renewal that the server took, by when it was sent; the layer's start before the first.
fn last_renewal(layer: &FaultLayer) -> Duration {
    let is_renewal = |s: &&Seen| {
        let taken = matches!(s.code, Some(200 | 201));
        s.asked.resource == LEASES && s.asked.is_write() && taken
    };
    let seen = layer.seen();
    let last = seen.iter().rev().find(is_renewal);
    last.map(|s| s.at).unwrap_or_default()
}

/// Writes that reached the server later than a moment.
fn writes_after(layer: &FaultLayer, moment: Duration) -> Vec<Seen> {
    let late = |s: &Seen| s.at > moment && s.code.is_some();
    layer.writes().into_iter().filter(late).collect()
}

/// Changes a machine again and again, so that there always is something to write.
async fn keeps_changing(tenant: &Tenant<'_>, until: Instant) {
    let mut on = false;
    while Instant::now() < until {
        let state = if on { "On" } else { "Off" };
        let patch = json!({"spec": {"powerState": state}});
        tenant.edit::<KiteVirtualMachine>("web", patch).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        on = !on;
    }
    let patch = json!({"spec": {"powerState": "On"}});
    tenant.edit::<KiteVirtualMachine>("web", patch).await;
}

async fn ended_badly(layer: &FaultLayer) {
    let status = layer.process().process().wait(LONG).await;
    let status = status.expect("it ends by itself");
    assert!(!status.success() && status.code().is_some(), "{status:?}");
}

// LE1, O7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_cannot_renew_stops_writing_at_its_deadline_and_another_goes_on() {
    let stage = Stage::new(&["kite-vm"], &SHORT_LEASE).await;
    let tenant = stage.tenant("cut-off").await;
    let layer = stage.layer("kite-vm");
    tenant.machine("web", json!({})).await;
    runs(&tenant, "web").await;
    let second = stage.cluster.run("kite-vm", "kite-vm-second", &SHORT_LEASE);
    second.await.unwrap();

    // Only the Lease is out of reach, so work would go on if nothing stopped it.
    layer.on(Match::leases()).then(Act::Withhold);
    let until = Instant::now() + LEASE + RETRY;
    tokio::join!(keeps_changing(&tenant, until), ended_badly(layer), async {
        holder_is(&stage, "kite-vm-second").await;
    });
    let last = last_renewal(layer);
    let late = writes_after(layer, last + DEADLINE);
    assert!(late.is_empty(), "{late:#?}");
    tenant.until("web", LONG, is_applied).await;

    // Cut off as a whole, it ends too.
    let second = stage.cluster.take("kite-vm-second");
    let stopped = second.terminate(STOPPED).await;
    assert!(stopped.is_some_and(|s| s.success()), "{stopped:?}");
    layer.end_rules();
    stage.start("kite-vm").await;
    holder_is(&stage, "kite-vm").await;
    layer.link(Link::Silent);
    ended_badly(layer).await;
    layer.link(Link::Up);
}

// LE2, O7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_was_frozen_in_a_pass_writes_nothing_more_when_it_wakes() {
    let stage = Stage::new(&["kite-vm"], &SHORT_LEASE).await;
    let tenant = stage.tenant("frozen").await;
    let layer = stage.layer("kite-vm");
    let disk = Match::writes().of("cdi.kubevirt.io/datavolumes");
    let held = layer.on(disk.nth(1)).then(Act::HoldBefore);
    tenant.machine("web", json!({})).await;
    held.hit(1, LONG).await.unwrap();
    layer.process().pause().unwrap();
    let second = stage.cluster.run("kite-vm", "kite-vm-second", &SHORT_LEASE);
    second.await.unwrap();
    holder_is(&stage, "kite-vm-second").await;
    runs(&tenant, "web").await;
    tokio::time::sleep(2 * LEASE).await;

    // The one write that was under way lands, and is refused: the successor has made the disk.
    assert_eq!(held.deliver().await, [Some(409)]);
    let woken = layer.now();
    layer.process().resume().unwrap();
    ended_badly(layer).await;
    let late = writes_after(layer, woken);
    assert!(late.is_empty(), "{late:#?}");
    runs(&tenant, "web").await;
    drop(stage.cluster.take("kite-vm-second"));
}

// LE4, LE5, LE6, LE7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_keeps_its_lease_through_lost_answers_and_gives_way_to_another_name() {
    let stage = Stage::new(&["kite-vm"], &SHORT_LEASE).await;
    let layer = stage.layer("kite-vm");
    let leads_on = async || {
        let since = layer.now();
        let renewed = async || (last_renewal(layer) > since).then_some(());
        wait::eventually("a renewal", LONG, renewed).await.unwrap();
        assert_eq!(layer.process().process().exited(), None);
    };
    leads_on().await;
    let renewal = || Match::leases().verb("update").nth(1);
    let lost = layer.on(renewal()).then(Act::LoseReply);
    lost.hit(1, LONG).await.unwrap();
    leads_on().await;
    for code in [409, 500] {
        let refused = layer.on(renewal()).then(Act::Answer(Answer::refusal(code)));
        refused.hit(1, LONG).await.unwrap();
        leads_on().await;
    }
    let leases = leases(&stage);
    leases
        .delete("kite-vm", &DeleteParams::default())
        .await
        .unwrap();
    leads_on().await;
    holder_is(&stage, "kite-vm").await;

    let other = json!({"spec": {"holderIdentity": "somebody"}});
    leases
        .patch("kite-vm", &PatchParams::default(), &Patch::Merge(&other))
        .await
        .unwrap();
    let moment = layer.now();
    ended_badly(layer).await;
    assert!(last_renewal(layer) <= moment);
    // It is not a replica that would come back; the next scenario needs the Lease.
    leases
        .delete("kite-vm", &DeleteParams::default())
        .await
        .unwrap();
}

// LE9
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_is_told_to_stop_finishes_its_pass_and_then_gives_the_lease_back() {
    let stage = Stage::new(&["kite-vm"], &[]).await;
    let tenant = stage.tenant("stopping").await;
    let layer = stage.layer("kite-vm");
    let disk = Match::writes().of("cdi.kubevirt.io/datavolumes");
    let held = layer.on(disk.nth(1)).then(Act::HoldBefore);
    tenant.machine("web", json!({})).await;
    held.hit(1, LONG).await.unwrap();
    let process = layer.process();
    let (status, ()) = tokio::join!(process.terminate(STOPPED), async {
        // It has the signal, and still waits for its pass.
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(process.process().exited(), None);
        holder_is(&stage, "kite-vm").await;
        assert_eq!(held.deliver().await, [Some(201)]);
    });
    assert!(status.is_some_and(|s| s.success()), "{status:?}");
    let last_write = layer.writes().last().map(|w| w.at).unwrap();
    assert!(last_renewal(layer) > last_write);
    holder_is(&stage, "").await;
    stage.start("kite-vm").await;
    runs(&tenant, "web").await;

    // During the first lists.
    let hangs = Match::lists("kubevirt.io/virtualmachines");
    let hangs = layer.on(hangs).then(Act::Withhold);
    stage.start_unready("kite-vm").await;
    let since = layer.now();
    let listing = async || {
        let seen = layer.seen();
        let mut lists = seen.iter().filter(|s| s.at >= since);
        lists
            .any(|s| s.asked.resource == "kubevirt.io/virtualmachines")
            .then_some(())
    };
    wait::eventually("the first list", LONG, listing)
        .await
        .unwrap();
    let status = layer.process().terminate(STOPPED).await;
    assert!(status.is_some_and(|s| s.success()), "{status:?}");
    holder_is(&stage, "").await;
    hangs.end();
}
