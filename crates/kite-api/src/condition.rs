//! Conditions: their types, and the one way to bring them up to date.
//!
//! A condition's `lastTransitionTime` moves only when its status does (rule
//! C-4). The clock is the caller's; this module never asks for the time.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// Everything that is wanted is there.
pub const READY: &str = "Ready";
/// Work is under way; present only when True (rule C-11).
pub const RECONCILING: &str = "Reconciling";
/// A person must change something; present only when True (rule C-11).
pub const STALLED: &str = "Stalled";
/// The specification can be carried out.
pub const ACCEPTED: &str = "Accepted";
/// The children are as declared.
pub const RESOURCES_APPLIED: &str = "ResourcesApplied";
/// The host name is the machine's, or none was asked for.
pub const DOMAIN_READY: &str = "DomainReady";
/// The object is on its way out.
pub const DELETING: &str = "Deleting";
/// The machine's power is what was asked for.
pub const POWER_IN_SYNC: &str = "PowerInSync";
/// KubeVirt has paused the machine.
pub const PAUSED: &str = "Paused";
/// KubeVirt holds changes back until the next start.
pub const RESTART_REQUIRED: &str = "RestartRequired";
/// The machine can move to another node.
pub const LIVE_MIGRATABLE: &str = "LiveMigratable";
/// The guest agent answers.
pub const AGENT_CONNECTED: &str = "AgentConnected";
/// The machine's Service is as declared.
pub const SERVICE_READY: &str = "ServiceReady";
/// The machine's disk is filled.
pub const DISK_READY: &str = "DiskReady";
/// The user's namespace exists and is the user's.
pub const NAMESPACE_READY: &str = "NamespaceReady";
/// The user's network policies exist unchanged.
pub const ISOLATION_READY: &str = "IsolationReady";
/// The user's quota is in force.
pub const QUOTA_READY: &str = "QuotaReady";

/// The reason of every condition that names a foreign object in the way (rule C-7).
pub const NAME_CONFLICT: &str = "NameConflict";
/// The reason of every condition that names a kind the cluster does not serve (rule C-14).
pub const DEPENDENCY_MISSING: &str = "DependencyMissing";
/// The reason of `Ready` of a machine whose guest has shut itself down and is to stay down (rule
/// S-2), and the word of `lastStop` for any guest that ended so.
pub const GUEST_SHUT_DOWN: &str = "GuestShutDown";

/// The three values of a condition's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It is so.
    True,
    /// It is not so.
    False,
    /// It cannot be told.
    Unknown,
}

impl Status {
    /// The word the API uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Status {
    fn from(value: bool) -> Self {
        if value { Self::True } else { Self::False }
    }
}

/// A condition that should stand, before it has a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The condition's type.
    pub type_: &'static str,
    /// Its status.
    pub status: Status,
    /// One CamelCase word for machines.
    pub reason: String,
    /// A sentence for people. It holds nothing that changes by itself (rule C-4).
    pub message: String,
}

impl Wanted {
    /// A condition with its reason and message.
    pub fn new(
        type_: &'static str,
        status: impl Into<Status>,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            type_,
            status: status.into(),
            reason: reason.into(),
            message: cut(message.into()),
        }
    }
}

/// Longest message that is written; the schema of conditions allows 32 kB, a table row does not.
const MESSAGE_LIMIT: usize = 1024;

/// Cuts a text to [`MESSAGE_LIMIT`] bytes on a character boundary.
fn cut(mut text: String) -> String {
    if text.len() > MESSAGE_LIMIT {
        text.truncate(text.floor_char_boundary(MESSAGE_LIMIT));
    }
    text
}

/// Gives each wanted condition its time: that of the previous one when the status is the same.
///
/// The result is sorted by type, so that equal conditions serialise to equal bytes.
pub fn settle(
    previous: &[Condition],
    wanted: Vec<Wanted>,
    generation: Option<i64>,
    now: &Time,
) -> Vec<Condition> {
    let mut settled: Vec<Condition> = wanted
        .into_iter()
        .map(|w| {
            let kept = find(previous, w.type_).filter(|p| p.status == w.status.as_str());
            Condition {
                type_: w.type_.to_owned(),
                status: w.status.as_str().to_owned(),
                reason: w.reason,
                message: w.message,
                observed_generation: generation,
                last_transition_time: kept
                    .map_or_else(|| now.clone(), |p| p.last_transition_time.clone()),
            }
        })
        .collect();
    settled.sort_by(|a, b| a.type_.cmp(&b.type_));
    settled
}

/// The condition of a type.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|c| c.type_ == type_)
}

/// Whether the condition is there and True.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    find(conditions, type_).is_some_and(|c| c.status == "True")
}

/// The conditions of the given types, sorted by type: one writer's part of a shared list.
pub fn part(conditions: &[Condition], types: &[&str]) -> Vec<Condition> {
    let mut part: Vec<Condition> = conditions
        .iter()
        .filter(|c| types.contains(&c.type_.as_str()))
        .cloned()
        .collect();
    part.sort_by(|a, b| a.type_.cmp(&b.type_));
    part
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;

    use super::*;

    fn at(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap())
    }

    // C-4
    #[test]
    fn the_transition_time_moves_only_with_the_status() {
        let first = settle(
            &[],
            vec![Wanted::new(READY, false, "Starting", "a")],
            Some(1),
            &at(10),
        );
        let second = settle(
            &first,
            vec![Wanted::new(READY, false, "Waiting", "b")],
            Some(2),
            &at(20),
        );
        assert_eq!(second[0].last_transition_time, at(10));
        assert_eq!(
            (second[0].reason.as_str(), second[0].observed_generation),
            ("Waiting", Some(2))
        );
        let third = settle(
            &second,
            vec![Wanted::new(READY, true, "Running", "c")],
            Some(2),
            &at(30),
        );
        assert_eq!(third[0].last_transition_time, at(30));
    }

    #[test]
    fn a_long_message_is_cut_on_a_character_boundary() {
        let wanted = Wanted::new(READY, false, "X", "ü".repeat(2000));
        assert!(wanted.message.len() <= MESSAGE_LIMIT && wanted.message.ends_with('ü'));
    }
}
