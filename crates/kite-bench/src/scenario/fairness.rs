//! Whether the charts' FlowSchemas help: a noisy tenant and a quiet one on a server that admits few
//! requests at a time, as one of two processors should, without them and with them.
//!
//! A server admits hundreds of requests at once by default, which two processors cannot work on;
//! nothing waits in its queues then, and whose turn it is is decided nowhere.

use anyhow::{Context as _, Result};
use kite_testkit::helm::{Charts, Helm, PARTS};
use kite_testkit::install::SYSTEM_NAMESPACE;

use super::noisy::{P99, storm};
use crate::contest::Contestant;
use crate::ground::GroundOptions;
use crate::report::Measured;

/// How many requests such a server works on at a time.
const FEW: [&str; 2] = [
    "--max-requests-inflight=16",
    "--max-mutating-requests-inflight=8",
];

/// Runs it.
pub async fn run(machines: usize) -> Result<Vec<Measured>> {
    let mut found = Vec::new();
    for (contestant, manifests) in [
        ("without FlowSchemas", None),
        ("with FlowSchemas", Some(flow_schemas().await?)),
    ] {
        println!("-- {contestant}");
        let options = GroundOptions {
            apiserver_args: FEW.map(str::to_owned).to_vec(),
            manifests,
            ..GroundOptions::timed()
        };
        let storm = storm(options, machines, Contestant::Kite).await?;
        let measured = Measured::new("fairness", contestant, machines);
        found.push(storm.parts(storm.whole(measured), &[P99]));
    }
    Ok(found)
}

/// The FlowSchemas of all six, as the umbrella chart has them.
async fn flow_schemas() -> Result<String> {
    let charts = Charts::gathered().await?;
    let umbrella = charts.path("kite");
    let values: Vec<String> = PARTS
        .iter()
        .map(|(part, _)| format!("{part}.flowSchema.enabled=true"))
        .collect();
    let values = values.join(",");
    let args = [
        "template",
        "kite",
        &umbrella,
        "--namespace",
        SYSTEM_NAMESPACE,
        "--set",
        &values,
    ];
    let rendered = Helm::Four.offline(&args).await?.ok();
    let rendered = rendered.context("helm template")?;
    let documents = rendered.split("\n---\n");
    let schemas: Vec<&str> = documents
        .filter(|text| text.lines().any(|line| line == "kind: FlowSchema"))
        .collect();
    Ok(schemas.join("\n---\n"))
}
