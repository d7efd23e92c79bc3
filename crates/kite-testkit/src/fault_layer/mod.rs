//! A layer between one process of Kite and the API server, in which what
//! networks and servers do wrong happens exactly when a test says so.
//!
//! It is a reverse proxy: the process talks to it in the clear by a kubeconfig
//! of its own, and every request goes on to the real server under the process's
//! own token. It sees, counts and numbers all requests, and rules act on them:
//!
//! ```text
//! let faults = FaultLayer::start(identity.kubeconfig()).await?;
//! faults.run(&control_plane, KiteOptions::new("kite-vm", faults.kubeconfig())).await?;
//! faults.on(Match::write(3)).then(Act::KillAfterApplied);
//! ```
//!
//! It answers in the server's place only where a rule says so, and decides
//! nothing by chance.

mod answers;
mod proxy;
mod request;
mod rules;
mod watches;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use http::HeaderMap;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use answers::Answer;
pub use request::{Asked, Seen};
pub use rules::{Act, Hook, Match, Rule};
pub use watches::{EventAct, EventMatch, WatchesOf};

use crate::control_plane::ControlPlane;
use crate::kite_process::{KiteOptions, KiteProcess};
use crate::{kubeconfig, wait};

/// How long a process may take until it is ready; two busy cores need a while.
const READY_LIMIT: Duration = Duration::from_mins(1);

/// The way to the server as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// As it should be.
    Up,
    /// Requests go unanswered, watches show nothing, connections stay open.
    Silent,
    /// Connections end at once.
    Refused,
}

/// What the layer's tasks share. Each lock is held for single operations only.
pub(crate) struct Shared {
    upstream: Client,
    began: Instant,
    seen: Mutex<Vec<Seen>>,
    rules: Mutex<Vec<Rule>>,
    watches: watches::Watches,
    link: watch::Sender<Link>,
    /// Which process is talking; the dead one's requests are not sent on.
    life: AtomicUsize,
    writes: AtomicUsize,
    /// SIGKILL before the next write is sent on.
    doomed: AtomicBool,
    process: Mutex<Option<Arc<KiteProcess>>>,
    /// Every list that was asked for, with the headers it came with.
    asked_lists: Mutex<HashMap<String, HeaderMap>>,
    kept_lists: Mutex<HashMap<String, axum::body::Bytes>>,
}

/// The layer. It lives on the runtime that started it; dropping it ends it and its process.
pub struct FaultLayer {
    shared: Arc<Shared>,
    kubeconfig: PathBuf,
    server: JoinHandle<()>,
}

/// A rule that lacks its deed.
pub struct On<'a> {
    layer: &'a FaultLayer,
    matches: Match,
}

impl On<'_> {
    /// Puts the rule in force.
    pub fn then(self, act: Act) -> Rule {
        let rule = Rule::new(self.matches, act);
        self.layer.shared.rules.lock().unwrap().push(rule.clone());
        rule
    }
}

impl FaultLayer {
    /// Starts a layer in front of the server that a kubeconfig names; the kubeconfig's own
    /// credentials are what the process is told to use.
    pub async fn start(behind: &Path) -> Result<Self> {
        let mut config = Kubeconfig::read_from(behind)?;
        let mut bare = config.clone();
        for user in &mut bare.auth_infos {
            user.auth_info = Some(AuthInfo::default());
        }
        let mut upstream =
            Config::from_custom_kubeconfig(bare, &KubeConfigOptions::default()).await?;
        upstream.default_retry = false;
        upstream.read_timeout = None;
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        for cluster in config.clusters.iter_mut().flat_map(|c| &mut c.cluster) {
            cluster.server = Some(format!("http://{address}"));
            cluster.certificate_authority_data = None;
        }
        let file = behind.with_extension(format!("faults-{}.kubeconfig", address.port()));
        let shared = Arc::new(Shared {
            upstream: Client::try_from(upstream)?,
            began: Instant::now(),
            seen: Mutex::default(),
            rules: Mutex::default(),
            watches: watches::Watches::default(),
            link: watch::Sender::new(Link::Up),
            life: AtomicUsize::new(1),
            writes: AtomicUsize::new(0),
            doomed: AtomicBool::new(false),
            process: Mutex::default(),
            asked_lists: Mutex::default(),
            kept_lists: Mutex::default(),
        });
        Ok(Self {
            server: tokio::spawn(proxy::serve(listener, Arc::clone(&shared))),
            shared,
            kubeconfig: kubeconfig::write(&config, &file)?,
        })
    }

