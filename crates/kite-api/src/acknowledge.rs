//! How an administrator acknowledges a deletion that Kite holds back (rule N-6).
//!
//! The acknowledgement is an annotation on the very object that is about to be
//! destroyed, a Namespace or a CustomResourceDefinition of Kite's, and its value
//! is a time. It covers what was due at that time and nothing that comes later,
//! so that one given today never lies in wait for tomorrow's accident. Who gave
//! it for what stands in the cluster's own audit log. The clock is the caller's.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::labels::ACKNOWLEDGE_DELETION;

/// How far an administrator's clock may be ahead of ours. A time beyond it is no acknowledgement:
/// it would be one for everything until then.
const SKEW: SignedDuration = SignedDuration::from_mins(5);

/// Whether the deletion of an object, due since `since`, was acknowledged.
pub fn acknowledged(meta: &ObjectMeta, since: Timestamp, now: Timestamp) -> bool {
    let value = meta
        .annotations
        .as_ref()
        .and_then(|a| a.get(ACKNOWLEDGE_DELETION));
    let at = value.and_then(|v| v.parse::<Timestamp>().ok());
    at.is_some_and(|at| since <= at && at <= now.saturating_add(SKEW).unwrap_or(now))
}

/// Whether a definition of one of Kite's kinds is being removed, which takes all of the kind's
/// objects, and no administrator has acknowledged that this is meant.
pub fn removal_held(crd: &ObjectMeta, now: Timestamp) -> bool {
    let since = crd.deletion_timestamp.as_ref().map(|time| time.0);
    since.is_some_and(|since| !acknowledged(crd, since, now))
}

#[cfg(test)]
mod tests {
    use super::*;

    // N-6
    #[test]
    fn an_acknowledgement_covers_what_was_due_when_it_was_given_and_nothing_later() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let object = |value: &str| ObjectMeta {
            annotations: Some([(ACKNOWLEDGE_DELETION.to_owned(), value.to_owned())].into()),
            ..ObjectMeta::default()
        };
        let given = object("1970-01-01T00:16:40Z");
        assert!(acknowledged(&given, at(900), at(2000)));
        assert!(acknowledged(&given, at(1000), at(2000)));
        assert!(!acknowledged(&given, at(1001), at(2000)), "orphaned anew");
        assert!(!acknowledged(&given, at(100), at(600)), "far in the future");
        assert!(!acknowledged(&object("true"), at(900), at(2000)));
        assert!(!acknowledged(&ObjectMeta::default(), at(900), at(2000)));
    }
}
