//! kite-service tells whether a machine can be reached: whether its Service is
//! as declared, where it is, and whether anything answers behind it.
//!
//! It makes, changes and deletes no Service; what it reports, kite-vm repairs.
//! Its parts are public for the tests and the manifest generator, not for others.

pub mod controller;
pub mod observe;
pub mod reconcile;
pub mod status;

pub use controller::{KiteService, RULES};
