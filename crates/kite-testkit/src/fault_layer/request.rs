//! What a request asks for, read from its line and body, and what became of it.
//!
//! Paths are those of the Kubernetes API; anything else is kept as its path.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use http::Method;
use serde::Deserialize;

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// As the audit log says it: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    /// But a watch that begins with a list is a `list`, since that is what it is asked for.
    pub verb: &'static str,
    /// Whether it is a watch, whatever it begins with.
    pub streams: bool,
    /// `group/resource`, `resource` in the core group, or the path asked for.
    pub resource: String,
    /// Such as `status`; empty without one.
    pub subresource: String,
    /// Empty for cluster-scoped objects and lists over all namespaces.
    pub namespace: String,
    /// Empty for lists, watches, and creates by post.
    pub name: String,
    /// The path with its parameters.
    pub uri: String,
    /// Equal for equal bodies, within this run.
    pub body_hash: u64,
    /// The resourceVersion in the body or, for a watch, in the parameters.
    pub version: Option<String>,
}

/// A request that the layer has seen.
#[derive(Clone, Debug)]
pub struct Seen {
    /// What it asks for.
    pub asked: Asked,
    /// Which process sent it: the layer's first is 1, the one after its kill 2.
    pub life: usize,
    /// Its number among the writes of its process; leases and events are not among them.
    pub write: Option<usize>,
    /// When it came, counted from the layer's start.
    pub at: Duration,
    /// When its answer came from the server, or was made up.
    pub answered: Option<Duration>,
    /// The code that the process got; nothing when it got none.
    pub code: Option<u16>,
    /// The resourceVersion in the answer.
    pub answer_version: Option<String>,
    /// What was done to it.
    pub fault: Option<String>,
}

#[derive(Deserialize)]
struct Versioned {
    metadata: Option<Version>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    resource_version: Option<String>,
}

/// The resourceVersion of an object or list, if this is one.
pub(super) fn version_in(body: &[u8]) -> Option<String> {
    let read: Versioned = serde_json::from_slice(body).ok()?;
    read.metadata?.resource_version
}

impl Asked {
    pub(super) fn read(method: &Method, uri: &http::Uri, body: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        body.hash(&mut hasher);
        let (target, name) = target(uri.path());
        let watches = parameter(uri, "watch").is_some_and(|w| w == "true" || w == "1");
        let begins_with_list = parameter(uri, "sendInitialEvents").is_some_and(|p| p == "true");
        let verb = match *method {
            Method::GET if watches && !begins_with_list => "watch",
            Method::GET if name.is_empty() => "list",
            Method::GET => "get",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if name.is_empty() => "deletecollection",
            Method::DELETE => "delete",
            _ => "other",
        };
        let in_query = || parameter(uri, "resourceVersion").map(str::to_owned);
        Self {
            verb,
            streams: watches,
            resource: target.resource,
            subresource: target.subresource,
            namespace: target.namespace,
            name,
            uri: uri.path_and_query().map_or("/", |p| p.as_str()).to_owned(),
            body_hash: hasher.finish(),
            version: version_in(body).or_else(in_query),
        }
    }

    /// Whether it is about a lease or an event, which go on beside the work.
    pub fn is_upkeep(&self) -> bool {
        let resource = self.resource.as_str();
        matches!(
            resource,
            "coordination.k8s.io/leases" | "events" | "events.k8s.io/events"
        )
    }

    /// Whether it changes something.
    pub fn is_write(&self) -> bool {
        !matches!(self.verb, "get" | "list" | "watch" | "other")
    }

    /// The path with what picks objects, and nothing of the version or of how they come: the same
    /// list at any time.
    pub(super) fn list_key(&self) -> String {
        let (path, query) = self.uri.split_once('?').unwrap_or((&self.uri, ""));
        let picks = |p: &&str| p.starts_with("labelSelector") || p.starts_with("fieldSelector");
        let kept: Vec<_> = query.split('&').filter(picks).collect();
        format!("{path}?{}", kept.join("&"))
    }
}

fn parameter<'a>(uri: &'a http::Uri, name: &str) -> Option<&'a str> {
    let mut pairs = uri.query()?.split('&').filter_map(|p| p.split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
}

#[derive(Default)]
struct Target {
    resource: String,
    subresource: String,
    namespace: String,
}

/// What a path is about, and the object's name.
fn target(path: &str) -> (Target, String) {
    let parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty()).collect();
    let (group, rest) = match parts.as_slice() {
        ["api", _, rest @ ..] => ("", rest),
        ["apis", group, _, rest @ ..] => (*group, rest),
        _ => ("", [].as_slice()),
    };
    let (namespace, rest) = match rest {
        // A namespace's own path has the same beginning as that of what is in it.
        ["namespaces", name, kind, rest @ ..] if !matches!(*kind, "status" | "finalize") => {
            (*name, [&[*kind], rest].concat())
        }
        other => ("", other.to_vec()),
    };
    let Some(kind) = rest.first() else {
        let resource = path.to_owned();
        return (
            Target {
                resource,
                ..Target::default()
            },
            String::new(),
        );
    };
    let at = |i: usize| rest.get(i).copied().unwrap_or_default().to_owned();
    let resource = match group {
        "" => (*kind).to_owned(),
        group => format!("{group}/{kind}"),
    };
    let target = Target {
        resource,
        subresource: at(2),
        namespace: namespace.to_owned(),
    };
    (target, at(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: &Method, uri: &str, body: &str) -> Asked {
        Asked::read(method, &uri.parse().unwrap(), body.as_bytes())
    }

    #[test]
    fn paths_are_read_as_the_audit_log_reads_them() {
        let body = r#"{"metadata": {"resourceVersion": "7"}, "spec": {}}"#;
        let patch = read(
            &Method::PATCH,
            "/apis/kubevirt.io/v1/namespaces/a/virtualmachines/web/status?force=true",
            body,
        );
        assert_eq!(
            (
                patch.verb,
                patch.resource.as_str(),
                patch.subresource.as_str()
            ),
            ("patch", "kubevirt.io/virtualmachines", "status")
        );
        assert_eq!(
            (patch.namespace.as_str(), patch.name.as_str()),
            ("a", "web")
        );
        assert_eq!(patch.version.as_deref(), Some("7"));
        assert!(patch.is_write() && !patch.is_upkeep());

        let watch = read(
            &Method::GET,
            "/api/v1/services?watch=true&resourceVersion=9&labelSelector=a",
            "",
        );
        assert_eq!((watch.verb, watch.resource.as_str()), ("watch", "services"));
        assert_eq!(watch.version.as_deref(), Some("9"));
        let streamed = read(
            &Method::GET,
            "/api/v1/services?watch=true&sendInitialEvents=true&labelSelector=a",
            "",
        );
        assert_eq!((streamed.verb, streamed.streams), ("list", true));
        assert_eq!(streamed.list_key(), "/api/v1/services?labelSelector=a");
        assert_eq!(watch.list_key(), streamed.list_key());

        let namespace = read(&Method::DELETE, "/api/v1/namespaces/a", "");
        assert_eq!(
            (
                namespace.verb,
                namespace.resource.as_str(),
                namespace.name.as_str()
            ),
            ("delete", "namespaces", "a")
        );
        assert!(namespace.namespace.is_empty());
        let lists = read(&Method::GET, "/apis/kite.dev/v1alpha1/kiteusers", "");
        assert_eq!(
            (lists.verb, lists.resource.as_str()),
            ("list", "kite.dev/kiteusers")
        );
    }
}
