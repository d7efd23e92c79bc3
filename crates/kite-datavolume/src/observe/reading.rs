//! What a DataVolume's status means (rules D-1 to D-4).
//!
//! CDI says most troubles of a clone in a condition and leaves the phase alone;
//! so the conditions are read for what they say, and whether it has stood for
//! long enough to be true is decided elsewhere.

use kite_kubevirt::DataVolume;
use kite_kubevirt::read::Condition;

/// What is read of a DataVolume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// CDI's word, `Pending` before there is one.
    pub phase: String,
    /// Whole percent, if CDI gave a number.
    pub progress: Option<u8>,
    /// The words of the condition that explains.
    pub message: Option<String>,
    /// What it comes to.
    pub state: State,
    /// How often the worker was started anew.
    pub restarts: i64,
    /// All that counts as movement.
    pub movement: String,
}

/// What a DataVolume's status comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is filled.
    Filled,
    /// It waits for the machine's first start, and that is no error.
    WaitingForFirstBoot,
    /// It is being filled.
    Filling,
    /// It cannot be filled; the reason of `DiskReady`.
    Trouble(Trouble),
}

/// Why a disk is not being filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// CDI gave up, or has nothing to clone from.
    CloneFailed,
    /// A quota leaves no room.
    QuotaExceeded,
    /// CDI met an error and tries again.
    Retrying,
    /// Nothing has moved for too long.
    Stuck,
}

impl Trouble {
    /// The reason in `DiskReady`.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::CloneFailed => "CloneFailed",
            Self::QuotaExceeded => "QuotaExceeded",
            Self::Retrying => "Retrying",
            Self::Stuck => "Stuck",
        }
    }
}

/// The schema's bounds of `dataVolumePhase` and `dataVolumeMessage`.
const PHASE_LIMIT: usize = 64;
const MESSAGE_LIMIT: usize = 1024;

/// Reads a DataVolume.
pub fn read(disk: &DataVolume) -> Reading {
    let word = match disk.phase() {
        "" => "Pending",
        word => word,
    };
    let status = disk.status.as_ref();
    let raw = status
        .and_then(|s| s.progress.as_deref())
        .unwrap_or_default();
    let restarts = status.and_then(|s| s.restart_count).unwrap_or_default();
    let trouble = trouble(disk);
    let state = match word {
        "Succeeded" => State::Filled,
        "Failed" => State::Trouble(Trouble::CloneFailed),
        "WaitForFirstConsumer" | "PendingPopulation" if trouble.is_none() => {
            State::WaitingForFirstBoot
        }
        _ => trouble.map_or(State::Filling, |(trouble, _)| State::Trouble(trouble)),
    };
    let explained = trouble
        .map(|(_, condition)| condition)
        .or_else(|| explanation(disk, word));
    let message = match state {
        // What was said on the way there explains nothing any more.
        State::Filled => None,
        _ => with_restarts(explained.map_or("", Condition::message), restarts),
    };
    let reasons =
        ["Bound", "Running", "Ready"].map(|t| disk.condition(t).map_or("", Condition::reason));
    Reading {
        phase: cut(word, PHASE_LIMIT),
        progress: percent(raw),
        message: message.map(|m| cut(&m, MESSAGE_LIMIT)),
        state,
        restarts,
        movement: format!("{word} {raw} {restarts} {reasons:?}"),
    }
}

/// CDI's words, with how often its worker was started anew: the one sign of a clone that fails
/// and begins again.
fn with_restarts(words: &str, restarts: i64) -> Option<String> {
    match (words, restarts) {
        ("", ..=0) => None,
        (words, ..=0) => Some(words.to_owned()),
        (words, n) => {
            let times = if n == 1 {
                "once".to_owned()
            } else {
                format!("{n} times")
            };
            let colon = if words.is_empty() { "" } else { ": " };
            Some(format!(
                "CDI's worker was started anew {times}{colon}{words}"
            ))
        }
    }
}

/// Whole percent of `45.30%`; nothing of `N/A` and of what is no share of a whole.
pub fn percent(text: &str) -> Option<u8> {
    let number: f64 = text.trim().strip_suffix('%')?.trim_end().parse().ok()?;
    if !(0.0..=100.0).contains(&number) {
        return None;
    }
    // Rounded down, so that 100 is said when it is so.
    (0..=100u8).rev().find(|whole| f64::from(*whole) <= number)
}

