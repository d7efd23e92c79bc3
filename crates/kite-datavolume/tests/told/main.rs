//! What is told of a disk, when, and how often.

#![allow(clippy::unwrap_used, clippy::panic)]

mod found;
mod growth;
mod looks;
mod player;
mod ticks;
mod total;
mod troubles;
