//! What Kite's tests and `cargo xtask` need to run Kite for real: an etcd, a
//! kube-apiserver and a kube-controller-manager as plain processes, Kite's own
//! binaries as processes under generated rights, and readers of what happened.
//!
//! Nothing here is shipped, and nothing here imitates the API server.

pub mod pki;
pub mod process;
pub mod programs;
pub mod stand_ins;
