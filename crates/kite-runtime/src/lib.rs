//! How a Kite process lives: settings, logs, client, lease, streams, writes,
//! metrics, health, events, shutdown.
//!
//! All six controllers use all of it. It knows nothing about users or machines:
//! what should exist and what to say about it is each controller's own.

pub mod rbac;
pub mod shared_roles;
