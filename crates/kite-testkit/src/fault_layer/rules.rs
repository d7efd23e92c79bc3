//! Which requests something is done to, and what.
//!
//! Each rule counts the requests it matches, whichever rule acts on them; the
//! first rule that is due acts. Nothing is random: a share is spread evenly.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::sync::{oneshot, watch};

use super::answers::Answer;
use super::request::Asked;

/// Something to do, from the layer's side, before a request goes on.
pub type Hook = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// What a request must be like, beyond its fields.
type When = Arc<dyn Fn(&Asked) -> bool + Send + Sync>;

/// What is done to a request.
#[derive(Clone)]
pub enum Act {
    /// SIGKILL; the request is not sent on.
    KillBefore,
    /// It is sent on, and when the server has answered: SIGKILL.
    KillAfterApplied,
    /// It is answered; SIGKILL before the process writes again, and soon.
    KillAfterReply,
    /// It waits, not sent on, until [`Rule::deliver`], which may be after the death of its sender.
    HoldBefore,
    /// It is sent on, and the answer waits until [`Rule::deliver`].
    HoldApplied,
    /// It is sent on after this time.
    Delay(Duration),
    /// The connection ends; it is not sent on.
    Drop,
    /// It is sent on, and the connection ends without an answer.
    LoseReply,
    /// It is neither sent on nor answered, and the connection stays open.
    Withhold,
    /// It is sent on twice; the first answer is given.
    Duplicate,
    /// It is answered so; it is not sent on.
    Answer(Answer),
    /// It is sent on, and answered so.
    AnswerAfterApplied(Answer),
    /// It is sent on, and half of the answer's body is given.
    Truncate,
    /// The list is given that [`super::FaultLayer::remember_lists`] kept.
    StaleList,
    /// Something is done first, then it is sent on.
    First(Hook),
}

impl Act {
    /// Does something first, such as a change by somebody else between a look and a write.
    pub fn first<F>(hook: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::First(Arc::new(move || Box::pin(hook())))
    }
}

impl fmt::Debug for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KillBefore => write!(f, "killed before"),
            Self::KillAfterApplied => write!(f, "killed after it was applied"),
            Self::KillAfterReply => write!(f, "killed after the reply"),
            Self::HoldBefore => write!(f, "held"),
            Self::HoldApplied => write!(f, "applied, its answer held"),
            Self::Delay(time) => write!(f, "delayed by {time:?}"),
            Self::Drop => write!(f, "dropped"),
            Self::LoseReply => write!(f, "applied, its answer lost"),
            Self::Withhold => write!(f, "never answered"),
            Self::Duplicate => write!(f, "sent twice"),
            Self::Answer(answer) => write!(f, "answered {}", answer.code),
            Self::AnswerAfterApplied(answer) => write!(f, "applied and answered {}", answer.code),
            Self::Truncate => write!(f, "answer cut short"),
            Self::StaleList => write!(f, "an old list"),
            Self::First(_) => write!(f, "something was done first"),
        }
    }
}

/// Which of the matching requests.
#[derive(Clone, Copy, Debug)]
enum Which {
    All,
    Only(usize),
    Every(usize),
    Percent(usize),
}

/// Which requests a rule is about. Leases and events are left out unless they are named.
#[derive(Clone)]
pub struct Match {
    writes: bool,
    verb: Option<&'static str>,
    resource: Option<String>,
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    when: Option<When>,
    which: Which,
}

impl Match {
    /// Every request.
    pub fn any() -> Self {
        Self {
            writes: false,
            verb: None,
            resource: None,
            subresource: None,
            namespace: None,
            name: None,
            when: None,
            which: Which::All,
        }
    }

    /// Every write.
    pub fn writes() -> Self {
        Self {
            writes: true,
            ..Self::any()
        }
    }

    /// The `k`th write, counted from 1 from when the rule is made.
    pub fn write(k: usize) -> Self {
        Self::writes().nth(k)
    }

    /// Lists of a kind, named as in the audit log: `kubevirt.io/virtualmachines`.
    pub fn lists(resource: &str) -> Self {
        Self::any().verb("list").of(resource)
    }

    /// Watches of a kind, when they are opened.
    pub fn watches(resource: &str) -> Self {
        Self::any().verb("watch").of(resource)
    }

    /// Renewals and the other requests about Leases.
    pub fn leases() -> Self {
        Self::any().of("coordination.k8s.io/leases")
    }

    /// With this verb, as the audit log names it.
    #[must_use]
    pub fn verb(mut self, verb: &'static str) -> Self {
        self.verb = Some(verb);
        self
    }

    /// About this kind.
    #[must_use]
    pub fn of(mut self, resource: &str) -> Self {
        self.resource = Some(resource.to_owned());
        self
    }

