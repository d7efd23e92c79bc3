//! How a Kite process lives: settings, logs, client, lease, streams, writes,
//! metrics, health, events, shutdown.
//!
//! All six controllers use all of it. It knows nothing about users or machines:
//! what should exist and what to say about it is each controller's own.

pub mod apply;
mod as_json;
pub mod cache;
pub mod client;
pub mod clock;
pub mod errors;
pub mod events;
pub mod feed;
mod finalizer;
pub mod health;
mod leadership;
pub mod lease;
pub mod metrics;
pub mod mirror;
mod outdated;
pub mod pass;
pub mod patience;
pub mod process;
pub mod rbac;
mod retry_after;
mod server;
pub mod settings;
pub mod shared_roles;
pub mod since;
mod write_error;

pub use as_json::AsJson;
pub use cache::{Availability, By, Cache, Key};
pub use errors::{Class, Failure, Refusal};
pub use feed::{Feeds, Watch};
pub use mimalloc::MiMalloc as Allocator;
pub use pass::{Next, Pass};
pub use process::{Process, Program, main};
