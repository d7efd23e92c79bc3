//! Each of the six processes alone, and every five of the six, do what their
//! line of the design's table says; what is absent shows by its condition's
//! generation staying behind.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, ResourceQuota, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kite_api::condition::{DISK_READY, READY, RESOURCES_APPLIED, SERVICE_READY};
use kite_api::labels::Controller;
use kite_api::machine::{Phase, PowerState};
use kite_api::ownership::part_of;
use kite_api::{KiteVirtualMachine, condition};
use kite_kubevirt::read::VirtualMachine;
use kite_testkit::cluster::CONTROLLERS;
use kite_testkit::tenant::{LONG, REPAIR, Tenant, conditions, is_true};
use kite_testkit::{Cluster, ClusterOptions, wait};
use kube::Api;
use kube::api::{DeleteParams, ListParams, PropagationPolicy};
use serde_json::json;

/// A cluster in which nothing of Kite's runs yet.
async fn bare() -> Cluster {
    let options = ClusterOptions {
        without: CONTROLLERS.to_vec(),
        args: vec![("kite-namespace", "--grace-period=1s".to_owned())],
        ..ClusterOptions::default()
    };
    Cluster::start(options).await.unwrap()
}

// C-1
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_the_six_alone_does_its_part() {
    let cluster = bare().await;
    user_alone(&cluster).await;
    namespace_alone(&cluster).await;
    vm_alone(&cluster).await;
    mirrors_alone(&cluster).await;
}

/// kite-user makes a namespace safe to use although nobody would clean it up.
async fn user_alone(cluster: &Cluster) {
    cluster.run("kite-user", "kite-user", &[]).await.unwrap();
    let tenant = Tenant::new(cluster, "user-alone").await;
    tenant.create().await;
    assert_eq!(
        tenant
            .api::<NetworkPolicy>()
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .len(),
        2
    );
    assert_eq!(
        tenant
            .api::<ResourceQuota>()
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .len(),
        1
    );
    tenant.delete_user().await;
    drop(cluster.take("kite-user"));
    let namespaces: Api<Namespace> = Api::all(tenant.client.clone());
    let left = namespaces.get("user-alone").await.unwrap();
    assert!(
        left.metadata.deletion_timestamp.is_none(),
        "only kite-namespace deletes a namespace"
    );
}

/// kite-namespace removes what kite-user left, with kite-user away.
async fn namespace_alone(cluster: &Cluster) {
    // The brake would rightly stop the removal of the only namespace there is.
    let other = Tenant::new(cluster, "still-needed").await;
    cluster.run("kite-user", "kite-user", &[]).await.unwrap();
    other.create().await;
    drop(cluster.take("kite-user"));
    cluster
        .run("kite-namespace", "kite-namespace", &[])
        .await
        .unwrap();
    Tenant::new(cluster, "user-alone")
        .await
        .namespace_gone()
        .await;
    drop(cluster.take("kite-namespace"));
}

/// kite-vm makes, repairs and removes a machine with nobody to tell about it.
async fn vm_alone(cluster: &Cluster) {
    cluster.run("kite-vm", "kite-vm", &[]).await.unwrap();
    let tenant = Tenant::new(cluster, "vm-alone").await;
    tenant.prepare_by_hand().await;
    tenant.machine("web", json!({})).await;
    tenant
        .until("web", LONG, |vm: &VirtualMachine| {
            vm.printable_status() == "Running"
        })
        .await;
    let machine = applied(&tenant, "web").await;
    assert_eq!(
        machine.status.as_ref().unwrap().observed_generation,
        Some(-1),
        "nobody is there to say that it is ready"
    );
    tenant
        .api::<Service>()
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    tenant.until("web", REPAIR, |_: &Service| true).await;
    tenant
        .edit::<KiteVirtualMachine>("web", json!({"spec": {"delete": true}}))
        .await;
    tenant.machine_gone("web").await;
}

/// Each mirror alone tells its part of a machine that stands, and nothing else.
async fn mirrors_alone(cluster: &Cluster) {
    let tenant = Tenant::new(cluster, "mirrors-alone").await;
    tenant.prepare_by_hand().await;
    tenant.machine("web", json!({})).await;
    tenant
        .until("web", LONG, |vm: &VirtualMachine| {
            vm.printable_status() == "Running"
        })
        .await;
    applied(&tenant, "web").await;
    drop(cluster.take("kite-vm"));
    let before = tenant.api::<KiteVirtualMachine>().get("web").await.unwrap();
    for (controller, type_) in [
        (Controller::Service, SERVICE_READY),
        (Controller::DataVolume, DISK_READY),
        (Controller::VmStatus, READY),
    ] {
        cluster
            .run(controller.name(), controller.name(), &[])
            .await
            .unwrap();
        let told = tenant
            .until("web", LONG, |m: &KiteVirtualMachine| {
                is_true(conditions(m), type_)
            })
            .await;
        drop(cluster.take(controller.name()));
        for other in [
            Controller::Vm,
            Controller::VmStatus,
            Controller::Service,
            Controller::DataVolume,
        ] {
            let untouched = other == controller
                || part(other, &told) == part(other, &before)
                || told_before(other, controller);
            assert!(
                untouched,
                "{} alone changed {}'s part",
                controller.name(),
                other.name()
            );
        }
    }
    let machine = tenant.ready("web").await;
    assert_eq!(
        machine.status.unwrap().current_power_state,
        Some(PowerState::On)
    );
    cluster.run("kite-vm", "kite-vm", &[]).await.unwrap();
    tenant
        .edit::<KiteVirtualMachine>("web", json!({"spec": {"delete": true}}))
        .await;
    tenant.machine_gone("web").await;
    drop(cluster.take("kite-vm"));
}

