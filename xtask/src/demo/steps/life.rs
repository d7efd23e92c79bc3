//! A machine's life as its owner sees it.

use anyhow::{Result, ensure};
use kite_api::machine::Phase;
use kube::ResourceExt;
use serde_json::json;

use super::{MACHINE, USER, instances, machine_until, machines, patch};
use crate::demo::machine::{is_off, phase, progress, runs};
use crate::demo::story::Story;
use crate::up::IMAGE;

/// From one object to a machine that runs and can be reached.
pub(super) async fn create(story: &Story<'_>) -> Result<()> {
    let apply = ["apply", "-f", "docs/examples/machine.yaml"];
    story.kubectl.run(&apply).await?;
    let mut phases: Vec<Phase> = Vec::new();
    let mut shares: Vec<u32> = Vec::new();
    machine_until(story, |machine| {
        phases.extend(phase(machine));
        phases.dedup();
        shares.extend(progress(machine));
        shares.dedup();
        runs(machine)
    })
    .await?;
    ensure!(
        shares.len() > 1 && shares.is_sorted(),
        "the clone's progress was not seen to grow: {shares:?}"
    );
    ensure!(
        phases.first() == Some(&Phase::Provisioning),
        "a machine is provisioned before it runs; its phases were {phases:?}"
    );
    let instance = instances(&story.client).get(MACHINE).await?;
    ensure!(
        instance.data["status"]["phase"] == "Running",
        "KubeVirt says something else: {}",
        instance.data["status"]
    );
    story.kubectl.run(&["get", "kite", "-A"]).await
}

/// Off means that nothing runs.
pub(super) async fn off(story: &Story<'_>) -> Result<()> {
    patch(story, r#"{"powerState":"Off"}"#).await?;
    machine_until(story, is_off).await?;
    let instance = instances(&story.client).get_opt(MACHINE).await?;
    ensure!(instance.is_none(), "an instance still runs: {instance:?}");
    Ok(())
}

/// On means that it runs and is reached.
pub(super) async fn on(story: &Story<'_>) -> Result<()> {
    patch(story, r#"{"powerState":"On"}"#).await?;
    machine_until(story, runs).await?;
    story.kubectl.run(&["get", "ktvm", "-n", USER]).await
}

/// The server itself says what is wrong, all of it at once, and changes nothing.
pub(super) async fn refused(story: &Story<'_>) -> Result<()> {
    let api = machines(&story.client);
    let before = api.get(MACHINE).await?;
    let smaller = r#"{"spec":{"disk":"10Gi"}}"#;
    let arguments = [
        "patch",
        "ktvm",
        MACHINE,
        "-n",
        USER,
        "--type=merge",
        "-p",
        smaller,
    ];
    let said = story.kubectl.refused(&arguments, "").await?;
    expect(&said, &["disk only grows"])?;
    let impossible = json!({
        "apiVersion": "kite.dev/v1alpha1",
        "kind": "KiteVirtualMachine",
        "metadata": {"name": "web", "namespace": USER},
        "spec": {"cpu": 2, "memory": "4", "disk": "25Gi", "image": IMAGE, "loginUser": "root"},
    });
    let text = serde_json::to_string_pretty(&impossible)?;
    let said = story.kubectl.refused(&["apply", "-f", "-"], &text).await?;
    expect(
        &said,
        &["memory must be between", "loginUser must not be root"],
    )?;
    let after = api.get(MACHINE).await?;
    ensure!(
        before.metadata.generation == after.metadata.generation,
        "the refused change left something behind"
    );
    let web = api.get_opt("web").await?;
    ensure!(
        web.is_none(),
        "{} was made",
        web.map(|w| w.name_any()).unwrap_or_default()
    );
    Ok(())
}

fn expect(said: &str, words: &[&str]) -> Result<()> {
    for word in words {
        ensure!(
            said.contains(word),
            "the refusal does not say {word:?}: {said}"
        );
    }
    Ok(())
}
