//! Errors have a class, and the class decides when a pass is tried again, the
//! metric's label and the reason people see. Nothing is ever labelled with the
//! text of an error.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use kube::core::Status;

use crate::cache::Key;

/// What kind of trouble a pass met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The input is wrong; only a person can help.
    Invalid,
    /// Somebody else changed or holds the object; look again.
    Conflict,
    /// Something needed is not there yet.
    NotReady,
    /// The server or the network; it passes.
    Transient,
    /// A right is missing.
    Forbidden,
    /// A kind is not served by this cluster.
    DependencyMissing,
}

impl Class {
    /// Each of them.
    pub const ALL: [Self; 6] = [
        Self::Invalid,
        Self::Conflict,
        Self::NotReady,
        Self::Transient,
        Self::Forbidden,
        Self::DependencyMissing,
    ];

    /// The metric's label.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Conflict => "conflict",
            Self::NotReady => "not_ready",
            Self::Transient => "transient",
            Self::Forbidden => "forbidden",
            Self::DependencyMissing => "dependency_missing",
        }
    }

    /// First and longest delay before the next try.
    const fn delays(self) -> (Duration, Duration) {
        match self {
            // A conflict means that our view was old; the watch brings the new one, on a busy server
            // after seconds, and does not wake for what the pass does not read.
            Self::Conflict => (Duration::from_millis(100), Duration::from_secs(5)),
            Self::NotReady => (Duration::from_secs(1), Duration::from_secs(60)),
            Self::Transient => (Duration::from_millis(500), Duration::from_secs(60)),
            // A right is granted by a person, a kind installed by one; a watch tells of neither.
            Self::Forbidden => (Duration::from_secs(2), Duration::from_secs(60)),
            Self::DependencyMissing => (Duration::from_secs(5), Duration::from_secs(20)),
            Self::Invalid => (Duration::from_secs(30), Duration::from_secs(600)),
        }
    }
}

/// An error of a pass.
pub trait Failure: std::error::Error + Send + Sync + 'static {
    /// Its class.
    fn class(&self) -> Class;
}

/// Why the API server said no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The object is not there.
    NotFound,
    /// The kind is not served; never to be read as "the object is gone".
    KindMissing,
    /// A newer version exists, or the object does.
    Conflict,
    /// The schema or a rule refuses the object.
    Invalid,
    /// A ResourceQuota refuses it.
    Quota,
    /// An admission webhook or policy refuses it.
    Webhook,
    /// The namespace is being deleted.
    NamespaceTerminating,
    /// A right is missing.
    Forbidden,
    /// Anything that passes: time-outs, 429, 5xx, the network.
    Transient,
}

impl Refusal {
    /// The class of a pass that ends with this.
    pub const fn class(self) -> Class {
        match self {
            Self::NotFound | Self::Conflict => Class::Conflict,
            Self::KindMissing => Class::DependencyMissing,
            Self::Invalid => Class::Invalid,
            Self::Quota | Self::Webhook | Self::NamespaceTerminating => Class::NotReady,
            Self::Forbidden => Class::Forbidden,
            Self::Transient => Class::Transient,
        }
    }
}

/// Reads an API error.
pub fn refusal(error: &kube::Error) -> Refusal {
    match error {
        kube::Error::Api(status) => refusal_of(status),
        _ => Refusal::Transient,
    }
}

fn refusal_of(status: &Status) -> Refusal {
    let message = status.message.as_str();
    match status.code {
        // Webhooks and policies choose their own codes; these words are what the server adds.
        _ if message.contains("denied the request") || message.contains("denied request: ") => {
            Refusal::Webhook
        }
        404 if kind_missing(status) => Refusal::KindMissing,
        // A create in a namespace that does not exist names the namespace as the thing not found.
        404 => Refusal::NotFound,
        409 => Refusal::Conflict,
        400 | 422 => Refusal::Invalid,
        403 if message.contains("exceeded quota") || message.contains("failed quota") => {
            Refusal::Quota
        }
        403 if message.contains("being terminated") => Refusal::NamespaceTerminating,
        403 => Refusal::Forbidden,
        _ => Refusal::Transient,
    }
}

