//! What holds a deletion up (rule V-21). Pure; whether it has done so for long
//! enough to be told is `standstill`'s. Nothing is ever taken off by force.

use std::fmt;

use kite_api::labels::VM_UID;
use kube::core::ObjectMeta;

use crate::observe::Observed;

/// An object that is still there although it should go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocker {
    /// Its kind.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// What holds it.
    pub finalizers: Vec<String>,
}

impl Blocker {
    fn of(kind: &'static str, meta: &ObjectMeta) -> Self {
        Self {
            kind,
            name: meta.name.clone().unwrap_or_default(),
            finalizers: meta.finalizers.clone().unwrap_or_default(),
        }
    }
}

impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)?;
        match self.finalizers.as_slice() {
            [] => f.write_str(" is still there"),
            [one] => write!(f, " is held by the finalizer {one}"),
            many => write!(f, " is held by the finalizers {}", many.join(", ")),
        }
    }
}

/// The machine's children that were deleted and are still there, the one that others wait for first.
pub fn blockers(seen: &Observed) -> Vec<Blocker> {
    let going = |meta: &&ObjectMeta| {
        meta.deletion_timestamp.is_some() && (seen.binds(meta) || seen.owns(meta))
    };
    let is_guest = |meta: &&ObjectMeta| {
        let label = meta.labels.as_ref().and_then(|l| l.get(VM_UID));
        label.is_some_and(|uid| uid == seen.owner.uid.as_str())
    };
    let children = [
        ("Ingress", seen.ingress.as_ref().map(|o| &o.metadata)),
        ("Service", seen.service.as_ref().map(|o| &o.metadata)),
        ("VirtualMachine", seen.vm.as_ref().map(|o| &o.metadata)),
        (
            "PersistentVolumeClaim",
            seen.claim.as_ref().map(|o| &o.metadata),
        ),
        ("DataVolume", seen.disk.as_ref().map(|o| &o.metadata)),
    ];
    let guest = seen.vmi.as_ref().map(|o| &o.metadata).filter(is_guest);
    guest
        .map(|meta| Blocker::of("VirtualMachineInstance", meta))
        .into_iter()
        .chain(
            children
                .into_iter()
                .filter_map(|(kind, meta)| meta.filter(going).map(|meta| Blocker::of(kind, meta))),
        )
        .collect()
}

/// The words about them, which change only when they do.
pub fn message(blockers: &[Blocker]) -> String {
    let all: Vec<String> = blockers.iter().map(ToString::to_string).collect();
    format!(
        "{}; the deletion goes on by itself when that is gone. Whoever put a finalizer there takes it off: see whether its controller runs. Kite removes none that is not its own",
        all.join("; ")
    )
}
