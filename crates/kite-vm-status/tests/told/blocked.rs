//! What stands in a machine's way, by what the others say of it (rule S-7).

use std::sync::Arc;

use crate::common::{Player, guest, machine, say, vm};
use kite_api::machine::{OnGuestShutdown, PowerState};
use kite_kubevirt::{VirtualMachine, VirtualMachineInstance};
use kite_vm_status::observe::reading::Found;
use serde_json::{Value, json};

/// Everything around a machine that may be in its way.
struct Around {
    conditions: &'static [(&'static str, &'static str, &'static str)],
    word: &'static str,
    vm: Value,
    guest: Option<Value>,
}

impl Default for Around {
    fn default() -> Self {
        Self {
            conditions: &[],
            word: "Stopped",
            vm: json!({}),
            guest: None,
        }
    }
}

fn blocked(player: &Player) -> String {
    let status = player.machine.status.as_ref().unwrap();
    status.blocked_by.clone().unwrap_or_default()
}

fn play(around: &Around) -> Player {
    let mut player = Player::new(machine("On"));
    for (type_, status, reason) in around.conditions {
        say(&mut player.machine, type_, status, reason);
    }
    player.instance = around.guest.as_ref().map(|status| {
        let mut guest = guest();
        let status = json!({"status": status});
        guest.status = serde_json::from_value::<VirtualMachineInstance>(status)
            .unwrap()
            .status;
        guest
    });
    player.set_vm(around.word, &around.vm);
    player.until(12.0);
    player
}

/// What a refused launcher Pod reads like.
fn refused(words: &str) -> Value {
    json!({"phase": "Pending", "conditions": [
        {"type": "Synchronized", "status": "False", "reason": "FailedCreate", "message": words},
    ]})
}

fn word(word: &'static str) -> Around {
    Around {
        word,
        ..Around::default()
    }
}

fn told(conditions: &'static [(&'static str, &'static str, &'static str)]) -> Around {
    Around {
        conditions,
        ..Around::default()
    }
}

/// What has to be there before there is anything for KubeVirt to do, each with what its line says.
fn lower_layers() -> Vec<(Around, &'static str)> {
    let quota = "failed to create virtual machine pod: exceeded quota: kite, requested: cpu=1";
    vec![
        (
            told(&[("Accepted", "False", "InvalidSpec")]),
            "specification: InvalidSpec, see the message of condition Accepted",
        ),
        (
            told(&[
                ("ResourcesApplied", "False", "PasswordNotFound"),
                ("Stalled", "True", "PasswordNotFound"),
            ]),
            "specification: PasswordNotFound, see the message of condition ResourcesApplied",
        ),
        (
            told(&[("Accepted", "False", "NamespaceNotPrepared")]),
            "namespace: NamespaceNotPrepared, see Namespace alice",
        ),
        (
            told(&[("DiskReady", "False", "QuotaExceeded")]),
            "quota: QuotaExceeded, see the quotas of alice",
        ),
        (
            told(&[("ResourcesApplied", "False", "QuotaExceeded")]),
            "quota: QuotaExceeded, see the quotas of alice",
        ),
        (
            Around {
                guest: Some(refused(quota)),
                ..word("Starting")
            },
            "quota: QuotaExceeded, see ResourceQuota kite",
        ),
        (
            told(&[
                ("Accepted", "False", "ImageNotFound"),
                ("ResourcesApplied", "False", "NotAccepted"),
            ]),
            "image: ImageNotFound, see DataSource ubuntu",
        ),
        (
            told(&[("DiskReady", "False", "Stuck")]),
            "disk: Stuck, see DataVolume web",
        ),
        (
            told(&[("DiskReady", "False", "Retrying")]),
            "disk: Retrying, see DataVolume web",
        ),
        (
            told(&[("DiskReady", "False", "DiskLost")]),
            "disk: DiskLost, see PersistentVolumeClaim web",
        ),
        (
            word("ErrorPvcNotFound"),
            "disk: ErrorPvcNotFound, see PersistentVolumeClaim web",
        ),
        (
            word("DataVolumeError"),
            "disk: DataVolumeError, see DataVolume web",
        ),
    ]
}