/// A 404 for a kind carries no name: the server does not get as far as an object.
fn kind_missing(status: &Status) -> bool {
    status
        .message
        .contains("could not find the requested resource")
        || status.message.contains("page not found")
        || status.details.as_ref().is_none_or(|d| d.name.is_empty())
}

/// The server's own words, without the client's decoration.
pub fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        other => other.to_string(),
    }
}

/// Exponential back-off for each object, with jitter.
///
/// Locked for the time of one map operation, by the pass that just ended.
#[derive(Debug, Default)]
pub struct Backoff {
    attempts: Mutex<HashMap<Key, u32>>,
}

impl Backoff {
    /// The delay before the next try of an object that failed once more.
    pub fn next(&self, key: &Key, class: Class) -> Duration {
        let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        let attempt = attempts.entry(key.clone()).or_default();
        let (first, longest) = class.delays();
        let delay = first.saturating_mul(1 << (*attempt).min(16)).min(longest);
        *attempt = attempt.saturating_add(1);
        jittered(delay, key, *attempt)
    }

    /// How often an object has failed in a row.
    pub fn attempts(&self, key: &Key) -> u32 {
        let attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        attempts.get(key).copied().unwrap_or_default()
    }

    /// Forgets the failures of an object.
    pub fn reset(&self, key: &Key) {
        self.attempts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(key);
    }
}

/// Takes up to a quarter off a delay, by the object's name and a salt: spread out, and the same in every run.
pub fn jittered(delay: Duration, key: &Key, salt: u32) -> Duration {
    let share = key
        .to_string()
        .bytes()
        .fold(salt.wrapping_mul(0x9E37_79B9), |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        })
        % 256;
    delay.saturating_sub(delay / 4 * share / 256)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: u16, message: &str, name: &str) -> kube::Error {
        let mut status = Status::failure(message, "Reason").with_code(code);
        status.details = serde_json::from_value(serde_json::json!({"name": name})).ok();
        assert!(status.details.is_some());
        kube::Error::Api(Box::new(status))
    }

    // C-14: "the kind is unknown" is never read as "the object is gone".
    #[test]
    fn an_unknown_kind_and_an_absent_object_are_told_apart() {
        let kind = status(404, "the server could not find the requested resource", "");
        let object = status(404, "services \"web\" not found", "web");
        assert_eq!(refusal(&kind), Refusal::KindMissing);
        assert_eq!(refusal(&object), Refusal::NotFound);
    }

    // V-17
    #[test]
    fn quota_webhook_and_schema_refusals_are_told_apart() {
        let quota = status(
            403,
            "pods \"x\" is forbidden: exceeded quota: kite-quota",
            "x",
        );
        let webhook = status(
            400,
            "admission webhook \"v.kubevirt.io\" denied the request: no",
            "x",
        );
        assert_eq!(refusal(&quota), Refusal::Quota);
        assert_eq!(refusal(&webhook), Refusal::Webhook);
        let unprocessable = status(
            422,
            "admission webhook \"d.cdi\" denied the request: no",
            "x",
        );
        assert_eq!(refusal(&unprocessable), Refusal::Webhook);
        let policy = status(
            422,
            "services \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
            "x",
        );
        assert_eq!(refusal(&policy), Refusal::Webhook);
        assert_eq!(
            refusal(&status(422, "spec.cpu: Invalid value", "x")),
            Refusal::Invalid
        );
        assert_eq!(
            refusal(&status(403, "is forbidden: User cannot get", "x")),
            Refusal::Forbidden
        );
    }

    // C-12
    #[test]
    fn delays_double_up_to_the_cap_and_start_again_after_success() {
        let backoff = Backoff::default();
        let key = Key::cluster("a");
        let delays: Vec<_> = (0..12)
            .map(|_| backoff.next(&key, Class::DependencyMissing))
            .collect();
        assert!(delays[0] <= Duration::from_secs(5) && delays[0] >= Duration::from_millis(3750));
        assert!(delays.iter().all(|d| *d <= Duration::from_secs(20)));
        backoff.reset(&key);
        assert!(backoff.next(&key, Class::DependencyMissing) <= Duration::from_secs(5));
    }
}
