//! What kite-vm-status says, with its watches and its clock played by the test: no API server
//! is needed to know what should stand.

#![allow(clippy::unwrap_used, clippy::panic, unreachable_pub, missing_docs)]

mod blocked;
mod common;
mod life;
mod mirror;
mod news;
mod order;
mod recorded;
mod stop;
mod table;
mod totality;
