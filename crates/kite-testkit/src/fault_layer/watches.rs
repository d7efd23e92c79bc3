//! Open watches: frozen, cut, told that they are too old, delayed, and with
//! single events swallowed or shown twice.
//!
//! Each watch is read line by line, since a line is an event; the lines keep
//! their order, whatever is done to them.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::{Stream, StreamExt as _};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::Link;
use super::answers::Answer;

/// What is done to the watches of a kind.
#[derive(Clone, Debug, Default)]
struct Shape {
    frozen: bool,
    lag: Duration,
    /// How often they were cut, and how often told that they are too old.
    cuts: usize,
    gones: usize,
}

/// What is done to one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventAct {
    /// It is not shown.
    Swallow,
    /// It is shown twice.
    Twice,
}

/// Which events something is done to. Empty fields match everything.
#[derive(Clone, Debug, Default)]
pub struct EventMatch {
    /// `ADDED`, `MODIFIED`, `DELETED`.
    pub type_: &'static str,
    /// The object's namespace.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// Only this many; 0 for all.
    pub times: usize,
}

struct EventRule {
    kind: String,
    matches: EventMatch,
    act: EventAct,
    hits: AtomicUsize,
}

/// What is done to all watches of a process, by kind.
#[derive(Default)]
pub(super) struct Watches {
    /// Locked for single operations, by the test and by watches that open.
    shapes: Mutex<HashMap<String, watch::Sender<Shape>>>,
    /// Locked for single looks, by the test and for each event.
    rules: Mutex<Vec<EventRule>>,
}

/// The watches of one kind.
pub struct WatchesOf<'a> {
    pub(super) watches: &'a Watches,
    pub(super) kind: &'a str,
}

impl WatchesOf<'_> {
    /// Nothing comes any more, and the connections stay open.
    pub fn freeze(&self) {
        self.watches.change(self.kind, |shape| shape.frozen = true);
    }

    /// What was kept back comes, and what follows.
    pub fn thaw(&self) {
        self.watches.change(self.kind, |shape| shape.frozen = false);
    }

    /// Everything comes this much later.
    pub fn lag(&self, time: Duration) {
        self.watches.change(self.kind, |shape| shape.lag = time);
    }

    /// Ends those that are open.
    pub fn cut(&self) {
        self.watches.change(self.kind, |shape| shape.cuts += 1);
    }

    /// Ends those that are open with 410, as the server does when their version is too old.
    pub fn gone(&self) {
        self.watches.change(self.kind, |shape| shape.gones += 1);
    }

    /// Does something to single events from now on.
    pub fn events(&self, matches: EventMatch, act: EventAct) {
        self.watches.rules.lock().unwrap().push(EventRule {
            kind: self.kind.to_owned(),
            matches,
            act,
            hits: AtomicUsize::new(0),
        });
    }

    /// How many events of this kind something was done to.
    pub fn hits(&self) -> usize {
        let rules = self.watches.rules.lock().unwrap();
        let own = rules.iter().filter(|rule| rule.kind == self.kind);
        own.map(|rule| rule.hits.load(Ordering::SeqCst)).sum()
    }
}

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    type_: String,
    object: Object,
}

#[derive(Deserialize)]
struct Object {
    #[serde(default)]
    metadata: Meta,
}

#[derive(Deserialize, Default)]
struct Meta {
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
}

impl EventRule {
    fn holds(&self, kind: &str, line: &Line) -> bool {
        let (wanted, meta) = (&self.matches, &line.object.metadata);
        let is = |wanted: &str, there: &str| wanted.is_empty() || wanted == there;
        let left = wanted.times == 0 || self.hits.load(Ordering::SeqCst) < wanted.times;
        left && self.kind == kind
            && line.type_ != "BOOKMARK"
            && is(wanted.type_, &line.type_)
            && is(&wanted.namespace, &meta.namespace)
            && is(&wanted.name, &meta.name)
    }
}

impl Watches {
    fn shape(&self, kind: &str) -> watch::Receiver<Shape> {
        let mut shapes = self.shapes.lock().unwrap();
        shapes.entry(kind.to_owned()).or_default().subscribe()
    }

    fn change(&self, kind: &str, change: impl FnOnce(&mut Shape)) {
        let mut shapes = self.shapes.lock().unwrap();
        shapes
            .entry(kind.to_owned())
            .or_default()
            .send_modify(change);
    }

