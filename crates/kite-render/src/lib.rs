//! From what users and administrators wrote to the objects that should exist.
//!
//! Everything here is pure: no client, no clock, no randomness (but for
//! [`machine::KeyPair::generate`], which kite-vm calls and nothing here does),
//! and the same input always gives the same bytes. First [`validate`] turns a
//! specification into types that cannot be wrong; after it no raw text of a user
//! is left. Then [`user`] and [`machine`] render one child each per file, as
//! typed objects. [`compare`] tells whether a live object holds all of it.
//!
//! Nothing here decides whether a child should exist; that is each controller's plan.

pub mod compare;
pub mod hash;
pub mod machine;
pub mod meta;
pub mod platform;
pub mod user;
pub mod validate;
