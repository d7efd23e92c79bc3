//! Whole clones, without a server.

use super::*;

/// Carries out every step at once; answers the phases and progress passed.
fn live(populator: bool, wishes: Wishes) -> Vec<String> {
    let (mut status, mut claim, mut temporary) = (json!({}), None, None);
    let fresh = |populating| Claim {
        bound: false,
        populating,
    };
    let mut passed: Vec<String> = Vec::new();
    for _ in 0..100 {
        let facts = Facts {
            name: "m",
            status: &status,
            source: Source::Found,
            claim,
            temporary,
            populator,
            refused: None,
            wishes,
            first_look: 0.0,
            ticks: 20,
        };
        match next(&facts).1 {
            Step::Rest => break,
            Step::Write(wanted) => status = wanted,
            Step::MakeClaim => claim = Some(fresh(populator)),
            Step::MakeTemporary => temporary = Some(fresh(false)),
            Step::Rebind => {
                claim = Some(Claim {
                    bound: true,
                    populating: true,
                });
            }
            Step::Finish => {
                claim = Some(Claim {
                    bound: true,
                    populating: false,
                });
                temporary = None;
            }
        }
        // The storage driver binds whatever may be bound.
        let filled = if populator {
            &mut temporary
        } else {
            &mut claim
        };
        if let Some(filled) = filled.as_mut() {
            filled.bound = true;
        }
        let here = format!("{} {}", text(&status, "/phase"), text(&status, "/progress"));
        if passed.last() != Some(&here) {
            passed.push(here);
        }
    }
    passed
}

#[test]
fn a_copy_needs_no_second_claim_and_no_rebinding() {
    let passed = live(false, Wishes::default());
    assert_eq!(
        passed[..5],
        [
            " ",
            "Pending N/A",
            "CloneScheduled N/A",
            "CloneInProgress N/A",
            "CloneInProgress 5.00%"
        ]
    );
    assert_eq!(passed.len(), 4 + 19 + 1);
    assert_eq!(passed.last().unwrap(), "Succeeded 100.0%");
}

#[test]
fn a_populator_rebinds_at_the_end() {
    let passed = live(true, Wishes::default());
    assert_eq!(
        passed[passed.len() - 2..],
        ["RebindInProgress 100.0%", "Succeeded 100.0%"]
    );
}

#[test]
fn a_clone_that_waits_for_a_consumer_or_hangs_rests() {
    let no_consumer = Wishes {
        no_consumer: true,
        ..Wishes::default()
    };
    assert_eq!(
        live(true, no_consumer).last().unwrap(),
        "PendingPopulation N/A"
    );
    assert_eq!(
        live(false, no_consumer).last().unwrap(),
        "WaitForFirstConsumer N/A"
    );
    let stuck = Wishes {
        stuck: true,
        ..Wishes::default()
    };
    assert_eq!(live(true, stuck).last().unwrap(), "CloneInProgress N/A");
}
