//! KubeVirt and CDI that come after Kite, go away while it runs, and come back:
//! what does not need them goes on, and a kind that is unknown is never taken
//! for objects that are gone.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ResourceQuota;
use kite_api::condition::{ACCEPTED, DELETING, DEPENDENCY_MISSING, READY};
use kite_api::machine::Phase;
use kite_api::{KiteUser, KiteVirtualMachine, condition};
use kite_kubevirt::VirtualMachine;
use kite_testkit::audit::Request;
use kite_testkit::cluster::{CONTROLLERS, IMAGE};
use kite_testkit::counted::Counted;
use kite_testkit::http_get::get;
use kite_testkit::kite_process::Metrics;
use kite_testkit::kstatus::Judge;
use kite_testkit::tenant::{
    LONG, Tenant, condition_of, is_ready, message_of, phase, user_conditions,
};
use kite_testkit::{Cluster, ClusterOptions, KiteProcess, install, wait};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use tokio::sync::Mutex;

/// How soon a kind must be noticed that was installed (C-14).
const NOTICED: Duration = Duration::from_secs(30);
/// How soon work that needs none of the missing kinds must be done (DE3).
const MEANWHILE: Duration = Duration::from_secs(5);
/// How long a finalizer is watched that must stay.
const WATCHED: Duration = Duration::from_secs(10);

/// The kinds of others that each controller watches.
const KINDS: [(&str, &[&str]); 3] = [
    (
        "kite-vm",
        &[
            "VirtualMachine",
            "VirtualMachineInstance",
            "DataVolume",
            "DataSource",
        ],
    ),
    (
        "kite-vm-status",
        &["VirtualMachine", "VirtualMachineInstance"],
    ),
    ("kite-datavolume", &["DataVolume"]),
];

/// One cluster at a time: two cores carry no more.
static TURN: Mutex<()> = Mutex::const_new(());

