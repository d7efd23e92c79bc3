//! Where each reason shows, what it means where the code has no one sentence for
//! it, and what helps. The words and sentences themselves come from the code.

mod told;
mod users;
mod vm;

use kite_api::labels::Controller;

/// One reason.
pub(super) struct Reason {
    /// The word.
    pub(super) word: &'static str,
    /// The conditions that give it, or that it is an event.
    pub(super) place: &'static str,
    /// Its meaning, where no sentence stands beside it in the code.
    pub(super) means: &'static str,
    /// What a person can do.
    pub(super) remedy: &'static str,
}

const fn r(
    word: &'static str,
    place: &'static str,
    means: &'static str,
    remedy: &'static str,
) -> Reason {
    Reason {
        word,
        place,
        means,
        remedy,
    }
}

const ACCEPTED: &str = "`Accepted`, `Ready`, `Stalled` or `Reconciling`";
const APPLIED: &str = "`ResourcesApplied`, `Ready`, `Stalled` or `Reconciling`";
const DELETING: &str = "`Deleting`";
const DISK: &str = "`DiskReady`";
const DOMAIN: &str = "`DomainReady`";
const POWER: &str = "`PowerInSync`";
const READY: &str = "`Ready`";
const SERVICE: &str = "`ServiceReady`";
const LAST_STOP: &str = "`status.lastStop`, event";
const EVENT: &str = "event";
const USER: &str = "`Ready`, the condition of the part, `Stalled` or `Reconciling`";
const NAMESPACE: &str = "annotation `kite.dev/deletion-held`, event";

const NOTHING: &str = "Nothing; this is as it should be.";
const WAIT: &str = "Wait; it goes on by itself.";
const SERVER: &str = "Read the server's own words in the message, and change what they name.";
const INSTALL: &str = "Install KubeVirt and CDI; nothing has to be done again afterwards.";

/// The reasons of a controller, sorted by word.
pub(super) const fn of(controller: Controller) -> &'static [Reason] {
    match controller {
        Controller::User => users::USERS,
        Controller::Namespace => users::NAMESPACES,
        Controller::Vm => vm::VM,
        Controller::VmStatus => told::VM_STATUS,
        Controller::Service => told::SERVICES,
        Controller::DataVolume => told::DATAVOLUME,
    }
}