/// The condition that tells of a trouble, `Running` and `Bound` before `Ready` (rule D-3).
fn trouble(disk: &DataVolume) -> Option<(Trouble, &Condition)> {
    let conditions =
        ["Running", "Bound", "Ready"].map(|t| disk.condition(t).filter(|c| !c.is_true()));
    let conditions = || conditions.iter().copied().flatten();
    let quota =
        |c: &&Condition| c.reason() == "ErrExceededQuota" || c.message().contains("exceeded quota");
    let found = |trouble| move |condition| (trouble, condition);
    // A quota explains more than the error it causes.
    let quota = conditions().find(quota).map(found(Trouble::QuotaExceeded));
    let source = || {
        let mut conditions = conditions();
        conditions
            .find(|c| c.reason() == "CloneWithoutSource")
            .map(found(Trouble::CloneFailed))
    };
    let error = || {
        let mut conditions = conditions();
        conditions
            .find(|c| is_error(c.reason()))
            .map(found(Trouble::Retrying))
    };
    quota.or_else(source).or_else(error)
}

/// Whether a reason tells of an error. It may be CDI's own word, the kubelet's for a worker's
/// container, or two of them joined by "and"; a word that is not known here is only waited for.
fn is_error(reason: &str) -> bool {
    const PARTS: [&str; 7] = [
        "Err",
        "Fail",
        "BackOff",
        "Invalid",
        "ClaimLost",
        "OOMKilled",
        "Unschedulable",
    ];
    PARTS.iter().any(|part| reason.contains(part))
}

/// What a disk that is not in trouble waits for, before its data flows.
fn explanation<'a>(disk: &'a DataVolume, word: &str) -> Option<&'a Condition> {
    match word {
        "Failed" => ["Running", "Bound", "Ready"]
            .iter()
            .find_map(|t| disk.condition(t).filter(|c| !c.is_true())),
        "Pending" | "WaitForFirstConsumer" | "PendingPopulation" => {
            disk.condition("Bound").filter(|c| !c.is_true())
        }
        _ => None,
    }
}

