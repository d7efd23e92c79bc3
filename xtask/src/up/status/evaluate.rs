//! Who keeps what, from leases and objects as they were read. Pure.
//!
//! Nobody writes that a controller is absent (rule C-11): it shows by a Lease
//! that is not renewed, and by conditions that speak of an older generation.

use std::collections::BTreeMap;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::Timestamp;
use kite_api::labels::Controller;
use kite_api::ownership::conditions_of;
use kite_api::{KiteUser, KiteVirtualMachine};
use kube::ResourceExt;

/// What a controller's Lease says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Keeper {
    /// Somebody leads, and renewed this many seconds ago.
    Leads { holder: String, age: i64 },
    /// The last leader gave it back in order.
    Released,
    /// The last leader has not renewed for longer than it may.
    Expired { holder: String, age: i64 },
    /// The last leader's process has ended; its Lease holds for a while yet.
    Ended { holder: String, age: i64 },
    /// There is no Lease.
    Never,
}

impl Keeper {
    fn works(&self) -> bool {
        matches!(self, Self::Leads { .. })
    }

    /// Holder, age of the renewal, and the state in words.
    pub(super) fn cells(&self) -> [String; 3] {
        let words = |holder: &str, age: Option<i64>, state: &str| {
            let age = age.map_or_else(|| "–".to_owned(), |age| format!("{age} s ago"));
            [holder.to_owned(), age, state.to_owned()]
        };
        match self {
            Self::Leads { holder, age } => words(holder, Some(*age), "works"),
            Self::Ended { holder, age } => words(holder, Some(*age), "controller not running"),
            Self::Released => words("released", None, "controller not running"),
            Self::Expired { holder, age } => {
                let holder = format!("{holder}, expired");
                words(&holder, Some(*age), "controller not running")
            }
            Self::Never => words("–", None, "controller not running"),
        }
    }
}

/// Reads a Lease as another replica would, knowing which replicas have ended.
pub(super) fn keeper(
    lease: Option<&Lease>,
    now: Timestamp,
    has_ended: impl Fn(&str) -> bool,
) -> Keeper {
    let Some(spec) = lease.and_then(|lease| lease.spec.as_ref()) else {
        return Keeper::Never;
    };
    let holder = spec.holder_identity.clone().unwrap_or_default();
    if holder.is_empty() {
        return Keeper::Released;
    }
    let duration = i64::from(spec.lease_duration_seconds.unwrap_or_default());
    let renewed = spec.renew_time.as_ref().map(|time| time.0.as_second());
    let age = now.as_second() - renewed.unwrap_or_default();
    if has_ended(&holder) {
        Keeper::Ended { holder, age }
    } else if age <= duration {
        Keeper::Leads { holder, age }
    } else {
        Keeper::Expired { holder, age }
    }
}

/// An object, as far as it matters here.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    name: String,
    generation: i64,
    deleting: bool,
    /// Each writer with its conditions.
    parts: Vec<(Controller, Vec<Condition>)>,
}

impl Seen {
    pub(super) fn user(user: &KiteUser) -> Self {
        let status = user.status.clone().unwrap_or_default();
        Self {
            name: format!("kiteuser/{}", user.name_any()),
            generation: user.metadata.generation.unwrap_or_default(),
            deleting: user.metadata.deletion_timestamp.is_some(),
            // A user's status has one writer.
            parts: vec![(Controller::User, status.conditions)],
        }
    }

    pub(super) fn machine(machine: &KiteVirtualMachine) -> Self {
        let status = machine.status.clone().unwrap_or_default();
        let part = |who: Controller| {
            let own = kite_api::condition::part(&status.conditions, conditions_of(who));
            (who, own)
        };
        let writers = Controller::ALL
            .into_iter()
            .filter(|who| !conditions_of(*who).is_empty());
        let namespace = machine.namespace().unwrap_or_default();
        Self {
            name: format!("ktvm/{} in {namespace}", machine.name_any()),
            generation: machine.metadata.generation.unwrap_or_default(),
            deleting: machine.metadata.deletion_timestamp.is_some() || machine.spec.delete,
            parts: writers.map(part).collect(),
        }
    }
}

/// A part of a status that is not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Neglected {
    object: String,
    who: Controller,
    why: &'static str,
    says: String,
}

impl Neglected {
    pub(super) fn cells(&self) -> [String; 4] {
        [
            self.object.clone(),
            self.who.name().to_owned(),
            self.why.to_owned(),
            self.says.clone(),
        ]
    }
}

/// The parts of an object's status that nobody keeps at the moment.
pub(super) fn neglected(object: &Seen, keepers: &BTreeMap<Controller, Keeper>) -> Vec<Neglected> {
    let judge = |(who, conditions): &(Controller, Vec<Condition>)| {
        // What goes is told by the one who takes it away, and by nobody else (C-10).
        if object.deleting && !matches!(who, Controller::Vm | Controller::User) {
            return None;
        }
        let works = keepers.get(who).is_some_and(Keeper::works);
        let why = if !works {
            "controller not running"
        } else if is_behind(*who, conditions, object.generation) {
            "it runs, and has not come this far"
        } else {
            return None;
        };
        Some(Neglected {
            object: object.name.clone(),
            who: *who,
            why,
            says: says(conditions, object.generation),
        })
    };
    object.parts.iter().filter_map(judge).collect()
}

