//! What is told of a disk that grows.

use kite_api::condition::{DISK_READY, find};
use kite_datavolume::observe::growth::{Growth, Waits};
use kite_datavolume::status::{Disk, GUEST_HINT};
use serde_json::json;

use crate::player::Player;

// D-6
#[test]
fn a_disk_that_grows_stays_usable_and_says_whose_turn_it_is() {
    let mut player = Player::new();
    player.clone_life();
    let grow = |player: &mut Player, at: f64, waits_for: Option<Waits>| {
        player.until(at);
        let growth = waits_for.map(|waits_for| Growth {
            to: "4Gi".to_owned(),
            waits_for,
        });
        let Disk::DataVolume(reading, _) = player.disk.clone() else {
            panic!("there is a DataVolume")
        };
        player.disk = Disk::DataVolume(reading, growth);
        player.until(at + 15.0);
        let status = player.machine.status.clone().unwrap();
        let ready = find(&status.conditions, DISK_READY).unwrap().clone();
        (format!("{} {}", ready.status, ready.reason), ready.message)
    };
    let (ready, message) = grow(&mut player, 200.0, Some(Waits::Driver));
    assert_eq!(ready, "True Expanding");
    assert!(message.contains("4Gi") && !message.contains("cloud-init"));
    let (ready, message) = grow(&mut player, 220.0, Some(Waits::Node));
    assert_eq!(ready, "True Expanding");
    assert!(message.contains(GUEST_HINT), "{message}");
    let (ready, message) = grow(&mut player, 240.0, Some(Waits::Nobody));
    assert_eq!(ready, "True Expanding");
    assert!(message.contains("PersistentVolumeClaim"), "{message}");
    let writes = player.writes.len();
    player.restart();
    player.until(4000.0);
    assert!(player.writes.is_empty(), "{writes}");
    assert_eq!(grow(&mut player, 4000.0, None).0, "True Succeeded");
    player.disk = Disk::ClaimOnly(Some(Growth {
        to: "8Gi".to_owned(),
        waits_for: Waits::Driver,
    }));
    player.until(4040.0);
    assert_eq!(player.ready(), "True Expanding");
}

// D-6: only what is filled can grow; before that, what CDI says comes first.
#[test]
fn a_disk_that_is_not_filled_yet_is_not_told_to_grow() {
    let mut player = Player::new();
    player.cdi(0.0, &json!({"phase": "CloneInProgress", "progress": "50%"}));
    let Disk::DataVolume(reading, _) = player.disk.clone() else {
        panic!("there is a DataVolume")
    };
    let growth = Growth {
        to: "4Gi".to_owned(),
        waits_for: Waits::Driver,
    };
    player.disk = Disk::DataVolume(reading, Some(growth));
    player.until(30.0);
    assert_eq!(player.ready(), "False InProgress");
}

// D-6: a driver that needs no second is not worth two writes.
#[test]
fn a_growth_that_is_over_in_a_moment_is_not_told() {
    let mut player = Player::new();
    player.clone_life();
    let writes = player.writes.len();
    let before = player.disk.clone();
    let Disk::DataVolume(reading, _) = before.clone() else {
        panic!("there is a DataVolume")
    };
    player.disk = Disk::DataVolume(
        reading,
        Some(Growth {
            to: "4Gi".to_owned(),
            waits_for: Waits::Driver,
        }),
    );
    player.pass();
    player.until(120.9);
    player.disk = before;
    player.until(200.0);
    assert_eq!(player.writes.len(), writes);
}
