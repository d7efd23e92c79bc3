//! Others change what Kite made; Kite puts it back.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Service;
use kite_api::KiteVirtualMachine;
use kube::api::DynamicObject;
use kube::{Api, ResourceExt};

use super::{MACHINE, USER, instances, machine_until, machines, virtual_machines};
use crate::demo::follow::wait;
use crate::demo::machine::runs;
use crate::demo::story::Story;

/// Within this, whoever changed it (rule U-8, E-2).
const LIMIT: Duration = Duration::from_secs(5);
/// After this it is looked once more whether the repair has held.
const HOLD: Duration = Duration::from_secs(2);

/// A deleted Service is made again.
pub(super) async fn service(story: &Story<'_>) -> Result<()> {
    let services: Api<Service> = Api::namespaced(story.client.clone(), USER);
    let before = services.get(MACHINE).await?;
    let delete = ["delete", "service", MACHINE, "-n", USER];
    let began = Instant::now();
    story.kubectl.run(&delete).await?;
    let repaired =
        |service: Option<&Service>| service.is_some_and(|service| service.uid() != before.uid());
    let new = wait(story.report, &services, MACHINE, LIMIT, repaired).await?;
    repaired_after(story, "there is a Service again", began);
    let new = new.context("there is no Service")?;
    let facts = |service: Service| {
        let spec = service.spec.unwrap_or_default();
        (spec.selector, spec.ports.map(|ports| ports.len()))
    };
    let (old, new) = (facts(before), facts(new));
    ensure!(old == new, "the new Service differs: {old:?}, {new:?}");
    machine_until(story, runs).await?;
    Ok(())
}

/// `virtctl stop`, or this, is not how a machine of Kite is switched off.
pub(super) async fn power(story: &Story<'_>) -> Result<()> {
    let halt = r#"{"spec":{"runStrategy":"Halted"}}"#;
    let patch = [
        "patch",
        "vm",
        MACHINE,
        "-n",
        USER,
        "--type=merge",
        "-p",
        halt,
    ];
    let began = Instant::now();
    story.kubectl.run(&patch).await?;
    let foreign = virtual_machines(&story.client);
    let strategy = |machine: &DynamicObject| machine.data["spec"]["runStrategy"] == "Always";
    let repaired = |machine: Option<&DynamicObject>| machine.is_some_and(strategy);
    wait(story.report, &foreign, MACHINE, LIMIT, repaired).await?;
    repaired_after(story, "its run strategy is Always again", began);
    machine_until(story, runs).await?;
    // KubeVirt may have begun to stop it in between; then it has to come back.
    tokio::time::sleep(HOLD).await;
    let holds = |machine: Option<&KiteVirtualMachine>| machine.is_some_and(runs);
    let machine = machines(&story.client);
    wait(story.report, &machine, MACHINE, story.limit, holds).await?;
    let instance = instances(&story.client).get(MACHINE).await?;
    ensure!(
        instance.data["status"]["phase"] == "Running",
        "KubeVirt says something else: {}",
        instance.data["status"]
    );
    let about = format!("kitevirtualmachine/{MACHINE}");
    let events = ["events", "-n", USER, "--for", &about];
    story.kubectl.run(&events).await
}

fn repaired_after(story: &Story<'_>, what: &str, began: Instant) {
    story.report.line(&format!(
        "  repaired: {what}, {:.2} s after the command",
        began.elapsed().as_secs_f64()
    ));
}
