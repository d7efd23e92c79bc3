//! Writes that change nothing: those after which the version stayed, by the answers in the audit
//! log, and those that led to a new version of equal content, by what a watcher sees.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex};

use futures::StreamExt as _;
use kite_testkit::snapshot::{CLUSTER_WIDE, Kind, NAMESPACED};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event as Change, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde::Deserialize;
use serde_json::Value;
use tokio::task::JoinHandle;

/// What a watcher of every kind saw. Dropping it ends the watches.
pub(crate) struct Versions {
    seen: Arc<Mutex<Seen>>,
    watches: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Seen {
    /// Version and content by UID.
    last: HashMap<String, (String, Value)>,
    /// The versions that brought nothing new, with the objects.
    equal: BTreeMap<String, String>,
}

impl Versions {
    /// Begins to watch everything that can be Kite's.
    pub(crate) fn watch(client: &Client) -> Self {
        let seen = Arc::<Mutex<Seen>>::default();
        let kinds = NAMESPACED.iter().chain(&CLUSTER_WIDE);
        let watches = kinds.map(|kind| {
            let (client, seen) = (client.clone(), Arc::clone(&seen));
            tokio::spawn(follow(client, kind, seen))
        });
        Self {
            watches: watches.collect(),
            seen,
        }
    }

    /// Kite's writes that changed nothing, as sentences, and how many of its writes were looked at.
    pub(crate) fn needless(&self, audit_log: &Path) -> (Vec<String>, usize) {
        let text = std::fs::read_to_string(audit_log).unwrap();
        let mut led_to = BTreeSet::new();
        let mut by_kite = BTreeMap::new();
        let (mut needless, mut looked_at) = (Vec::new(), 0);
        for write in text.lines().filter_map(Write::read) {
            let kept = !led_to.insert((write.uid.clone(), write.version.clone()));
            if write.is_by_kite() {
                looked_at += 1;
                by_kite.insert(write.version.clone(), write.to_string());
                if kept {
                    needless.push(format!("{write} left the version as it was"));
                }
            }
        }
        let seen = self.seen.lock().unwrap();
        let equal = seen.equal.iter();
        needless.extend(equal.filter_map(|(version, object)| {
            let write = by_kite.get(version)?;
            Some(format!("{write} changed nothing that counts of {object}"))
        }));
        (needless, looked_at)
    }

    /// How many versions of objects the watcher saw.
    pub(crate) fn objects(&self) -> usize {
        self.seen.lock().unwrap().last.len()
    }
}

impl Drop for Versions {
    fn drop(&mut self) {
        self.watches.iter().for_each(JoinHandle::abort);
    }
}

async fn follow(client: Client, kind: &'static Kind, seen: Arc<Mutex<Seen>>) {
    let (group, version, name, plural) = kind;
    let kind = GroupVersionKind::gvk(group, version, name);
    let resource = ApiResource::from_gvk_with_plural(&kind, plural);
    let api: Api<DynamicObject> = Api::all_with(client, &resource);
    let config = watcher::Config::default();
    let mut changes = Box::pin(watcher::<DynamicObject>(api, config).default_backoff());
    while let Some(change) = changes.next().await {
        if let Ok(Change::Apply(object) | Change::InitApply(object)) = change {
            seen.lock().unwrap().note(name, object);
        }
    }
}

impl Seen {
    fn note(&mut self, kind: &str, mut object: DynamicObject) {
        let version = object.metadata.resource_version.take().unwrap_or_default();
        object.metadata.managed_fields = None;
        let uid = object.uid().unwrap_or_default();
        let called = format!(
            "{kind} {}/{}",
            object.namespace().unwrap_or_default(),
            object.name_any()
        );
        let content = serde_json::to_value(object).unwrap();
        let now = (version.clone(), content);
        let before = self.last.insert(uid.clone(), now);
        if let Some((old, content)) = before
            && old != version
            && content == self.last[&uid].1
        {
            self.equal.insert(version, called);
        }
    }
}

/// A write that the server carried out, with the version that it led to.
struct Write {
    user: String,
    what: String,
    uid: String,
    version: String,
}

impl Write {
    /// None of a line about something else; deletions have no version to compare.
    fn read(line: &str) -> Option<Self> {
        let line: Line = serde_json::from_str(line).ok()?;
        let written = matches!(line.verb.as_str(), "create" | "update" | "patch");
        if !written || line.stage != "ResponseComplete" || line.uri.contains("dryRun=") {
            return None;
        }
        let meta = line.answer?.metadata?;
        let about = line.about?;
        let name = meta.name.clone().unwrap_or_default();
        let what = format!("{} {}/{}", line.verb, about.resource, about.subresource);
        Some(Self {
            user: line.user.username,
            what: format!("{what} of {}/{name}", about.namespace),
            uid: meta.uid?,
            version: meta.resource_version?,
        })
    }

    fn is_by_kite(&self) -> bool {
        self.user
            .starts_with("system:serviceaccount:kite-system:kite-")
    }
}

impl std::fmt::Display for Write {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let user = self.user.rsplit(':').next().unwrap_or_default();
        write!(f, "{user}: {}, version {}", self.what, self.version)
    }
}

/// The parts of an audit event that tell of a write's outcome.
#[derive(Deserialize)]
struct Line {
    verb: String,
    stage: String,
    #[serde(rename = "requestURI")]
    uri: String,
    user: User,
    #[serde(rename = "objectRef")]
    about: Option<About>,
    #[serde(rename = "responseObject")]
    answer: Option<Answer>,
}

#[derive(Deserialize)]
struct User {
    #[serde(default)]
    username: String,
}

#[derive(Deserialize)]
struct About {
    #[serde(default)]
    resource: String,
    #[serde(default)]
    subresource: String,
    #[serde(default)]
    namespace: String,
}

#[derive(Deserialize)]
struct Answer {
    metadata: Option<AnswerMeta>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnswerMeta {
    name: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
}
