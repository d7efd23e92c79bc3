//! Reads the API server's audit log: who asked what, and how often.
//!
//! This is the count that budgets are checked against; no client counts itself.
//! Watches are told apart, since one lasts as long as its process.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use serde::Deserialize;

use crate::wait::eventually;

/// The audit log of one control plane.
#[derive(Clone, Debug)]
pub struct AuditLog {
    path: PathBuf,
}

/// A place in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(u64);

/// One request that was answered, or one watch that was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// When it was answered.
    pub time: Timestamp,
    /// Who asked, such as `system:serviceaccount:kite-system:kite-vm`.
    pub user: String,
    /// The pod that the token was made for; empty for other credentials.
    pub pod: String,
    /// What was done. A patch that made the object counts as `create`.
    pub verb: String,
    /// `group/resource`, `resource` in the core group, or the path asked for.
    pub resource: String,
    /// Such as `status`; empty without one.
    pub subresource: String,
    /// Empty for cluster-scoped objects and lists over all namespaces.
    pub namespace: String,
    /// Empty for lists, watches, and creates by post.
    pub name: String,
    /// The HTTP status.
    pub code: u16,
    /// How the client called itself.
    pub user_agent: String,
    /// The path with its parameters.
    pub uri: String,
}

impl Request {
    /// Whether it opened a watch.
    pub fn is_watch(&self) -> bool {
        self.verb == "watch"
    }

    /// Whether it opened a watch that begins with all objects that are there.
    pub fn streams_list(&self) -> bool {
        self.is_watch() && self.uri.contains("sendInitialEvents=true")
    }

    /// Whether it asked for all objects that are there, in pages or in a stream.
    pub fn lists(&self) -> bool {
        self.verb == "list" || self.streams_list()
    }

    /// Whether it was to change something, a dry run included.
    pub fn is_write(&self) -> bool {
        !matches!(
            self.verb.as_str(),
            "get" | "list" | "watch" | "head" | "options"
        )
    }

    /// Whether it was about a lease.
    pub fn is_lease(&self) -> bool {
        self.resource == "coordination.k8s.io/leases"
    }

    /// Whether it was about an event.
    pub fn is_event(&self) -> bool {
        self.resource == "events" || self.resource == "events.k8s.io/events"
    }

    /// Whether it was work: leases and watches go on by themselves, and events may merge.
    pub fn is_work(&self) -> bool {
        !self.is_lease() && !self.is_watch() && !self.is_event()
    }

    /// Whether the user is a ServiceAccount called `name`, in any namespace.
    pub fn is_by(&self, name: &str) -> bool {
        let account = self.user.strip_prefix("system:serviceaccount:");
        account
            .and_then(|account| account.split_once(':'))
            .is_some_and(|(_, own)| own == name)
    }

    /// The resource with its subresource.
    pub fn target(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.clone()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }
}

/// More than a line of metadata ever takes.
const LONGEST_LINE: u64 = 1 << 20;

impl AuditLog {
    /// The log at `path`, which need not be there yet.
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The end of the log as it is now. A request whose answer has just arrived
    /// may still be missing; see [`AuditLog::settled_mark`].
    pub fn mark(&self) -> Mark {
        Mark(self.end_of_last_line().unwrap_or_default())
    }

    /// The server may be in the middle of a line.
    fn end_of_last_line(&self) -> std::io::Result<u64> {
        let mut file = File::open(&self.path)?;
        let length = file.metadata()?.len();
        let start = length.saturating_sub(LONGEST_LINE);
        file.seek(SeekFrom::Start(start))?;
        let mut tail = Vec::new();
        file.take(length - start).read_to_end(&mut tail)?;
        let end = tail.iter().rposition(|byte| *byte == b'\n');
        Ok(end.map_or(start, |end| start + end as u64 + 1))
    }

    /// The end of the log once everything answered before this call is in it.
    ///
    /// The server writes the line of a request about when it answers. A request
    /// of our own, sent now and awaited in the log, comes after all of those.
    pub async fn settled_mark(&self, client: &Client) -> Result<Mark> {
        let before = self.mark();
        let path = format!("/api/kite-testkit-mark-{}", before.0);
        let request = http::Request::get(&path).body(Vec::new())?;
        // It answers that there is no such path.
        client.request_text(request).await.ok();
        eventually("the audit log", Duration::from_secs(20), async || {
            let seen = self.lines_since(before).ok()?;
            seen.iter()
                .any(|line| line.request_uri == path)
                .then_some(())
        })
        .await?;
        Ok(self.mark())
    }

    /// Requests from `mark` on; the marks' own requests are left out.
    pub fn since(&self, mark: Mark) -> Result<Vec<Request>> {
        let lines = self.lines_since(mark)?;
        Ok(lines.into_iter().filter_map(Line::into_request).collect())
    }

