//! Processor time and memory of processes, as the kernel counts them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kite_testkit::process::{cpu_of, memory_of};

const MIB: f64 = 1024.0 * 1024.0;

/// Which processes are looked at.
#[derive(Clone, Debug, Default)]
pub struct Users {
    pids: BTreeMap<String, u32>,
}

/// What processes had used at a moment.
#[derive(Clone, Debug)]
pub struct Usage {
    at: Instant,
    of: BTreeMap<String, Used>,
}

/// What one process had used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Used {
    /// Processor time in user and system mode, seconds.
    pub cpu: f64,
    /// Resident memory, MiB.
    pub resident: f64,
    /// The most that was ever resident, MiB.
    pub peak: f64,
}

impl Users {
    /// Looks at one more.
    pub fn add(&mut self, name: &str, pid: u32) {
        self.pids.insert(name.to_owned(), pid);
    }

    /// What they have used now; a process that is gone is left out.
    pub fn now(&self) -> Usage {
        let used = self.pids.iter();
        Usage {
            at: Instant::now(),
            of: used
                .filter_map(|(name, pid)| Some((name.clone(), used_by(*pid)?)))
                .collect(),
        }
    }
}

impl Usage {
    /// The processes, by name.
    pub fn each(&self) -> impl Iterator<Item = (&str, Used)> {
        self.of.iter().map(|(name, used)| (&**name, *used))
    }

    /// One process.
    pub fn of(&self, name: &str) -> Used {
        self.of.get(name).copied().unwrap_or_default()
    }

    /// The six together, their peaks added up although they need not be at the same time.
    pub fn six(&self) -> Used {
        let ours = self.each().filter(|(name, _)| name.starts_with("kite-"));
        ours.fold(Used::default(), |sum, (_, used)| Used {
            cpu: sum.cpu + used.cpu,
            resident: sum.resident + used.resident,
            peak: sum.peak + used.peak,
        })
    }

    /// Processor seconds since an earlier look, by process; one that was not there then counts
    /// from its start.
    pub fn cpu_since(&self, earlier: &Self) -> BTreeMap<String, f64> {
        let spent = |(name, used): (&str, Used)| (name.to_owned(), used.cpu - earlier.of(name).cpu);
        self.each().map(spent).collect()
    }

    /// How long ago an earlier look was.
    pub fn since(&self, earlier: &Self) -> Duration {
        self.at - earlier.at
    }
}

fn used_by(pid: u32) -> Option<Used> {
    let memory = memory_of(pid)?;
    Some(Used {
        cpu: cpu_of(pid)?.as_secs_f64(),
        resident: bytes_in_mib(memory.resident),
        peak: bytes_in_mib(memory.peak),
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "neither a process nor a store has 2^52 bytes"
)]
pub(crate) fn bytes_in_mib(bytes: u64) -> f64 {
    bytes as f64 / MIB
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_works_and_grows_is_seen_to() {
        let mut users = Users::default();
        users.add("kite-self", std::process::id());
        users.add("gone", u32::MAX);
        let before = users.now();
        let mut kept: Vec<u8> = Vec::new();
        // How long that takes is the machine's affair: it may be busy with others.
        while users.now().cpu_since(&before)["kite-self"] < 0.1 {
            kept.extend((0..=u8::MAX).cycle().take(1 << 16));
        }
        let after = users.now();
        assert!(!kept.is_empty() && after.since(&before) > Duration::ZERO);
        assert!(after.six().resident > 1.0 && after.six().peak >= after.six().resident);
        assert!(after.each().all(|(name, _)| name != "gone"));
    }
}
