//! Runs one case under callgrind and reads what it counted.
//!
//! Instructions are those of the regions alone. Allocations are the calls of Rust's allocator that
//! callgrind saw in them, so no allocator has to be replaced for counting.

use std::collections::HashMap;
use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// The functions by which Rust asks for memory; giving it back is not counted.
const ALLOCATE: [&str; 3] = ["__rust_alloc", "__rust_alloc_zeroed", "__rust_realloc"];

/// What one case costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Instructions.
    pub(crate) instructions: u64,
    /// Times that memory was asked for.
    pub(crate) allocations: u64,
}

/// The version of valgrind, or what to do when there is none.
pub(crate) fn version() -> Result<String> {
    let output = Command::new("valgrind")
        .arg("--version")
        .output()
        .context("instructions are counted by valgrind, which cannot be started; install the package valgrind (it is called so on Debian, Fedora, Arch and Alpine)")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Counts one case, in a process of its own. `keep` leaves the profile there for `callgrind_annotate`.
pub(crate) fn count(case: &str, keep: Option<&str>) -> Result<Cost> {
    let folder = tempfile::tempdir()?;
    let profile = keep.map_or_else(|| folder.path().join("profile"), Into::into);
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet"])
        .args([
            "--toggle-collect=*region::counted*",
            "--toggle-collect=*region::uncounted*",
        ])
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(std::env::current_exe()?)
        .args(["case", case])
        // The stack's place depends on the environment's length.
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .output()
        .context("valgrind cannot be started")?;
    if !output.status.success() {
        bail!(
            "{case} failed under valgrind: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let text = fs::read_to_string(&profile)
        .with_context(|| format!("valgrind left no profile of {case}"))?;
    let cost = read(&text)?;
    if cost.instructions == 0 {
        bail!(
            "nothing was counted in {case}: the program has no names; build it with --profile measure"
        );
    }
    Ok(cost)
}

/// Reads a profile in callgrind's format, where a name is written once and is a number from then on.
fn read(profile: &str) -> Result<Cost> {
    let mut cost = Cost::default();
    let mut names = HashMap::new();
    let mut called = "";
    for line in profile.lines() {
        if let Some(function) = line.strip_prefix("cfn=").or(line.strip_prefix("fn=")) {
            let (number, name) = function.split_once(' ').unwrap_or((function, ""));
            if !name.is_empty() {
                names.insert(number, name);
            }
            called = names.get(number).copied().unwrap_or_default();
        } else if let Some(calls) = line.strip_prefix("calls=") {
            let name = called.rsplit("::").next().unwrap_or_default();
            if ALLOCATE.contains(&name) {
                let times = calls.split(' ').next().unwrap_or_default();
                cost.allocations += times.parse::<u64>().context("an odd number of calls")?;
            }
        } else if let Some(total) = line.strip_prefix("summary: ") {
            cost.instructions = total.trim().parse().context("an odd sum")?;
        }
    }
    Ok(cost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_tells_instructions_and_calls_of_the_allocator_by_number_too() {
        let profile = "events: Ir\n\nfn=(1) main\n1 10\ncfn=(2) __rustc::__rust_alloc\ncalls=3 0\n1 30\n\
            cfn=(3) other\ncalls=9 0\n1 1\ncfn=(2)\ncalls=4 0\n1 2\nsummary: 43\ntotals: 43\n";
        let cost = Cost {
            instructions: 43,
            allocations: 7,
        };
        assert_eq!(read(profile).unwrap(), cost);
    }
}
