//! The `kite-vm` process.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: kite_runtime::Allocator = kite_runtime::Allocator;

fn main() -> ExitCode {
    kite_runtime::main::<kite_vm::KiteVm>()
}
