//! Whether the charts' FlowSchemas help: a noisy tenant and a quiet one on a server that admits few
//! requests at a time, as one of two processors should, without them and with them.
//!
//! A server admits hundreds of requests at once by default, which two processors cannot work on;
//! nothing waits in its queues then, and whose turn it is is decided nowhere.

use anyhow::Result;
use kite_testkit::helm::{Charts, Helm, PARTS};
use kube::api::DynamicObject;

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
    for (contestant, more) in [
        ("without FlowSchemas", Vec::new()),
        ("with FlowSchemas", flow_schemas().await?),
    ] {
        println!("-- {contestant}");
        let options = GroundOptions {
            apiserver_args: FEW.map(str::to_owned).to_vec(),
            more,
            ..GroundOptions::timed()
        };
        let storm = storm(options, machines, Contestant::Kite).await?;
        let measured = Measured::new("fairness", contestant, machines);
        found.push(storm.parts(storm.whole(measured), &[P99]));
    }
    Ok(found)
}

/// The FlowSchemas of all six, as the umbrella chart has them.
async fn flow_schemas() -> Result<Vec<DynamicObject>> {
    let charts = Charts::gathered().await?;
    let values = PARTS.map(|(part, _)| format!("--set={part}.flowSchema.enabled=true"));
    let rendered = Helm::Four.rendered(&charts.path("kite"), &values).await?;
    let schemas = rendered.into_iter().filter(|o| o["kind"] == "FlowSchema");
    Ok(schemas
        .map(serde_json::from_value)
        .collect::<Result<_, _>>()?)
}
