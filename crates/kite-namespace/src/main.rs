//! The `kite-namespace` process.

use std::process::ExitCode;

fn main() -> ExitCode {
    kite_runtime::main::<kite_namespace::KiteNamespaceProgram>()
}
