//! How the servers are started: flags, ports, waiting for them to answer.
//!
//! Every flag that differs from a default is there for speed or because there
//! is no real network; authorization, admission and API machinery are as in a
//! real cluster.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use kube::Client;
use serde_json::json;
use tokio::net::TcpStream;

use crate::pki::Pki;
use crate::process::Process;

/// Between tries while a server starts.
const READY_POLL: Duration = Duration::from_millis(50);

/// A server that is not there by now has failed; two busy cores need a while.
pub(super) const START_LIMIT: Duration = Duration::from_mins(2);

/// Ports are taken from below the range that outgoing connections use, or one of
/// those could take a server's port while it restarts.
const FIRST_PORT: u16 = 18_000;
const PORTS: u16 = 12_000;

/// What a server says when another process was faster to take its port.
pub(super) const PORT_TAKEN: &str = "address already in use";

/// A loopback port that nobody listens on now.
pub fn free_port() -> Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Each process starts elsewhere, so that parallel test binaries rarely meet.
    let start = u16::try_from(std::process::id() % u32::from(PORTS))?;
    for _ in 0..PORTS {
        let step = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(7);
        let port = FIRST_PORT + start.wrapping_mul(31).wrapping_add(step) % PORTS;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no free port on loopback")
}

/// Starts etcd and waits until it accepts connections.
pub(super) async fn start_etcd(program: &Path, folder: &Path) -> Result<(Process, u16)> {
    let port = free_port()?;
    let url = format!("http://127.0.0.1:{port}");
    let mut command = Command::new(program);
    command
        .arg("--data-dir")
        .arg(folder.join("etcd"))
        .args(["--listen-client-urls", &url])
        .args(["--advertise-client-urls", &url])
        // The only member; nobody calls it here.
        .args(["--listen-peer-urls", "http://127.0.0.1:0"])
        .args(["--unsafe-no-fsync", "--log-level=warn"]);
    let process = Process::start("etcd", command, &folder.join("logs/etcd.log"))?;
    let deadline = Instant::now() + START_LIMIT;
    while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        still_starting(&process, deadline)?;
        tokio::time::sleep(READY_POLL).await;
    }
    Ok((process, port))
}

/// What the API server's flags are made from.
pub(super) struct ApiServer<'a> {
    pub(super) program: &'a Path,
    pub(super) folder: &'a Path,
    pub(super) pki: &'a Pki,
    pub(super) port: u16,
    pub(super) etcd_port: u16,
    pub(super) audit_log: Option<&'a Path>,
    pub(super) more: &'a [String],
}

impl ApiServer<'_> {
    /// Starts it; it is not ready yet.
    pub(super) fn start(&self) -> Result<Process> {
        let signing = &self.pki.service_account_key_file;
        let checking = &self.pki.service_account_public_file;
        let mut command = Command::new(self.program);
        command
            .arg(format!(
                "--etcd-servers=http://127.0.0.1:{}",
                self.etcd_port
            ))
            .arg(format!("--secure-port={}", self.port))
            .args(["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1"])
            // Endpoints may not be loopback addresses.
            .arg("--endpoint-reconciler-type=none")
            .args(["--authorization-mode=Node,RBAC", "--allow-privileged=true"])
            .arg("--service-cluster-ip-range=10.0.0.0/16")
            .arg("--service-account-issuer=https://kubernetes.default.svc")
            .args([Path::new("--client-ca-file"), &self.pki.ca_file])
            .args([Path::new("--tls-cert-file"), &self.pki.server_cert_file])
            .args([
                Path::new("--tls-private-key-file"),
                &self.pki.server_key_file,
            ])
            .args([Path::new("--service-account-key-file"), checking])
            .args([Path::new("--service-account-signing-key-file"), signing]);
        if let Some(log) = self.audit_log {
            command
                .arg("--audit-policy-file")
                .arg(self.audit_policy()?)
                .arg("--audit-log-path")
                .arg(log)
                // Counting needs one file and every request in it.
                .args(["--audit-log-mode=blocking", "--audit-log-maxsize=0"]);
        }
        command.args(self.more);
        let log = self.folder.join("logs/kube-apiserver.log");
        Process::start("kube-apiserver", command, &log)
    }

    fn audit_policy(&self) -> Result<std::path::PathBuf> {
        let path = self.folder.join("audit-policy.json");
        let policy = json!({
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived"],
            "rules": [{"level": "Metadata"}],
        });
        std::fs::write(&path, policy.to_string())?;
        Ok(path)
    }
}

/// Waits until the server answers that it is ready.
pub(super) async fn wait_ready(process: &Process, client: &Client) -> Result<()> {
    let deadline = Instant::now() + START_LIMIT;
    loop {
        let request = http::Request::get("/readyz").body(Vec::new())?;
        let answer = client.request_text(request);
        let answer = tokio::time::timeout(Duration::from_secs(5), answer).await;
        if matches!(answer, Ok(Ok(_))) {
            return Ok(());
        }
        still_starting(process, deadline)?;
        tokio::time::sleep(READY_POLL).await;
    }
}

/// Starts the controllers of Kubernetes.
pub(super) fn start_controller_manager(
    program: &Path,
    folder: &Path,
    pki: &Pki,
    kubeconfig: &Path,
    without: &[&str],
) -> Result<Process> {
    let mut command = Command::new(program);
    // Stand-in nodes have no kubelet that would renew their leases.
    let without = without.iter().chain(&["node-lifecycle-controller"]);
    let without: Vec<String> = without.map(|name| format!(",-{name}")).collect();
    command
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .arg("--service-account-private-key-file")
        .arg(&pki.service_account_key_file)
        .arg("--root-ca-file")
        .arg(&pki.ca_file)
        .arg(format!("--controllers=*{}", without.concat()))
        .args(["--use-service-account-credentials", "--leader-elect=false"])
        .arg("--secure-port=0")
        // Clean-up and quota within seconds, also when many tests share them.
        .args(["--kube-api-qps=300", "--kube-api-burst=600"])
        .args([
            "--namespace-sync-period=30s",
            "--resource-quota-sync-period=30s",
        ]);
    let log = folder.join("logs/kube-controller-manager.log");
    Process::start("kube-controller-manager", command, &log)
}

/// Starts what gives pods their nodes.
pub(super) fn start_scheduler(program: &Path, folder: &Path, kubeconfig: &Path) -> Result<Process> {
    let mut command = Command::new(program);
    command
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args(["--leader-elect=false", "--secure-port=0"])
        .args(["--kube-api-qps=300", "--kube-api-burst=600"]);
    let log = folder.join("logs/kube-scheduler.log");
    Process::start("kube-scheduler", command, &log)
}

fn still_starting(process: &Process, deadline: Instant) -> Result<()> {
    if let Some(status) = process.exited() {
        bail!(
            "{} ended while starting ({status}):\n{}",
            process.name(),
            process.log_tail(30)
        );
    }
    if Instant::now() >= deadline {
        bail!(
            "{} does not answer after {} s:\n{}",
            process.name(),
            START_LIMIT.as_secs(),
            process.log_tail(30)
        );
    }
    Ok(())
}
