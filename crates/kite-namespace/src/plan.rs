//! Steps 2 and 3: who needs a namespace, since when nobody does, and what is in
//! the way of its deletion. Pure.

pub mod blocked;
pub mod brake;

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kite_api::acknowledge::acknowledged;
use kite_api::labels::{DELETION_HELD, DELETION_PROTECTED, ORPHANED_SINCE, USER_UID};
use kube::ResourceExt;

use self::brake::Count;
use crate::observe::{USER_CRD, UserView};

/// The value of the annotation on a namespace that the brake holds. It stands until an
/// administrator acknowledges or somebody needs the namespace again.
pub const HELD_BY_BRAKE: &str = "Brake";
/// The value on a namespace that an administrator protects, or that has a retained disk in it (rule N-5).
pub const HELD_BY_PROTECTION: &str = "OrphanRetained";
/// The value on a namespace whose deletion does not come to its end (rule N-8).
pub const HELD_BY_CONTENT: &str = "DeletionBlocked";

/// Who needs namespaces: the users' UIDs, and the namespaces they name.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    uids: HashSet<String>,
    namespaces: HashSet<String>,
}

impl Needs {
    /// The needs of some users. One that is going still counts: kite-user has not let go yet.
    pub fn of<'a>(users: impl IntoIterator<Item = &'a UserView>) -> Self {
        let mut needs = Self::default();
        for user in users {
            needs.uids.extend(user.metadata.uid.clone());
            needs.namespaces.extend(user.namespace().map(str::to_owned));
        }
        needs
    }

    /// Whether a namespace is bound to one of them, or named by one (rule N-3).
    pub fn include(&self, namespace: &ObjectMeta) -> bool {
        let bound = bound_uid(namespace).is_some_and(|uid| self.uids.contains(uid));
        let named = namespace.name.as_ref();
        bound || named.is_some_and(|name| self.namespaces.contains(name))
    }
}

/// Whether one user needs a namespace: the same question, asked of one.
pub fn is_needed_by(namespace: &ObjectMeta, user: &UserView) -> bool {
    let uid = user.metadata.uid.as_deref();
    let bound = uid.is_some() && bound_uid(namespace) == uid;
    bound || (namespace.name.is_some() && user.namespace() == namespace.name.as_deref())
}

/// The UID of the KiteUser to which a namespace is bound (rule C-7).
pub fn bound_uid(meta: &ObjectMeta) -> Option<&str> {
    annotation(meta, USER_UID).filter(|uid| !uid.is_empty())
}

/// An annotation.
pub fn annotation<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    meta.annotations.as_ref()?.get(key).map(String::as_str)
}

/// Since when nobody needs it, as it is marked. What is no time counts as no mark.
pub fn orphaned_since(meta: &ObjectMeta) -> Option<Timestamp> {
    annotation(meta, ORPHANED_SINCE)?.parse().ok()
}

/// Whether it carries anything that only this controller writes.
pub fn is_marked(meta: &ObjectMeta) -> bool {
    annotation(meta, ORPHANED_SINCE).is_some() || annotation(meta, DELETION_HELD).is_some()
}

/// Whether an administrator keeps it (rule N-5).
pub fn is_protected(meta: &ObjectMeta) -> bool {
    annotation(meta, DELETION_PROTECTED) == Some("true")
}

/// How long until the grace period ends; nothing when it has.
pub fn until_due(since: Timestamp, grace: Duration, now: Timestamp) -> Option<Duration> {
    let grace = SignedDuration::try_from(grace).unwrap_or(SignedDuration::MAX);
    let due = since.saturating_add(grace).unwrap_or(Timestamp::MAX);
    Duration::try_from(due.duration_since(now))
        .ok()
        .filter(|left| !left.is_zero())
}

/// Why a list of KiteUsers proves nothing at the moment (rules N-2, N-6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The kind KiteUser is not there.
    KindAbsent,
    /// The kind KiteUser is being removed.
    KindTerminating,
    /// The kind KiteUser is younger than the grace period: the users may still be restored.
    KindYoung(Duration),
    /// Another of Kite's kinds is being removed, and nobody has said that this is meant.
    RemovalHeld,
}

