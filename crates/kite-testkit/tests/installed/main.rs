//! Kite in pods that Helm installed: what an administrator does with releases,
//! and what users keep through it.
//!
//! Everything is real but the nodes and KubeVirt. What the charts render to is
//! told elsewhere.

mod alone;
mod availability;
mod monitoring;
mod order;
mod paused;
mod release;
mod removal;
mod upgrade;

/// Two cores carry two installations at a time, and one where take-overs are measured: such a
/// scenario holds it for writing, the others for reading.
static TURN: tokio::sync::RwLock<()> = tokio::sync::RwLock::const_new(());
