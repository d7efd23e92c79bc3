//! What the watches show late, not at all, twice, or merged.

use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Service;
use kite_api::KiteVirtualMachine;
use kite_api::condition::{NAME_CONFLICT, RESOURCES_APPLIED};
use kite_api::machine::Phase;
use kite_kubevirt::VirtualMachine;
use kite_testkit::fault_layer::{Act, Answer, EventAct, EventMatch, FaultLayer, Match};
use kite_testkit::tenant::{LONG, is_ready, message_of, phase};
use kite_testkit::{install, wait};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::stage::{Stage, asked, is_applied, runs};

const MACHINES: &str = "kite.dev/kitevirtualmachines";
const VMS: &str = "kubevirt.io/virtualmachines";
const VMIS: &str = "kubevirt.io/virtualmachineinstances";
const DISKS: &str = "cdi.kubevirt.io/datavolumes";

/// Long enough for a process that would do something wrong to do it.
const WATCHED: Duration = Duration::from_secs(3);

// ST3, V-18
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn machines_that_are_deleted_while_the_controller_is_down_leave_nothing() {
    let stage = Stage::new(&["kite-vm"], &[]).await;
    let tenant = stage.tenant("down").await;
    let layer = stage.layer("kite-vm");
    let machines: Api<KiteVirtualMachine> = tenant.api();
    tenant.machine("whole", json!({})).await;
    runs(&tenant, "whole").await;
    // One is half made: its disk and Secrets are there, and its VirtualMachine is not.
    let half = Match::writes().of(VMS).named("half");
    let half = layer.on(half).then(Act::HoldBefore);
    tenant.machine("half", json!({})).await;
    half.hit(1, LONG).await.unwrap();
    half.end();
    layer.kill();

    tenant.machine("unseen", json!({})).await;
    for name in ["whole", "half", "unseen"] {
        machines
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
    }
    stage.start("kite-vm").await;
    for name in ["whole", "half", "unseen"] {
        tenant.machine_gone(name).await;
    }
    let services: Api<Service> = tenant.api();
    let vms: Api<VirtualMachine> = tenant.api();
    let disks: Api<kite_kubevirt::DataVolume> = tenant.api();
    let secrets: Api<k8s_openapi::api::core::v1::Secret> = tenant.api();
    let all = ListParams::default();
    // What has an owner goes by the garbage collector, a moment later.
    let nothing = async || {
        let left = services.list_metadata(&all).await.unwrap().items.len()
            + vms.list_metadata(&all).await.unwrap().items.len()
            + disks.list_metadata(&all).await.unwrap().items.len()
            + secrets.list_metadata(&all).await.unwrap().items.len();
        (left == 0).then_some(())
    };
    wait::eventually("nothing to be left", LONG, nothing)
        .await
        .unwrap();
}

// ST4, ST9, C-7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_comes_back_under_another_uid_is_another_object() {
    let stage = Stage::new(&["kite-vm"], &[]).await;
    let tenant = stage.tenant("successor").await;
    let services = stage.layer("kite-vm").watches("services");
    tenant.machine("web", json!({})).await;
    runs(&tenant, "web").await;
    let api: Api<Service> = tenant.api();
    let own = api.get("web").await.unwrap();

    // Between two looks it goes, and one of somebody else's comes that looks like it.
    services.freeze();
    let gone = EventMatch {
        type_: "DELETED",
        namespace: tenant.name.clone(),
        times: 1,
        ..EventMatch::default()
    };
    services.events(gone, EventAct::Swallow);
    api.delete("web", &DeleteParams::default()).await.unwrap();
    let theirs = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "namespace": tenant.name, "labels": own.labels()},
        "spec": {"ports": [{"port": 80}]},
    });
    install::apply(&stage.client, &theirs.to_string())
        .await
        .unwrap();
    let theirs = api.get("web").await.unwrap();
    services.thaw();
    let machine = tenant.says("web", RESOURCES_APPLIED, NAME_CONFLICT).await;
    assert!(message_of(&machine, RESOURCES_APPLIED).contains("Service web"));
    assert_eq!(services.hits(), 1);
    assert_eq!(api.get("web").await.unwrap(), theirs);

    api.delete("web", &DeleteParams::default()).await.unwrap();
    runs(&tenant, "web").await;
    let own = api.get("web").await.unwrap();
    assert_ne!(own.uid(), theirs.uid());
}