    /// The kubeconfig that leads through the layer.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Starts the process that is killed by this layer's rules, and waits until it is ready
    /// unless the options say otherwise. Whatever ran before is killed.
    pub async fn run(&self, control_plane: &ControlPlane, options: KiteOptions) -> Result<()> {
        self.kill();
        let waits = options.wait_ready;
        let options = KiteOptions {
            kubeconfig: self.kubeconfig.clone(),
            wait_ready: false,
            ..options
        };
        let process = Arc::new(KiteProcess::start(control_plane, options).await?);
        *self.shared.process.lock().unwrap() = Some(Arc::clone(&process));
        if !waits {
            return Ok(());
        }
        let ready = async || {
            let ended = process.process().exited().is_some();
            (ended || process.is_ready().await).then_some(ended)
        };
        let ended = wait::eventually("the process to be ready", READY_LIMIT, ready).await;
        if ended.context(process.process().log_tail(8))? {
            bail!("it ended: {}", process.process().log_tail(8));
        }
        Ok(())
    }

    /// The process.
    ///
    /// # Panics
    ///
    /// When none was started, or it was killed.
    pub fn process(&self) -> Arc<KiteProcess> {
        let process = self.shared.process.lock().unwrap();
        Arc::clone(process.as_ref().expect("a process was started and lives"))
    }

    /// SIGKILL. What the process had sent and the server has not got is never sent on, but by
    /// [`Rule::deliver`].
    pub fn kill(&self) {
        self.shared.kill();
    }

    /// Begins a rule.
    pub fn on(&self, matches: Match) -> On<'_> {
        On {
            layer: self,
            matches,
        }
    }

    /// Takes all rules out of force.
    pub fn end_rules(&self) {
        let rules = std::mem::take(&mut *self.shared.rules.lock().unwrap());
        rules.iter().for_each(Rule::end);
    }

    /// The open watches of a kind, named as in the audit log.
    pub fn watches<'a>(&'a self, kind: &'a str) -> WatchesOf<'a> {
        WatchesOf {
            watches: &self.shared.watches,
            kind,
        }
    }

    /// Changes the way to the server as a whole.
    pub fn link(&self, link: Link) {
        self.shared.link.send_replace(link);
    }

    /// Asks for every list again that was ever asked for, and keeps the answers for [`Act::StaleList`].
    pub async fn remember_lists(&self) -> Result<()> {
        let asked = self.shared.asked_lists.lock().unwrap().clone();
        for (uri, headers) in asked {
            let body = self.shared.list_now(&uri, headers).await;
            let body = body.with_context(|| format!("the list {uri} cannot be kept"))?;
            self.shared.kept_lists.lock().unwrap().insert(uri, body);
        }
        Ok(())
    }

    /// All requests so far, in the order in which they came.
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// The writes so far, without leases and events.
    pub fn writes(&self) -> Vec<Seen> {
        let writes = self.seen().into_iter();
        writes.filter(|seen| seen.write.is_some()).collect()
    }

    /// How long ago the layer was started: the clock of [`Seen::at`].
    pub fn now(&self) -> Duration {
        self.shared.began.elapsed()
    }
}

impl Drop for FaultLayer {
    fn drop(&mut self) {
        self.server.abort();
        self.kill();
    }
}

impl Shared {
    fn kill(&self) {
        let process = self.process.lock().unwrap().take();
        if let Some(process) = process {
            self.life.fetch_add(1, Ordering::SeqCst);
            self.writes.store(0, Ordering::SeqCst);
            self.doomed.store(false, Ordering::SeqCst);
            process.kill();
        }
    }

    /// Puts a request on record, and finds the rule that acts on it.
    fn arrived(&self, asked: &Asked) -> (usize, usize, Option<Rule>) {
        let mut due = None;
        for rule in self.rules.lock().unwrap().iter() {
            if rule.counts(asked) && due.is_none() {
                due = Some(rule.clone());
            }
        }
        let counts = asked.is_write() && !asked.is_upkeep();
        let life = self.life.load(Ordering::SeqCst);
        let mut seen = self.seen.lock().unwrap();
        seen.push(Seen {
            asked: asked.clone(),
            life,
            write: counts.then(|| self.writes.fetch_add(1, Ordering::SeqCst) + 1),
            at: self.began.elapsed(),
            answered: None,
            code: None,
            answer_version: None,
            fault: due.as_ref().map(|rule| format!("{:?}", rule.act())),
        });
        (seen.len() - 1, life, due)
    }

    fn note(&self, number: usize, change: impl FnOnce(&mut Seen)) {
        if let Some(seen) = self.seen.lock().unwrap().get_mut(number) {
            change(seen);
        }
    }
}
