//! Takes away all machines between two rounds, so that each begins on the same ground.
//!
//! Through the store, because a round through the API server would take longer than what is
//! measured: ten thousand machines are a hundred thousand objects. Users stay.

use anyhow::Result;

use crate::ground::Ground;
use crate::load::Name;
use crate::store::Store;

/// Where the API server keeps what belongs to machines, by namespace.
const OF_MACHINES: [&str; 11] = [
    "kite.dev/kitevirtualmachines",
    "kubevirt.io/virtualmachines",
    "kubevirt.io/virtualmachineinstances",
    "cdi.kubevirt.io/datavolumes",
    "persistentvolumeclaims",
    "services/specs",
    "services/endpoints",
    "endpointslices",
    "pods",
    "secrets",
    "events",
];

/// How the namespaces of users begin, see [`crate::load::user_name`].
const USERS: &str = "user-";

/// Removes all machines of these namespaces and what was made for them, and gives the space back.
pub async fn machines(ground: &Ground, names: &[Name]) -> Result<()> {
    let store = Store::of(&ground.cluster.control_plane)?;
    let mut namespaces: Vec<&str> = names.iter().map(|name| &*name.namespace).collect();
    namespaces.dedup();
    for namespace in namespaces {
        for kind in OF_MACHINES {
            let prefix = format!("/registry/{kind}/{namespace}/");
            store.remove_under(&prefix).await?;
        }
    }
    // Volumes are in no namespace, but name their claims; that of the image stays.
    for volume in store.under("/registry/persistentvolumes/").await? {
        let mut parts = volume.value.windows(USERS.len());
        if parts.any(|part| part == USERS.as_bytes()) {
            store.remove(&volume.key).await?;
        }
    }
    store.compact().await?;
    store.defragment().await
}
