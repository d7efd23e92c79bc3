//! Whether virt-controller starts or stops a machine: its run strategies.
//!
//! Pure; it decides from what is there and writes nothing.

use serde_json::Value;

use crate::stand_ins::value::text;

/// What is known when the decision is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Situation<'a> {
    /// `spec.runStrategy`, or what `spec.running` means.
    pub(super) strategy: &'a str,
    /// `status.runStrategy`, empty before the first instance.
    pub(super) recorded: &'a str,
    /// The phase of the instance, if there is one.
    pub(super) phase: Option<&'a str>,
    /// Whether the instance is being deleted.
    pub(super) going: bool,
    /// A queued request to start.
    pub(super) start_requested: bool,
    /// A queued request to stop.
    pub(super) stop_requested: bool,
}

/// The decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Power {
    /// Nothing to do.
    Rest,
    /// Make an instance.
    Start,
    /// Delete the instance.
    Stop,
    /// Delete the instance and queue a request to start.
    StopThenStart,
}

/// The run strategy that a spec asks for.
pub(super) fn strategy(vm: &Value) -> &str {
    match text(vm, "/spec/runStrategy") {
        "" => match vm.pointer("/spec/running").and_then(Value::as_bool) {
            Some(true) => "Always",
            _ => "Halted",
        },
        strategy => strategy,
    }
}

/// Whether a phase is one that an instance never leaves.
pub(super) fn is_final(phase: &str) -> bool {
    matches!(phase, "Succeeded" | "Failed")
}

/// The decision for a machine that is not being deleted.
pub(super) fn decide(at: &Situation<'_>) -> Power {
    let Some(phase) = at.phase else {
        return decide_without_instance(at);
    };
    if at.going {
        return Power::Rest;
    }
    let stop = match at.strategy {
        "Halted" => true,
        "RerunOnFailure" if phase == "Failed" => return Power::StopThenStart,
        "Always" | "RerunOnFailure" | "Manual" => is_final(phase) || at.stop_requested,
        _ => at.stop_requested,
    };
    if stop { Power::Stop } else { Power::Rest }
}

fn decide_without_instance(at: &Situation<'_>) -> Power {
    let start = match at.strategy {
        "Always" => true,
        // A machine is started by itself only when it is new to the strategy.
        "RerunOnFailure" | "Once" => at.start_requested || at.recorded != at.strategy,
        "Manual" => at.start_requested,
        _ => false,
    };
    if start { Power::Start } else { Power::Rest }
}

/// Whether the machine should run, as the printed status asks it.
pub(super) fn should_run(at: &Situation<'_>) -> bool {
    match at.strategy {
        "Always" => true,
        "RerunOnFailure" => match at.phase {
            Some(phase) => phase != "Succeeded",
            None => at.start_requested,
        },
        "Manual" => match at.phase {
            Some(_) => !at.stop_requested,
            None => at.start_requested,
        },
        "Once" => at.phase.is_some() || at.start_requested,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at<'a>(strategy: &'a str, recorded: &'a str, phase: Option<&'a str>) -> Situation<'a> {
        Situation {
            strategy,
            recorded,
            phase,
            going: false,
            start_requested: false,
            stop_requested: false,
        }
    }

    #[test]
    fn rerun_on_failure_starts_only_a_machine_that_is_new_to_it() {
        assert_eq!(decide(&at("RerunOnFailure", "", None)), Power::Start);
        assert_eq!(decide(&at("RerunOnFailure", "Halted", None)), Power::Start);
        assert_eq!(
            decide(&at("RerunOnFailure", "RerunOnFailure", None)),
            Power::Rest
        );
        let requested = Situation {
            start_requested: true,
            ..at("RerunOnFailure", "RerunOnFailure", None)
        };
        assert_eq!(decide(&requested), Power::Start);
    }

    #[test]
    fn a_guest_that_shut_itself_down_is_cleared_away_under_every_strategy_but_once() {
        for strategy in ["Always", "RerunOnFailure", "Manual", "Halted"] {
            assert_eq!(
                decide(&at(strategy, strategy, Some("Succeeded"))),
                Power::Stop
            );
        }
        assert_eq!(decide(&at("Once", "Once", Some("Succeeded"))), Power::Rest);
    }

    #[test]
    fn a_failed_instance_is_started_again_under_rerun_on_failure() {
        let failed = at("RerunOnFailure", "RerunOnFailure", Some("Failed"));
        assert_eq!(decide(&failed), Power::StopThenStart);
    }

    #[test]
    fn halted_stops_what_runs_and_starts_nothing() {
        assert_eq!(
            decide(&at("Halted", "Always", Some("Running"))),
            Power::Stop
        );
        assert_eq!(decide(&at("Halted", "Always", None)), Power::Rest);
        let going = Situation {
            going: true,
            ..at("Halted", "Always", Some("Running"))
        };
        assert_eq!(decide(&going), Power::Rest);
    }
}