/// What stands on that.
fn upper_layers() -> Vec<(Around, &'static str)> {
    vec![
        (
            word("ErrorUnschedulable"),
            "scheduling: ErrorUnschedulable, see VirtualMachineInstance web",
        ),
        (
            Around {
                guest: Some(json!({"phase": "Unknown", "nodeName": "n1"})),
                ..word("Unknown")
            },
            "scheduling: NodeUnreachable, see Node n1",
        ),
        (
            word("ImagePullBackOff"),
            "KubeVirt: ImagePullBackOff, see VirtualMachineInstance web",
        ),
        (
            word("Levitating"),
            "KubeVirt: Unknown, see VirtualMachine web",
        ),
        (
            Around {
                guest: Some(refused("admission webhook says no")),
                ..word("Starting")
            },
            "KubeVirt: NotStarted, see VirtualMachine web",
        ),
        (
            Around {
                guest: Some(json!({"phase": "Running"})),
                vm: json!({"created": true}),
                ..word("Paused")
            },
            "guest: Paused, see VirtualMachineInstance web",
        ),
        (
            Around {
                guest: Some(json!({"phase": "Running"})),
                vm: json!({"created": true}),
                ..word("Running")
            },
            "guest: GuestNotRunning, see VirtualMachineInstance web",
        ),
        (
            told(&[("ServiceReady", "False", "Missing")]),
            "service: Missing, see Service web",
        ),
        (
            told(&[("Accepted", "False", "HostNameTaken")]),
            "service: HostNameTaken, see spec.domainPrefix",
        ),
    ]
}

// S-7
#[test]
fn each_layer_has_its_line_with_the_object_to_look_at() {
    for (around, line) in lower_layers().into_iter().chain(upper_layers()) {
        let mut player = play(&around);
        assert_eq!(blocked(&player), line);
        assert!(line.len() < 80, "too long for a column: {line}");
        // C-5: neither time nor a restart changes it.
        player.writes.clear();
        player.restart();
        player.until(250.0);
        assert!(player.writes.is_empty(), "{line}");
    }
}

/// What is in the way of a machine of which kite-vm says that not all is applied.
fn unapplied(reason: &str, words: &str, stalled: bool, vm: Found<Arc<VirtualMachine>>) -> String {
    let mut machine = machine("On");
    say(&mut machine, "ResourcesApplied", "False", reason);
    let said = &mut machine.status.as_mut().unwrap().conditions[0];
    words.clone_into(&mut said.message);
    if stalled {
        say(&mut machine, "Stalled", "True", reason);
    }
    let mut player = Player::new(machine);
    player.vm = vm;
    player.until(12.0);
    blocked(&player)
}

// S-7: the layer is that of the object which cannot be made, as far as the words name it.
#[test]
fn what_kite_vm_could_not_apply_is_named_by_its_layer() {
    let off = || Found::Ours(Arc::new(vm("Stopped", &json!({}))));
    for (reason, words, layer) in [
        ("ImageNotFound", "", "image"),
        ("ImageNotReady", "", "image"),
        ("RetainedDiskExists", "", "disk"),
        ("CloneForbidden", "", "disk"),
        ("DiskCannotGrow", "", "disk"),
        ("NameConflict", "PersistentVolumeClaim web exists", "disk"),
        ("DependencyMissing", "cannot create DataVolume web", "disk"),
        ("Rejected", "cannot create VirtualMachine web", "KubeVirt"),
        ("NameConflict", "Service web exists", "service"),
        ("Rejected", "cannot patch Ingress web", "service"),
        ("Rejected", "cannot create Secret web", "specification"),
    ] {
        let line = format!("{layer}: {reason}, see the message of condition ResourcesApplied");
        assert_eq!(unapplied(reason, words, true, off()), line, "{words}");
        assert_eq!(unapplied(reason, words, false, off()), line, "{words}");
    }
    let lost = "disk: DiskLost, see PersistentVolumeClaim web";
    assert_eq!(unapplied("DiskLost", "", true, off()), lost);
    let full = "cannot create VirtualMachine web: exceeded quota: tight, requested: cpu=1";
    let quota = "quota: QuotaExceeded, see ResourceQuota tight";
    assert_eq!(unapplied("QuotaExceeded", full, false, off()), quota);
    // What is on its way is nobody's fault, and a specification that was refused has its own line.
    assert_eq!(unapplied("WaitingForClaim", "", false, off()), "");
    assert_eq!(unapplied("NotAccepted", "", true, off()), "");
    let (missing, words) = ("DependencyMissing", "cannot create VirtualMachine web");
    for stalled in [true, false] {
        assert_eq!(
            unapplied(missing, words, stalled, Found::KindMissing),
            "KubeVirt: DependencyMissing, see the installation of KubeVirt"
        );
    }
}