fn cut(text: &str, limit: usize) -> String {
    text[..text.floor_char_boundary(limit)].to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn disk(status: &Value) -> DataVolume {
        serde_json::from_value(json!({"metadata": {"name": "web"}, "status": status})).unwrap()
    }

    fn condition(type_: &str, reason: &str, message: &str) -> Value {
        json!({"type": type_, "status": "False", "reason": reason, "message": message})
    }

    /// All of CDI's phases, and what each comes to without any condition.
    const PHASES: [(&str, State); 24] = [
        ("", State::Filling),
        ("Pending", State::Filling),
        ("PVCBound", State::Filling),
        ("ImportScheduled", State::Filling),
        ("ImportInProgress", State::Filling),
        ("CloneScheduled", State::Filling),
        ("CloneInProgress", State::Filling),
        ("SnapshotForSmartCloneInProgress", State::Filling),
        ("CloneFromSnapshotSourceInProgress", State::Filling),
        ("SmartClonePVCInProgress", State::Filling),
        ("CSICloneInProgress", State::Filling),
        ("ExpansionInProgress", State::Filling),
        ("NamespaceTransferInProgress", State::Filling),
        ("PrepClaimInProgress", State::Filling),
        ("RebindInProgress", State::Filling),
        ("UploadScheduled", State::Filling),
        ("UploadReady", State::Filling),
        ("WaitForFirstConsumer", State::WaitingForFirstBoot),
        ("PendingPopulation", State::WaitingForFirstBoot),
        ("Succeeded", State::Filled),
        ("Failed", State::Trouble(Trouble::CloneFailed)),
        ("Unknown", State::Filling),
        ("Paused", State::Filling),
        ("Foo", State::Filling),
    ];

    // D-1, D-4
    #[test]
    fn each_of_cdis_phases_is_told_as_it_is_and_judged() {
        for (word, state) in PHASES {
            let reading = read(&disk(&json!({"phase": word, "progress": "N/A"})));
            assert_eq!(
                reading.phase,
                if word.is_empty() { "Pending" } else { word }
            );
            assert_eq!(reading.state, state, "{word}");
        }
        assert_eq!(read(&DataVolume::default()).phase, "Pending");
    }

    // D-2
    #[test]
    fn progress_counts_only_when_it_is_a_share_of_a_whole() {
        let shares = [
            ("45.30%", 45),
            ("100.0%", 100),
            ("99.99%", 99),
            ("0%", 0),
            (" 7.0 %", 7),
        ];
        for (text, whole) in shares {
            assert_eq!(percent(text), Some(whole), "{text}");
        }
        for text in [
            "N/A", "", "45.3", "-1%", "101%", "NaN%", "inf%", "%", "ten%",
        ] {
            assert_eq!(percent(text), None, "{text}");
        }
    }

    // D-3, D-4
    #[test]
    fn troubles_are_found_in_whichever_condition_tells_them() {
        let full = "persistentvolumeclaims \"tmp\" is forbidden: exceeded quota: q";
        let cases = [
            (
                condition("Running", "Error", full),
                Trouble::QuotaExceeded,
                full,
            ),
            (
                condition("Bound", "ErrExceededQuota", full),
                Trouble::QuotaExceeded,
                full,
            ),
            (
                condition("Ready", "ErrExceededQuota", full),
                Trouble::QuotaExceeded,
                full,
            ),
            (
                condition("Bound", "CloneWithoutSource", "no source"),
                Trouble::CloneFailed,
                "no source",
            ),
            (
                condition("Running", "Error", "no volume"),
                Trouble::Retrying,
                "no volume",
            ),
        ];
        for (condition, trouble, message) in cases {
            let status = json!({"phase": "CloneScheduled", "conditions": [condition]});
            let reading = read(&disk(&status));
            assert_eq!(reading.state, State::Trouble(trouble));
            assert_eq!(reading.message.as_deref(), Some(message));
        }
    }

    // D-4, #38
    #[test]
    fn a_worker_that_cannot_run_is_an_error_and_one_that_is_on_its_way_is_not() {
        let running = |reason: &str| {
            let condition = condition("Running", reason, "failed to pull image");
            let reading = read(&disk(
                &json!({"phase": "CloneInProgress", "conditions": [condition]}),
            ));
            (reading.state, reading.message)
        };
        for reason in [
            "ImagePullFailed",
            "ErrImagePull",
            "ImagePullBackOff",
            "InvalidImageName",
            "OOMKilled",
            "Unschedulable",
            "Completed and Error",
            "CrashLoopBackOff",
        ] {
            let (state, message) = running(reason);
            assert_eq!(state, State::Trouble(Trouble::Retrying), "{reason}");
            assert_eq!(message.as_deref(), Some("failed to pull image"));
        }
        for reason in [
            "",
            "Pending",
            "ContainerCreating",
            "Completed",
            "Pod is running",
            "Foo",
        ] {
            assert_eq!(running(reason), (State::Filling, None), "{reason}");
        }
    }

    // D-3, VM17
    #[test]
    fn restarts_are_counted_for_people_until_the_disk_is_filled() {
        let said = |phase: &str, restarts: i64, conditions: Value| {
            let status = json!({"phase": phase, "progress": "0.00%", "restartCount": restarts, "conditions": conditions});
            read(&disk(&status)).message
        };
        let reset = json!([condition("Running", "Error", "connection reset")]);
        assert_eq!(
            said("CloneInProgress", 99, reset.clone()).as_deref(),
            Some("CDI's worker was started anew 99 times: connection reset")
        );
        assert_eq!(
            said("CloneInProgress", 1, json!([])).as_deref(),
            Some("CDI's worker was started anew once")
        );
        assert_eq!(said("CloneInProgress", 0, json!([])), None);
        assert_eq!(said("Succeeded", 99, reset), None);
        assert_eq!(
            read(&disk(
                &json!({"phase": "CloneInProgress", "progress": "100.0%"})
            ))
            .state,
            State::Filling,
            "progress alone is no success"
        );
    }

    // D-3
    #[test]
    fn a_wait_is_explained_and_data_that_flows_is_not() {
        let bound = condition("Bound", "Pending", "waiting for a volume");
        let with =
            |phase: &str| read(&disk(&json!({"phase": phase, "conditions": [bound]}))).message;
        assert_eq!(with("Pending").as_deref(), Some("waiting for a volume"));
        assert_eq!(with("CloneInProgress"), None);
    }
}
