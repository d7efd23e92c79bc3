//! Machines that were copied into the store are settled in Kite's own eyes: its six processes find
//! nothing to do.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use kite_api::machine::Phase;
use kite_api::{KiteUser, KiteVirtualMachine, condition};
use kite_bench::ground::{Ground, GroundOptions};
use kite_bench::load;
use kite_bench::settled::{self, Wanted};
use kite_testkit::audit::Request;
use kite_testkit::place::{is_ready, phase};
use kite_testkit::tenant::user_conditions;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt as _};

const WANTED: Wanted = Wanted { users: 4, each: 5 };

/// Longer than any of Kite's holds.
const QUIET: Duration = Duration::from_secs(12);

// C-5, D-5: what has settled causes no request, however it came to be there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn six_processes_that_start_on_twenty_copied_machines_write_nothing() {
    let ground = Ground::start(GroundOptions {
        speed: 50.0,
        ticks: 2,
        apiserver_args: settled::APISERVER_ARGS.map(str::to_owned).to_vec(),
        ..GroundOptions::default()
    })
    .await
    .unwrap();
    let settled = settled::settle(&ground.cluster, WANTED).await.unwrap();
    println!("{settled:?}");

    let mark = ground.mark().await.unwrap();
    let plane = &ground.cluster.control_plane;
    plane.start_controller_manager().await.unwrap();
    ground.cluster.start_stand_ins().await.unwrap();
    ground.start_kite().await.unwrap();
    everything_is_there(&ground.admin, &settled.names()).await;
    tokio::time::sleep(QUIET).await;
    ground.mark().await.unwrap();
    let requests = ground.audit().unwrap().since(mark).unwrap();
    let read = |user: &str| requests.iter().any(|r| r.is_by(user) && !r.is_lease());
    for name in kite_testkit::cluster::CONTROLLERS {
        assert!(read(name), "{name} has not looked");
    }
    let writes: Vec<_> = requests.iter().filter(|r| matters(r)).map(words).collect();
    assert!(writes.is_empty(), "{writes:#?}");
    everything_is_there(&ground.admin, &settled.names()).await;
    ground.end().await;
}

/// A write of Kite's that is no lease, or one by anybody to what was copied.
fn matters(request: &Request) -> bool {
    let kite = request.user.contains(":kite-system:kite-");
    let copied = request.namespace.starts_with("user-");
    request.is_write() && !request.is_lease() && (kite || copied)
}

fn words(r: &Request) -> String {
    let (what, user) = (r.target(), &r.user);
    format!(
        "{} {user} {} {what} {}/{} {}",
        r.time, r.verb, r.namespace, r.name, r.code
    )
}

async fn everything_is_there(client: &Client, names: &[load::Name]) {
    let machines: Api<KiteVirtualMachine> = Api::all(client.clone());
    let machines = machines.list(&ListParams::default()).await.unwrap().items;
    let mut found: Vec<_> = machines
        .iter()
        .filter(|m| is_ready(m) && phase(m) == Some(Phase::Running))
        .map(|m| load::Name {
            namespace: m.namespace().unwrap(),
            name: m.name_any(),
        })
        .collect();
    found.sort();
    assert_eq!(found, names);

    let users: Api<KiteUser> = Api::all(client.clone());
    let users = users.list(&ListParams::default()).await.unwrap().items;
    let ready = |u: &KiteUser| condition::is_true(user_conditions(u), condition::READY);
    assert_eq!(users.iter().filter(|u| ready(u)).count(), WANTED.users);

    // Each machine has what a real one has: the least of each kind, since users have Secrets too.
    for (group, version, kind, plural, each) in [
        ("", "v1", "Secret", "secrets", 2),
        ("", "v1", "Service", "services", 1),
        ("", "v1", "Pod", "pods", 1),
        (
            "",
            "v1",
            "PersistentVolumeClaim",
            "persistentvolumeclaims",
            1,
        ),
        (
            "discovery.k8s.io",
            "v1",
            "EndpointSlice",
            "endpointslices",
            1,
        ),
        ("kubevirt.io", "v1", "VirtualMachine", "virtualmachines", 1),
        (
            "kubevirt.io",
            "v1",
            "VirtualMachineInstance",
            "virtualmachineinstances",
            1,
        ),
        ("cdi.kubevirt.io", "v1beta1", "DataVolume", "datavolumes", 1),
    ] {
        let kind = GroupVersionKind::gvk(group, version, kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let all = api.list(&ListParams::default()).await.unwrap().items;
        let own = all.iter().filter(|o| {
            o.namespace()
                .is_some_and(|space| space.starts_with("user-"))
        });
        assert_eq!(own.count(), each * WANTED.total(), "{plural}");
    }
}
