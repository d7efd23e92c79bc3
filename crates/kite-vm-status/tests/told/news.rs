//! What of a write is worth an event, as a table.

use kite_api::KiteVirtualMachineStatus;
use kite_vm_status::status::news::news;
use serde_json::{Value, json};

/// A status with a phase and conditions as `(type, status, reason)`, each with a message of its own.
fn saying(phase: &str, conditions: &[(&str, &str, &str)]) -> KiteVirtualMachineStatus {
    let condition = |(type_, status, reason): &(&str, &str, &str)| -> Value {
        json!({
            "type": type_, "status": status, "reason": reason, "message": format!("because of {reason}"),
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let conditions: Vec<Value> = conditions.iter().map(condition).collect();
    serde_json::from_value(json!({"phase": phase, "conditions": conditions})).unwrap()
}

fn ready(phase: &str, status: &str, reason: &str) -> KiteVirtualMachineStatus {
    saying(phase, &[("Ready", status, reason)])
}

/// A machine that runs, of which this is said besides.
fn beside(type_: &str, status: &str, reason: &str) -> KiteVirtualMachineStatus {
    let running = ("Ready", "True", "Running");
    saying("Running", &[running, (type_, status, reason)])
}

/// The reasons of what is told, with a mark when it is a warning.
fn told(before: &KiteVirtualMachineStatus, after: &KiteVirtualMachineStatus) -> String {
    let news = news(before, after);
    let words = news.iter().map(|n| {
        let mark = if n.warning { "!" } else { "" };
        [mark, n.reason.as_str()].concat()
    });
    words.collect::<Vec<_>>().join(" ")
}

// C-16: an ordinary life has no events, and each change is told once.
#[test]
fn a_trouble_is_told_when_it_begins_and_when_it_is_over() {
    let new = KiteVirtualMachineStatus::default();
    let starting = || ready("Starting", "False", "Starting");
    let running = || ready("Running", "True", "Running");
    let stopped = || ready("Stopped", "True", "Stopped");
    let failed = || ready("Failed", "False", "ErrorUnschedulable");
    let lost = |phase| ready(phase, "False", "NodeUnreachable");
    for (before, after, expected) in [
        (new, starting(), ""),
        (starting(), running(), ""),
        (running(), stopped(), ""),
        (starting(), failed(), "!ErrorUnschedulable"),
        (failed(), failed(), ""),
        (failed(), ready("Failed", "False", "CrashLoopBackOff"), ""),
        (failed(), starting(), ""),
        (failed(), running(), "Recovered"),
        (running(), lost("Unknown"), "!NodeUnreachable"),
        (lost("Unknown"), lost("Stopping"), ""),
        (lost("Stopping"), running(), "Recovered"),
        (lost("Unknown"), starting(), ""),
        (failed(), lost("Unknown"), "!NodeUnreachable"),
        (lost("Unknown"), failed(), "!ErrorUnschedulable"),
        (failed(), KiteVirtualMachineStatus::default(), ""),
    ] {
        assert_eq!(told(&before, &after), expected, "{before:?}\n{after:?}");
    }
}

// C-16, S-5, S-6
#[test]
fn what_turns_is_told_when_it_turns_and_not_while_it_stays() {
    let running = || ready("Running", "True", "Running");
    for (type_, status, reason, expected) in [
        ("PowerInSync", "False", "NotStopped", "!NotStopped"),
        ("PowerInSync", "False", "StartNeeded", ""),
        ("PowerInSync", "Unknown", "InTransition", ""),
        ("Paused", "True", "PausedByUser", "Paused"),
        ("Paused", "False", "PausedByUser", ""),
        ("RestartRequired", "True", "ChangesWait", "RestartRequired"),
        ("AgentConnected", "True", "AgentAnswers", ""),
    ] {
        let turned = beside(type_, status, reason);
        let other = beside(type_, "Unknown", "Other");
        let words = format!("{type_} {status} {reason}");
        assert_eq!(told(&running(), &turned), expected, "{words}");
        if status != "Unknown" {
            assert_eq!(told(&other, &turned), expected, "{words}");
        }
        assert_eq!(told(&turned, &turned), "", "{words}");
        assert_eq!(told(&turned, &running()), "", "{words}");
    }
}
