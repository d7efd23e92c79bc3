//! The whole life of a user and a machine with all six controllers: what people
//! see, what it costs, and that nothing is sent once nothing changes.

mod domain;
mod installed;
mod writers;

use std::time::Duration;

use kite_api::KiteVirtualMachine;
use kite_api::machine::{Phase, PowerState};
use kite_testkit::audit::Request;
use kite_testkit::counted::{Counted, quiet};
use kite_testkit::kstatus::Judge;
use kite_testkit::tenant::{Tenant, conditions, is_ready, is_true, phase};
use kite_testkit::{Cluster, ClusterOptions};
use kube::ResourceExt;
use serde_json::json;
use writers::{every_write_is_an_apply_under_the_binarys_name, one_owner_for_each_field};

// C-2, C-5, C-9, C-10, C-11, U-4, V-17, V-18, S-1, S-2, E-3, D-2, N-4, F-3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_and_a_machine_live_their_whole_life_within_the_budget() {
    let options = ClusterOptions {
        args: vec![("kite-namespace", "--grace-period=3s".to_owned())],
        ..ClusterOptions::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    let restart = async || {
        for name in cluster.names() {
            let status = cluster.take(&name).terminate(Duration::from_secs(25)).await;
            assert!(
                status.is_some_and(|s| s.success()),
                "{name} ended with {status:?}"
            );
        }
        for name in kite_testkit::cluster::CONTROLLERS {
            cluster.run(name, name, &[]).await.unwrap();
        }
    };
    whole_life(&cluster, restart).await;
}

/// The life of one user and one machine on a cluster where all six work; `restart` restarts them.
async fn whole_life(cluster: &Cluster, restart: impl AsyncFnOnce()) {
    let audit = cluster.control_plane.audit().unwrap();
    let alice = Tenant::new(cluster, "alice").await;
    let client = alice.client.clone();
    let mark = || async { audit.settled_mark(&client).await.unwrap() };
    let judge = Judge::start().await.unwrap();
    // The brake holds a cluster whose last user goes (N-6).
    Tenant::new(cluster, "neighbour").await.create().await;

    // The server looks at new kinds again some seconds after they came, and cuts their watches.
    quiet(cluster).await;
    let start = mark().await;
    alice.create().await;
    quiet(cluster).await;
    Counted::since(cluster, &client, start)
        .await
        .at_most("user create", 9);

    let followed = alice.follow::<KiteVirtualMachine>("web").await;
    let start = mark().await;
    let born = start;
    alice.machine("web", json!({})).await;
    let machine = alice.ready("web").await;
    quiet(cluster).await;
    let created = Counted::since(cluster, &client, start).await;
    created.at_most("create to Running, 20 ticks, no domain", 23);
    assert!(created.events <= 4, "{} events", created.events);
    let status = machine.status.clone().unwrap();
    assert_eq!(status.phase, Some(Phase::Running));
    assert_eq!(status.current_power_state, Some(PowerState::On));
    assert!(
        status.node_name.is_some() && !status.ip_addresses.is_empty(),
        "{status:?}"
    );

    one_owner_for_each_field(&alice.api().get("web").await.unwrap());
    every_write_is_an_apply_under_the_binarys_name(&alice).await;
    nothing_is_sent(cluster, &alice).await;
    restarts_write_nothing(cluster, &alice, restart).await;

    let start = mark().await;
    alice.switch("web", PowerState::Off).await;
    quiet(cluster).await;
    Counted::since(cluster, &client, start)
        .await
        .at_most("power off", 6);

    let start = mark().await;
    alice.switch("web", PowerState::On).await;
    quiet(cluster).await;
    Counted::since(cluster, &client, start)
        .await
        .at_most("power on", 9);

    let start = mark().await;
    alice
        .edit::<KiteVirtualMachine>("web", json!({"spec": {"delete": true}}))
        .await;
    alice.machine_gone("web").await;
    quiet(cluster).await;
    Counted::since(cluster, &client, start)
        .await
        .at_most("delete", 12);

    mirrors_only_tell(&Counted::since(cluster, &client, born).await);

    let seen = followed.so_far();
    every_phase_was_true_and_came_once(&seen);
    kstatus_was_right_at_every_event(&judge, &seen);

    let start = mark().await;
    alice.delete_user().await;
    quiet(cluster).await;
    // What becomes of the namespace is kite-namespace's, and counted apart.
    Counted::since(cluster, &client, start)
        .await
        .only("kite-user")
        .at_most("user delete", 10);
    alice.namespace_gone().await;
}

