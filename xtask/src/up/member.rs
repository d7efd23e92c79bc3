//! One of the six as it runs: a process that was started here, or that of a pod.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kite_api::labels::Controller;
use kite_testkit::KiteProcess;
use kite_testkit::process::{Memory, Process};

/// One of the six.
pub(crate) struct Member {
    pub(crate) controller: Controller,
    /// From its start until it worked; nobody measured it for a pod.
    pub(crate) works_after: Option<Duration>,
    log: PathBuf,
    run: Run,
}

enum Run {
    Process(KiteProcess),
    Pod {
        process: Arc<Process>,
        address: SocketAddr,
    },
}

impl Member {
    /// One that was started here.
    pub(super) fn process_of(
        controller: Controller,
        process: KiteProcess,
        log: PathBuf,
        works_after: Duration,
    ) -> Self {
        Self {
            controller,
            works_after: Some(works_after),
            log,
            run: Run::Process(process),
        }
    }

    /// One that a node runs.
    pub(super) fn pod_of(
        controller: Controller,
        process: Arc<Process>,
        address: SocketAddr,
        log: PathBuf,
    ) -> Self {
        Self {
            controller,
            works_after: None,
            log,
            run: Run::Pod { process, address },
        }
    }

    pub(super) fn process(&self) -> &Process {
        match &self.run {
            Run::Process(process) => process.process(),
            Run::Pod { process, .. } => process,
        }
    }

    /// Where it tells of its health and its metrics.
    pub(super) fn address(&self) -> SocketAddr {
        match &self.run {
            Run::Process(process) => process.address(),
            Run::Pod { address, .. } => *address,
        }
    }

    pub(crate) fn memory(&self) -> Option<Memory> {
        self.process().memory()
    }

    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    /// Ends it gently. A pod ends with its node.
    pub(super) async fn terminate(&self, grace: Duration) {
        if let Run::Process(process) = &self.run {
            process.terminate(grace).await;
        }
    }
}