// ST5, C-9
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_wishes_that_were_merged_the_last_one_counts_and_no_generation_is_lost() {
    let stage = Stage::new(&["kite-vm", "kite-vm-status"], &[]).await;
    let tenant = stage.tenant("merged").await;
    let machines = || stage.layer("kite-vm").watches(MACHINES);
    tenant.machine("web", json!({})).await;
    tenant.ready("web").await;
    let vms: Api<VirtualMachine> = tenant.api();
    let power = async |state: &str| {
        let patch = json!({"spec": {"powerState": state}});
        tenant.edit::<KiteVirtualMachine>("web", patch).await
    };
    let ends = [("On", Phase::Running), ("Off", Phase::Stopped)];
    for (last, end) in ends {
        let before = vms.get("web").await.unwrap();
        machines().freeze();
        // On, off, on; and the second time off, on, off.
        let other = if last == "On" { "Off" } else { "On" };
        for state in [last, other, last] {
            power(state).await;
        }
        // What was kept back is lost, and a list shows the last of it alone.
        machines().gone();
        machines().thaw();
        let done = |m: &KiteVirtualMachine| is_ready(m) && phase(m) == Some(end);
        let machine = tenant.until("web", LONG, done).await;
        let observed = machine.status.as_ref().unwrap().observed_generation;
        assert_eq!(observed, machine.metadata.generation);
        if last == "On" {
            let after = vms.get("web").await.unwrap();
            assert_eq!(before.metadata.generation, after.metadata.generation);
        }
    }
}

// ST8, C-12
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_that_is_too_old_lists_once_each_time_and_goes_on() {
    let stage = Stage::new(&["kite-vm"], &[]).await;
    let tenant = stage.tenant("too-old").await;
    let layer = stage.layer("kite-vm");
    let kinds = [MACHINES, VMS, "services"];
    join_all(kinds.map(|kind| lists(layer, kind, Duration::ZERO, 1))).await;
    let start = layer.now();
    for round in 1..=5 {
        for kind in kinds {
            layer.watches(kind).gone();
        }
        join_all(kinds.map(|kind| lists(layer, kind, start, round))).await;
    }
    // Too old at the list, and where the watch that follows is to go on.
    let at_list = layer
        .on(Match::lists(VMS).nth(1))
        .then(Act::Answer(Answer::refusal(410)));
    let at_watch = layer
        .on(Match::watches(VMS).nth(1))
        .then(Act::Answer(Answer::refusal(410)));
    layer.watches(VMS).gone();
    lists(layer, VMS, start, 7).await;
    // One that is cut while it still lists does not go on, but lists again.
    let goes_on = async || {
        let tried = at_watch.hits() > 0;
        if !tried {
            layer.watches(VMS).cut();
        }
        tried.then_some(())
    };
    wait::eventually("a watch that goes on", LONG, goes_on)
        .await
        .unwrap();
    assert_eq!((at_list.hits(), at_watch.hits()), (1, 1));
    let tried = asked(layer, "watch", VMS, start);
    let refused = tried.iter().find(|w| w.fault.is_some()).unwrap().at;
    lists(layer, VMS, refused, 1).await;

    tenant.machine("web", json!({})).await;
    runs(&tenant, "web").await;
    tokio::time::sleep(WATCHED).await;
    for (kind, since, times) in [
        (MACHINES, start, 5),
        (VMS, refused, 1),
        ("services", start, 5),
    ] {
        let listed = asked(layer, "list", kind, since).len();
        assert_eq!(listed, times, "lists of {kind}");
    }
}

/// Waits until a kind was listed so often, which its watch begins with.
async fn lists(layer: &FaultLayer, kind: &str, since: Duration, times: usize) {
    let listed = async || {
        let lists = asked(layer, "list", kind, since);
        let last = lists.last().filter(|_| lists.len() >= times)?;
        (last.code == Some(200)).then_some(())
    };
    wait::eventually("a watch that begins with a list", LONG, listed)
        .await
        .unwrap_or_else(|error| panic!("{kind}: {error}"));
}

