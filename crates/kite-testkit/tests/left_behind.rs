//! A control plane leaves nothing behind, however its owner ends.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use kite_testkit::wait::eventually;
use kite_testkit::{ControlPlane, Options};

/// Tells the second run of this test binary to be the owner, and where to say
/// what it owns.
const OWNER: &str = "KITE_TEST_OWNER";

const LIMIT: Duration = Duration::from_mins(2);

/// Not a test by itself: the process that the other one kills.
#[tokio::test]
async fn owner_that_waits_to_be_killed() {
    let Some(report) = env::var_os(OWNER) else {
        return;
    };
    let options = Options {
        controller_manager: false,
        ..Options::default()
    };
    let cp = ControlPlane::start(options).await.unwrap();
    let pids = [cp.etcd().pid(), cp.apiserver().unwrap().pid()];
    let owned = format!("{}\n{}\n{}", cp.folder().display(), pids[0], pids[1]);
    let report = PathBuf::from(report);
    let unfinished = report.with_extension("unfinished");
    fs::write(&unfinished, owned).unwrap();
    fs::rename(unfinished, report).unwrap();
    std::future::pending::<()>().await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_killed_owner_takes_its_servers_and_their_folder_along_and_leaves_their_logs_where_asked()
{
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report");
    let logs = folder.path().join("logs");
    let mut owner = Command::new(env::current_exe().unwrap())
        .args(["--exact", "owner_that_waits_to_be_killed"])
        .env(OWNER, &report)
        .env("KITE_LOGS_DIR", &logs)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let read = async || fs::read_to_string(&report).ok();
    let said = eventually("the owner", LIMIT, read).await;
    let alive = |pid: &str| Path::new("/proc").join(pid).exists();
    let said = said.inspect_err(|_| owner.kill().unwrap()).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    assert!(alive(lines[1]) && alive(lines[2]) && Path::new(lines[0]).exists());
    owner.kill().unwrap();
    owner.wait().unwrap();
    let gone = async || {
        let left = alive(lines[1]) || alive(lines[2]) || Path::new(lines[0]).exists();
        (!left).then_some(())
    };
    eventually("servers and folder to go", LIMIT, gone)
        .await
        .unwrap();
    let name = Path::new(lines[0]).file_name().unwrap();
    assert!(logs.join(name).join("etcd.log").exists(), "no logs left");
}
