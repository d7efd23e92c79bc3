//! kite-datavolume tells how a machine's disk is coming along: CDI's phase and
//! progress, and what it means when nothing moves.
//!
//! It makes and deletes nothing; a disk that is lost is reported and stays lost
//! until a person decides. Its parts are public for the tests and the manifest
//! generator, not for others.

pub mod controller;
pub mod observe;
pub mod reconcile;
pub mod status;

pub use controller::{KiteDataVolume, RULES};
