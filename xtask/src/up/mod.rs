//! `cargo xtask up`, `down` and `status`: Kite on a real control plane, to play with.
//!
//! One process keeps all others as its children and ends them in the right
//! order: the one in the foreground, or with `--detach` a second copy of this
//! program in a session of its own. Its files are in `target/up`, always under
//! the same names.

mod build;
mod cluster;
mod detach;
mod down;
mod files;
mod ground;
mod lock;
mod member;
mod options;
mod pods;
mod report;
mod status;
mod table;

use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use kite_testkit::install;
use kite_testkit::programs::{self, Program};

pub(crate) use build::{Profile, prepare};
pub(crate) use cluster::{Cluster, IMAGE, IMAGE_NAMESPACE, Plan, publish};
pub(crate) use files::Files;
pub(crate) use lock::Lock;
pub(crate) use options::{Speed, UpOptions};
pub(crate) use report::{Interrupts, Report, block_on, tell};
pub(crate) use table::Table;

pub(crate) use down::run as down;
pub(crate) use status::run as status;

/// How often it is looked whether a process has ended.
const LOOK: Duration = Duration::from_millis(500);

/// `cargo xtask up`.
pub(crate) fn run(options: &UpOptions) -> Result<()> {
    if options.supervised {
        detach::become_independent()?;
        return block_on(keep(options));
    }
    let files = Files::of_up();
    if let Some(pid) = Lock::holder(&files)? {
        bail!(
            "a cluster runs already (process {pid}); `cargo xtask status` shows it, \
             `cargo xtask down` ends it"
        );
    }
    if options.detach {
        return block_on(detach::run(options, &files));
    }
    block_on(keep(options))
}

/// Starts the cluster and keeps it until a signal.
async fn keep(options: &UpOptions) -> Result<()> {
    let report = Report::new();
    let mut interrupts = Interrupts::new()?;
    let files = Files::of_up();
    let Some(lock) = Lock::take(&files)? else {
        bail!("a cluster runs already; `cargo xtask down` ends it");
    };
    let work = async {
        let binaries = prepare(options.profile(), false, &report).await?;
        let plan = Plan {
            files: files.clone(),
            binaries,
            without: options.without.clone(),
            stand_ins: !options.no_stand_ins,
            speed: options.speed,
            namespace_grace: None,
            helm: false,
        };
        let cluster = Cluster::start(&plan, &report).await?;
        furnish(&cluster, &report).await?;
        Ok(cluster)
    };
    let started = tokio::select! {
        started = work => started,
        () = interrupts.next() => {
            Err(anyhow!("stopped before it was ready; nothing is left running"))
        }
    };
    if started.is_err() {
        files.remove_running()?;
    }
    let cluster = started?;
    explain(&cluster, options, &report).await?;
    // The last file: who waits for the cluster waits for this.
    cluster.write_processes()?;
    tokio::select! {
        () = interrupts.next() => {}
        () = watch(&cluster, &report) => {}
    }
    report.line("stopping");
    cluster.shutdown().await;
    files.remove_running()?;
    drop(lock);
    report.line("stopped; the logs are kept in target/up");
    Ok(())
}

/// What an administrator would have done before anybody works on the cluster.
async fn furnish(cluster: &Cluster, report: &Report) -> Result<()> {
    let client = cluster.control_plane().admin_client().await?;
    let platform = crate::workspace::root().join("docs/examples/platform.yaml");
    install::apply_paths(&client, &[platform]).await?;
    publish(cluster).await?;
    report.line(&format!(
        "KitePlatform applied, image {IMAGE} published{}",
        if cluster.has_stand_ins() {
            ""
        } else {
            "; nobody plays KubeVirt and CDI, so no image gets ready and no disk is filled"
        }
    ));
    Ok(())
}

async fn explain(cluster: &Cluster, options: &UpOptions, report: &Report) -> Result<()> {
    let kubectl = programs::find_all(&[Program::Kubectl]).await?;
    let folder = kubectl[0].parent().context("kubectl is in a folder")?;
    report.line("ready\n");
    if cluster.has_stand_ins() {
        tell(&format!(
            "The API server, its RBAC, quotas and garbage collection are real, and so is Kite.\n\
             KubeVirt and CDI are stand-ins (speed {}): no guest runs, no byte is copied.\n",
            options.speed
        ));
    }
    tell(&format!(
        "  export KUBECONFIG={}\n  export PATH=$PATH:{}\n",
        cluster.files().kubeconfig().display(),
        folder.display()
    ));
    tell(
        "Then, for instance:\n\n  \
         kubectl apply -f docs/examples/user.yaml -f docs/examples/machine.yaml\n  \
         kubectl get kite -A --watch\n",
    );
    let absent = cluster.commands_of_absent();
    if !absent.is_empty() {
        let commands = absent.join("\n");
        tell(&format!(
            "Left out, to start with their own rights:\n\n{commands}\n"
        ));
    }
    tell(
        "Logs: target/up/logs; requests: target/up/audit.log; processes: target/up/processes.json",
    );
    tell(if options.supervised {
        "`cargo xtask status` shows who works; `cargo xtask down` ends it all."
    } else {
        "Ctrl-C, or `cargo xtask down`, ends it all; `cargo xtask status` shows who works."
    });
    Ok(())
}

/// Tells once of each process that ends by itself. It is not started again:
/// what then is no longer kept is what `status` is there to show.
async fn watch(cluster: &Cluster, report: &Report) {
    let mut told = Vec::new();
    loop {
        tokio::time::sleep(LOOK).await;
        for (name, status) in cluster.ended() {
            if !told.contains(&name) {
                report.line(&format!(
                    "{name} ended ({status}); its log is target/up/logs/{name}.log"
                ));
                told.push(name);
            }
        }
    }
}