    /// About this part of objects: `status`, or the empty text for the objects themselves.
    #[must_use]
    pub fn part(mut self, subresource: &str) -> Self {
        self.subresource = Some(subresource.to_owned());
        self
    }

    /// In this namespace.
    #[must_use]
    pub fn within(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// About objects of this name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// For which this holds too.
    #[must_use]
    pub fn when(mut self, holds: impl Fn(&Asked) -> bool + Send + Sync + 'static) -> Self {
        self.when = Some(Arc::new(holds));
        self
    }

    /// Only the `k`th of them, counted from 1 from when the rule is made.
    #[must_use]
    pub fn nth(mut self, k: usize) -> Self {
        self.which = Which::Only(k);
        self
    }

    /// Every `n`th of them.
    #[must_use]
    pub fn every(mut self, n: usize) -> Self {
        self.which = Which::Every(n);
        self
    }

    /// This share of them, spread evenly.
    #[must_use]
    pub fn percent(mut self, share: usize) -> Self {
        self.which = Which::Percent(share);
        self
    }

    fn holds(&self, asked: &Asked) -> bool {
        let is = |wanted: &Option<String>, there: &str| wanted.as_ref().is_none_or(|w| w == there);
        (self.resource.is_some() || !asked.is_upkeep())
            && (!self.writes || asked.is_write())
            && self.verb.is_none_or(|verb| verb == asked.verb)
            && is(&self.resource, &asked.resource)
            && is(&self.subresource, &asked.subresource)
            && is(&self.namespace, &asked.namespace)
            && is(&self.name, &asked.name)
            && self.when.as_ref().is_none_or(|when| when(asked))
    }

    fn is_due(&self, number: usize) -> bool {
        match self.which {
            Which::All => true,
            Which::Only(k) => number == k,
            Which::Every(n) => number.is_multiple_of(n),
            Which::Percent(share) => number * share / 100 > (number - 1) * share / 100,
        }
    }
}

/// A request that waits for [`Rule::deliver`], which sends where to tell the code.
type Waiting = oneshot::Sender<oneshot::Sender<Option<u16>>>;

struct State {
    matches: Match,
    act: Act,
    matched: AtomicUsize,
    ended: AtomicBool,
    hits: watch::Sender<usize>,
    /// Locked for single operations, by requests that begin to wait and by their delivery.
    waiting: Mutex<Vec<Waiting>>,
}

/// A rule in force. Dropping the handle leaves it in force.
#[derive(Clone)]
pub struct Rule(Arc<State>);

impl Rule {
    pub(super) fn new(matches: Match, act: Act) -> Self {
        Self(Arc::new(State {
            matches,
            act,
            matched: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
            hits: watch::Sender::new(0),
            waiting: Mutex::default(),
        }))
    }

    /// Takes the rule out of force. What is held stays held.
    pub fn end(&self) {
        self.0.ended.store(true, Ordering::SeqCst);
    }

    /// How many requests it has acted on.
    pub fn hits(&self) -> usize {
        *self.0.hits.borrow()
    }

    /// How many requests it would have counted: those that match, whether or not it acted.
    pub fn matched(&self) -> usize {
        self.0.matched.load(Ordering::SeqCst)
    }

    /// Waits until it has acted on this many requests.
    pub async fn hit(&self, times: usize, limit: Duration) -> Result<()> {
        let mut hits = self.0.hits.subscribe();
        let enough = hits.wait_for(|hits| *hits >= times);
        let waited = tokio::time::timeout(limit, enough).await;
        waited.with_context(|| format!("no request was {:?} within {limit:?}", self.0.act))??;
        Ok(())
    }

    /// Sends on everything that is held, or its answers, and says what the server answered.
    pub async fn deliver(&self) -> Vec<Option<u16>> {
        let waiting: Vec<_> = self.0.waiting.lock().unwrap().drain(..).collect();
        let mut codes = Vec::new();
        for request in waiting {
            let (done, code) = oneshot::channel();
            if request.send(done).is_ok() {
                codes.push(code.await.unwrap_or_default());
            }
        }
        codes
    }

    /// Counts a request, and says whether the rule is due for it.
    pub(super) fn counts(&self, asked: &Asked) -> bool {
        if self.0.ended.load(Ordering::SeqCst) || !self.0.matches.holds(asked) {
            return false;
        }
        let number = self.0.matched.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.matches.is_due(number)
    }

    pub(super) fn act(&self) -> Act {
        self.0.act.clone()
    }

    pub(super) fn acted(&self) {
        self.0.hits.send_modify(|hits| *hits += 1);
    }

    /// Waits for the delivery, and gives where to tell what came of it.
    pub(super) async fn held(&self) -> Option<oneshot::Sender<Option<u16>>> {
        let (go, told) = oneshot::channel();
        self.0.waiting.lock().unwrap().push(go);
        // Whoever waits for the hit may deliver at once.
        self.acted();
        told.await.ok()
    }
}
