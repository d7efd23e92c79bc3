//! The `kite-user` process.

use std::process::ExitCode;

fn main() -> ExitCode {
    kite_runtime::main::<kite_user::KiteUserProgram>()
}
