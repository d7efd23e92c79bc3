//! Kite as an administrator installs it: the umbrella chart, Helm 4, the real
//! scheduler, and a stand-in for the nodes that starts the local binaries.
//!
//! It chooses no values but the times that follow the pace of the stand-ins.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use kite_api::labels::Controller;
use kite_testkit::helm::{Charts, Helm};
use kite_testkit::install::SYSTEM_NAMESPACE;
use kite_testkit::{AgentOptions, ControlPlane, NodeAgent};

use super::cluster::{Plan, flags};
use super::member::Member;
use super::report::Report;
use crate::generate::camel;

/// Where the charts have a process tell of its health and its metrics.
const PORT: u16 = 8080;

/// Kite after Helm said that all is ready.
pub(super) struct Installed {
    pub(super) nodes: NodeAgent,
    pub(super) members: Vec<Member>,
    pub(super) took: Duration,
}

/// Installs everything and waits until it is ready.
pub(super) async fn install(
    plan: &Plan,
    control_plane: &ControlPlane,
    report: &Report,
) -> Result<Installed> {
    let nodes = NodeAgent::start(control_plane, AgentOptions::default()).await?;
    report.line("kube-scheduler works, and a stand-in for two nodes starts the local binaries");
    let charts = Charts::gathered().await?;
    let values = values(plan);
    let values: Vec<_> = values.iter().map(String::as_str).collect();
    report.line("helm install kite charts/kite --namespace kite-system --create-namespace --wait");
    let began = Instant::now();
    Helm::Four
        .install(control_plane, &charts, "kite", &values)
        .await?;
    let took = began.elapsed();
    report.line(&format!(
        "Helm says that all is ready ({:.1} s)",
        took.as_secs_f64()
    ));
    // The garbage collector looks for new kinds every 30 s only.
    control_plane.restart_controller_manager().await?;
    let members = Controller::ALL
        .into_iter()
        .map(|controller| member(&nodes, controller))
        .collect::<Result<_>>()?;
    Ok(Installed {
        nodes,
        members,
        took,
    })
}

/// The flags as values of the umbrella.
fn values(plan: &Plan) -> Vec<String> {
    let mut values = Vec::new();
    for controller in Controller::ALL {
        for pair in flags(plan, controller).chunks(2) {
            if let [flag, value] = pair {
                let part = camel(controller.name().trim_start_matches("kite-"));
                let name = camel(flag.trim_start_matches("--"));
                values.push(format!("--set={part}.{name}={value}"));
            }
        }
    }
    values
}

fn member(nodes: &NodeAgent, controller: Controller) -> Result<Member> {
    let name = controller.name();
    let pod = nodes.pods_of(SYSTEM_NAMESPACE, name).pop();
    let pod = pod.with_context(|| format!("no pod of {name} has a process"))?;
    let address = nodes.address(SYSTEM_NAMESPACE, &pod);
    let address = address.with_context(|| format!("{pod} has no address"))?;
    Ok(Member::pod_of(
        controller,
        nodes.process(SYSTEM_NAMESPACE, &pod)?,
        SocketAddr::from((address, PORT)),
        nodes.log(SYSTEM_NAMESPACE, &pod, name),
    ))
}
