//! The `kite-vm` process.

use std::process::ExitCode;

fn main() -> ExitCode {
    kite_runtime::main::<kite_vm::KiteVm>()
}