// C-14, DE1, DE2, F-20
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kinds_installed_after_the_controllers_started_are_picked_up_within_thirty_seconds() {
    let _turn = TURN.lock().await;
    let options = ClusterOptions {
        stand_ins: false,
        ..ClusterOptions::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    let alice = Tenant::new(&cluster, "alice").await;
    let judge = Judge::start().await.unwrap();
    all_are_ready_and_name_what_is_missing(&cluster).await;

    let began = Instant::now();
    alice.create().await;
    println!("a user without KubeVirt: ready after {:?}", began.elapsed());
    assert!(began.elapsed() < MEANWHILE);

    let start = cluster.control_plane.audit().unwrap().mark();
    alice.machine("web", json!({})).await;
    let machine = alice.says("web", ACCEPTED, DEPENDENCY_MISSING).await;
    assert!(message_of(&machine, ACCEPTED).contains("CDI"));
    let machine = alice
        .until("web", LONG, |m: &KiteVirtualMachine| {
            condition_of(m, READY).is_some_and(|c| c.observed_generation == m.metadata.generation)
        })
        .await;
    assert_eq!(
        condition_of(&machine, READY).unwrap().reason,
        DEPENDENCY_MISSING
    );
    assert_eq!(phase(&machine), Some(Phase::Provisioning));
    assert_eq!(judge.status_of(&machine).unwrap().status, "InProgress");
    let written = Counted::since(&cluster, &alice.client, start).await;
    let about_machines = |r: &&Request| r.verb != "list" && !r.is_by("kite-user");
    for request in written.requests.iter().filter(about_machines) {
        assert_eq!(
            request.resource, "kite.dev/kitevirtualmachines",
            "something was written for a machine that cannot be: {request:?}"
        );
    }

    let installing = Instant::now();
    install::upstream_crds(&cluster.control_plane)
        .await
        .unwrap();
    let installed = Instant::now();
    println!("CRDs installed in {:?}", installed - installing);
    let (noticed, started) = tokio::join!(all_are_noticed(&cluster, installed), async {
        cluster.start_stand_ins().await?;
        cluster.publish(IMAGE).await
    });
    started.unwrap();
    println!("the last kind was noticed {noticed:?} after it was served");
    assert!(noticed < NOTICED);
    alice.ready("web").await;
    println!(
        "the machine was Ready {:?} after the installation",
        installed.elapsed()
    );
    for name in CONTROLLERS {
        let restarted = cluster.with(name, |p| p.process().exited());
        assert_eq!(restarted, None, "{name} ended");
    }
}

// C-14, DE3, DE4, V-15, V-19
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_deletion_is_finished_while_the_kinds_it_waits_for_are_unknown() {
    let _turn = TURN.lock().await;
    let cluster = Cluster::start(ClusterOptions::default()).await.unwrap();
    let bob = Tenant::new(&cluster, "bob").await;
    bob.create().await;
    for name in ["asked", "deleted", "kept"] {
        bob.machine(name, json!({})).await;
    }
    for name in ["asked", "deleted", "kept"] {
        bob.ready(name).await;
    }
    let removing = Instant::now();
    install::remove_upstream_crds(&cluster.control_plane)
        .await
        .unwrap();
    println!("CRDs and their objects removed in {:?}", removing.elapsed());
    all_are_ready_and_name_what_is_missing(&cluster).await;
    let kept = bob
        .until("kept", LONG, |m: &KiteVirtualMachine| {
            condition_of(m, READY).is_some_and(|c| c.reason == DEPENDENCY_MISSING)
        })
        .await;
    // Whether the machine was seen to go before its kind did is a matter of moments.
    let phase = phase(&kept);
    assert!(
        matches!(phase, Some(Phase::Unknown | Phase::Provisioning)),
        "{phase:?}"
    );

    bob.edit::<KiteVirtualMachine>("asked", json!({"spec": {"delete": true}}))
        .await;
    let machines = bob.api::<KiteVirtualMachine>();
    machines
        .delete("deleted", &DeleteParams::default())
        .await
        .unwrap();
    for name in ["asked", "deleted"] {
        let machine = bob.says(name, DELETING, DEPENDENCY_MISSING).await;
        println!("{name}: {}", message_of(&machine, DELETING));
    }
    let stays = async |name: &str| {
        let machines = bob.api::<KiteVirtualMachine>();
        let let_go =
            |m: &Option<KiteVirtualMachine>| m.as_ref().is_none_or(|m| m.finalizers().is_empty());
        let released = wait::wait_for(&machines, name, WATCHED, let_go).await;
        assert!(released.is_err(), "{name} lost its finalizer");
    };
    tokio::join!(stays("asked"), stays("deleted"), users_are_served(&bob));

    comes_back(&cluster, &bob).await;
}

/// DE3: what needs none of the kinds is not slowed by their absence.
async fn users_are_served(bob: &Tenant<'_>) {
    let began = Instant::now();
    let users: Api<KiteUser> = Api::all(bob.client.clone());
    let quota = json!({"spec": {"quota": {"virtualMachines": 7}}});
    let user = users
        .patch("bob", &PatchParams::default(), &Patch::Merge(&quota))
        .await
        .unwrap();
    let generation = user.metadata.generation;
    bob.user_until(|u| {
        let ready = condition::find(user_conditions(u), READY);
        ready.is_some_and(|c| c.status == "True" && c.observed_generation == generation)
    })
    .await;
    let handled = began.elapsed();
    println!("a change of a user meanwhile: handled after {handled:?}");
    assert!(handled < MEANWHILE);
    let quotas = bob
        .api::<ResourceQuota>()
        .list(&ListParams::default())
        .await
        .unwrap();
    let has_seven = |q: &ResourceQuota| {
        let hard = q.spec.as_ref().and_then(|s| s.hard.as_ref());
        hard.is_some_and(|h| h.values().any(|v| v.0 == "7"))
    };
    assert!(quotas.iter().any(has_seven), "{quotas:?}");
}

/// DE4: the kinds come back without their objects.
async fn comes_back(cluster: &Cluster, bob: &Tenant<'_>) {
    let start = cluster.control_plane.audit().unwrap().mark();
    install::upstream_crds(&cluster.control_plane)
        .await
        .unwrap();
    let installed = Instant::now();
    let (noticed, started) = tokio::join!(all_are_noticed(cluster, installed), async {
        cluster.control_plane.restart_controller_manager().await?;
        cluster.start_stand_ins().await?;
        cluster.publish(IMAGE).await
    });
    started.unwrap();
    println!("after a re-installation the last kind was noticed after {noticed:?}");
    assert!(noticed < NOTICED);
    bob.machine_gone("asked").await;
    bob.machine_gone("deleted").await;
    println!(
        "both deletions were finished {:?} after it",
        installed.elapsed()
    );

    // What was on the disk is gone with CDI's objects, or a claim is left of it; it is never made anew unasked.
    let machine = bob
        .until("kept", LONG, |m: &KiteVirtualMachine| {
            is_ready(m)
                || condition_of(m, condition::STALLED).is_some_and(|c| c.reason == "DiskLost")
        })
        .await;
    if !is_ready(&machine) {
        println!("kept: {}", message_of(&machine, condition::STALLED));
        let claim = machine.status.unwrap().claim_uid.unwrap();
        let confirm = json!({"metadata": {"annotations": {"kite.dev/confirm-new-disk": claim}}});
        bob.edit::<KiteVirtualMachine>("kept", confirm).await;
        bob.ready("kept").await;
    }
    println!(
        "the third machine was Ready {:?} after it",
        installed.elapsed()
    );
    let since = Counted::since(cluster, &bob.client, start).await;
    let created = |resource: &str| {
        let made = since
            .requests
            .iter()
            .filter(|r| r.code == 201 && r.resource == resource);
        made.map(|r| r.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(created("kubevirt.io/virtualmachines"), ["kept"]);
    let vm = bob.api::<VirtualMachine>().get("kept").await.unwrap();
    assert_eq!(vm.run_strategy(), Some("Always"));
}

/// C-14: each process is ready, and says which kinds it waits for.
async fn all_are_ready_and_name_what_is_missing(cluster: &Cluster) {
    for (name, kinds) in KINDS {
        let address = cluster.with(name, KiteProcess::address);
        let verbose = async || {
            let (code, text) = get(address, "/readyz?verbose").await.unwrap();
            let missing = |kind: &&str| text.contains(&format!("watch {kind}: missing"));
            // A replica that has just begun to lead has not listed anything yet.
            (code == 200 && kinds.iter().all(missing)).then_some(text)
        };
        let text = wait::eventually("the missing kinds to be named", NOTICED, verbose)
            .await
            .unwrap();
        let lines: Vec<_> = text.lines().filter(|l| l.contains("missing")).collect();
        assert_eq!(lines.len(), kinds.len(), "{name}: {lines:?}");
        println!("{name} /readyz?verbose: {}", lines.join(" | "));
        assert_eq!(up(cluster, name, kinds).await, vec![-1.0; kinds.len()]);
    }
    for name in CONTROLLERS {
        let address = cluster.with(name, KiteProcess::address);
        assert_eq!(get(address, "/readyz").await.unwrap().0, 200, "{name}");
        assert_eq!(get(address, "/livez").await.unwrap().0, 200, "{name}");
    }
}

/// How long after `since` every process had noticed every kind.
async fn all_are_noticed(cluster: &Cluster, since: Instant) -> Duration {
    let mut longest = Duration::ZERO;
    for (name, kinds) in KINDS {
        let noticed = async || {
            let up = up(cluster, name, kinds).await;
            (up == vec![1.0; kinds.len()]).then_some(())
        };
        wait::eventually("the kinds to be noticed", LONG, noticed)
            .await
            .unwrap();
        println!("{name} has all its kinds after {:?}", since.elapsed());
        longest = longest.max(since.elapsed());
    }
    longest
}

/// `kite_watch_up` of these kinds.
async fn up(cluster: &Cluster, name: &str, kinds: &[&str]) -> Vec<f64> {
    let address = cluster.with(name, KiteProcess::address);
    let (_, text) = get(address, "/metrics").await.unwrap();
    let metrics = Metrics::parse(&text).unwrap();
    let of = |kind: &&str| metrics.sum("kite_watch_up", &[&format!("kind=\"{kind}\"")]);
    kinds.iter().map(of).collect()
}
