//! What Kite's tests and `cargo xtask` need to run Kite for real: an etcd, a
//! kube-apiserver and a kube-controller-manager as plain processes, Kite's own
//! binaries as processes under generated rights, and readers of what happened.
//!
//! Nothing here is shipped, and nothing here imitates the API server.

pub mod audit;
pub mod by_hand;
pub mod bystander;
pub mod cluster;
pub mod command_line;
pub mod control_plane;
pub mod counted;
pub mod fault_layer;
mod filter;
pub mod fit;
pub mod followed;
pub mod helm;
pub mod http_get;
pub mod identity;
pub mod install;
pub mod installed;
pub mod kite_process;
pub mod kstatus;
pub mod kubeconfig;
pub mod kubectl;
pub mod mirror_scene;
pub mod netpol;
pub mod node_agent;
pub mod pki;
pub mod place;
pub mod process;
pub mod programs;
pub mod queries;
pub mod recorder;
pub mod snapshot;
pub mod stand_ins;
pub mod tenant;
pub mod wait;

pub use cluster::{Cluster, ClusterOptions, shared_cluster};
pub use control_plane::{ControlPlane, Options, ServerVersion, shared};
pub use identity::Identity;
pub use kite_process::{KiteOptions, KiteProcess};
pub use node_agent::{AgentOptions, NodeAgent};