/// S-1, E-5, D-5: over a whole life the three mirrors wrote their part of the status and nothing else.
fn mirrors_only_tell(life: &Counted) {
    for mirror in ["kite-vm-status", "kite-service", "kite-datavolume"] {
        let sent: Vec<_> = life.requests.iter().filter(|r| r.is_by(mirror)).collect();
        assert!(!sent.is_empty(), "{mirror} did nothing");
        let tells = |r: &&&Request| {
            r.resource == "kite.dev/kitevirtualmachines" && r.subresource == "status"
        };
        let other: Vec<_> = sent
            .iter()
            .filter(|r| r.verb != "list" && !tells(r))
            .collect();
        assert!(other.is_empty(), "{mirror} sent {other:#?}");
    }
}

/// C-5: nothing changes, so nothing is sent but leases and watches, and of those few.
async fn nothing_is_sent(cluster: &Cluster, tenant: &Tenant<'_>) {
    let audit = cluster.control_plane.audit().unwrap();
    let start = audit.settled_mark(&tenant.client).await.unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    let at_rest = Counted::since(cluster, &tenant.client, start).await;
    at_rest.at_most("at rest for a minute", 0);
    assert_eq!(at_rest.events, 0);
    println!("leases and watches in that minute: {}", at_rest.upkeep);
    assert!(at_rest.upkeep <= 80);

    let start = audit.settled_mark(&tenant.client).await.unwrap();
    let label = json!({"metadata": {"labels": {"somebody": "touched-it"}}});
    tenant.edit::<KiteVirtualMachine>("web", label).await;
    quiet(cluster).await;
    Counted::since(cluster, &tenant.client, start)
        .await
        .at_most("a label that nobody reads", 0);
}

/// C-5: a restart lists and watches, and writes nothing.
async fn restarts_write_nothing(
    cluster: &Cluster,
    tenant: &Tenant<'_>,
    restart: impl AsyncFnOnce(),
) {
    let audit = cluster.control_plane.audit().unwrap();
    let start = audit.settled_mark(&tenant.client).await.unwrap();
    restart().await;
    quiet(cluster).await;
    let restarted = Counted::since(cluster, &tenant.client, start).await;
    let writes: Vec<_> = restarted
        .requests
        .iter()
        .filter(|r| r.verb != "list")
        .collect();
    assert!(writes.is_empty(), "a restart sent {writes:#?}");
    println!(
        "restart of all six: {} lists, 0 other requests",
        restarted.total()
    );
}

/// C-10, F-3: each phase comes once, in order, and none that was not true; Failed is none of them.
fn every_phase_was_true_and_came_once(seen: &[KiteVirtualMachine]) {
    use Phase::{Deleting, Provisioning, Running, Starting, Stopped, Stopping};
    let mut phases: Vec<Phase> = seen.iter().filter_map(phase).collect();
    phases.dedup();
    assert_eq!(
        phases,
        [
            Provisioning,
            Starting,
            Running,
            Stopping,
            Stopped,
            Starting,
            Running,
            Deleting
        ]
    );
    let mut writers: Vec<String> = seen.iter().filter_map(phase_manager).collect();
    writers.dedup();
    assert_eq!(
        writers,
        ["kite-vm", "kite-vm-status", "kite-vm"],
        "phase changed hands otherwise than once, and back to be deleted"
    );
    for machine in seen {
        let running =
            machine.status.as_ref().and_then(|s| s.current_power_state) == Some(PowerState::On);
        let ready = is_true(conditions(machine), "Ready");
        if ready && phase(machine) == Some(Running) {
            assert!(running, "Running while off: {machine:?}");
        }
        let both =
            is_true(conditions(machine), "Reconciling") && is_true(conditions(machine), "Stalled");
        assert!(!both, "Reconciling and Stalled at once");
    }
}

fn phase_manager(machine: &KiteVirtualMachine) -> Option<String> {
    machine.managed_fields().iter().find_map(|entry| {
        let fields = serde_json::to_value(&entry.fields_v1).ok()?;
        fields.pointer("/f:status/f:phase")?;
        entry.manager.clone()
    })
}

/// C-11: the real kstatus never says Current before the machine is as asked, and never Failed.
fn kstatus_was_right_at_every_event(judge: &Judge, seen: &[KiteVirtualMachine]) {
    let mut answers = Vec::new();
    for machine in seen {
        let answer = judge.status_of(machine).unwrap();
        let expected = if machine.metadata.deletion_timestamp.is_some() {
            "Terminating"
        } else if is_ready(machine)
            && matches!(phase(machine), Some(Phase::Running | Phase::Stopped))
        {
            "Current"
        } else {
            "InProgress"
        };
        assert_eq!(
            answer.status, expected,
            "{} for {machine:#?}",
            answer.message
        );
        answers.push(answer.status);
    }
    answers.dedup();
    println!("kstatus over the life: {answers:?}");
    assert_eq!(
        answers.iter().filter(|a| *a == "Current").count(),
        3,
        "running, stopped, running again"
    );
}
