//! Without the election: both copies work, and nothing comes of it (design rule 5).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::api::core::v1::{Secret, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kite_api::condition::{self, READY, STALLED};
use kite_api::machine::{Phase, PowerState};
use kite_api::{KiteHostClaim, KiteUser, KiteVirtualMachine};
use kite_testkit::audit::Table;
use kite_testkit::cluster::CONTROLLERS;
use kite_testkit::{Cluster, ClusterOptions, bystander, install, wait};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::TURN;
use crate::copies::{run_all, stop_all};
use kite_testkit::counted::{Counted, quiet};
use kite_testkit::followed::Followed;
use kite_testkit::snapshot::{alike, assert_same, exact};
use kite_testkit::tenant::{LONG, REPAIR, Tenant, conditions, phase, user_conditions};

/// What was seen of one life.
struct Life {
    state: BTreeMap<String, String>,
    machine: Vec<KiteVirtualMachine>,
    user: Vec<KiteUser>,
    requests: Counted,
}

// C-1, C-6, C-7, C-10, F-12, LE8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_copies_that_both_work_end_where_one_does_and_touch_nothing_of_others() {
    let _turn = TURN.lock().await;
    let options = ClusterOptions {
        without: CONTROLLERS.to_vec(),
        args: vec![("kite-namespace", "--grace-period=2s".to_owned())],
        ..ClusterOptions::default()
    };
    let cluster = Cluster::start(options).await.unwrap();
    let bystander = bystander::make(&cluster).await;
    quiet(&cluster).await;
    let before = exact(&bystander.client, &bystander.name).await;
    println!("bystander: {:?}", before.keys());

    run_all(&cluster, 'a', |_| vec![]).await;
    // The brake holds a cluster whose last user goes (N-6).
    Tenant::new(&cluster, "neighbour").await.create().await;
    let one = live(&cluster, "single").await;
    stop_all(&cluster).await;
    for letter in ['b', 'c'] {
        run_all(&cluster, letter, |_| vec!["--leader-election=false"]).await;
    }
    quiet(&cluster).await;
    let two = live(&cluster, "double").await;

    println!(
        "one copy: {} requests; two that both work: {}\n{}",
        one.requests.total(),
        two.requests.total(),
        Table::of(&two.requests.requests)
    );
    assert_same(
        "the state with one copy and with two",
        &one.state,
        &two.state,
    );
    nothing_was_made_twice(&one);
    nothing_was_made_twice(&two);
    nothing_flapped(&one, &two);
    let after = exact(&bystander.client, &bystander.name).await;
    assert_same("what belongs to others", &before, &after);
}

/// The same life for everybody: made, switched off and on, repaired, deleted.
async fn live(cluster: &Cluster, name: &str) -> Life {
    let tenant = Tenant::new(cluster, name).await;
    let audit = cluster.control_plane.audit().unwrap();
    let start = audit.settled_mark(&tenant.client).await.unwrap();
    let platform = json!({
        "apiVersion": "kite.dev/v1alpha1", "kind": "KitePlatform", "metadata": {"name": "default"},
        "spec": {"baseDomain": "vms.example.org"},
    });
    install::apply(&tenant.client, &platform.to_string())
        .await
        .unwrap();
    let users: Api<KiteUser> = Api::all(tenant.client.clone());
    let user = Followed::start(users.clone(), name).await;
    tenant.create().await;
    let machine = tenant.follow::<KiteVirtualMachine>("web").await;
    let prefix = format!("{name}-web");
    tenant.machine("web", json!({"domainPrefix": prefix})).await;
    tenant.ready("web").await;
    for power in [PowerState::Off, PowerState::On] {
        tenant.switch("web", power).await;
    }
    repaired_by_hand(&tenant).await;
    the_stored_key_is_the_injected_one(&tenant).await;
    quiet(cluster).await;
    cdi_has_tidied_up(&tenant).await;
    let state = alike(&tenant.client, name).await;

    let last = tenant.api::<KiteVirtualMachine>().get("web").await.unwrap();
    let machine_seen = machine.end(&last).await;
    tenant
        .edit::<KiteVirtualMachine>("web", json!({"spec": {"delete": true}}))
        .await;
    tenant.machine_gone("web").await;
    let user_seen = user.end(&users.get(name).await.unwrap()).await;
    tenant.delete_user().await;
    tenant.namespace_gone().await;
    quiet(cluster).await;
    let claims: Api<KiteHostClaim> = Api::all(tenant.client.clone());
    let claims = claims.list(&ListParams::default()).await.unwrap();
    assert!(claims.items.is_empty(), "{claims:?}");
    Life {
        state,
        machine: machine_seen,
        user: user_seen,
        requests: Counted::since(cluster, &tenant.client, start).await,
    }
}

