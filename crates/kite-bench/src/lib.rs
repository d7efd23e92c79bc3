//! What Kite costs, measured on a real control plane: requests, time beside a bare client,
//! memory, processor time.
//!
//! Counts come from the API server's audit log, memory and processor time from the kernel; no
//! contestant measures itself. Nothing here is shipped, and nothing here judges: a figure is
//! printed with what it was measured against, and the tests of the counts are elsewhere.

#![allow(
    clippy::print_stdout,
    reason = "a measuring program talks to its terminal"
)]

pub mod bare;
pub mod bystander;
pub mod clean;
pub mod contest;
pub mod delay;
pub mod ground;
pub mod load;
pub mod mould;
pub mod numbers;
pub mod onlooker;
pub mod pictures;
pub mod report;
pub mod scenario;
pub mod settled;
pub mod store;
pub mod surroundings;
pub mod usage;
