//! The `kite-service` controller. Its parts are public so that tests and the
//! manifest generator can use them; it is not a library for others.

use kite_runtime::rbac::Rule;

/// What this controller may do, beyond what every controller may.
pub const RULES: &[Rule] = &[];
