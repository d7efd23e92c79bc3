//! Step 5: the status, from what was seen or applied. Pure.
//!
//! One word for each part, and from the parts the summary that tools read
//! (rules U-9, C-11). Times are kept where nothing changed (C-4).

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kite_api::condition::{
    ISOLATION_READY, NAMESPACE_READY, QUOTA_READY, READY, RECONCILING, STALLED, Wanted, settle,
};
use kite_api::user::{KiteUserStatus, QuotaStatus, UserPhase};
use kite_api::{KiteUser, Quantity};
use kite_runtime::apply::WriteError;
use kite_runtime::{Class, Failure as _};

/// How far one part of a user has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Progress {
    /// It is as wanted.
    Good,
    /// It will be, without anybody's help.
    Coming,
    /// A person must change something.
    Stuck,
}

/// One part of a user, with its reason for machines and its sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// How far it is.
    pub progress: Progress,
    /// One CamelCase word.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
}

impl Part {
    /// It is as wanted.
    pub fn good(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(Progress::Good, reason, message)
    }

    /// It will come by itself.
    pub fn coming(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(Progress::Coming, reason, message)
    }

    /// A person must change something.
    pub fn stuck(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(Progress::Stuck, reason, message)
    }

    fn new(progress: Progress, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            progress,
            reason,
            message: message.into(),
        }
    }

    /// What a write that was not carried out means for a part; nothing for what passes by itself.
    pub fn of_error(error: &WriteError) -> Option<Self> {
        let words = error.to_string();
        match error {
            WriteError::NameConflict { .. } => Some(Self::stuck("NameConflict", words)),
            WriteError::Terminating { .. } => Some(Self::coming("ChildTerminating", words)),
            other => match other.class() {
                Class::Invalid => Some(Self::stuck("Rejected", words)),
                Class::Forbidden => Some(Self::stuck("Forbidden", words)),
                Class::NotReady => Some(Self::coming("NotReady", words)),
                Class::DependencyMissing => Some(Self::stuck("DependencyMissing", words)),
                Class::Conflict | Class::Transient => None,
            },
        }
    }

    fn wanted(&self, type_: &'static str) -> Wanted {
        let good = self.progress == Progress::Good;
        Wanted::new(type_, good, self.reason, self.message.clone())
    }
}

/// All that a status says.
#[derive(Clone, Debug, PartialEq)]
pub struct Parts {
    /// The namespace.
    pub namespace: Part,
    /// The network policies.
    pub isolation: Part,
    /// The quota and what it needs.
    pub quota: Part,
    /// The role bindings.
    pub access: Part,
    /// The limits of the quota that is in force.
    pub hard: BTreeMap<String, resource::Quantity>,
}

impl Parts {
    /// Nothing can be made, for one reason.
    pub fn all(part: &Part) -> Self {
        Self {
            namespace: part.clone(),
            isolation: part.clone(),
            quota: part.clone(),
            access: part.clone(),
            hard: BTreeMap::new(),
        }
    }

    /// The part that decides the summary: what a person must change comes before what comes by
    /// itself, and the namespace before what stands in it.
    pub fn deciding(&self) -> &Part {
        let in_order = [&self.access, &self.quota, &self.isolation, &self.namespace];
        // The last of equals is taken.
        let worst = in_order.into_iter().max_by_key(|part| part.progress);
        worst.unwrap_or(&self.namespace)
    }

    /// Whether nothing is missing but the server's answer to a quota.
    pub fn awaits_only_quota(&self) -> bool {
        let good = |part: &Part| part.progress == Progress::Good;
        good(&self.namespace)
            && good(&self.isolation)
            && good(&self.access)
            && self.quota.reason == QUOTA_PENDING
    }
}

/// The reason while the server has not taken in the quota.
pub const QUOTA_PENDING: &str = "QuotaPending";

/// The status of a user that stays.
pub fn of(user: &KiteUser, parts: Parts, now: &Time) -> KiteUserStatus {
    let deciding = parts.deciding().clone();
    let phase = match deciding.progress {
        Progress::Good => Some(UserPhase::Ready),
        // Not yet is no failure; the conditions say what is awaited.
        Progress::Coming => None,
        Progress::Stuck => Some(UserPhase::Failed),
    };
    let mut conditions = base(&parts);
    conditions.push(deciding.wanted(READY));
    conditions.extend(flag(&deciding));
    build(user, phase, conditions, parts, now)
}

