//! Step 4: write what differs.
//!
//! The order: login Secrets, disk, VirtualMachine, Service, host name. A missing
//! Secret blocks a start, so they come first; a VirtualMachine that is made
//! before its claim exists is called ErrorPvcNotFound and ErrorUnschedulable by
//! KubeVirt for the whole clone, so it waits for the claim (rule V-17). Service
//! and Ingress depend on neither and do not wait. One failure does not stop the
//! others; all are reported.

pub mod claim;
pub mod delete;
pub mod disk;
pub mod domain;
pub mod login;
pub mod machine;
pub mod power;
pub mod previous;

use std::time::Duration;

use kite_api::condition::{DEPENDENCY_MISSING, NAME_CONFLICT};
use kite_render::compare::Compare;
use kite_render::validate::ValidMachine;
use kite_runtime::apply::{Object, Place, WriteError};
use kite_runtime::{Class, Failure, Refusal};
use serde::Serialize;

use crate::apply::login::Login;
use crate::apply::power::Switch;
use crate::observe::Observed;
use crate::plan::power::{Decision, Down};
use crate::plan::{self, Disk};
use crate::reconcile::VmPass;

/// Why a child is not as wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// One CamelCase word.
    pub reason: &'static str,
    /// What is wrong and what will help.
    pub message: String,
    /// Whether a person has to act.
    pub stalled: bool,
    /// When to try again.
    pub class: Class,
}

impl Trouble {
    /// Something that only a person can mend. A watch tells when it is mended.
    pub fn stalled(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            stalled: true,
            class: Class::Invalid,
        }
    }

    /// Something that is not there yet and that no watch tells of.
    pub fn waiting(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            stalled: false,
            class: Class::NotReady,
        }
    }
}

impl Trouble {
    /// Leaves of the words of an error that passes by itself what does not change from one try to
    /// the next: no address, no time (rule C-4).
    pub fn settle(&mut self) {
        /// What the API server says when a webhook does not answer; the name follows.
        const WEBHOOK: &str = "failed calling webhook \"";
        if !matches!(self.class, Class::Transient | Class::Conflict) {
            return;
        }
        let what = self.message.split(": ").next().unwrap_or_default();
        let webhook = self
            .message
            .split_once(WEBHOOK)
            .and_then(|(_, rest)| rest.split('"').next());
        self.message = match webhook {
            Some(webhook) => format!(
                "{what}: the admission webhook {webhook} does not answer; it is tried again until it does, and an administrator looks at what serves it"
            ),
            None => format!(
                "{what}: the API server answers with errors; it is tried again until that passes, and the log of kite-vm has the answers"
            ),
        };
    }
}

impl From<WriteError> for Trouble {
    fn from(error: WriteError) -> Self {
        let message = error.to_string();
        let class = error.class();
        let (reason, stalled) = match (&error, error.refusal()) {
            (WriteError::NameConflict { .. }, _) => (NAME_CONFLICT, true),
            (WriteError::Terminating { .. }, _) => ("WaitingForDeletion", false),
            (_, Some(Refusal::Quota)) => ("QuotaExceeded", false),
            (_, Some(Refusal::Webhook | Refusal::Invalid)) => ("Rejected", true),
            (_, Some(Refusal::KindMissing)) => (DEPENDENCY_MISSING, false),
            (_, Some(Refusal::Forbidden)) => ("Forbidden", true),
            _ => ("ApplyFailed", false),
        };
        Self {
            reason,
            message,
            stalled,
            class,
        }
    }
}

/// What came of one pass over the children.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each says whether one child is there; they are facts side by side, not a state"
)]
#[derive(Clone, Debug, Default)]
pub struct Applied {
    /// UID of the disk's claim.
    pub claim_uid: Option<String>,
    /// The class of the disk.
    pub storage_class: Option<String>,
    /// The DataVolume is there.
    pub disk: bool,
    /// The cloud-init Secret is there.
    pub login: bool,
    /// A key pair was generated and is there.
    pub generated_key: bool,
    /// The VirtualMachine is there and as wanted.
    pub machine: bool,
    /// The Service is there and as wanted.
    pub service: bool,
    /// The host name.
    pub domain: domain::Domain,
    /// What is not as wanted, most telling first.
    pub troubles: Vec<Trouble>,
    /// The DataVolume was made and its claim is still to come.
    pub waits_for_claim: bool,
    /// The guest goes down, and is started again when it is gone.
    pub waits_for_shutdown: bool,
    /// The machine is to run and stays down all the same.
    pub stays_down: Option<Down>,
    /// When to look again although nothing may have changed.
    pub again: Option<Duration>,
}

