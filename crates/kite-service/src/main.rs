//! The `kite-service` process.

use std::process::ExitCode;

fn main() -> ExitCode {
    kite_runtime::main::<kite_service::KiteService>()
}
