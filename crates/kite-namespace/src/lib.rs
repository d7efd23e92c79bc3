//! The `kite-namespace` controller: removes a namespace that no KiteUser needs
//! any more, carefully.
//!
//! It makes nothing, and it writes no KiteUser: a deleted namespace is made anew
//! by `kite-user` if somebody needs it. Its parts are public so that tests and
//! the manifest generator can use them; it is not a library for others.

pub mod apply;
pub mod controller;
pub mod observe;
pub mod plan;
pub mod reconcile;

use kite_api::labels::Controller;
use kite_runtime::{Process, Program};

pub use controller::{Flags, RULES};
pub use reconcile::measure::METRICS;

/// The process.
pub struct KiteNamespaceProgram;

impl Program for KiteNamespaceProgram {
    const CONTROLLER: Controller = Controller::Namespace;
    const ABOUT: &'static str = "Removes a namespace that nobody needs, carefully";
    type Flags = Flags;

    async fn run(process: Process, flags: Flags) -> anyhow::Result<()> {
        controller::run(process, flags).await
    }
}