/// F-12: of two keys that were drawn, one is used in both places.
async fn the_stored_key_is_the_injected_one(tenant: &Tenant<'_>) {
    let text = async |name: &str, field: &str| {
        let secret = tenant.api::<Secret>().get(name).await.unwrap();
        String::from_utf8(secret.data.unwrap()[field].0.clone()).unwrap()
    };
    let key = text("web-ssh-key", "ssh-publickey").await;
    let key = key.split_whitespace().nth(1).unwrap();
    let login = text("web-cloud-init", "userdata").await;
    assert!(login.contains(key), "{key} is not in {login}");
}

/// A child of each kind of writer is deleted or edited by hand.
async fn repaired_by_hand(tenant: &Tenant<'_>) {
    let services = tenant.api::<Service>();
    let service = services.get("web").await.unwrap();
    services
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    tenant
        .until("web", REPAIR, |s: &Service| s.uid() != service.uid())
        .await;
    let edit = json!({"spec": {"selector": {"kite.dev/vm-uid": "another"}}});
    tenant.edit::<Service>("web", edit).await;
    tenant
        .until("web", REPAIR, |s: &Service| {
            let selector = s.spec.as_ref().and_then(|s| s.selector.as_ref());
            selector.is_some_and(|s| s["kite.dev/vm-uid"] != "another")
        })
        .await;
    let policies = tenant.api::<NetworkPolicy>();
    let policy = policies.list(&ListParams::default()).await.unwrap().items;
    let policy = policy.first().unwrap();
    let name = policy.name_any();
    policies
        .delete(&name, &DeleteParams::default())
        .await
        .unwrap();
    tenant
        .until(&name, REPAIR, |p: &NetworkPolicy| p.uid() != policy.uid())
        .await;
    tenant.ready("web").await;
}

/// Each object was made once, but for the two that were deleted by hand.
fn nothing_was_made_twice(life: &Life) {
    let mut made = BTreeMap::<String, usize>::new();
    for request in life.requests.requests.iter().filter(|r| r.code == 201) {
        let key = format!(
            "{} {}/{}",
            request.target(),
            request.namespace,
            request.name
        );
        *made.entry(key).or_default() += 1;
    }
    let twice: Vec<_> = made.iter().filter(|(_, count)| **count > 1).collect();
    println!("objects made: {}, of them again: {twice:?}", made.len());
    assert!(made.values().all(|count| *count <= 2), "{twice:?}");
    let kinds: Vec<_> = twice
        .iter()
        .map(|(key, _)| key.split(' ').next().unwrap())
        .collect();
    assert_eq!(kinds, ["networking.k8s.io/networkpolicies", "services"]);
}

/// C-10: what people see changes as often as with one copy.
fn nothing_flapped(one: &Life, two: &Life) {
    let phases = |life: &Life| {
        let mut phases: Vec<_> = life.machine.iter().filter_map(phase).collect();
        phases.dedup();
        phases
    };
    in_order(&phases(one));
    in_order(&phases(two));
    let course = |life: &Life, type_: &str| {
        let of = |m: &KiteVirtualMachine| {
            condition::find(conditions(m), type_).map(|c| c.status.clone())
        };
        let mut course: Vec<_> = life.machine.iter().map(of).collect();
        course.dedup();
        course
    };
    for type_ in [READY, condition::ACCEPTED, condition::DISK_READY, STALLED] {
        assert_eq!(course(one, type_), course(two, type_), "{type_}");
    }
    let ready = |life: &Life| {
        let of =
            |u: &KiteUser| condition::find(user_conditions(u), READY).map(|c| c.status.clone());
        let mut course: Vec<_> = life.user.iter().map(of).collect();
        course.dedup();
        course
    };
    assert_eq!(ready(one), ready(two), "the user's Ready");
    println!(
        "versions of the machine with one copy {}, with two {}; of the user {} and {}",
        one.machine.len(),
        two.machine.len(),
        one.user.len(),
        two.user.len()
    );
}

fn in_order(phases: &[Phase]) {
    use Phase::{Provisioning, Running, Starting, Stopped, Stopping};
    assert_eq!(
        phases,
        [
            Provisioning,
            Starting,
            Running,
            Stopping,
            Stopped,
            Starting,
            Running
        ]
    );
}

/// CDI's temporary claim goes some time after the clone, when the server has called it lost.
async fn cdi_has_tidied_up(tenant: &Tenant<'_>) {
    let claims = tenant.api::<PersistentVolumeClaim>();
    wait::eventually("CDI to take its temporary claim away", LONG, async || {
        let claims = claims.list(&ListParams::default()).await.ok()?;
        let temporary = |claim: &PersistentVolumeClaim| claim.name_any().starts_with("tmp-pvc-");
        (!claims.items.iter().any(temporary)).then_some(())
    })
    .await
    .unwrap();
}