impl Doubt {
    /// The metric's label.
    pub const fn label(self) -> &'static str {
        match self {
            Self::KindAbsent => "kind_absent",
            Self::KindTerminating => "kind_terminating",
            Self::KindYoung(_) => "kind_young",
            Self::RemovalHeld => "removal_held",
        }
    }
}

/// Judges Kite's kinds as the server has them.
pub fn doubt(kinds: &[ObjectMeta], grace: Duration, now: Timestamp) -> Option<Doubt> {
    let users = kinds.iter().find(|k| k.name.as_deref() == Some(USER_CRD));
    let Some(users) = users else {
        return Some(Doubt::KindAbsent);
    };
    if users.deletion_timestamp.is_some() {
        return Some(Doubt::KindTerminating);
    }
    let created = users.creation_timestamp.as_ref().map(|t| t.0);
    if let Some(left) = created.and_then(|created| until_due(created, grace, now)) {
        return Some(Doubt::KindYoung(left));
    }
    let held = kinds.iter().any(|kind| {
        let since = kind.deletion_timestamp.as_ref().map(|t| t.0);
        since.is_some_and(|since| !acknowledged(kind, since, now))
    });
    held.then_some(Doubt::RemovalHeld)
}

/// Counts for the brake: what is known of managed namespaces, and what went lately. Those that are
/// `kept` are no victims.
pub fn count<'a>(
    namespaces: impl IntoIterator<Item = &'a Namespace>,
    needs: &Needs,
    recent: BTreeSet<String>,
    kept: impl Fn(&Namespace) -> bool,
) -> Count {
    let mut count = Count {
        managed: recent.clone(),
        orphaned: recent.clone(),
        due: recent,
    };
    for namespace in namespaces {
        let meta = &namespace.metadata;
        if bound_uid(meta).is_none() || meta.deletion_timestamp.is_some() {
            continue;
        }
        let name = namespace.name_any();
        if !needs.include(meta) {
            count.orphaned.insert(name.clone());
            if !kept(namespace) {
                count.due.insert(name.clone());
            }
        }
        count.managed.insert(name);
    }
    count
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::json;

    use super::*;

    fn user(uid: &str, namespace: &str) -> UserView {
        let object = json!({"metadata": {"name": "x", "uid": uid}, "spec": {"namespace": namespace, "quota": "no quota at all"}});
        serde_json::from_value(object).unwrap()
    }

    fn meta(name: &str, annotations: &[(&str, &str)]) -> ObjectMeta {
        ObjectMeta {
            name: Some(name.to_owned()),
            annotations: Some(
                annotations
                    .iter()
                    .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                    .collect(),
            ),
            ..ObjectMeta::default()
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    // N-3: bound or named is needed; C-15: whatever else stands in the user's spec.
    #[test]
    fn a_namespace_is_needed_by_whom_it_is_bound_to_and_by_whom_it_is_named() {
        let users = [user("u1", "one"), user("u2", "two")];
        let needs = Needs::of(&users);
        assert!(needs.include(&meta("one", &[(USER_UID, "u1")])));
        assert!(needs.include(&meta("other", &[(USER_UID, "u1")])));
        assert!(needs.include(&meta("two", &[(USER_UID, "gone")])));
        assert!(!needs.include(&meta("three", &[(USER_UID, "gone")])));
        assert!(!needs.include(&meta("three", &[])));
        for namespace in [
            meta("one", &[(USER_UID, "u1")]),
            meta("two", &[]),
            meta("three", &[]),
        ] {
            let one_by_one = users.iter().any(|user| is_needed_by(&namespace, user));
            assert_eq!(one_by_one, needs.include(&namespace), "{namespace:?}");
        }
    }

    // N-4
    #[test]
    fn the_grace_period_runs_from_the_mark() {
        let grace = Duration::from_secs(600);
        assert_eq!(until_due(at(1000), grace, at(1000)), Some(grace));
        assert_eq!(
            until_due(at(1000), grace, at(1599)),
            Some(Duration::from_secs(1))
        );
        assert_eq!(until_due(at(1000), grace, at(1600)), None);
        assert_eq!(until_due(at(1000), Duration::ZERO, at(1000)), None);
        assert!(until_due(at(1000), Duration::MAX, at(1600)).is_some());
        let since = |mark: &str| orphaned_since(&meta("a", &[(ORPHANED_SINCE, mark)]));
        assert_eq!(since("1970-01-01T00:10:00Z"), Some(at(600)));
        assert_eq!(since("soon"), None);
    }

    // N-3, N-5: what the mark is taken away from, and what it is not.
    #[test]
    fn a_namespace_is_marked_by_either_annotation_and_by_no_other() {
        for (annotation, is) in [
            (Some(ORPHANED_SINCE), true),
            (Some(DELETION_HELD), true),
            (Some(DELETION_PROTECTED), false),
            (None, false),
        ] {
            let annotations: Vec<_> = annotation.into_iter().map(|key| (key, "x")).collect();
            assert_eq!(is_marked(&meta("a", &annotations)), is, "{annotation:?}");
        }
    }

    // N-2, N-6: each has a word of its own, which alerts go by.
    #[test]
    fn a_doubt_is_told_by_its_word() {
        for (doubt, word) in [
            (Doubt::KindAbsent, "kind_absent"),
            (Doubt::KindTerminating, "kind_terminating"),
            (Doubt::KindYoung(Duration::ZERO), "kind_young"),
            (Doubt::RemovalHeld, "removal_held"),
        ] {
            assert_eq!(doubt.label(), word);
        }
    }

    // N-2, N-6
    #[test]
    fn a_list_is_not_believed_while_the_kind_is_absent_going_or_young() {
        let grace = Duration::from_secs(600);
        let kind = |name: &str, created: i64, going: Option<i64>, annotations: &[(&str, &str)]| {
            ObjectMeta {
                creation_timestamp: Some(Time(at(created))),
                deletion_timestamp: going.map(|t| Time(at(t))),
                ..meta(name, annotations)
            }
        };
        let users = kind(USER_CRD, 1000, None, &[]);
        let other = "kiteplatforms.kite.dev";
        let ack = [(
            kite_api::labels::ACKNOWLEDGE_DELETION,
            "1970-01-01T00:50:00Z",
        )];
        let now = at(5000);
        let rows = [
            (vec![], Some(Doubt::KindAbsent)),
            (vec![kind(other, 1, None, &[])], Some(Doubt::KindAbsent)),
            (
                vec![kind(USER_CRD, 1000, Some(4000), &[])],
                Some(Doubt::KindTerminating),
            ),
            (
                vec![kind(USER_CRD, 4500, None, &[])],
                Some(Doubt::KindYoung(Duration::from_secs(100))),
            ),
            (vec![users.clone()], None),
            (
                vec![users.clone(), kind(other, 1, Some(2000), &[])],
                Some(Doubt::RemovalHeld),
            ),
            (vec![users, kind(other, 1, Some(2000), &ack)], None),
        ];
        for (kinds, expected) in rows {
            assert_eq!(doubt(&kinds, grace, now), expected, "{kinds:?}");
        }
    }

    // N-6
    #[test]
    fn what_is_unbound_or_going_is_not_counted_and_what_went_lately_is() {
        let space = |meta: ObjectMeta| Namespace {
            metadata: meta,
            ..Namespace::default()
        };
        let mut going = meta("going", &[(USER_UID, "gone")]);
        going.deletion_timestamp = Some(Time(at(1)));
        let spaces = [
            space(meta("kept", &[(USER_UID, "u1")])),
            space(meta("lost", &[(USER_UID, "gone")])),
            space(meta(
                "safe",
                &[(USER_UID, "gone"), (DELETION_PROTECTED, "true")],
            )),
            space(meta("labelled", &[])),
            space(going),
        ];
        let users = [user("u1", "kept")];
        let count = count(
            &spaces,
            &Needs::of(&users),
            BTreeSet::from(["went".to_owned()]),
            |namespace| is_protected(&namespace.metadata),
        );
        let names = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(" ");
        assert_eq!(names(&count.managed), "kept lost safe went");
        assert_eq!(names(&count.orphaned), "lost safe went");
        assert_eq!(names(&count.due), "lost went");
    }
}
