//! kite-vm makes a machine exist, or cease to: its disk, login, VirtualMachine,
//! Service, Ingress and host name, in that order and back.
//!
//! It does not tell what the machine is doing; that is kite-vm-status's. Its
//! parts are public for the tests and the manifest generator, not for others.

pub mod apply;
pub mod controller;
pub mod observe;
pub mod plan;
pub mod reconcile;
pub mod status;
pub mod validate;

pub use controller::{KiteVm, RULES};
pub use reconcile::standstill::METRICS;
