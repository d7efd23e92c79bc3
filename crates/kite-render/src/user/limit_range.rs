//! A LimitRange, only where the quota would otherwise refuse KubeVirt's and CDI's pods (rule U-4).
//!
//! A quota on a resource refuses every pod that does not say how much of it it
//! wants. For cpu and memory KubeVirt and CDI always say so. Only
//! `defaultRequest` is set: a `default`, `min` or `max` would limit or refuse
//! launcher pods.

use k8s_openapi::api::core::v1::{LimitRange, LimitRangeItem, LimitRangeSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::meta::{Component, bound_to_user};
use crate::validate::ValidUser;

/// Name of the LimitRange.
pub const LIMIT_RANGE: &str = "kite-defaults";

/// Quota keys that some container of KubeVirt's or CDI's leaves open.
const OPEN_KEYS: [&str; 2] = ["ephemeral-storage", "requests.ephemeral-storage"];
/// What KubeVirt itself requests for a launcher's main container; its other containers need less.
const EPHEMERAL_STORAGE: &str = "50M";

/// The LimitRange that the user's quota needs, if it needs one.
pub fn limit_range(user: &ValidUser) -> Option<LimitRange> {
    let hard = &user.quota.as_ref()?.hard;
    if !OPEN_KEYS.iter().any(|key| hard.contains_key(*key)) {
        return None;
    }
    let item = LimitRangeItem {
        type_: "Container".to_owned(),
        default_request: Some(
            [(
                "ephemeral-storage".to_owned(),
                Quantity(EPHEMERAL_STORAGE.to_owned()),
            )]
            .into(),
        ),
        ..LimitRangeItem::default()
    };
    Some(LimitRange {
        metadata: bound_to_user(
            &user.owner,
            &user.namespace,
            LIMIT_RANGE.to_owned(),
            Component::Quota,
        ),
        spec: Some(LimitRangeSpec { limits: vec![item] }),
    })
}
