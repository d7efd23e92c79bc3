//! The `kite-vm-status` process.

use std::process::ExitCode;

fn main() -> ExitCode {
    kite_runtime::main::<kite_vm_status::KiteVmStatus>()
}
