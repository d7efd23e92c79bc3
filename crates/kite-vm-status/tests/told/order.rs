//! The watches are independent of each other, and a pass comes when it comes: in whatever order
//! the events of a life are seen, the same is said in the end.

use std::sync::Arc;

use kite_api::KiteVirtualMachineStatus;
use kite_api::condition::{READY, find};
use kite_api::machine::{OnGuestShutdown, PowerState};
use kite_vm_status::observe::reading::Found;
use kite_vm_status::status::standing;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::common::{Player, guest, machine, say, vm};

/// One thing that a watch shows.
#[derive(Clone)]
enum Event {
    Vm(&'static str, Value),
    Guest(&'static str, bool),
    GuestGone,
    Disk(&'static str, &'static str),
    Applied,
    Power(PowerState),
}

/// The events of a life, object by object: those of one object keep their order.
struct Life {
    objects: Vec<Vec<Event>>,
    policy: OnGuestShutdown,
}

fn not_ready(reason: &str) -> Value {
    json!([{"type": "Ready", "status": "False", "reason": reason}])
}

fn ready() -> Value {
    json!([{"type": "Ready", "status": "True"}])
}

fn comes_up(strategy: &str) -> Vec<Event> {
    let made = json!({"created": true, "runStrategy": strategy});
    let with = |conditions: Value| {
        let mut status = made.clone();
        status["conditions"] = conditions;
        status
    };
    let unseen = json!({"runStrategy": null, "conditions": []});
    let judged = json!({"runStrategy": null, "conditions": not_ready("VMINotExists")});
    vec![
        Event::Vm("Stopped", unseen),
        Event::Vm("Stopped", judged.clone()),
        Event::Vm("Provisioning", judged),
        Event::Vm("ErrorPvcNotFound", with(not_ready("PodNotExists"))),
        Event::Vm("ErrorUnschedulable", with(not_ready("GuestNotRunning"))),
        Event::Vm(
            "WaitingForVolumeBinding",
            with(not_ready("GuestNotRunning")),
        ),
        Event::Vm("Starting", with(not_ready("GuestNotRunning"))),
        Event::Vm("Running", with(not_ready("GuestNotRunning"))),
        Event::Vm("Running", with(ready())),
    ]
}

fn goes_down(strategy: &str, asked: bool) -> Vec<Event> {
    let made = json!({"created": true, "runStrategy": strategy, "conditions": ready()});
    let gone = json!({"runStrategy": strategy, "conditions": not_ready("VMINotExists")});
    let stopping = asked.then(|| Event::Vm("Stopping", made.clone()));
    let down = [Event::Vm("Stopped", made), Event::Vm("Stopped", gone)];
    stopping.into_iter().chain(down).collect()
}

fn up() -> Life {
    Life {
        objects: vec![
            comes_up("Always"),
            vec![
                Event::Guest("", false),
                Event::Guest("Pending", false),
                Event::Guest("Scheduling", false),
                Event::Guest("Running", false),
            ],
            vec![
                Event::Disk("False", "Pending"),
                Event::Disk("False", "CloneInProgress"),
                Event::Disk("True", "Succeeded"),
            ],
            vec![Event::Applied],
        ],
        policy: OnGuestShutdown::Restart,
    }
}

/// Up, and down again: by the specification, or by the guest itself.
fn down(asked: bool) -> Life {
    let mut life = up();
    let strategy = if asked { "Halted" } else { "RerunOnFailure" };
    let mut vm = comes_up(if asked { "Always" } else { strategy });
    vm.extend(goes_down(strategy, asked));
    let end: &[Event] = if asked {
        &[
            Event::Guest("Running", true),
            Event::Guest("Succeeded", true),
        ]
    } else {
        life.policy = OnGuestShutdown::StayOff;
        &[
            Event::Guest("Succeeded", false),
            Event::Guest("Succeeded", true),
        ]
    };
    life.objects[0] = vm;
    life.objects[1].extend(end.iter().cloned());
    life.objects[1].push(Event::GuestGone);
    if asked {
        life.objects[3].extend([Event::Power(PowerState::Off), Event::Applied]);
    }
    life
}

fn show(player: &mut Player, event: &Event) {
    match event {
        Event::Vm(word, status) => player.vm = Found::Ours(Arc::new(vm(word, status))),
        Event::Guest(phase, going) => {
            let mut guest = guest();
            let status = guest.status.as_mut().unwrap();
            status.phase = Some((*phase).to_owned());
            if *phase != "Running" {
                (status.node_name, status.interfaces) = (None, None);
            }
            let time = going.then_some("2026-01-01T00:00:00Z");
            guest.metadata.deletion_timestamp = serde_json::from_value(json!(time)).unwrap();
            player.instance = Some(guest);
            player.look();
        }
        Event::GuestGone => player.instance = None,
        Event::Disk(status, reason) => say(&mut player.machine, "DiskReady", status, reason),
        Event::Applied => say(&mut player.machine, "ResourcesApplied", "True", "Applied"),
        Event::Power(power) => {
            player.machine.spec.power_state = *power;
            player.machine.metadata.generation = Some(2);
        }
    }
}

/// Plays a life in one of its orders, with passes, waits and restarts where `chance` puts them.
fn play(life: &Life, mut chance: impl FnMut(usize) -> usize, restarts: bool) -> Player {
    let mut machine = machine("On");
    machine.status.as_mut().unwrap().conditions.clear();
    machine.spec.on_guest_shutdown = life.policy;
    let mut player = Player::new(machine);
    let mut objects: Vec<&[Event]> = life.objects.iter().map(Vec::as_slice).collect();
    while !objects.is_empty() {
        let at = chance(objects.len());
        match objects[at].split_first() {
            Some((event, rest)) => {
                show(&mut player, event);
                objects[at] = rest;
            }
            None => {
                objects.remove(at);
            }
        }
        match chance(6) {
            // Nobody looks in between.
            0 | 1 => {}
            2 => {
                let later = player.now() + 3.0;
                player.pass();
                player.until(later);
            }
            3 if restarts => player.restart(),
            _ => {
                player.pass();
            }
        }
    }
    player.pass();
    let end = player.now() + 60.0;
    player.until(end);
    player
}

/// Its own part without the times, which are those of the order.
fn said(player: &Player) -> KiteVirtualMachineStatus {
    let mut status = standing(&player.machine);
    for condition in &mut status.conditions {
        condition.last_transition_time.0 = k8s_openapi::jiff::Timestamp::UNIX_EPOCH;
    }
    if let Some(stop) = &mut status.last_stop {
        stop.time = None;
    }
    status
}

fn one_after_the_other(_: usize) -> usize {
    0
}

/// More than the longest life asks for.
fn chances() -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(any::<usize>(), 100)
}

fn by(chances: &[usize]) -> impl FnMut(usize) -> usize {
    let mut next = chances.iter().cycle();
    move |among| next.next().unwrap() % among
}

fn lives() -> [(Life, &'static str, &'static str); 3] {
    [
        (up(), "Running", "none"),
        (down(true), "Stopped", "SwitchedOff i1"),
        (down(false), "GuestShutDown", "GuestShutDown i1"),
    ]
}

proptest! {
    // A thousand shuffles, of three lives.
    #![proptest_config(ProptestConfig { cases: 334, ..ProptestConfig::default() })]

    // S-2, S-8, C-10: VM18.
    #[test]
    fn the_same_is_said_in_the_end_in_whatever_order_the_events_of_a_life_are_seen(chances in chances()) {
        for (life, reason, stop) in lives() {
            let plain = play(&life, one_after_the_other, false);
            let ready = find(&plain.machine.status.as_ref().unwrap().conditions, READY).unwrap();
            prop_assert_eq!(&ready.reason, reason);
            prop_assert_eq!(plain.last_stop(), stop);
            let mut player = play(&life, by(&chances), false);
            prop_assert_eq!(said(&player), said(&plain));
            // C-5: and it is said once.
            player.writes.clear();
            player.restart();
            let end = player.now() + 1000.0;
            player.until(end);
            prop_assert!(player.writes.is_empty(), "{:#?}", player.writes);
        }
    }

    // C-5, S-2: a process that comes back in the middle of it says the same in the end.
    #[test]
    fn restarts_at_any_moment_change_nothing_about_the_end(chances in chances()) {
        for (life, ..) in lives() {
            let plain = play(&life, one_after_the_other, false);
            let mut player = play(&life, by(&chances), true);
            let (mut one, mut other) = (said(&player), said(&plain));
            // How a guest ended may have been seen by nobody; then it is not started either.
            if one.last_stop != other.last_stop {
                let stop = one.last_stop.take().map_or_else(|| "NotSeen".to_owned(), |s| s.reason);
                prop_assert!(matches!(stop.as_str(), "NotSeen" | "SwitchedOff"), "{stop}");
                other.last_stop = None;
                if life.policy == OnGuestShutdown::StayOff {
                    let reason = &find(&one.conditions, READY).unwrap().reason;
                    prop_assert!(matches!(reason.as_str(), "LastStopUnknown" | "StartPending"), "{}", reason);
                    continue;
                }
            }
            prop_assert_eq!(one, other);
            player.writes.clear();
            player.restart();
            let end = player.now() + 1000.0;
            player.until(end);
            prop_assert!(player.writes.is_empty(), "{:#?}", player.writes);
        }
    }
}