/// The status of a user that goes; `why` says what is awaited or needed. Nothing of it is called
/// ready any more, so that nobody starts a machine in its namespace (rule V-6).
pub fn of_going(user: &KiteUser, why: &Part, now: &Time) -> KiteUserStatus {
    let parts = Parts::all(why);
    let mut conditions = base(&parts);
    conditions.push(Wanted::new(READY, false, why.reason, why.message.clone()));
    conditions.extend(flag(why));
    build(user, Some(UserPhase::Deleting), conditions, parts, now)
}

fn base(parts: &Parts) -> Vec<Wanted> {
    vec![
        parts.namespace.wanted(NAMESPACE_READY),
        parts.isolation.wanted(ISOLATION_READY),
        parts.quota.wanted(QUOTA_READY),
    ]
}

/// The one of the two abnormal conditions that holds, if one does (rule C-11).
fn flag(part: &Part) -> Option<Wanted> {
    let type_ = match part.progress {
        Progress::Good => return None,
        Progress::Coming => RECONCILING,
        Progress::Stuck => STALLED,
    };
    Some(Wanted::new(type_, true, part.reason, part.message.clone()))
}

fn build(
    user: &KiteUser,
    phase: Option<UserPhase>,
    conditions: Vec<Wanted>,
    parts: Parts,
    now: &Time,
) -> KiteUserStatus {
    let unknown = KiteUserStatus::default();
    let previous = user.status.as_ref().unwrap_or(&unknown);
    let generation = user.metadata.generation;
    // Only after success, and then for as long as the namespace is the user's.
    let succeeded = phase == Some(UserPhase::Ready) || previous.observed_namespace.is_some();
    let namespace = user.spec.namespace.clone();
    let observed_namespace =
        (succeeded && parts.namespace.progress == Progress::Good).then_some(namespace);
    let hard: BTreeMap<String, Quantity> = parts
        .hard
        .into_iter()
        .map(|(key, amount)| (key, Quantity(amount.0)))
        .collect();
    KiteUserStatus {
        observed_generation: generation,
        phase,
        observed_namespace,
        quota: (!hard.is_empty()).then_some(QuotaStatus { hard }),
        conditions: settle(&previous.conditions, conditions, generation, now),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;
    use kite_api::KiteUserSpec;
    use kite_api::condition::{find, is_true};

    use super::*;

    fn user() -> KiteUser {
        let spec = KiteUserSpec {
            namespace: "space".to_owned(),
            quota: None,
            network: None,
            subjects: Vec::new(),
        };
        let mut user = KiteUser::new("alice", spec);
        user.metadata.generation = Some(3);
        user
    }

    fn now(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap())
    }

    fn parts() -> Parts {
        Parts::all(&Part::good("Applied", "all is there"))
    }

    // C-11: Reconciling and Stalled only when True, never together; Ready by the worst part.
    #[test]
    fn the_summary_follows_the_part_that_is_worst() {
        let coming = Part::coming(QUOTA_PENDING, "the server has not taken in the quota");
        let stuck = Part::stuck("NameConflict", "a policy is in the way");
        let rows = [
            (parts(), Some(UserPhase::Ready), "Applied", None),
            (
                Parts {
                    quota: coming.clone(),
                    ..parts()
                },
                None,
                QUOTA_PENDING,
                Some(RECONCILING),
            ),
            (
                Parts {
                    quota: coming,
                    isolation: stuck.clone(),
                    ..parts()
                },
                Some(UserPhase::Failed),
                "NameConflict",
                Some(STALLED),
            ),
            (
                Parts {
                    access: stuck,
                    ..parts()
                },
                Some(UserPhase::Failed),
                "NameConflict",
                Some(STALLED),
            ),
        ];
        for (parts, phase, reason, abnormal) in rows {
            let status = of(&user(), parts, &now(1));
            assert_eq!(status.phase, phase);
            assert_eq!(status.observed_generation, Some(3));
            let ready = find(&status.conditions, READY).unwrap();
            assert_eq!(ready.reason, reason);
            assert_eq!(ready.status == "True", abnormal.is_none());
            for type_ in [NAMESPACE_READY, ISOLATION_READY, QUOTA_READY] {
                assert!(find(&status.conditions, type_).is_some(), "{type_}");
            }
            for type_ in [RECONCILING, STALLED] {
                let present = find(&status.conditions, type_).is_some();
                assert_eq!(present, abnormal == Some(type_), "{reason} {type_}");
            }
        }
    }

    // U-9
    #[test]
    fn the_namespace_is_told_only_after_success_and_while_it_is_the_users() {
        let mut user = user();
        let coming = Parts {
            quota: Part::coming(QUOTA_PENDING, ""),
            ..parts()
        };
        assert_eq!(of(&user, coming.clone(), &now(1)).observed_namespace, None);
        user.status = Some(of(&user, parts(), &now(2)));
        assert_eq!(
            of(&user, coming, &now(3)).observed_namespace.as_deref(),
            Some("space")
        );
        let lost = Parts::all(&Part::stuck("NamespaceNotManaged", ""));
        assert_eq!(of(&user, lost, &now(3)).observed_namespace, None);
    }

    // C-4, C-5: the same state gives the same bytes, whenever it is looked at.
    #[test]
    fn nothing_new_gives_the_same_status() {
        let mut user = user();
        let first = of(&user, parts(), &now(1));
        user.status = Some(first.clone());
        assert_eq!(of(&user, parts(), &now(99)), first);
    }

    // U-9
    #[test]
    fn the_limits_in_force_are_told_and_none_when_there_is_no_quota() {
        let limited = Parts {
            hard: [("pods".to_owned(), resource::Quantity("3".to_owned()))].into(),
            ..parts()
        };
        let told = of(&user(), limited, &now(1)).quota.unwrap();
        assert_eq!(told.hard["pods"], Quantity("3".to_owned()));
        assert_eq!(of(&user(), parts(), &now(1)).quota, None);
    }

    // U-6: only then does it look again after moments, since the quota's watch tells the rest.
    #[test]
    fn a_user_awaits_only_its_quota_when_all_else_is_there() {
        let pending = Parts {
            quota: Part::coming(QUOTA_PENDING, "the server has not taken in the quota"),
            ..parts()
        };
        assert!(pending.awaits_only_quota());
        assert!(!parts().awaits_only_quota());
        let each: [fn(&mut Parts) -> &mut Part; 4] = [
            |p| &mut p.namespace,
            |p| &mut p.isolation,
            |p| &mut p.quota,
            |p| &mut p.access,
        ];
        for part in each {
            let mut more = pending.clone();
            *part(&mut more) = Part::coming("NotReady", "not yet");
            assert!(!more.awaits_only_quota(), "{more:?}");
        }
    }

    // C-7, C-11: a person is called where only a person can help.
    #[test]
    fn a_write_that_fails_is_stuck_or_coming_or_nothing_to_tell() {
        let (kind, name) = (|| "NetworkPolicy".to_owned(), || "isolation".to_owned());
        let refused = |code| {
            let status = kube::core::Status::failure("no", "Reason").with_code(code);
            WriteError::Api {
                doing: "create",
                kind: kind(),
                name: name(),
                source: kube::Error::Api(status.boxed()),
            }
        };
        let conflict = WriteError::NameConflict {
            kind: kind(),
            name: name(),
        };
        let going = WriteError::Terminating {
            kind: kind(),
            name: name(),
        };
        let stale = WriteError::Stale {
            doing: "patch",
            kind: kind(),
            name: name(),
        };
        for (error, expected) in [
            (conflict, Some((Progress::Stuck, "NameConflict"))),
            (going, Some((Progress::Coming, "ChildTerminating"))),
            (refused(422), Some((Progress::Stuck, "Rejected"))),
            (refused(403), Some((Progress::Stuck, "Forbidden"))),
            (refused(503), None),
            (stale, None),
        ] {
            let part = Part::of_error(&error);
            let found = part.as_ref().map(|p| (p.progress, p.reason));
            assert_eq!(found, expected, "{error}");
            assert!(part.is_none_or(|p| p.message == error.to_string()));
        }
    }

    #[test]
    fn a_user_that_goes_is_never_ready() {
        let why = Part::coming("Deleting", "the quota is being closed");
        let status = of_going(&user(), &why, &now(1));
        assert_eq!(status.phase, Some(UserPhase::Deleting));
        assert!(!is_true(&status.conditions, READY));
        assert!(!is_true(&status.conditions, ISOLATION_READY));
        assert!(is_true(&status.conditions, RECONCILING));
    }
}