// S-7: what stands on something that is broken is not to be looked at first.
#[test]
fn the_lowest_of_several_is_named() {
    let around = Around {
        conditions: &[
            ("DiskReady", "False", "QuotaExceeded"),
            ("ServiceReady", "False", "Drifted"),
            ("Accepted", "False", "ImageNotReady"),
        ],
        ..Around::default()
    };
    let mut player = play(&around);
    assert_eq!(
        blocked(&player),
        "quota: QuotaExceeded, see the quotas of alice"
    );
    say(&mut player.machine, "DiskReady", "True", "Succeeded");
    player.pass();
    player.until(30.0);
    assert_eq!(
        blocked(&player),
        "image: ImageNotReady, see DataSource ubuntu"
    );
    say(&mut player.machine, "Accepted", "True", "Valid");
    player.pass();
    player.until(60.0);
    assert_eq!(blocked(&player), "service: Drifted, see Service web");
    say(&mut player.machine, "ServiceReady", "True", "Reachable");
    player.pass();
    player.until(90.0);
    assert_eq!(blocked(&player), "");
}

// S-7, C-5: what goes by is in nobody's way.
#[test]
fn nothing_blocks_a_machine_that_is_on_its_way_or_where_it_should_be() {
    let disk = [("DiskReady", "False", "InProgress")];
    let waits = [
        ("Provisioning", json!({}), &disk[..]),
        ("WaitingForVolumeBinding", json!({"created": true}), &[]),
        ("Starting", json!({"created": true}), &[]),
        ("Stopping", json!({"created": true}), &[]),
        ("Stopped", json!({}), &[]),
    ];
    for (word, vm, conditions) in waits {
        let mut player = Player::new(machine("On"));
        for (type_, status, reason) in conditions {
            say(&mut player.machine, type_, status, reason);
        }
        player.set_vm(word, &vm);
        player.until(250.0);
        assert_eq!(blocked(&player), "", "{word}");
    }
    // kite-vm mends a Service within seconds.
    let mut player = Player::new(machine("On"));
    player.instance = Some(guest());
    let ready = json!({"created": true, "conditions": [{"type": "Ready", "status": "True"}]});
    player.set_vm("Running", &ready);
    player.writes.clear();
    say(&mut player.machine, "ServiceReady", "False", "Missing");
    player.pass();
    player.until(5.0);
    say(&mut player.machine, "ServiceReady", "True", "Reachable");
    player.pass();
    player.until(250.0);
    assert!(player.writes.is_empty());
    // An error word that flashes by is nobody's either.
    player.set_vm("ErrorUnschedulable", &json!({"created": true}));
    player.until(255.0);
    player.set_vm("Running", &ready);
    assert!(player.writes.iter().all(|(_, s)| s.blocked_by.is_none()));
}

// S-7, S-5
#[test]
fn power_that_does_not_come_is_kubevirts_when_nothing_else_explains_it() {
    let mut player = Player::new(machine("On"));
    player.set_vm("Starting", &json!({"created": true}));
    player.until(290.0);
    assert_eq!(blocked(&player), "");
    player.until(310.0);
    assert_eq!(
        blocked(&player),
        "KubeVirt: NotStarted, see VirtualMachine web"
    );
    player.set_vm("Provisioning", &json!({}));
    player.until(320.0);
    assert_eq!(blocked(&player), "", "something else has to come first");
    player.power(PowerState::Off);
    player.set_vm("Paused", &json!({"created": true}));
    player.until(330.0);
    assert_eq!(
        blocked(&player),
        "",
        "a pause keeps nobody from switching off"
    );
    player.set_vm("Stopping", &json!({"created": true}));
    player.until(640.0);
    assert_eq!(
        blocked(&player),
        "KubeVirt: NotStopped, see VirtualMachine web"
    );
}

// S-7, S-2
#[test]
fn a_guest_that_stays_down_is_in_its_own_way() {
    let mut machine = machine("On");
    machine.spec.on_guest_shutdown = OnGuestShutdown::StayOff;
    let stop = json!({"instanceUID": "i1", "reason": "GuestShutDown"});
    machine.status.as_mut().unwrap().last_stop = serde_json::from_value(stop).unwrap();
    let mut player = Player::new(machine);
    player.set_vm("Stopped", &json!({"runStrategy": "RerunOnFailure"}));
    player.until(10.0);
    assert_eq!(
        blocked(&player),
        "guest: GuestShutDown, see spec.powerState"
    );
}

// S-7: the schema allows 256 characters, and a write with more would be refused as a whole.
#[test]
fn a_line_is_cut_to_what_the_schema_allows() {
    let mut player = Player::new(machine("On"));
    player.machine.metadata.name = Some("ä".repeat(200));
    player.set_vm("ErrorPvcNotFound", &json!({}));
    player.until(20.0);
    let line = blocked(&player);
    assert!(line.len() <= 256 && line.starts_with("disk: "), "{line}");
}
