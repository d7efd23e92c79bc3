//! kite-user as a real process on a real control plane. All scenarios share both
//! and keep out of each other's way by name.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout
)]
#![allow(missing_docs, unreachable_pub, reason = "a test binary has no users")]

#[path = "../support/mod.rs"]
mod support;

mod crowd;
mod fits;
mod going;
mod life;
mod namespaces;
mod refusals;
mod repair;
mod tenants;
