//! What a container is doing, as its pod's status tells it.

use k8s_openapi::jiff::Timestamp;

/// The end of one life of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// As a kubelet counts: 128 and the number of the signal for one that was killed.
    pub(super) code: i32,
    /// `Completed`, `Error` and what else a kubelet says.
    pub(super) reason: &'static str,
    /// The end of its log, where the pod asks for it.
    pub(super) message: String,
    /// When it was started and when it ended.
    pub(super) started: String,
    /// See above.
    pub(super) finished: String,
    /// Which life it was.
    pub(super) id: String,
}

/// What it is doing now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Not running, and why.
    Waiting {
        /// One word.
        reason: &'static str,
        /// A sentence, or nothing.
        message: String,
    },
    /// Running since then.
    Running {
        /// When it was started.
        since: String,
        /// Which life it is.
        id: String,
    },
    /// Not to run again.
    Ended(End),
}

/// One container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct View {
    /// What it is doing now.
    pub(super) state: State,
    /// The end of its life before.
    pub(super) last: Option<End>,
    /// How often it was started again.
    pub(super) restarts: u32,
    /// Whether its startup probe has succeeded.
    pub(super) started: bool,
    /// Whether its readiness probe succeeds.
    pub(super) ready: bool,
}

impl View {
    /// A container that is being made.
    pub(super) fn creating() -> Self {
        Self {
            state: State::Waiting {
                reason: "ContainerCreating",
                message: String::new(),
            },
            last: None,
            restarts: 0,
            started: false,
            ready: false,
        }
    }

    /// Has it wait.
    pub(super) fn wait(&mut self, reason: &'static str, message: impl Into<String>) {
        let message = message.into();
        self.state = State::Waiting { reason, message };
        self.started = false;
        self.ready = false;
    }
}

/// Now, in the form of the API.
pub(super) fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
