//! KubeVirt's VirtualMachine (rule V-16).
//!
//! Only fields that Kite owns. Disks, volumes, interfaces and networks are
//! atomic lists, so they are sent whole and always in the same order.

use kite_api::labels::{LOGIN_HASH, VM_NAME, VM_UID};
use kite_api::machine::{OnGuestShutdown, PowerState};
use kite_kubevirt::read;
use kite_kubevirt::write::{
    CloudInit, Cpu, Devices, Disk, DiskBus, DiskTarget, Domain, Interface, LocalReference, Marker,
    Memory, NamedVolume, Network, RunStrategy, Template, TemplateMetadata, TemplateSpec,
    VirtualMachine, VirtualMachineSpec, Volume, VolumeSource,
};

use super::{child_name, cloud_init_name};
use crate::meta::{Component, annotate, owned_by_machine};
use crate::validate::{Bytes, Limits, ValidMachine};

/// Name of the disk that the image was cloned to.
pub const ROOT_VOLUME: &str = "root";
/// Name of the disk that cloud-init reads.
pub const CLOUD_INIT_VOLUME: &str = "cloud-init";
/// Name of the interface and of its network.
pub const NETWORK: &str = "default";

/// How far a guest can grow while it runs: fourfold, KubeVirt's own ratio.
const GROWTH: i64 = 4;
/// More sockets than this no machine type of KubeVirt's takes.
const MOST_SOCKETS: i64 = 512;
/// KubeVirt's webhook refuses a maximum for smaller guests.
const LEAST_GROWING_MEMORY: i64 = 1 << 30;
/// KubeVirt's webhook refuses amounts that are no multiple of this.
const MEMORY_BLOCK: i64 = 2 << 20;

/// What is known of the hardware beside the spec.
#[derive(Clone, Copy, Debug)]
pub struct Hardware<'a> {
    /// The platform's largest machine, which bounds growth.
    pub limits: &'a Limits,
    /// Whether the nodes' architecture lets memory grow (amd64 and arm64 do).
    pub memory_grows: bool,
    /// The live VirtualMachine. Its maxima stay while they suffice: a changed maximum takes a
    /// restart, and would defeat the growth that it is there for.
    pub live: Option<&'a read::VirtualMachine>,
    /// The hash of the login that the machine starts with (rule C-20).
    pub login_hash: &'a str,
}

/// The run strategy that a specification asks for (rule V-16).
pub const fn run_strategy(power: PowerState, on_guest_shutdown: OnGuestShutdown) -> RunStrategy {
    match (power, on_guest_shutdown) {
        (PowerState::Off, _) => RunStrategy::Halted,
        (PowerState::On, OnGuestShutdown::Restart) => RunStrategy::Always,
        (PowerState::On, OnGuestShutdown::StayOff) => RunStrategy::RerunOnFailure,
    }
}

/// The machine, to be run as `run_strategy` says.
pub fn virtual_machine(
    machine: &ValidMachine,
    run_strategy: RunStrategy,
    hardware: &Hardware,
) -> VirtualMachine {
    let owner = &machine.owner;
    let mut metadata = owned_by_machine(owner, child_name(owner), Component::Machine);
    annotate(&mut metadata, LOGIN_HASH, hardware.login_hash);
    let labels = [(VM_NAME, owner.name.as_str()), (VM_UID, owner.uid.as_str())];
    let domain = Domain {
        cpu: cpu(machine.cpu, hardware),
        memory: memory(machine.memory, hardware),
        devices: Devices {
            disks: vec![disk(ROOT_VOLUME), disk(CLOUD_INIT_VOLUME)],
            interfaces: vec![Interface {
                name: NETWORK.to_owned(),
                masquerade: Marker {},
            }],
        },
    };
    let spec = VirtualMachineSpec {
        run_strategy,
        template: Template {
            metadata: TemplateMetadata {
                labels: labels.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
            },
            spec: TemplateSpec {
                domain,
                networks: vec![Network {
                    name: NETWORK.to_owned(),
                    pod: Marker {},
                }],
                volumes: volumes(machine),
            },
        },
    };
    VirtualMachine::new(metadata, spec)
}

fn disk(name: &str) -> Disk {
    Disk {
        name: name.to_owned(),
        disk: DiskTarget {
            bus: DiskBus::Virtio,
        },
    }
}

fn volumes(machine: &ValidMachine) -> Vec<Volume> {
    let root = VolumeSource::DataVolume(NamedVolume {
        name: child_name(&machine.owner),
    });
    let cloud_init = VolumeSource::CloudInitNoCloud(CloudInit {
        secret_ref: LocalReference {
            name: cloud_init_name(&machine.owner),
        },
    });
    [(ROOT_VOLUME, root), (CLOUD_INIT_VOLUME, cloud_init)]
        .map(|(name, source)| Volume {
            name: name.to_owned(),
            source,
        })
        .into()
}

fn cpu(sockets: i64, hardware: &Hardware) -> Cpu {
    let live = live_domain(hardware).and_then(|d| d.cpu.as_ref()?.max_sockets);
    let room = (sockets * GROWTH)
        .min(hardware.limits.cpu)
        .min(MOST_SOCKETS);
    Cpu {
        sockets,
        cores: 1,
        threads: 1,
        max_sockets: kept(live, sockets).unwrap_or(room).max(sockets),
    }
}

fn memory(guest: Bytes, hardware: &Hardware) -> Memory {
    Memory {
        guest: guest.quantity(),
        max_guest: max_guest(guest, hardware).map(Bytes::quantity),
    }
}

/// The memory that a guest can grow to, where KubeVirt's webhook takes such a maximum at all.
fn max_guest(guest: Bytes, hardware: &Hardware) -> Option<Bytes> {
    let bytes = guest.get();
    if !hardware.memory_grows || bytes < LEAST_GROWING_MEMORY || bytes % MEMORY_BLOCK != 0 {
        return None;
    }
    let live = live_domain(hardware).and_then(|d| d.memory.as_ref()?.max_guest.as_ref());
    let live = live
        .and_then(|q| kite_api::quantity::whole(&q.0).ok())
        .filter(|n| n % MEMORY_BLOCK == 0);
    let room = bytes
        .saturating_mul(GROWTH)
        .min(hardware.limits.memory.get());
    let room = room - room % MEMORY_BLOCK;
    Some(Bytes::new(kept(live, bytes).unwrap_or(room).max(bytes)))
}

/// A maximum that is already there and suffices.
fn kept(live: Option<i64>, wanted: i64) -> Option<i64> {
    live.filter(|max| *max >= wanted)
}

fn live_domain<'a>(hardware: &Hardware<'a>) -> Option<&'a read::Domain> {
    hardware
        .live?
        .spec
        .as_ref()?
        .template
        .as_ref()?
        .spec
        .as_ref()?
        .domain
        .as_ref()
}
