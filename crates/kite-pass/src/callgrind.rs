//! Runs one case under callgrind and reads what it counted.
//!
//! Instructions are those of the regions alone. Allocations are too: callgrind counts calls outside
//! of the regions as well, so they are not looked at, but the instructions that the entry points of
//! Rust's allocator had themselves, divided by those that one call has. How many these are is
//! counted by a case that makes a known number of calls. No allocator is replaced for counting.

use std::collections::HashMap;
use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// The functions by which Rust asks for memory; giving it back is not counted.
const ALLOCATE: [&str; 3] = ["__rust_alloc", "__rust_alloc_zeroed", "__rust_realloc"];

/// The case in which each of them is called [`CALLS`] times.
pub(crate) const CALIBRATION: &str = "calibration";

/// Enough to tell a call's instructions from what surrounds it.
pub(crate) const CALLS: u64 = 1000;

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

/// How many instructions each of [`ALLOCATE`] has of its own, for one call.
#[derive(Clone, Copy)]
pub(crate) struct Calls([u64; 3]);

/// Counts what a call of the allocator's entry points takes.
pub(crate) fn calibrate() -> Result<Calls> {
    let own = profile(CALIBRATION, None)?.own;
    if let Some((name, own)) = ALLOCATE
        .iter()
        .zip(own)
        .find(|(_, own)| *own == 0 || !own.is_multiple_of(CALLS))
    {
        bail!(
            "{CALLS} calls of {name} took {own} instructions, so allocations cannot be counted; has the compiler put it into its callers?"
        );
    }
    Ok(Calls(own.map(|own| own / CALLS)))
}

/// Counts one case, in a process of its own. `keep` leaves the profile there for `callgrind_annotate`.
pub(crate) fn count(case: &str, calls: Calls, keep: Option<&str>) -> Result<Cost> {
    let Profile { instructions, own } = profile(case, keep)?;
    let allocations = own.iter().zip(calls.0).map(|(own, each)| own / each).sum();
    Ok(Cost {
        instructions,
        allocations,
    })
}

/// What is read from a profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Profile {
    instructions: u64,
    /// Those of each of [`ALLOCATE`] without what it calls.
    own: [u64; 3],
}

fn profile(case: &str, keep: Option<&str>) -> Result<Profile> {
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
    let profile = read(&text)?;
    if profile.instructions == 0 {
        bail!(
            "nothing was counted in {case}: the program has no names; build it with --profile measure"
        );
    }
    Ok(profile)
}

/// Reads a profile in callgrind's format, where a name is written once and is a number from then on,
/// and the line after one of calls has what was called.
fn read(text: &str) -> Result<Profile> {
    let mut profile = Profile::default();
    let mut names = HashMap::new();
    let mut inside = None;
    let mut called = false;
    for line in text.lines() {
        let own = line.strip_prefix("fn=");
        if let Some(function) = own.or_else(|| line.strip_prefix("cfn=")) {
            let (number, name) = function.split_once(' ').unwrap_or((function, ""));
            if !name.is_empty() {
                names.insert(number, name);
            }
            if own.is_some() {
                let name = names.get(number).copied().unwrap_or_default();
                let name = name.rsplit("::").next().unwrap_or_default();
                inside = ALLOCATE.iter().position(|known| *known == name);
            }
        } else if let Some(total) = line.strip_prefix("summary: ") {
            profile.instructions = total.trim().parse().context("an odd sum")?;
        } else if line.starts_with("calls=") {
            called = true;
        } else if is_cost(line)
            && !std::mem::take(&mut called)
            && let Some(function) = inside
        {
            let cost = line.split(' ').nth(1).unwrap_or_default();
            profile.own[function] += cost.parse::<u64>().context("an odd cost")?;
        }
    }
    Ok(profile)
}

/// Whether a line has a place, which may be relative to the one before, and its cost.
fn is_cost(line: &str) -> bool {
    line.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_tells_what_the_allocator_took_itself_and_nothing_that_it_called() {
        let profile = "events: Ir\n\nfn=(1) main\n1 10\ncfn=(2) __rustc::__rust_alloc\ncalls=30 0\n1 300\n+1 5\n\n\
            fn=(2)\n7 3\ncfn=(3) malloc\ncalls=3 0\n* 290\n+1 4\n\n\
            fn=(4) __rustc::__rust_realloc\n9 2\n\nsummary: 614\ntotals: 614\n";
        let cost = Profile {
            instructions: 614,
            own: [7, 0, 2],
        };
        assert_eq!(read(profile).unwrap(), cost);
    }
}
