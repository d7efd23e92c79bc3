//! `blockedBy`: the lowest layer that stands in a machine's way, in one line (rule S-7).
//!
//! Pure. The other controllers and KubeVirt have each said what they have to
//! say; this picks the one that has to go first, and names the object to look
//! at. An ordinary wait is nobody's fault and is not named.

use kite_api::condition::{
    self, ACCEPTED, DEPENDENCY_MISSING, DISK_READY, NAME_CONFLICT, RESOURCES_APPLIED,
    SERVICE_READY, STALLED, Status,
};
use kite_api::machine::PowerState;
use kite_api::{Condition, KiteVirtualMachine, KiteVirtualMachineStatus};

use crate::observe::reading::{Disk, Reading, State};
use crate::observe::refusal::Refusal;
use crate::status::Elapsed;
use crate::status::table::{PowerSync, Row};

/// What stands on what: a later one can only work when those before it do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Layer {
    Specification,
    Namespace,
    Quota,
    Image,
    Disk,
    Scheduling,
    KubeVirt,
    Guest,
    Service,
}

impl Layer {
    const fn word(self) -> &'static str {
        match self {
            Self::Specification => "specification",
            Self::Namespace => "namespace",
            Self::Quota => "quota",
            Self::Image => "image",
            Self::Disk => "disk",
            Self::Scheduling => "scheduling",
            Self::KubeVirt => "KubeVirt",
            Self::Guest => "guest",
            Self::Service => "service",
        }
    }
}

/// Something in the way.
struct Obstacle {
    layer: Layer,
    line: String,
    /// It has stood for long enough to be told.
    stood: bool,
}

impl Obstacle {
    fn new(layer: Layer, reason: &str, object: &str) -> Self {
        let mut line = format!("{}: {reason}, see {object}", layer.word());
        line.truncate(line.floor_char_boundary(LONGEST_LINE));
        Self {
            layer,
            line,
            stood: true,
        }
    }
}

/// The schema of the status allows no more.
const LONGEST_LINE: usize = 256;

/// The line, or nothing.
pub fn blocked_by(
    machine: &KiteVirtualMachine,
    reading: &Reading,
    row: &Row,
    before: &KiteVirtualMachineStatus,
    elapsed: Elapsed,
) -> Option<String> {
    let look = Look {
        name: machine.metadata.name.as_deref().unwrap_or_default(),
        machine,
        reading,
        row,
        elapsed,
    };
    let found = [
        look.specification(),
        look.resources(),
        look.disk(),
        look.kubevirt(),
        look.service(),
    ];
    // What stands there has been told, whatever a restart of this process made forget.
    let counts = |o: &Obstacle| o.stood || before.blocked_by.as_ref() == Some(&o.line);
    let lowest = found
        .into_iter()
        .flatten()
        .filter(counts)
        .min_by_key(|o| o.layer);
    lowest.map(|o| o.line)
}

struct Look<'a> {
    name: &'a str,
    machine: &'a KiteVirtualMachine,
    reading: &'a Reading,
    row: &'a Row,
    elapsed: Elapsed,
}