// ST11, C-6, C-7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_that_is_behind_ones_own_writes_makes_nothing_twice_and_destroys_nothing() {
    let stage = Stage::new(&["kite-vm"], &[]).await;
    let tenant = stage.tenant("behind").await;
    stage.works("kite-vm").await;
    let layer = stage.layer("kite-vm");
    let frozen = [VMS, VMIS, DISKS, "services", "networking.k8s.io/ingresses"];
    let mark = stage.mark().await;
    for kind in frozen {
        layer.watches(kind).freeze();
    }
    tenant.machine("web", json!({})).await;
    tenant.until("web", LONG, is_applied).await;
    // Every change is a pass that sees none of what was made.
    for power in ["Off", "On", "Off", "On"] {
        let patch = json!({"spec": {"powerState": power}});
        tenant.edit::<KiteVirtualMachine>("web", patch).await;
        tenant.until("web", LONG, is_applied).await;
    }
    let made = stage.made(&tenant.name, mark).await;
    assert!(
        made.len() == 5 && made.values().all(|times| *times == 1),
        "{made:#?}"
    );
    for kind in frozen {
        layer.watches(kind).thaw();
    }
    runs(&tenant, "web").await;
    assert_eq!(stage.made(&tenant.name, mark).await, made);
}

// ST12, C-6
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_destroyed_before_every_kind_is_known() {
    let stage = Stage::new(&["kite-vm"], &["--request-timeout=3s"]).await;
    let tenant = stage.tenant("half-known").await;
    tenant.machine("web", json!({})).await;
    runs(&tenant, "web").await;
    let layer = stage.layer("kite-vm");
    layer.kill();
    let machines: Api<KiteVirtualMachine> = tenant.api();
    machines
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    let hangs = layer.on(Match::lists(VMIS)).then(Act::Withhold);
    let start = layer.now();
    stage.start_unready("kite-vm").await;
    let listed = async || (!asked(layer, "list", VMIS, start).is_empty()).then_some(());
    wait::eventually("the list that hangs", LONG, listed)
        .await
        .unwrap();
    tokio::time::sleep(WATCHED).await;
    let writes: Vec<_> = layer
        .writes()
        .into_iter()
        .filter(|w| w.at >= start)
        .collect();
    assert!(writes.is_empty(), "{writes:#?}");
    let (code, text) = layer.process().get("/readyz?verbose").await.unwrap();
    assert_eq!(code, 503, "{text}");
    assert!(
        text.contains("watch VirtualMachineInstance: not synced"),
        "{text}"
    );
    hangs.end();
    tenant.machine_gone("web").await;
}

// ST1, AP8, C-6
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_is_old_or_about_something_else_destroys_nothing() {
    let stage = Stage::new(&["kite-vm"], &[]).await;
    let tenant = stage.tenant("old-list").await;
    let layer = stage.layer("kite-vm");
    tenant.machine("web", json!({})).await;
    runs(&tenant, "web").await;
    layer.remember_lists().await.unwrap();
    let delete = json!({"spec": {"delete": true}});
    tenant.edit::<KiteVirtualMachine>("web", delete).await;
    tenant.machine_gone("web").await;
    tenant.machine("web", json!({})).await;
    let machine = runs(&tenant, "web").await;
    let mark = stage.mark().await;

    // A restart that is shown the first machine, and not that it is gone.
    let old = layer.on(Match::lists(MACHINES)).then(Act::StaleList);
    layer.watches(MACHINES).freeze();
    stage.start("kite-vm").await;
    tokio::time::sleep(WATCHED).await;
    assert_eq!(old.hits(), 1);
    old.end();
    layer.watches(MACHINES).thaw();

    // A list of another kind has no machines in it.
    let odd = Act::Answer(Answer::wrong_kind());
    let odd = layer.on(Match::lists(MACHINES)).then(odd);
    layer.watches(MACHINES).gone();
    odd.hit(1, LONG).await.unwrap();
    tokio::time::sleep(WATCHED).await;
    odd.end();

    let off = json!({"spec": {"powerState": "Off"}});
    tenant.edit::<KiteVirtualMachine>("web", off).await;
    let after = tenant.until("web", LONG, is_applied).await;
    assert_eq!(after.uid(), machine.uid());
    let made = stage.made(&tenant.name, mark).await;
    assert!(made.is_empty(), "{made:#?}");
}
