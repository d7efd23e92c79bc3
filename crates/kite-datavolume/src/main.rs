//! The `kite-datavolume` process.

use std::process::ExitCode;

fn main() -> ExitCode {
    kite_runtime::main::<kite_datavolume::KiteDataVolume>()
}