impl Look<'_> {
    fn condition(&self, type_: &str) -> Option<&Condition> {
        condition::find(&self.machine.status.as_ref()?.conditions, type_)
    }

    fn is_not(&self, type_: &str) -> Option<&Condition> {
        self.condition(type_).filter(|c| c.status == "False")
    }

    fn own(&self, kind: &str) -> String {
        format!("{kind} {}", self.name)
    }

    fn specification(&self) -> Option<Obstacle> {
        let refused = self.is_not(ACCEPTED)?;
        let reason = refused.reason.as_str();
        let namespace = self.machine.metadata.namespace.as_deref();
        Some(match reason {
            "ImageNotFound" | "ImageNotReady" => {
                let image = format!("DataSource {}", self.machine.spec.image);
                Obstacle::new(Layer::Image, reason, &image)
            }
            "NamespaceNotReady" | "NamespaceNotPrepared" | "NamespaceOrphaned" | "UserRequired" => {
                let namespace = format!("Namespace {}", namespace.unwrap_or_default());
                Obstacle::new(Layer::Namespace, reason, &namespace)
            }
            // The machine is there and runs; its name is another's.
            "HostNameTaken" => Obstacle::new(Layer::Service, reason, "spec.domainPrefix"),
            _ => Obstacle::new(
                Layer::Specification,
                reason,
                "the message of condition Accepted",
            ),
        })
    }

    fn resources(&self) -> Option<Obstacle> {
        let failed = self.is_not(RESOURCES_APPLIED)?;
        let reason = failed.reason.as_str();
        let words = "the message of condition ResourcesApplied";
        Some(match reason {
            "NotAccepted" => return None,
            "QuotaExceeded" => self.quota(quota_in(&failed.message).as_deref()),
            "ImageNotFound" | "ImageNotReady" => Obstacle::new(Layer::Image, reason, words),
            "DiskLost" => Obstacle::new(Layer::Disk, reason, &self.own("PersistentVolumeClaim")),
            "RetainedDiskExists" | "CloneForbidden" | "DiskCannotGrow" => {
                Obstacle::new(Layer::Disk, reason, words)
            }
            // Told below, by the kind that is missed.
            DEPENDENCY_MISSING if self.reading.state == State::KindMissing => return None,
            NAME_CONFLICT | DEPENDENCY_MISSING | "Rejected" => {
                Obstacle::new(layer_of(&failed.message), reason, words)
            }
            // The rest is either on its way, or wants a person.
            _ if self.condition(STALLED).is_some_and(|c| c.status == "True") => {
                Obstacle::new(Layer::Specification, reason, words)
            }
            _ => return None,
        })
    }

    /// A guest that runs proves its disk.
    fn disk(&self) -> Option<Obstacle> {
        if self.reading.guest_runs {
            return None;
        }
        let told = self.is_not(DISK_READY)?;
        let reason = told.reason.as_str();
        Some(match reason {
            "QuotaExceeded" => self.quota(quota_in(&told.message).as_deref()),
            "DiskLost" | NAME_CONFLICT => {
                Obstacle::new(Layer::Disk, reason, &self.own("PersistentVolumeClaim"))
            }
            _ if matches!(self.reading.disk, Disk::Error(..)) || reason == "Retrying" => {
                Obstacle::new(Layer::Disk, reason, &self.own("DataVolume"))
            }
            _ => return None,
        })
    }

    fn quota(&self, name: Option<&str>) -> Obstacle {
        let namespace = self.machine.metadata.namespace.as_deref();
        let object = name.map_or_else(
            || format!("the quotas of {}", namespace.unwrap_or_default()),
            |name| format!("ResourceQuota {name}"),
        );
        Obstacle::new(Layer::Quota, "QuotaExceeded", &object)
    }

    fn kubevirt(&self) -> Option<Obstacle> {
        if self.row.ready.status == Status::True {
            return None;
        }
        let reason = self.row.ready.reason.as_str();
        let instance = self.own("VirtualMachineInstance");
        let machine = self.own("VirtualMachine");
        Some(match &self.reading.state {
            State::KindMissing => {
                Obstacle::new(Layer::KubeVirt, reason, "the installation of KubeVirt")
            }
            State::Unseen | State::Unknown(_) => Obstacle::new(Layer::KubeVirt, reason, &machine),
            State::NodeLost { .. } => {
                let node = self.reading.node.as_deref();
                let node = node.map_or(instance, |n| format!("Node {n}"));
                Obstacle::new(Layer::Scheduling, reason, &node)
            }
            State::Error(word) => self.error(word),
            State::Starting | State::Off | State::NeverRan | State::Provisioning
                if self.reading.refusal.is_some() =>
            {
                self.refused("NotStarted")?
            }
            State::Paused | State::Running(Err(_)) if self.is_wanted_on() => {
                Obstacle::new(Layer::Guest, reason, &instance)
            }
            State::ShutDown { .. } => Obstacle::new(Layer::Guest, reason, "spec.powerState"),
            _ if self.row.power_sync == Some(PowerSync::Moving) => {
                let reason = if self.is_wanted_on() {
                    "NotStarted"
                } else {
                    "NotStopped"
                };
                Obstacle {
                    stood: self.elapsed.transition,
                    ..Obstacle::new(Layer::KubeVirt, reason, &machine)
                }
            }
            _ => return None,
        })
    }

    fn is_wanted_on(&self) -> bool {
        self.reading.wanted == PowerState::On
    }

    /// KubeVirt's error words, which count when they have stood.
    fn error(&self, word: &str) -> Obstacle {
        let instance = self.own("VirtualMachineInstance");
        let obstacle = self.refused(word).unwrap_or_else(|| match word {
            "ErrorUnschedulable" => Obstacle::new(Layer::Scheduling, word, &instance),
            "ErrorPvcNotFound" => {
                Obstacle::new(Layer::Disk, word, &self.own("PersistentVolumeClaim"))
            }
            "DataVolumeError" => Obstacle::new(Layer::Disk, word, &self.own("DataVolume")),
            _ => Obstacle::new(Layer::KubeVirt, word, &instance),
        });
        Obstacle {
            stood: self.elapsed.error,
            ..obstacle
        }
    }

    fn refused(&self, reason: &str) -> Option<Obstacle> {
        Some(match self.reading.refusal.as_ref()? {
            Refusal::Quota(name) => self.quota(name.as_deref()),
            Refusal::Other => Obstacle::new(Layer::KubeVirt, reason, &self.own("VirtualMachine")),
        })
    }

    /// kite-vm mends a Service within seconds, so it is in the way only when that has not helped.
    fn service(&self) -> Option<Obstacle> {
        let reason = service_trouble(self.machine)?;
        Some(Obstacle {
            stood: self.elapsed.service,
            ..Obstacle::new(Layer::Service, reason, &self.own("Service"))
        })
    }
}

/// What kite-service says is wrong, if anything is.
pub fn service_trouble(machine: &KiteVirtualMachine) -> Option<&str> {
    let conditions = &machine.status.as_ref()?.conditions;
    let told = condition::find(conditions, SERVICE_READY).filter(|c| c.status == "False")?;
    Some(&told.reason)
}

/// The layer of the object that a message is about.
fn layer_of(message: &str) -> Layer {
    let kinds = [
        (Layer::Disk, &["PersistentVolumeClaim", "DataVolume"][..]),
        (
            Layer::KubeVirt,
            &["VirtualMachine", "virtualmachine", "kubevirt"][..],
        ),
        (Layer::Service, &["Ingress", "Service"][..]),
    ];
    let named = kinds
        .iter()
        .find(|(_, kinds)| kinds.iter().any(|k| message.contains(k)));
    named.map_or(Layer::Specification, |(layer, _)| *layer)
}

/// The quota that a message names.
fn quota_in(message: &str) -> Option<String> {
    match crate::observe::refusal::read(message) {
        Refusal::Quota(name) => name,
        Refusal::Other => None,
    }
}
