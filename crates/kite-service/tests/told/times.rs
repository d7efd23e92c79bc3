//! When something is told, and what is not worth a write.

use std::time::Duration;

use kite_api::machine::PowerState;
use kite_api::{KiteVirtualMachine, KiteVirtualMachineStatus};
use kite_runtime::mirror::{Decision, Pulse};
use kite_service::status::clocks::Clocks;
use serde_json::json;
use tokio::time::Instant;

use crate::{live, machine, told};

/// Whether it is written after so many seconds, having been seen at none.
fn written_after(
    stands: &KiteVirtualMachineStatus,
    machine: &KiteVirtualMachine,
    told: &KiteVirtualMachineStatus,
    seconds: u64,
) -> bool {
    let (mut clocks, start) = (Clocks::default(), Instant::now());
    let mut machine = machine.clone();
    machine.status = Some(stands.clone());
    let at =
        |clocks: &mut Clocks, now| clocks.decide(&machine, told.clone(), &Pulse::default(), now);
    let first = at(&mut clocks, start);
    matches!(first, Decision::Write(_))
        || matches!(
            at(&mut clocks, start + Duration::from_secs(seconds)),
            Decision::Write(_)
        )
}

// C-5: the budget has two writes from creation to running, and one each way after.
#[test]
fn what_is_over_in_a_moment_is_not_told() {
    let (mut machine, nothing) = (machine(), KiteVirtualMachineStatus::default());
    let missing = told(&machine, None, false);
    assert!(
        !written_after(&nothing, &machine, &missing, 9),
        "kite-vm makes it first"
    );
    assert!(written_after(&nothing, &machine, &missing, 10));
    let made = KiteVirtualMachineStatus {
        service_name: Some("web".to_owned()),
        ..KiteVirtualMachineStatus::default()
    };
    assert!(!written_after(&made, &machine, &missing, 1));
    assert!(
        written_after(&made, &machine, &missing, 2),
        "it was there before and is gone"
    );
    let fresh = told(&machine, Some(&live(&[])), false);
    assert!(
        !written_after(&nothing, &machine, &fresh, 9),
        "kite-vm notes it first, or its write would be refused"
    );
    assert!(written_after(&nothing, &machine, &fresh, 10));
    assert!(written_after(&made, &machine, &fresh, 0));
    let reachable = told(&machine, Some(&live(&[])), true);
    assert!(written_after(&fresh, &machine, &reachable, 0));
    machine.status = Some(reachable.clone());
    let drifted = told(
        &machine,
        Some(&live(&[("/spec/type", json!("NodePort"))])),
        true,
    );
    assert!(
        !written_after(&reachable, &machine, &drifted, 1),
        "kite-vm repairs it first"
    );
    assert!(written_after(&reachable, &machine, &drifted, 2));
    machine.spec.power_state = PowerState::Off;
    let stopped = told(&machine, Some(&live(&[])), false);
    assert!(written_after(&reachable, &machine, &stopped, 0));
    machine.spec.power_state = PowerState::On;
    let booting = told(&machine, Some(&live(&[])), false);
    assert!(
        !written_after(&stopped, &machine, &booting, 29),
        "it takes a while to answer"
    );
    assert!(written_after(&stopped, &machine, &booting, 30));
}

// C-5, C-9: in a storm of creates a machine's turn comes late, and kite-vm is not to find it changed.
#[test]
fn nothing_is_told_of_a_machine_that_waits_for_its_turn_among_others() {
    let (fresh, pulse, start) = (machine(), Pulse::default(), Instant::now());
    let missing = told(&fresh, None, false);
    let mut made = fresh.clone();
    made.status.get_or_insert_default().service_name = Some("web".to_owned());
    let first = told(&made, Some(&live(&[])), false);
    let (mut waiting, mut seconds) = (Clocks::default(), 0);
    let at = |seconds| start + Duration::from_secs(seconds);
    while seconds < 60 {
        let waits = waiting.decide(&fresh, missing.clone(), &pulse, at(seconds));
        assert!(
            matches!(waits, Decision::Wait(Some(_))),
            "after {seconds} s"
        );
        // Another one's turn.
        let mut other = Clocks::default();
        let _ = other.decide(&fresh, missing.clone(), &pulse, at(seconds));
        seconds += 5;
        let _ = other.decide(&made, first.clone(), &pulse, at(seconds));
    }
    let then = waiting.decide(&fresh, missing, &pulse, at(seconds + 10));
    assert!(matches!(then, Decision::Write(_)), "kite-vm has stopped");
}

// C-5
#[test]
fn a_new_generation_that_changes_nothing_here_is_not_told() {
    let mut machine = machine();
    let reachable = told(&machine, Some(&live(&[])), true);
    machine.metadata.generation = Some(2);
    let again = told(&machine, Some(&live(&[])), true);
    assert!(!written_after(&reachable, &machine, &again, 3600));
}

// C-5, F-1: a guest that comes and goes, and a Service that is edited and repaired, within the hold.
#[test]
fn what_goes_to_and_fro_within_the_hold_is_never_told() {
    let mut machine = machine();
    let reachable = told(&machine, Some(&live(&[])), true);
    machine.status = Some(reachable.clone());
    let gone = told(&machine, Some(&live(&[])), false);
    let drifted = live(&[("/spec/type", json!("NodePort"))]);
    let drifted = told(&machine, Some(&drifted), true);
    let missing = told(&machine, None, false);
    let (mut clocks, mut now) = (Clocks::default(), Instant::now());
    for _ in 0..50 {
        for told in [
            &gone, &reachable, &drifted, &reachable, &missing, &reachable,
        ] {
            let decision = clocks.decide(&machine, told.clone(), &Pulse::default(), now);
            assert!(matches!(decision, Decision::Wait(_)));
            now += Duration::from_millis(1900);
        }
    }
}
