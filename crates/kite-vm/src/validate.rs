//! Step 2: whether the specification can be carried out, here and now (rule V-5).
//!
//! Pure. The shape of each field is judged by `kite-render`; here it is about
//! what stands around it: the namespace, the image. The host name is judged
//! where it is claimed, because only the API server can decide between two.

use kite_render::validate::ValidMachine;

use crate::observe::{Observed, UsersView};

/// Why a machine is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// One CamelCase word.
    pub reason: &'static str,
    /// What is wrong and what to do.
    pub message: String,
    /// Whether a person has to act; otherwise it is a matter of waiting.
    pub stalled: bool,
}

impl Refused {
    /// A person has to act.
    pub fn stalled(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            stalled: true,
        }
    }

    /// It will come by itself.
    pub fn waiting(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            stalled: false,
        }
    }
}

/// The specification as types that cannot be wrong, or the first reason in the way.
pub fn accept(seen: &Observed) -> Result<ValidMachine, Refused> {
    let valid = ValidMachine::parse(&seen.machine, &seen.platform)
        .map_err(|problems| Refused::stalled("InvalidSpec", problems.to_string()))?;
    namespace(seen)?;
    // The image matters until the disk was begun; a machine whose image was withdrawn lives on.
    if seen.own_disk().is_none() && seen.own_claim().is_none() && seen.status().claim_uid.is_none()
    {
        image(seen)?;
    }
    Ok(valid)
}

/// Rule V-6. A machine that exists keeps running whatever becomes of its user.
fn namespace(seen: &Observed) -> Result<(), Refused> {
    if seen.own_vm().is_some() {
        return Ok(());
    }
    let name = &seen.key.namespace;
    match &seen.namespace.users {
        UsersView::NotReady(user) => Err(Refused::waiting(
            "NamespaceNotReady",
            format!(
                "the isolation and quota of namespace {name} are not in force yet; see kubectl describe kiteuser {user}"
            ),
        )),
        UsersView::None if seen.namespace.bound_to.is_some() || seen.namespace.orphaned => {
            Err(Refused::stalled(
                "NamespaceOrphaned",
                format!(
                    "the KiteUser of namespace {name} is gone, so no new machine starts there; an administrator makes the KiteUser again, or the machine is made elsewhere"
                ),
            ))
        }
        UsersView::None if seen.platform.require_user => Err(Refused::stalled(
            "UserRequired",
            format!(
                "no KiteUser has namespace {name}, and this platform requires one; ask an administrator for a KiteUser"
            ),
        )),
        UsersView::Ready | UsersView::None => Ok(()),
    }
}

/// Rule V-10. An image that is not published gets the same answer as one that is not there.
fn image(seen: &Observed) -> Result<(), Refused> {
    let name = &seen.machine.spec.image;
    if !seen.cdi {
        return Err(Refused::waiting(
            kite_api::condition::DEPENDENCY_MISSING,
            "this cluster does not serve CDI's DataVolume and DataSource; the machine starts when CDI is installed",
        ));
    }
    match &seen.image {
        None => Err(Refused::stalled(
            "ImageNotFound",
            format!(
                "no image {name} is published; choose one that is, or ask an administrator to publish it. The machine starts when it appears"
            ),
        )),
        Some(image) if !image.is_ready() => Err(Refused::waiting(
            "ImageNotReady",
            format!("image {name} is not ready yet; the machine starts when it is"),
        )),
        Some(_) => Ok(()),
    }
}
