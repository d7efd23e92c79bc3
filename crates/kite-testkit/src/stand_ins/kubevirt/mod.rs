//! The stand-in for KubeVirt's virt-controller and virt-handler.
//!
//! It writes machines, instances and launcher Pods as the real ones do; no
//! guest runs anywhere.

pub(super) mod disks;
mod launcher;
mod live_update;
mod phases;
mod power;
mod secrets;
pub(super) mod vm;
mod vm_status;
pub(super) mod vmi;
mod waiting;

pub(super) use launcher::{node, pod_vmi};
