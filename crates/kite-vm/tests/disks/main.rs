//! Disks and deletion, with kite-vm as the only controller: turns at an image,
//! growth, refusals, deletions that stand still, successors of the same name.
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "../common/mod.rs"]
mod common;

mod blocked;
mod clones;
mod growth;
mod lost;
mod refused;
mod successors;
