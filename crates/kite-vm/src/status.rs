//! Step 5: kite-vm's part of a machine's status, from what was seen and applied.
//!
//! Pure. The part is complete in every write, because a field that server-side
//! apply was sent before and is not sent now would be removed (rule C-3).

pub mod news;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kite_api::condition::{
    self, ACCEPTED, DELETING, DISK_READY, DOMAIN_READY, RECONCILING, RESOURCES_APPLIED, STALLED,
    Status, Wanted,
};
use kite_api::labels::Controller;
use kite_api::machine::{KiteVirtualMachineStatus, Phase};
use kite_api::ownership::part_of;
use kite_api::{Condition, KitePlatform, KitePlatformStatus};
use kite_render::machine::{child_name, cloud_init_name, ssh_key_name};
use kite_render::validate::Problems;

use crate::apply::{Applied, Trouble, power};
use crate::observe::Observed;
use crate::validate::Refused;

/// What a pass came to.
pub enum Outcome<'a> {
    /// The specification was carried out, as far as the troubles tell.
    Applied(&'a Applied),
    /// The specification was refused; power was kept.
    Refused(&'a Refused, &'a Applied),
    /// A person has stopped reconciliation.
    Paused,
    /// The machine is being deleted.
    Deleting(Option<&'a Trouble>),
}

/// The part as it should be.
pub fn part(seen: &Observed, outcome: &Outcome, now: &Time) -> KiteVirtualMachineStatus {
    let previous = seen.status();
    let mut part = part_of(Controller::Vm, previous);
    part.phase = phase(previous, outcome);
    let wanted = match outcome {
        Outcome::Applied(applied) => {
            record(&mut part, seen, applied);
            after_applying(applied, disk_needs_somebody(previous))
        }
        Outcome::Refused(refused, applied) => {
            part.domain.clone_from(&applied.domain.host);
            after_refusal(refused, applied)
        }
        Outcome::Paused => vec![Wanted::new(
            RESOURCES_APPLIED,
            false,
            "ReconciliationPaused",
            "the annotation kite.dev/paused is true; nothing is changed until it is removed. Deletion goes on all the same",
        )],
        Outcome::Deleting(trouble) => while_deleting(*trouble),
    };
    part.conditions = condition::settle(&previous.conditions, wanted, seen.generation(), now);
    part
}

/// Children's names stay recorded once they were made: their absence later is a finding (rule V-15).
fn record(part: &mut KiteVirtualMachineStatus, seen: &Observed, applied: &Applied) {
    let keep = |recorded: &mut Option<String>, there: bool, name: String| {
        if there {
            *recorded = Some(name);
        }
    };
    if applied.claim_uid.is_some() {
        part.claim_uid.clone_from(&applied.claim_uid);
    }
    if applied.storage_class.is_some() {
        part.storage_class_name.clone_from(&applied.storage_class);
    }
    keep(
        &mut part.data_volume_name,
        applied.disk,
        child_name(&seen.owner),
    );
    keep(
        &mut part.cloud_init_secret_name,
        applied.login,
        cloud_init_name(&seen.owner),
    );
    keep(
        &mut part.ssh_key_secret_name,
        applied.generated_key,
        ssh_key_name(&seen.owner),
    );
    keep(
        &mut part.service_name,
        applied.service,
        child_name(&seen.owner),
    );
    part.ingress_name = applied
        .domain
        .host
        .as_ref()
        .map(|_| child_name(&seen.owner));
    part.domain.clone_from(&applied.domain.host);
}

/// The phase while it is kite-vm's to write (rule C-10).
fn phase(previous: &KiteVirtualMachineStatus, outcome: &Outcome) -> Option<Phase> {
    let stalled = match outcome {
        Outcome::Deleting(_) => return Some(Phase::Deleting),
        Outcome::Paused => false,
        Outcome::Refused(refused, _) => refused.stalled,
        Outcome::Applied(applied) => applied.troubles.iter().any(|t| t.stalled),
    };
    match previous.virtual_machine_uid {
        Some(_) => None,
        None if stalled => Some(Phase::Failed),
        None => Some(Phase::Provisioning),
    }
}

fn after_applying(applied: &Applied, disk: Option<&Condition>) -> Vec<Wanted> {
    let mut wanted = vec![domain_ready(applied)];
    let refusal = applied
        .troubles
        .iter()
        .find(|t| t.reason == "NamespaceNotPrepared" || t.reason == "HostNameTaken");
    wanted.push(match refusal {
        Some(trouble) => Wanted::new(ACCEPTED, false, trouble.reason, &trouble.message),
        None => Wanted::new(
            ACCEPTED,
            true,
            "Valid",
            "the specification can be carried out",
        ),
    });
    wanted.extend(resources(applied, disk));
    wanted
}

/// What kite-datavolume says of a disk that does not get filled unless somebody acts (rule D-4).
fn disk_needs_somebody(previous: &KiteVirtualMachineStatus) -> Option<&Condition> {
    condition::find(&previous.conditions, DISK_READY)
        .filter(|c| c.status == "False" && matches!(c.reason.as_str(), "CloneFailed" | "Stuck"))
}

/// `ResourcesApplied`, and what it means for a person.
fn resources(applied: &Applied, disk: Option<&Condition>) -> Vec<Wanted> {
    let unfinished = |reason: &str, message: &str, stalled| {
        vec![
            Wanted::new(RESOURCES_APPLIED, false, reason, message),
            going_on(stalled, reason, message),
        ]
    };
    let troubles = &applied.troubles;
    if let Some(trouble) = troubles.iter().find(|t| t.stalled).or(troubles.first()) {
        let all: Vec<&str> = troubles.iter().map(|t| t.message.as_str()).collect();
        return unfinished(trouble.reason, &all.join("; "), trouble.stalled);
    }
    if !applied.machine {
        if let Some(disk) = disk {
            return unfinished(&disk.reason, &disk.message, true);
        }
        let message = "the disk's claim is not there yet; the VirtualMachine is made when it is";
        return unfinished("WaitingForClaim", message, false);
    }
    if applied.waits_for_shutdown {
        let message = "the guest is still on its way down; the machine is started when it is gone";
        return unfinished("WaitingForShutdown", message, false);
    }
    let mut wanted = vec![Wanted::new(
        RESOURCES_APPLIED,
        true,
        "Applied",
        "everything the machine needs is as declared; its Secrets are not watched and are looked at before each start",
    )];
    wanted.extend(applied.stays_down.map(|down| {
        let (reason, message) = power::words(down);
        going_on(true, reason, message)
    }));
    if let (None, Some(disk)) = (applied.stays_down, disk) {
        wanted.push(going_on(true, &disk.reason, &disk.message));
    }
    wanted
}

fn after_refusal(refused: &Refused, applied: &Applied) -> Vec<Wanted> {
    let mut message = refused.message.clone();
    for trouble in &applied.troubles {
        message = [message.as_str(), "; ", &trouble.message].concat();
    }
    vec![
        Wanted::new(ACCEPTED, false, refused.reason, &refused.message),
        Wanted::new(RESOURCES_APPLIED, false, "NotAccepted", message.as_str()),
        domain_ready(applied),
        going_on(refused.stalled, refused.reason, &refused.message),
    ]
}

fn while_deleting(trouble: Option<&Trouble>) -> Vec<Wanted> {
    let (reason, message) = match trouble {
        Some(trouble) => (trouble.reason, trouble.message.as_str()),
        None => (
            "Requested",
            "the machine and all that belongs to it are being deleted",
        ),
    };
    vec![
        Wanted::new(DELETING, true, reason, message),
        Wanted::new(
            RESOURCES_APPLIED,
            false,
            "Deleting",
            "the machine is being deleted",
        ),
    ]
}

/// `Stalled` when a person has to act, else `Reconciling`; never both, and neither when all is done (rule C-11).
fn going_on(stalled: bool, reason: &str, message: &str) -> Wanted {
    Wanted::new(
        if stalled { STALLED } else { RECONCILING },
        Status::True,
        reason,
        message,
    )
}

fn domain_ready(applied: &Applied) -> Wanted {
    match (&applied.domain.host, &applied.domain.why_not) {
        (Some(host), _) => Wanted::new(
            DOMAIN_READY,
            true,
            "Held",
            ["the host ", host, " is the machine's"].concat(),
        ),
        (None, Some((reason, message))) => Wanted::new(DOMAIN_READY, false, *reason, message),
        (None, None) => Wanted::new(
            DOMAIN_READY,
            true,
            "NotRequested",
            "the specification asks for no host name",
        ),
    }
}

/// The KitePlatform's status (rule P-3).
pub fn platform(
    platform: &KitePlatform,
    problems: Option<&Problems>,
    now: &Time,
) -> KitePlatformStatus {
    let generation = platform.metadata.generation;
    let wanted = match problems {
        None => Wanted::new(ACCEPTED, true, "Valid", "the settings are in force"),
        Some(problems) => Wanted::new(
            ACCEPTED,
            false,
            "InvalidSpec",
            format!(
                "{problems}; the last good settings, or the defaults, stay in force until this is mended"
            ),
        ),
    };
    let previous = platform
        .status
        .as_ref()
        .map(|s| s.conditions.as_slice())
        .unwrap_or_default();
    KitePlatformStatus {
        observed_generation: generation,
        conditions: condition::settle(previous, vec![wanted], generation, now),
    }
}
