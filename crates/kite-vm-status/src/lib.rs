//! kite-vm-status tells what a machine is really doing: phase, power, node,
//! addresses, and whether it is what was asked for.
//!
//! It never writes a specification and never deletes anything. Its parts are
//! public for the tests and the manifest generator, not for others.

pub mod controller;
pub mod observe;
pub mod reconcile;
pub mod status;

pub use controller::{KiteVmStatus, RULES};
