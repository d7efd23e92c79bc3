//! The stand-in for CDI's cdi-controller, and for the storage driver below it.
//!
//! It writes DataVolumes, their claims and volumes as the real ones do; no byte
//! is copied anywhere. Worker Pods are not made.

mod claim;
pub(super) mod claims;
mod clone;
pub(super) mod data_source;
pub(super) mod data_volume;
pub(super) mod images;
