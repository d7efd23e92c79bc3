//! Wiring: which changes wake which machines, the rights that takes, and the flags.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kite_api::KiteVirtualMachine;
use kite_api::condition::{DISK_READY, RESOURCES_APPLIED, find};
use kite_api::labels::{Controller, MANAGED_SELECTOR, RETAINED, VM_UID};
use kite_api::ownership::is_leaving;
use kite_kubevirt::DataVolume;
use kite_runtime::mirror::{Mirror, namesake};
use kite_runtime::pass::drive;
use kite_runtime::rbac::Rule;
use kite_runtime::settings::duration;
use kite_runtime::{AsJson, Feeds, Process, Program, Watch};

use crate::observe::World;
use crate::observe::growth::growth;
use crate::reconcile::DiskPass;
use crate::status::clocks::Holds;
use crate::status::standing;

/// What this controller may do, beyond what every controller may.
pub const RULES: &[Rule] = &[
    Rule::cluster(
        "kite.dev",
        &["kitevirtualmachines"],
        &["list", "watch"],
        "whose disk it is, and which claim was recorded for it",
    ),
    Rule::cluster(
        "kite.dev",
        &["kitevirtualmachines/status"],
        &["patch"],
        "its own part of the status",
    ),
    Rule::cluster(
        "cdi.kubevirt.io",
        &["datavolumes"],
        &["list", "watch"],
        "how far CDI has come",
    ),
    Rule::cluster(
        "",
        &["persistentvolumeclaims"],
        &["get", "list", "watch"],
        "whether the disk is still there and how it grows; one look at a claim of somebody else, which no watch of Kite's labels shows",
    ),
];

/// Flags of kite-datavolume alone.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// Least time between two writes that tell of no more than a disk's progress.
    #[arg(long, env = "KITE_TICK_INTERVAL", default_value = "10s", value_parser = duration, value_name = "TIME", help_heading = "Status")]
    pub tick_interval: Duration,
    /// Whether to tell each of CDI's ticks, at the price of a write for each.
    #[arg(long, env = "KITE_MIRROR_EVERY_TICK", help_heading = "Status")]
    pub mirror_every_tick: bool,
    /// When a disk on which nothing moves counts as stuck.
    #[arg(long, env = "KITE_STUCK_AFTER", default_value = "15m", value_parser = duration, value_name = "TIME", help_heading = "Status")]
    pub stuck_after: Duration,
    /// How long an error must have stood before it counts.
    #[arg(long, env = "KITE_ERROR_HOLD", default_value = "10s", value_parser = duration, value_name = "TIME", help_heading = "Status")]
    pub error_hold: Duration,
}

/// The program.
pub struct KiteDataVolume;

impl Program for KiteDataVolume {
    const CONTROLLER: Controller = Controller::DataVolume;
    const ABOUT: &'static str = "Tells how each virtual machine's disk is coming along.";
    type Flags = Flags;

    async fn run(process: Process, flags: Flags) -> anyhow::Result<()> {
        let mut feeds = Feeds::new(process.health.clone());
        let world = watch(&mut feeds, &process);
        process
            .metrics
            .machines(Controller::DataVolume, &world.machines)?;
        let mirror = Mirror::new(
            &process,
            Controller::DataVolume.name(),
            world.machines.clone(),
        );
        let tick = if flags.mirror_every_tick {
            Duration::ZERO
        } else {
            flags.tick_interval
        };
        let holds = Holds {
            error: flags.error_hold,
            tick,
            stuck: flags.stuck_after,
        };
        let pass = DiskPass::new(world, mirror, holds);
        drive(&process, feeds, pass).await
    }
}

fn watch(feeds: &mut Feeds, process: &Process) -> World {
    let client = || process.client.clone();
    World {
        machines: feeds.primary(
            Watch::objects("KiteVirtualMachine", client())
                .packed()
                .reads(reads_of_machine)
                .trim(trim_machine),
        ),
        // Disk and claim have the machine's name; whose they are is the pass's question.
        disks: feeds.watch(
            Watch::objects("DataVolume", client())
                .packed()
                .labels(MANAGED_SELECTOR)
                .reads(reads_of_disk)
                .trim(|disk: &mut DataVolume| disk.spec = None),
            namesake,
        ),
        claims: feeds.watch(
            Watch::objects("PersistentVolumeClaim", client())
                .packed()
                .labels(MANAGED_SELECTOR)
                .reads(reads_of_claim)
                .trim(trim_claim),
            namesake,
        ),
    }
}

fn reads_of_machine(machine: &KiteVirtualMachine) -> u64 {
    let mut hasher = DefaultHasher::new();
    is_leaving(machine).hash(&mut hasher);
    if let Some(status) = &machine.status {
        status.claim_uid.hash(&mut hasher);
        status.data_volume_name.is_some().hash(&mut hasher);
        let applied = find(&status.conditions, RESOURCES_APPLIED);
        applied.map(|c| (&c.status, &c.reason)).hash(&mut hasher);
        let own = standing(machine);
        AsJson(&own).hash(&mut hasher);
    }
    hasher.finish()
}

fn trim_machine(machine: &mut KiteVirtualMachine) {
    machine.spec.ssh_authorized_keys = Vec::new();
    machine.metadata.annotations = None;
    if let Some(status) = &mut machine.status {
        status
            .conditions
            .retain(|c| [DISK_READY, RESOURCES_APPLIED].contains(&c.type_.as_str()));
    }
}

fn reads_of_disk(disk: &DataVolume) -> u64 {
    let mut hasher = DefaultHasher::new();
    let annotations = disk.metadata.annotations.as_ref();
    annotations.and_then(|a| a.get(VM_UID)).hash(&mut hasher);
    let reading = crate::observe::reading::read(disk);
    (
        reading.phase,
        reading.progress,
        reading.message,
        reading.movement,
    )
        .hash(&mut hasher);
    hasher.finish()
}

fn reads_of_claim(claim: &PersistentVolumeClaim) -> u64 {
    let mut hasher = DefaultHasher::new();
    let meta = &claim.metadata;
    (&meta.uid, &meta.labels, &meta.annotations).hash(&mut hasher);
    let owners = meta.owner_references.iter().flatten();
    for owner in owners {
        (owner.controller, &owner.uid).hash(&mut hasher);
    }
    let phase = claim.status.as_ref().and_then(|s| s.phase.as_deref());
    phase.hash(&mut hasher);
    let growth = growth(claim);
    growth.map(|g| (g.to, g.waits_for)).hash(&mut hasher);
    hasher.finish()
}

/// Of labels and annotations only those are kept that say whose the claim is.
fn trim_claim(claim: &mut PersistentVolumeClaim) {
    let meta = &mut claim.metadata;
    if let Some(annotations) = &mut meta.annotations {
        annotations.retain(|key, _| key == VM_UID);
    }
    if let Some(labels) = &mut meta.labels {
        labels.retain(|key, _| key == RETAINED);
    }
}
