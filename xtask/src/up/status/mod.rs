//! `cargo xtask status`: who works, and which objects nobody keeps any more.
//!
//! It asks the API server and the processes of the cluster that `up` started,
//! and writes nothing.

mod evaluate;

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use futures::future::join_all;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kite_api::labels::Controller;
use kite_api::{KiteUser, KiteVirtualMachine};
use kite_testkit::install::SYSTEM_NAMESPACE;
use kite_testkit::{http_get, kubeconfig};
use kube::api::ListParams;
use kube::config::Kubeconfig;
use kube::{Api, Client, ResourceExt};

use super::cluster::identity;
use super::down::is_alive;
use super::files::{Files, Running};
use super::lock::Lock;
use super::report::{block_on, tell};
use super::table::Table;
use evaluate::{Keeper, Seen, keeper, neglected};

/// `cargo xtask status`.
pub(crate) fn run() -> Result<()> {
    let files = Files::of_up();
    if Lock::holder(&files)?.is_none() {
        bail!("no cluster runs; `cargo xtask up` starts one");
    }
    let running = files.read_processes()?;
    if running.is_empty() {
        bail!("the cluster is still starting");
    }
    block_on(show(&files, &running))
}

async fn show(files: &Files, running: &[Running]) -> Result<()> {
    let config = Kubeconfig::read_from(files.kubeconfig())?;
    let client = kubeconfig::client(config).await?;
    let leases = leases(&client)
        .await
        .context("the API server does not answer; its log is target/up/logs/kube-apiserver.log")?;
    let now = Timestamp::now();
    let has_ended = |who: Controller, holder: &str| {
        let ours = holder == identity(who);
        ours && !running.iter().any(|p| p.name == who.name() && is_alive(p))
    };
    let keepers: BTreeMap<Controller, Keeper> = Controller::ALL
        .into_iter()
        .map(|who| {
            let lease = leases.get(who.name());
            (who, keeper(lease, now, |holder| has_ended(who, holder)))
        })
        .collect();
    let lines = Controller::ALL.map(|who| controller_line(who, running, &keepers));
    let mut table = Table::new(["CONTROLLER", "PROCESS", "READY", "LEASE", "RENEWED", ""]);
    for line in join_all(lines).await {
        table.row(line);
    }
    tell(&format!("{table}\n"));
    tell(&format!("{}\n", other_processes(running)));
    tell(&objects(&client, &keepers).await?);
    Ok(())
}

async fn leases(client: &Client) -> Result<BTreeMap<String, Lease>> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), SYSTEM_NAMESPACE);
    let list = leases.list(&ListParams::default()).await?;
    Ok(list
        .into_iter()
        .map(|lease| (lease.name_any(), lease))
        .collect())
}

async fn controller_line(
    who: Controller,
    running: &[Running],
    keepers: &BTreeMap<Controller, Keeper>,
) -> Vec<String> {
    let process = running.iter().find(|process| process.name == who.name());
    let alive = process.filter(|process| is_alive(process));
    let process_text = match (process, alive) {
        (None, _) => "not started".to_owned(),
        (Some(_), None) => "ended".to_owned(),
        (Some(process), Some(_)) => format!("pid {}", process.pid),
    };
    let ready = match alive {
        Some(process) => readiness(process).await,
        None => "–".to_owned(),
    };
    let keeper = keepers.get(&who).cloned().unwrap_or(Keeper::Never);
    let mut line = vec![who.name().to_owned(), process_text, ready];
    line.extend(keeper.cells());
    line
}

async fn readiness(process: &Running) -> String {
    let Some(address) = process.metrics else {
        return "–".to_owned();
    };
    match http_get::get(address, "/readyz?verbose").await {
        Ok((200, _)) => "ready".to_owned(),
        Ok((_, body)) => format!("no: {}", evaluate::missing(&body)),
        Err(_) => "no answer".to_owned(),
    }
}

fn other_processes(running: &[Running]) -> String {
    let others = running
        .iter()
        .filter(|process| Controller::ALL.iter().all(|who| who.name() != process.name));
    let words = others.map(|process| {
        let state = if is_alive(process) { "runs" } else { "ended" };
        format!("{} {state}", process.name)
    });
    words.collect::<Vec<_>>().join(", ")
}

async fn objects(client: &Client, keepers: &BTreeMap<Controller, Keeper>) -> Result<String> {
    let everything = ListParams::default();
    let machines: Api<KiteVirtualMachine> = Api::all(client.clone());
    let users: Api<KiteUser> = Api::all(client.clone());
    let machines = machines.list(&everything).await?.items;
    let users = users.list(&everything).await?.items;
    let mut seen: Vec<Seen> = users.iter().map(Seen::user).collect();
    seen.extend(machines.iter().map(Seen::machine));
    let mut table = Table::new(["OBJECT", "NOT KEPT BY", "WHY", "WHAT IT STILL SAYS"]);
    let mut count = 0;
    for line in seen.iter().flat_map(|object| neglected(object, keepers)) {
        table.row(line.cells());
        count += 1;
    }
    let counts = format!("users: {}, machines: {}", users.len(), machines.len());
    Ok(if count == 0 {
        format!("{counts}; every status is kept")
    } else {
        format!("{counts}; these say what nobody keeps at the moment:\n\n{table}")
    })
}
