//! The words by which failures are asked for, and what each of them means.
//!
//! `docs/reference/stand-ins.md` lists them for people; a test keeps it complete.

use std::fmt;
use std::str::FromStr;

/// One thing that goes wrong, or goes a rarer way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// virt-controller does not look at the machine at all.
    Unseen,
    /// cdi-controller does not look at the DataVolume at all.
    DiskUnseen,
    /// virt-controller writes this `printableStatus`, whatever it sees.
    PrintableStatus(String),
    /// The machine's finalizer never goes.
    VmFinalizerStays,
    /// The instance's finalizer never goes.
    VmiFinalizerStays,
    /// The node is lost: phase Unknown, and a deletion never ends.
    NodeLost,
    /// The guest is paused.
    Paused,
    /// The guest agent reports.
    AgentConnected,
    /// Once: the guest shuts itself down.
    GuestShutdown,
    /// Once: the guest crashes.
    GuestCrash,
    /// Once: the guest moves to the other node.
    Migrate,
    /// Once: somebody stops the machine as virtctl does, in its spec.
    VirtctlStop,
    /// The clone makes no progress.
    CloneStuck,
    /// The clone's worker restarts again and again.
    CloneRestarts,
    /// The DataVolume's phase is Failed.
    CloneFailed,
    /// cdi-controller writes this phase, whatever it sees.
    DiskPhase(String),
    /// The DataVolume has a finalizer of CDI's that never goes.
    DiskFinalizerStays,
    /// The claim is never bound.
    NeverBound,
    /// A claim that grows waits for the node, which does not come by itself.
    ResizeWaits,
    /// The storage waits for a first consumer.
    WaitForFirstConsumer,
    /// The webhooks give no answer about the object.
    NoAnswer,
    /// The webhook fills in more of the machine than it does at first, as that of a newer KubeVirt.
    WebhookAdds,
    /// The webhook refuses the machine with these words.
    Refuse(String),
    /// The webhook refuses the disk with these words.
    RefuseDisk(String),
}

impl Fault {
    /// One of each kind, with this value where there is one.
    fn every(value: &str) -> [Self; 24] {
        let value = || value.to_owned();
        [
            Self::Unseen,
            Self::DiskUnseen,
            Self::PrintableStatus(value()),
            Self::VmFinalizerStays,
            Self::VmiFinalizerStays,
            Self::NodeLost,
            Self::Paused,
            Self::AgentConnected,
            Self::GuestShutdown,
            Self::GuestCrash,
            Self::Migrate,
            Self::VirtctlStop,
            Self::CloneStuck,
            Self::CloneRestarts,
            Self::CloneFailed,
            Self::DiskPhase(value()),
            Self::DiskFinalizerStays,
            Self::NeverBound,
            Self::ResizeWaits,
            Self::WaitForFirstConsumer,
            Self::NoAnswer,
            Self::WebhookAdds,
            Self::Refuse(value()),
            Self::RefuseDisk(value()),
        ]
    }

    /// Whether it happens once and is then over.
    pub(super) fn once(&self) -> bool {
        matches!(
            self,
            Self::GuestShutdown | Self::GuestCrash | Self::Migrate | Self::VirtctlStop
        )
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Unseen => "unseen",
            Self::DiskUnseen => "disk-unseen",
            Self::PrintableStatus(_) => "printable-status",
            Self::VmFinalizerStays => "vm-finalizer-stays",
            Self::VmiFinalizerStays => "vmi-finalizer-stays",
            Self::NodeLost => "node-lost",
            Self::Paused => "paused",
            Self::AgentConnected => "agent-connected",
            Self::GuestShutdown => "guest-shutdown",
            Self::GuestCrash => "guest-crash",
            Self::Migrate => "migrate",
            Self::VirtctlStop => "virtctl-stop",
            Self::CloneStuck => "clone-stuck",
            Self::CloneRestarts => "clone-restarts",
            Self::CloneFailed => "clone-failed",
            Self::DiskPhase(_) => "disk-phase",
            Self::DiskFinalizerStays => "disk-finalizer-stays",
            Self::NeverBound => "never-bound",
            Self::ResizeWaits => "resize-waits",
            Self::WaitForFirstConsumer => "wait-for-first-consumer",
            Self::NoAnswer => "no-answer",
            Self::WebhookAdds => "webhook-adds",
            Self::Refuse(_) => "refuse",
            Self::RefuseDisk(_) => "refuse-disk",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PrintableStatus(text)
            | Self::DiskPhase(text)
            | Self::Refuse(text)
            | Self::RefuseDisk(text) => {
                write!(f, "{}={text}", self.word())
            }
            _ => f.write_str(self.word()),
        }
    }
}

/// A word that names no fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFault(pub String);

impl fmt::Display for UnknownFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} names no fault that the stand-ins know", self.0)
    }
}

impl std::error::Error for UnknownFault {}

impl FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(text: &str) -> Result<Self, UnknownFault> {
        let (word, value) = text.trim().split_once('=').unwrap_or((text.trim(), ""));
        let found = Self::every(value)
            .into_iter()
            .find(|fault| fault.word() == word);
        found.ok_or_else(|| UnknownFault(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_reads_back_as_it_was_written() {
        for fault in Fault::every("what it says") {
            assert_eq!(fault.to_string().parse(), Ok(fault));
        }
        assert!("nonsense".parse::<Fault>().is_err());
    }

    #[test]
    fn the_table_for_people_has_a_row_for_each_word_and_no_other() {
        let page = include_str!("../../../../docs/reference/stand-ins.md");
        // The first part; what nodes do stands in the next.
        let table = page.split("\n## ").next().unwrap();
        let rows = table.lines().filter_map(|line| line.strip_prefix("| `"));
        let listed: Vec<&str> = rows
            .map(|row| row.split(['`', '=']).next().unwrap())
            .collect();
        let words = Fault::every("").map(|fault| fault.word());
        assert_eq!(listed, words);
    }
}
