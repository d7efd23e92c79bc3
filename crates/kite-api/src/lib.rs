//! What users and controllers agree on: Kite's kinds, the names on its objects,
//! the types of its conditions and the arithmetic of quantities.
//!
//! There is no client, no clock and no async code here, so that every other
//! crate, a command-line tool or a web page can depend on it. It does not judge
//! a specification either: what the API server can check stands in the schema,
//! what only a controller can check is in `kite-render`.

#![allow(
    clippy::duplicated_attributes,
    reason = "each printer column of a kind is an attribute of the same name"
)]
#![allow(
    unreachable_pub,
    reason = "the schema derive repeats each struct inside a function, where its pub reaches nobody"
)]

pub mod acknowledge;
pub mod claim;
pub mod condition;
pub mod crds;
pub mod labels;
pub mod machine;
pub mod ownership;
pub mod platform;
pub mod quantity;
pub mod user;

pub use claim::{KiteHostClaim, KiteHostClaimSpec};
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
pub use machine::{KiteVirtualMachine, KiteVirtualMachineSpec, KiteVirtualMachineStatus, Phase};
pub use platform::{KitePlatform, KitePlatformSpec, KitePlatformStatus};
pub use quantity::Quantity;
pub use user::{KiteUser, KiteUserSpec, KiteUserStatus};

/// The API group of all of Kite's kinds.
pub const GROUP: &str = "kite.dev";

/// The one version that is served and stored.
pub const VERSION: &str = "v1alpha1";