fn part(
    controller: Controller,
    machine: &KiteVirtualMachine,
) -> kite_api::KiteVirtualMachineStatus {
    part_of(controller, machine.status.as_ref().unwrap())
}

/// Whether a mirror had its turn before another in `mirrors_alone`.
fn told_before(earlier: Controller, later: Controller) -> bool {
    let turn = |c: Controller| {
        [
            Controller::Service,
            Controller::DataVolume,
            Controller::VmStatus,
        ]
        .iter()
        .position(|o| *o == c)
    };
    turn(earlier).zip(turn(later)).is_some_and(|(e, l)| e < l)
}

async fn applied(tenant: &Tenant<'_>, name: &str) -> KiteVirtualMachine {
    tenant
        .until(name, LONG, |m: &KiteVirtualMachine| {
            condition::find(conditions(m), RESOURCES_APPLIED).is_some_and(|c| {
                c.status == "True" && c.observed_generation == m.metadata.generation
            })
        })
        .await
}

// C-1, C-11
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_five_of_the_six_do_their_parts_without_the_sixth() {
    let cluster = bare().await;
    for name in CONTROLLERS {
        cluster.run(name, name, &[]).await.unwrap();
    }
    for absent in CONTROLLERS {
        drop(cluster.take(absent));
        let tenant = Tenant::new(
            &cluster,
            &format!("without-{}", absent.trim_start_matches("kite-")),
        )
        .await;
        without(&tenant, absent).await;
        cluster.run(absent, absent, &[]).await.unwrap();
        caught_up(&tenant, absent).await;
    }
}

/// The life of a machine with one process away.
async fn without(tenant: &Tenant<'_>, absent: &str) {
    if absent == "kite-user" {
        tenant.prepare_by_hand().await;
    } else {
        tenant.create().await;
    }
    tenant.machine("web", json!({})).await;
    if absent == "kite-vm" {
        // Nobody makes the machine, and nothing says that it is ready.
        let watch = tenant
            .until("web", LONG, |m: &KiteVirtualMachine| m.status.is_some())
            .await;
        assert!(!is_true(conditions(&watch), READY));
        return;
    }
    tenant
        .until("web", LONG, |vm: &VirtualMachine| {
            vm.printable_status() == "Running"
        })
        .await;
    let machine = applied(tenant, "web").await;
    match absent {
        "kite-vm-status" => assert_eq!(
            machine.status.as_ref().unwrap().observed_generation,
            Some(-1)
        ),
        "kite-service" => {
            let machine = tenant.ready("web").await;
            assert!(condition::find(conditions(&machine), SERVICE_READY).is_none());
        }
        "kite-datavolume" => {
            let machine = tenant.ready("web").await;
            assert!(condition::find(conditions(&machine), DISK_READY).is_none());
            assert_eq!(machine.status.unwrap().phase, Some(Phase::Running));
        }
        _ => drop(tenant.ready("web").await),
    }
    // Repair needs none of the three that tell.
    tenant
        .api::<Service>()
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    tenant.until("web", REPAIR, |_: &Service| true).await;
}

/// The one that was away comes back and all is as if it had been there.
async fn caught_up(tenant: &Tenant<'_>, absent: &str) {
    let machine = tenant.ready("web").await;
    for type_ in [SERVICE_READY, DISK_READY, READY] {
        let known = tenant
            .until("web", LONG, |m: &KiteVirtualMachine| {
                is_true(conditions(m), type_)
            })
            .await;
        assert_eq!(known.metadata.uid, machine.metadata.uid, "{absent}");
    }
    let foreground = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Foreground),
        ..DeleteParams::default()
    };
    tenant
        .api::<KiteVirtualMachine>()
        .delete("web", &foreground)
        .await
        .unwrap();
    tenant.machine_gone("web").await;
    if absent != "kite-user" {
        tenant.delete_user().await;
        // With others still needed the brake lets one go; the last is held, which is its work.
        let namespaces: Api<Namespace> = Api::all(tenant.client.clone());
        let orphaned = wait::wait_for(
            &namespaces,
            &tenant.name,
            Duration::from_mins(1),
            |n: &Option<Namespace>| {
                n.as_ref().is_none_or(|n| {
                    n.metadata
                        .annotations
                        .iter()
                        .flatten()
                        .any(|(k, _)| k == kite_api::labels::ORPHANED_SINCE)
                })
            },
        );
        orphaned.await.unwrap();
    }
}
