//! What virt-controller knows of a machine's disks: claims and DataVolumes.
//!
//! Pure views; nothing is written here.

use kube::api::DynamicObject;
use serde_json::Value;

use crate::stand_ins::cache::Key;
use crate::stand_ins::names::Res;
use crate::stand_ins::value::{list, status, text};
use crate::stand_ins::world::World;

/// One volume of a machine that stands on a claim.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    /// Name of the claim.
    pub(super) claim: String,
    /// Whether the claim exists.
    pub(super) there: bool,
    /// Whether it is bound.
    pub(super) bound: bool,
    /// Phase of the DataVolume of that name, if there is one.
    pub(super) data_volume: Option<String>,
    /// Whether the DataVolume was refused by a quota.
    pub(super) over_quota: bool,
}

impl Disk {
    /// Whether a machine may be started on it.
    pub(super) fn ready(&self) -> bool {
        self.there && !self.filling()
    }

    /// Whether the DataVolume is still being filled.
    pub(super) fn filling(&self) -> bool {
        let phase = self.data_volume.as_deref();
        phase.is_some_and(|phase| !matches!(phase, "Succeeded" | "PendingPopulation" | WAITS))
    }

    /// Whether virt-controller has to make a consumer of its own first. A claim
    /// that waits for its population gets the launcher itself.
    pub(super) fn wants_consumer(&self) -> bool {
        self.data_volume.as_deref() == Some(WAITS)
    }

    /// Whether there is nothing more to come from the DataVolume.
    pub(super) fn filled(&self) -> bool {
        let phase = self.data_volume.as_deref();
        phase.is_none_or(|phase| phase == "Succeeded")
    }

    /// Whether the DataVolume failed.
    pub(super) fn failed(&self) -> bool {
        self.over_quota || self.data_volume.as_deref() == Some("Failed")
    }
}

/// The phase in which storage waits for a first consumer.
const WAITS: &str = "WaitForFirstConsumer";

/// Names of the claims that a machine's or instance's volumes stand on; the
/// list of volumes is at `pointer`.
pub(in crate::stand_ins) fn claims(object: &Value, pointer: &str) -> Vec<String> {
    let names = list(object, pointer).iter().map(|volume| {
        let data_volume = text(volume, "/dataVolume/name");
        if data_volume.is_empty() {
            text(volume, "/persistentVolumeClaim/claimName")
        } else {
            data_volume
        }
    });
    names
        .filter(|name| !name.is_empty())
        .map(ToOwned::to_owned)
        .collect()
}

/// What is known of each of these claims.
pub(super) fn disks(world: &World, namespace: &str, claims: Vec<String>) -> Vec<Disk> {
    let look = |claim: String| {
        let key = Key::new(namespace, claim.clone());
        let found = world.get(Res::Claim, &key);
        let data_volume = world.get(Res::DataVolume, &key);
        Disk {
            claim,
            there: found.is_some(),
            bound: found.is_some_and(|found| text(&found.data, "/status/phase") == "Bound"),
            over_quota: data_volume.as_deref().is_some_and(over_quota),
            data_volume: data_volume.map(|found| text(&found.data, "/status/phase").to_owned()),
        }
    };
    claims.into_iter().map(look).collect()
}

fn over_quota(data_volume: &DynamicObject) -> bool {
    list(&status(data_volume), "/conditions")
        .iter()
        .any(|condition| text(condition, "/reason") == "ErrExceededQuota")
}
