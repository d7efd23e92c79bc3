//! What Kite stands on: the control plane with its kinds, and the stand-ins for KubeVirt and CDI.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};
use futures::future::join;
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleRef, Subject};
use kite_testkit::process::Process;
use kite_testkit::wait::eventually;
use kite_testkit::{ControlPlane, Options, install};
use kube::Api;
use kube::api::PostParams;
use kube::core::ObjectMeta;

use super::cluster::{Plan, START_LIMIT};
use super::report::Report;

/// The binary and process of the stand-ins.
pub(super) const STAND_INS: &str = "kite-stand-ins";
/// Who plays KubeVirt and CDI, as the audit log calls it.
const STAND_IN_ACCOUNT: (&str, &str) = ("kubevirt", "kubevirt-stand-in");
/// What the stand-ins log when their webhooks are registered.
const STAND_INS_RUN: &str = "are running";

/// The controllers of Kubernetes come last: its garbage collector learns the
/// kinds that are there when it starts, and looks for others only every 30 s.
pub(super) async fn start_control_plane(plan: &Plan, report: &Report) -> Result<ControlPlane> {
    let options = Options {
        folder: Some(plan.files.folder().to_owned()),
        audit_log: Some(plan.files.audit_log()),
        controller_manager: false,
        scheduler: plan.helm,
        ..Options::default()
    };
    let control_plane = ControlPlane::start(options).await?;
    fs::copy(control_plane.admin_kubeconfig(), plan.files.kubeconfig())?;
    let times = control_plane.start_times();
    report.line(&format!(
        "etcd and kube-apiserver run ({:.1} s and {:.1} s)",
        times.etcd.as_secs_f64(),
        times.apiserver.as_secs_f64()
    ));
    if plan.helm {
        install::upstream_crds(&control_plane).await?;
        report.line("CRDs of KubeVirt and CDI are served; Kite's come with its charts");
    } else {
        let crds = join(
            install::kite_crds(&control_plane),
            install::upstream_crds(&control_plane),
        );
        let (kite, upstream) = crds.await;
        kite?;
        upstream?;
        report.line("CRDs of Kite, KubeVirt and CDI are served");
    }
    control_plane.start_controller_manager().await?;
    let time = control_plane.start_times().controller_manager;
    report.line(&format!(
        "kube-controller-manager works ({:.1} s)",
        time.as_secs_f64()
    ));
    Ok(control_plane)
}

/// Starts the stand-ins, and waits until their webhooks are registered.
pub(super) async fn start_stand_ins(
    plan: &Plan,
    control_plane: &ControlPlane,
    report: &Report,
) -> Result<Process> {
    let (namespace, account) = STAND_IN_ACCOUNT;
    let identity = control_plane.identity(namespace, account).await?;
    bind_to_cluster_admin(control_plane).await?;
    let mut command = Command::new(plan.binaries.join(STAND_INS));
    command
        .arg("--kubeconfig")
        .arg(identity.kubeconfig())
        .args(["--speed", &plan.speed.to_string()]);
    let process = Process::start(STAND_INS, command, &plan.files.log(STAND_INS))?;
    eventually(STAND_INS, START_LIMIT, async || {
        let runs = process.log_tail(20).contains(STAND_INS_RUN);
        (runs || process.exited().is_some()).then_some(())
    })
    .await
    .with_context(|| process.log_tail(20))?;
    if let Some(status) = process.exited() {
        bail!("{STAND_INS} ended ({status}):\n{}", process.log_tail(20));
    }
    report.line(&format!(
        "stand-ins for KubeVirt and CDI run at speed {}",
        plan.speed
    ));
    Ok(process)
}

/// KubeVirt's and CDI's own operators are as mighty; Kite never is.
async fn bind_to_cluster_admin(control_plane: &ControlPlane) -> Result<()> {
    let (namespace, account) = STAND_IN_ACCOUNT;
    let binding = ClusterRoleBinding {
        metadata: ObjectMeta {
            name: Some(account.to_owned()),
            ..ObjectMeta::default()
        },
        role_ref: RoleRef {
            api_group: "rbac.authorization.k8s.io".to_owned(),
            kind: "ClusterRole".to_owned(),
            name: "cluster-admin".to_owned(),
        },
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".to_owned(),
            name: account.to_owned(),
            namespace: Some(namespace.to_owned()),
            ..Subject::default()
        }]),
    };
    Api::all(control_plane.admin_client().await?)
        .create(&PostParams::default(), &binding)
        .await?;
    Ok(())
}