    /// All requests since the log began.
    pub fn all(&self) -> Result<Vec<Request>> {
        self.since(Mark(0))
    }

    fn lines_since(&self, mark: Mark) -> Result<Vec<Line>> {
        let mut file = File::open(&self.path)
            .with_context(|| format!("cannot read {}", self.path.display()))?;
        file.seek(SeekFrom::Start(mark.0))?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        // The last line may be half written.
        let complete = text.rfind('\n').map_or(0, |end| end + 1);
        text[..complete]
            .lines()
            .map(|line| serde_json::from_str(line).with_context(|| format!("audit line {line}")))
            .collect()
    }
}

/// The requests of all audit logs in a folder, such as `KITE_AUDIT_DIR`.
pub fn read_folder(folder: &Path) -> Result<Vec<Request>> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut requests = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "log") {
            requests.extend(AuditLog::new(&path).all()?);
        }
    }
    Ok(requests)
}

/// Counts of requests by user, verb and resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    rows: BTreeMap<(String, String, String), usize>,
}

impl Table {
    /// Counts `requests`; watches are not requests here.
    pub fn of<'a>(requests: impl IntoIterator<Item = &'a Request>) -> Self {
        let mut rows = BTreeMap::new();
        for request in requests.into_iter().filter(|request| !request.is_watch()) {
            let key = (request.user.clone(), request.verb.clone(), request.target());
            *rows.entry(key).or_default() += 1;
        }
        Self { rows }
    }

    /// The rows: user, verb, resource, count.
    pub fn rows(&self) -> impl Iterator<Item = (&str, &str, &str, usize)> {
        self.rows
            .iter()
            .map(|((user, verb, target), count)| (&**user, &**verb, &**target, *count))
    }

    /// All of them together.
    pub fn total(&self) -> usize {
        self.rows.values().sum()
    }

    /// The count of one user.
    pub fn total_of(&self, user: &str) -> usize {
        self.rows()
            .filter(|row| row.0 == user)
            .map(|row| row.3)
            .sum()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |user: &str| match user.strip_prefix("system:serviceaccount:") {
            Some(account) => account.replace(':', "/"),
            None => user.to_owned(),
        };
        let users = self.rows().map(|row| short(row.0).len()).max();
        let users = users.unwrap_or_default().max("total".len());
        let targets = self.rows().map(|row| row.2.len()).max().unwrap_or_default();
        for (user, verb, target, count) in self.rows() {
            let user = short(user);
            writeln!(
                formatter,
                "{user:users$}  {verb:16}  {target:targets$}  {count:5}"
            )?;
        }
        write!(
            formatter,
            "{:users$}  {:16}  {:targets$}  {:5}",
            "total",
            "",
            "",
            self.total()
        )
    }
}

/// The parts of an audit event that count.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    stage: String,
    verb: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    user: User,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: Option<ObjectRef>,
    #[serde(default)]
    response_status: Option<ResponseStatus>,
    stage_timestamp: Timestamp,
}

#[derive(Deserialize)]
struct User {
    #[serde(default)]
    username: String,
    #[serde(default)]
    extra: BTreeMap<String, Vec<String>>,
}

/// What the API server knows of a token that is bound to a pod.
const POD_NAME: &str = "authentication.kubernetes.io/pod-name";

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ObjectRef {
    resource: String,
    namespace: String,
    name: String,
    api_group: String,
    subresource: String,
}

#[derive(Deserialize)]
struct ResponseStatus {
    #[serde(default)]
    code: u16,
}

impl Line {
    /// A request counts when it was answered, a watch when it was opened.
    fn into_request(mut self) -> Option<Request> {
        let counts = match self.verb.as_str() {
            "watch" => self.stage == "ResponseStarted",
            _ => self.stage == "ResponseComplete" || self.stage == "Panic",
        };
        if !counts || self.request_uri.starts_with("/api/kite-testkit-mark-") {
            return None;
        }
        let code = self.response_status.map_or(0, |status| status.code);
        let created = self.verb == "patch" && code == 201;
        let path = self.request_uri.split('?').next().unwrap_or_default();
        let object = self.object_ref.unwrap_or_default();
        let resource = match (object.resource.as_str(), object.api_group.as_str()) {
            ("", _) => path.to_owned(),
            (resource, "") => resource.to_owned(),
            (resource, group) => format!("{group}/{resource}"),
        };
        let pod = self.user.extra.remove(POD_NAME).unwrap_or_default();
        Some(Request {
            time: self.stage_timestamp,
            user: self.user.username,
            pod: pod.into_iter().next().unwrap_or_default(),
            verb: if created {
                "create".to_owned()
            } else {
                self.verb
            },
            resource,
            subresource: object.subresource,
            namespace: object.namespace,
            name: object.name,
            code,
            user_agent: self.user_agent,
            uri: self.request_uri,
        })
    }
}
