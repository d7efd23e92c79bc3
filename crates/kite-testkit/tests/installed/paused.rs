//! Controllers that are scaled to nothing and back.

use std::time::Instant;

use kite_api::KiteVirtualMachine;
use kite_api::condition::{READY, SERVICE_READY};
use kite_api::machine::{Phase, PowerState};
use kite_kubevirt::read::VirtualMachine;
use kite_testkit::install::SYSTEM_NAMESPACE;
use kite_testkit::installed::Installed;
use kite_testkit::tenant::{LONG, Tenant, condition_of, is_ready, phase};
use kite_testkit::wait::eventually;
use serde_json::json;

use crate::release::kubectl;

const PAUSED: [&str; 2] = ["kite-vm-status", "kite-service"];

// C-11: what a paused controller has said stays, and shows that it is old; it catches up.
pub(crate) async fn what_a_paused_controller_said_grows_old_and_catches_up(
    on: &Installed,
    tenant: &Tenant<'_>,
) {
    let running = tenant.ready("web").await;
    scale(on, 0).await;
    let ended = async || {
        let pods = on.agent.pods(SYSTEM_NAMESPACE);
        let alive = pods.iter().any(|pod| {
            PAUSED
                .iter()
                .any(|name| pod.starts_with(&format!("{name}-")))
        });
        (!alive).then_some(())
    };
    eventually("pods that end", LONG, ended).await.unwrap();

    // When the machine is switched off, that is done, and nobody says so.
    let off = json!({"spec": {"powerState": PowerState::Off}});
    tenant.edit::<KiteVirtualMachine>("web", off).await;
    tenant.applied("web").await;
    let stopped = |vm: &VirtualMachine| vm.printable_status() == "Stopped";
    tenant.until("web", LONG, stopped).await;
    let stale: KiteVirtualMachine = tenant.api().get("web").await.unwrap();
    for type_ in [READY, SERVICE_READY] {
        let said = |machine| condition_of(machine, type_).cloned();
        assert_eq!(said(&stale), said(&running), "what was said stays");
        let of = said(&stale).unwrap().observed_generation;
        assert!(of < stale.metadata.generation, "{type_} is of {of:?}");
    }
    assert!(!is_ready(&stale));
    let row = kubectl(on, &["get", "kitevirtualmachines", "-n", &tenant.name]).await;
    assert!(row.contains("web ") && row.contains("Running"), "{row}");

    let start = Instant::now();
    scale(on, 1).await;
    let caught_up = |m: &KiteVirtualMachine| {
        let service = condition_of(m, SERVICE_READY).and_then(|c| c.observed_generation);
        is_ready(m) && phase(m) == Some(Phase::Stopped) && service == m.metadata.generation
    };
    tenant.until("web", LONG, caught_up).await;
    println!(
        "{:5.1} s  to catch up once scaled to 1",
        start.elapsed().as_secs_f32()
    );
    for controller in PAUSED {
        on.rolled_out(controller).await.unwrap();
    }
}

async fn scale(on: &Installed, replicas: usize) {
    let replicas = format!("--replicas={replicas}");
    let line = ["scale", "-n", SYSTEM_NAMESPACE, &replicas, "deployment"];
    kubectl(on, &[&line[..], &PAUSED].concat()).await;
}
