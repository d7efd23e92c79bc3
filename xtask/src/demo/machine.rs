//! A machine's state in one line, and the questions that the story asks about it. Pure.

use kite_api::KiteVirtualMachine;
use kite_api::condition::{self, DISK_READY, READY};
use kite_api::machine::{Phase, PowerState};

/// What a watcher sees of a machine, in one line.
pub(super) fn describe(machine: Option<&KiteVirtualMachine>) -> String {
    let Some(machine) = machine else {
        return "the machine is gone".to_owned();
    };
    let Some(status) = &machine.status else {
        return String::new();
    };
    let mut parts = Vec::new();
    if let Some(phase) = status.phase {
        parts.push(format!("{phase:?}"));
    }
    let filled = condition::is_true(&status.conditions, DISK_READY);
    if let Some(disk) = &status.data_volume_phase
        && !filled
    {
        let progress = status.data_volume_progress.as_deref().unwrap_or_default();
        parts.push(format!("disk {disk} {progress}").trim_end().to_owned());
    }
    if let Some(node) = &status.node_name {
        let addresses = status.ip_addresses.join(" ");
        parts.push(format!("{addresses} on {node}").trim_start().to_owned());
    }
    parts.extend(readiness(machine));
    parts.join(" · ")
}

fn readiness(machine: &KiteVirtualMachine) -> Option<String> {
    let conditions = &machine.status.as_ref()?.conditions;
    let ready = condition::find(conditions, READY)?;
    Some(match ready.status.as_str() {
        "True" => "ready".to_owned(),
        _ => format!("not ready: {}", ready.reason),
    })
}

/// The phase.
pub(super) fn phase(machine: &KiteVirtualMachine) -> Option<Phase> {
    machine.status.as_ref()?.phase
}

/// Whether its status says, of the specification as it is now, that all is as asked for.
pub(super) fn is_ready(machine: &KiteVirtualMachine) -> bool {
    let Some(status) = &machine.status else {
        return false;
    };
    status.observed_generation == machine.metadata.generation
        && condition::is_true(&status.conditions, READY)
}

/// Ready, running, and somewhere that can be reached.
pub(super) fn runs(machine: &KiteVirtualMachine) -> bool {
    let reachable = |status: &kite_api::machine::KiteVirtualMachineStatus| {
        status.phase == Some(Phase::Running)
            && status.current_power_state == Some(PowerState::On)
            && !status.ip_addresses.is_empty()
            && !status.endpoints.is_empty()
    };
    is_ready(machine) && machine.status.as_ref().is_some_and(reachable)
}

/// Ready, and off.
pub(super) fn is_off(machine: &KiteVirtualMachine) -> bool {
    let off = |status: &kite_api::machine::KiteVirtualMachineStatus| {
        status.phase == Some(Phase::Stopped) && status.current_power_state == Some(PowerState::Off)
    };
    is_ready(machine) && machine.status.as_ref().is_some_and(off)
}

/// How much of the disk is filled, while it is neither empty nor full.
pub(super) fn progress(machine: &KiteVirtualMachine) -> Option<u32> {
    let progress = machine.status.as_ref()?.data_volume_progress.as_ref()?;
    let percent: u32 = progress.trim_end_matches('%').parse().ok()?;
    (1..100).contains(&percent).then_some(percent)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn machine(generation: i64, status: &Value) -> KiteVirtualMachine {
        serde_json::from_value(json!({
            "apiVersion": "kite.dev/v1alpha1", "kind": "KiteVirtualMachine",
            "metadata": {"name": "db", "namespace": "alice", "generation": generation},
            "spec": {"cpu": 1, "memory": "1Gi", "disk": "1Gi", "image": "i"},
            "status": status,
        }))
        .unwrap()
    }

    fn ready(status: &str) -> Value {
        json!([{"type": "Ready", "status": status, "reason": "Starting", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}])
    }

    #[test]
    fn a_machine_is_told_in_one_line() {
        let filling = json!({"phase": "Provisioning", "dataVolumePhase": "CloneInProgress",
                             "dataVolumeProgress": "35%"});
        let filling = machine(1, &filling);
        assert_eq!(
            describe(Some(&filling)),
            "Provisioning · disk CloneInProgress 35%"
        );
        assert_eq!(progress(&filling), Some(35));
        let starting = json!({"phase": "Starting", "nodeName": "n", "conditions": ready("False")});
        assert_eq!(
            describe(Some(&machine(1, &starting))),
            "Starting · on n · not ready: Starting"
        );
        assert_eq!(describe(None), "the machine is gone");
    }

    #[test]
    fn a_machine_runs_only_when_all_of_it_says_so_of_the_present_generation() {
        let mut status = json!({
            "observedGeneration": 2, "phase": "Running", "currentPowerState": "On",
            "ipAddresses": ["10.0.0.1"], "endpoints": [{"name": "ssh", "dnsName": "d", "port": 22}],
            "conditions": ready("True"),
        });
        assert!(runs(&machine(2, &status)));
        assert!(!runs(&machine(3, &status)));
        assert!(!is_off(&machine(2, &status)));
        status["ipAddresses"] = json!([]);
        assert!(!runs(&machine(2, &status)));
    }
}
