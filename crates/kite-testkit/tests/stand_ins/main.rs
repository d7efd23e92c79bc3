//! The stand-ins against the recordings of the real controllers, and against
//! what tests of Kite ask of them.

mod clone;
mod faults;
mod harness;
mod lives;
mod recorded;
mod refusals;