impl Applied {
    fn note<T>(&mut self, result: Result<T, Trouble>) -> Option<T> {
        result.map_err(|trouble| self.troubles.push(trouble)).ok()
    }
}

/// Makes sure that everything a valid machine needs is there.
pub async fn everything(pass: &VmPass, seen: &Observed, machine: &ValidMachine) -> Applied {
    if let Some(kind) = previous::in_the_way(seen) {
        return previous::nothing_yet(seen, kind);
    }
    let mut applied = Applied::default();
    let switch = power::switch(pass, seen).await;
    let login = login::ensure(pass, seen, machine, switch.starts(seen)).await;
    let login = applied.note(login);
    applied.login = login.is_some();
    applied.generated_key = login.is_some() && machine.ssh_keys.is_empty();

    let class = plan::storage_class(seen, machine);
    let disk = if login.is_some() || seen.own_disk().is_some() {
        disk::ensure(pass, seen, machine, class.as_ref(), &mut applied).await
    } else {
        plan::disk(seen)
    };
    applied.storage_class = plan::recorded_class(seen).or_else(|| class.map(|c| c.to_string()));

    let service = machine::service(pass, seen);
    let domain = domain::ensure(pass, seen, machine);
    let vm = the_machine(pass, seen, machine, &disk, login.as_ref(), &switch);
    let (vm, service, domain) = futures::join!(vm, service, domain);
    applied.machine = applied.note(vm).unwrap_or_default();
    applied.service = applied.note(service).is_some();
    applied.domain = domain;
    power::conclude(pass, seen, &switch, &mut applied).await;
    if let Some(trouble) = applied.domain.trouble.clone() {
        applied.troubles.push(trouble);
    }
    applied
}

/// The VirtualMachine, as far as its disk and login allow. True when it is there and as wanted.
async fn the_machine(
    pass: &VmPass,
    seen: &Observed,
    machine: &ValidMachine,
    disk: &Disk,
    login: Option<&Login>,
    switch: &Switch,
) -> Result<bool, Trouble> {
    // A machine that exists is kept even while its disk or login is in trouble.
    let exists = seen.own_vm().is_some();
    match login {
        Some(login) if exists || matches!(disk, Disk::Present { .. }) => {
            machine::vm(pass, seen, machine, login, switch).await?;
            Ok(true)
        }
        None if exists => power::alone(pass, seen, switch).await,
        _ => Ok(false),
    }
}

/// Keeps power and nothing else, for a machine whose specification is refused:
/// a bad edit must not lock its owner out of switching off (rule V-5).
pub async fn power_only(pass: &VmPass, seen: &Observed) -> Applied {
    let mut applied = Applied {
        disk: seen.status().data_volume_name.is_some(),
        login: seen.status().cloud_init_secret_name.is_some(),
        service: seen
            .service
            .as_ref()
            .is_some_and(|s| seen.owns(&s.metadata)),
        domain: domain::kept(seen),
        storage_class: plan::recorded_class(seen),
        ..Applied::default()
    };
    let switch = power::switch(pass, seen).await;
    if switch.decision == Decision::Held {
        let known = disk::known(seen, &plan::disk(seen), &mut applied);
        applied.note(known);
    }
    let vm = power::alone(pass, seen, &switch).await;
    applied.machine = applied.note(vm).unwrap_or_default();
    power::conclude(pass, seen, &switch, &mut applied).await;
    applied
}

/// Makes sure that a child is there and as wanted, and takes away what others added to it and
/// what changes where it leads (rules C-7 (e), E-1).
async fn exactly<K: Object + Compare + Serialize>(
    pass: &VmPass,
    seen: &Observed,
    place: &Place<'_, K>,
    wanted: &K,
) -> Result<(), WriteError> {
    let same = |live: &K| wanted.differences(live).is_empty();
    let ensured = pass
        .writer
        .ensure(place, wanted, |m| seen.owns(m), same)
        .await?;
    let live = ensured.object();
    let additions = wanted.additions(live);
    if !additions.is_empty() {
        let pointers = additions.into_iter().map(|a| a.pointer);
        pass.writer
            .remove_paths(place, live.as_ref(), pointers)
            .await?;
    }
    Ok(())
}
