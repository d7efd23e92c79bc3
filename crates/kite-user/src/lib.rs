//! The `kite-user` controller: makes a user's namespace safe to use, keeps it so,
//! and takes apart in a safe order what it made.
//!
//! It never deletes a Namespace, and it never takes the isolation away from a
//! namespace in which a machine may run. Its parts are public so that tests and
//! the manifest generator can use them; it is not a library for others.

pub mod apply;
pub mod controller;
pub mod observe;
pub mod plan;
pub mod reconcile;
pub mod status;

use kite_api::labels::Controller;
use kite_runtime::{Process, Program};

pub use controller::{Flags, RULES};

/// The process.
pub struct KiteUserProgram;

impl Program for KiteUserProgram {
    const CONTROLLER: Controller = Controller::User;
    const ABOUT: &'static str = "Makes a user's namespace safe to use";
    type Flags = Flags;

    async fn run(process: Process, flags: Flags) -> anyhow::Result<()> {
        controller::run(process, flags).await
    }
}