    fn verdict(&self, kind: &str, line: &[u8]) -> Option<EventAct> {
        let rules = self.rules.lock().unwrap();
        if !rules.iter().any(|rule| rule.kind == kind) {
            return None;
        }
        let line: Line = serde_json::from_slice(line).ok()?;
        let rule = rules.iter().find(|rule| rule.holds(kind, &line))?;
        rule.hits.fetch_add(1, Ordering::SeqCst);
        Some(rule.act)
    }
}

/// Why a watch ends.
enum End {
    Quietly,
    TooOld,
}

/// One open watch.
pub(super) struct Open {
    pub(super) shared: std::sync::Arc<super::Shared>,
    pub(super) kind: String,
}

impl Open {
    /// The body that the process gets of a watch.
    pub(super) fn body(
        self,
        upstream: impl Stream<Item = Result<Bytes, axum::Error>> + Send + 'static,
    ) -> Body {
        let (lines, shown) = mpsc::unbounded_channel::<Vec<u8>>();
        let mut shape = self.shared.watches.shape(&self.kind);
        // What is done from now on is done to this watch too.
        let began = shape.borrow_and_update().clone();
        tokio::spawn(async move {
            let closed = lines.clone();
            let end = tokio::select! {
                end = self.pump(Box::pin(upstream), (began, shape), &lines) => end,
                () = closed.closed() => End::Quietly,
            };
            if matches!(end, End::TooOld) {
                let _ = lines.send(Answer::refusal(410).watch_line());
            }
        });
        let lines = futures::stream::unfold(shown, |mut shown| async move {
            let line = shown.recv().await?;
            Some((Ok::<_, std::convert::Infallible>(Bytes::from(line)), shown))
        });
        Body::from_stream(lines)
    }

    async fn pump(
        &self,
        mut upstream: impl Stream<Item = Result<Bytes, axum::Error>> + Unpin,
        (began, mut shape): (Shape, watch::Receiver<Shape>),
        lines: &mpsc::UnboundedSender<Vec<u8>>,
    ) -> End {
        let mut way = self.shared.link.subscribe();
        let mut kept = VecDeque::<(Instant, Vec<u8>)>::new();
        let mut rest = Vec::new();
        let mut ended = false;
        loop {
            let now = shape.borrow().clone();
            let state = *way.borrow();
            if now.gones > began.gones {
                return End::TooOld;
            }
            if now.cuts > began.cuts || state == Link::Refused {
                return End::Quietly;
            }
            let open = !now.frozen && state == Link::Up;
            while open && kept.front().is_some_and(|(due, _)| *due <= Instant::now()) {
                let line = kept.pop_front().map(|(_, line)| line);
                let _ = lines.send(line.unwrap_or_default());
            }
            if ended && kept.is_empty() {
                return End::Quietly;
            }
            let due = kept.front().map(|(due, _)| *due).filter(|_| open);
            tokio::select! {
                chunk = upstream.next(), if !ended => match chunk {
                    Some(Ok(chunk)) => self.cut_into_lines(&chunk, &mut rest, &mut kept, now.lag),
                    _ => ended = true,
                },
                _ = shape.changed() => {}
                _ = way.changed() => {}
                () = until(due) => {}
            }
        }
    }

    fn cut_into_lines(
        &self,
        chunk: &[u8],
        rest: &mut Vec<u8>,
        kept: &mut VecDeque<(Instant, Vec<u8>)>,
        lag: Duration,
    ) {
        rest.extend_from_slice(chunk);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            let times = match self.shared.watches.verdict(&self.kind, &line) {
                Some(EventAct::Swallow) => 0,
                Some(EventAct::Twice) => 2,
                None => 1,
            };
            let due = Instant::now() + lag;
            kept.extend(std::iter::repeat_n((due, line), times));
        }
    }
}

/// The lines of a streamed list that shows what a list showed. The watch ends there, and the process
/// goes on from the list's version.
pub(super) fn streamed(list: &[u8]) -> Option<Vec<u8>> {
    let list: Value = serde_json::from_slice(list).ok()?;
    let kind = list["kind"].as_str()?.strip_suffix("List")?;
    let end = json!({"type": "BOOKMARK", "object": {
        "apiVersion": list["apiVersion"],
        "kind": kind,
        "metadata": {
            "resourceVersion": list["metadata"]["resourceVersion"],
            "annotations": {"k8s.io/initial-events-end": "true"},
        },
    }});
    let shown = list["items"].as_array()?.iter();
    let shown = shown.map(|object| json!({"type": "ADDED", "object": object}));
    let lines = shown.chain([end]).map(|line| format!("{line}\n"));
    Some(lines.collect::<String>().into_bytes())
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}