/// Whether a controller that runs has yet to answer for this generation.
///
/// kite-service and kite-datavolume do not write when only the generation
/// changed (rule C-5), so theirs is behind in good order.
fn is_behind(who: Controller, conditions: &[Condition], generation: i64) -> bool {
    if matches!(who, Controller::Service | Controller::DataVolume) {
        return false;
    }
    let observed = |condition: &Condition| condition.observed_generation.unwrap_or_default();
    conditions.is_empty() || conditions.iter().any(|c| observed(c) < generation)
}

fn says(conditions: &[Condition], generation: i64) -> String {
    if conditions.is_empty() {
        return "nothing yet".to_owned();
    }
    let told = conditions.iter().map(|condition| {
        let observed = condition.observed_generation.unwrap_or_default();
        let of = if observed < generation {
            format!(" (of generation {observed}; it is {generation} now)")
        } else {
            String::new()
        };
        format!("{}={}{of}", condition.type_, condition.status)
    });
    told.collect::<Vec<_>>().join(", ")
}

/// The first thing that a process waits for, from its `/readyz?verbose`.
pub(super) fn missing(readyz: &str) -> &str {
    let line = readyz.lines().find_map(|line| line.strip_prefix("[-] "));
    line.unwrap_or("it does not say why")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: i64 = 1_000_000;

    fn now() -> Timestamp {
        Timestamp::from_second(NOW).unwrap()
    }

    fn lease(holder: &str, age: i64) -> Lease {
        let renewed = Timestamp::from_second(NOW - age).unwrap();
        let lease = json!({"metadata": {}, "spec": {
            "holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed,
        }});
        serde_json::from_value(lease).unwrap()
    }

    fn machine(generation: i64, conditions: &[(&str, i64)]) -> Seen {
        let conditions: Vec<_> = conditions
            .iter()
            .map(|(type_, observed)| {
                json!({
                    "type": type_, "status": "True", "reason": "R", "message": "",
                    "observedGeneration": observed, "lastTransitionTime": now(),
                })
            })
            .collect();
        let machine = json!({
            "apiVersion": "kite.dev/v1alpha1", "kind": "KiteVirtualMachine",
            "metadata": {"name": "db", "namespace": "alice", "generation": generation},
            "spec": {"cpu": 1, "memory": "1Gi", "disk": "1Gi", "image": "i"},
            "status": {"conditions": conditions},
        });
        Seen::machine(&serde_json::from_value(machine).unwrap())
    }

    fn keepers(absent: &[Controller]) -> BTreeMap<Controller, Keeper> {
        let keeper = |who: Controller| {
            if absent.contains(&who) {
                Keeper::Never
            } else {
                keeper(Some(&lease("me", 1)), now(), |_| false)
            }
        };
        let all = Controller::ALL.into_iter();
        all.map(|who| (who, keeper(who))).collect()
    }

    const TOLD: [(&str, i64); 4] = [
        ("Accepted", 2),
        ("Ready", 2),
        ("ServiceReady", 1),
        ("DiskReady", 1),
    ];

    #[test]
    fn a_lease_is_held_until_it_has_not_been_renewed_for_its_duration() {
        let seen = |lease: &Lease| keeper(Some(lease), now(), |holder| holder == "gone");
        let leads = Keeper::Leads {
            holder: "me".to_owned(),
            age: 15,
        };
        assert_eq!(seen(&lease("me", 15)), leads);
        assert!(matches!(seen(&lease("me", 16)), Keeper::Expired { .. }));
        assert_eq!(seen(&lease("", 1)), Keeper::Released);
        assert!(matches!(seen(&lease("gone", 1)), Keeper::Ended { .. }));
        assert_eq!(keeper(None, now(), |_| false), Keeper::Never);
    }

    // C-11
    #[test]
    fn what_an_absent_controller_left_behind_is_named_with_its_generation() {
        let lines = neglected(&machine(2, &TOLD), &keepers(&[Controller::Service]));
        assert_eq!(lines.len(), 1);
        assert_eq!(
            lines[0].cells(),
            [
                "ktvm/db in alice",
                "kite-service",
                "controller not running",
                "ServiceReady=True (of generation 1; it is 2 now)"
            ]
        );
        let never = neglected(&machine(1, &[("Accepted", 1)]), &keepers(&[Controller::Vm]));
        assert!(never.iter().any(|line| line.who == Controller::Vm));
    }

    // C-5
    #[test]
    fn a_mirror_that_had_nothing_new_to_say_is_not_blamed() {
        assert_eq!(neglected(&machine(2, &TOLD), &keepers(&[])), []);
        let behind = neglected(&machine(3, &TOLD), &keepers(&[]));
        let who: Vec<_> = behind.iter().map(|line| line.who).collect();
        assert_eq!(who, [Controller::Vm, Controller::VmStatus]);
        assert_eq!(behind[0].why, "it runs, and has not come this far");
    }

    // C-10
    #[test]
    fn a_machine_that_goes_is_kept_by_the_one_who_takes_it_away() {
        let mut going = machine(2, &TOLD);
        going.deleting = true;
        let mirrors = [Controller::Service, Controller::DataVolume];
        assert_eq!(neglected(&going, &keepers(&mirrors)), []);
        assert_eq!(neglected(&going, &keepers(&[Controller::Vm])).len(), 1);
    }

    #[test]
    fn the_first_missing_watch_is_what_a_process_waits_for() {
        let body =
            "[+] role: Leader\n[-] watch DataVolume: not synced\n[-] watch Pod: not synced\n";
        assert_eq!(missing(body), "watch DataVolume: not synced");
    }
}
