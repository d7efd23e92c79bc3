//! What the kernel says of the process: time, memory, files.
//!
//! Read from `/proc` when somebody asks. What cannot be read is left out; on
//! another system than Linux that is all of it.

use std::fs;

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{Counter, IntGaugeVec, Result};

use super::table::{CPU, MEMORY, MOST_FILES, Metric, OPEN_FILES, STARTED, VIRTUAL_MEMORY};

/// Ticks of a second in `/proc`: the same on every architecture that Linux still has.
const TICKS: f64 = 100.0;

const GAUGES: [Metric; 5] = [MEMORY, VIRTUAL_MEMORY, OPEN_FILES, MOST_FILES, STARTED];

/// Looks at the process when it is asked.
pub(super) struct OwnProcess {
    cpu: Counter,
    /// Never filled: what this collector says of its metrics.
    gauges: Vec<IntGaugeVec>,
}

impl OwnProcess {
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            cpu: CPU.unregistered_counter()?,
            gauges: GAUGES
                .iter()
                .map(Metric::unregistered_gauges)
                .collect::<Result<_>>()?,
        })
    }
}

impl Collector for OwnProcess {
    fn desc(&self) -> Vec<&Desc> {
        let gauges = self.gauges.iter().flat_map(Collector::desc);
        self.cpu.desc().into_iter().chain(gauges).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let now = Look::now();
        let mut families = Vec::new();
        if let Some(cpu) = now.cpu {
            // Only what came since the last look is added; it never goes back.
            self.cpu.inc_by((cpu - self.cpu.get()).max(0.0));
            families.extend(self.cpu.collect());
        }
        let values = [
            now.memory,
            now.virtual_memory,
            now.open_files,
            now.most_files,
            now.started,
        ];
        for (gauges, value) in self.gauges.iter().zip(values) {
            if let Some(value) = value {
                gauges.with_label_values::<&str>(&[]).set(value);
                families.extend(gauges.collect());
            }
        }
        families
    }
}

/// What `/proc` says now.
#[derive(Debug, Default)]
struct Look {
    cpu: Option<f64>,
    memory: Option<i64>,
    virtual_memory: Option<i64>,
    open_files: Option<i64>,
    most_files: Option<i64>,
    started: Option<i64>,
}

impl Look {
    fn now() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let (stat, status) = (read("/proc/self/stat"), read("/proc/self/status"));
        let files = fs::read_dir("/proc/self/fd").ok();
        Self {
            cpu: cpu(&stat),
            memory: field(&status, "VmRSS:").map(kibibytes),
            virtual_memory: field(&status, "VmSize:").map(kibibytes),
            open_files: files.and_then(|files| i64::try_from(files.count()).ok()),
            most_files: field(&read("/proc/self/limits"), "Max open files"),
            started: started(&stat, &read("/proc/stat")),
        }
    }
}

/// A field of the process's `stat`, by its number in proc(5). The second is a name that may hold anything.
fn of_stat(stat: &str, number: usize) -> Option<f64> {
    let (_, after) = stat.rsplit_once(") ")?;
    after.split(' ').nth(number.checked_sub(3)?)?.parse().ok()
}

fn cpu(stat: &str) -> Option<f64> {
    let (user, system) = (of_stat(stat, 14)?, of_stat(stat, 15)?);
    Some((user + system) / TICKS)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "whole seconds are meant, and there are fewer than 2^53"
)]
fn started(stat: &str, system: &str) -> Option<i64> {
    let boot = field(system, "btime")?;
    Some(boot + (of_stat(stat, 22)? / TICKS) as i64)
}

/// The number after a word at the beginning of a line.
fn field(text: &str, word: &str) -> Option<i64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(word))?;
    rest.split_whitespace().next()?.parse().ok()
}

const fn kibibytes(number: i64) -> i64 {
    number.saturating_mul(1024)
}

#[cfg(test)]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;

    #[test]
    fn the_process_looks_at_itself() {
        let look = Look::now();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let age = i64::try_from(now.as_secs()).unwrap() - look.started.unwrap();
        assert!((0..3600).contains(&age), "{look:?}");
        assert!(look.memory.unwrap() > 1 << 20, "{look:?}");
        assert!(look.virtual_memory >= look.memory, "{look:?}");
        assert!(look.open_files.unwrap() > 2, "{look:?}");
        assert!(look.most_files >= look.open_files, "{look:?}");
        assert!(look.cpu.is_some(), "{look:?}");
    }

    #[test]
    fn a_name_with_blanks_and_parentheses_moves_no_field() {
        let rest: Vec<_> = (4..30).map(|n: u32| n.to_string()).collect();
        let stat = format!("7 (a) b (c) S {}", rest.join(" "));
        assert_eq!(cpu(&stat), Some(0.29));
        assert_eq!(started(&stat, "cpu 1 2\nbtime 1000\n"), Some(1000));
        assert_eq!(cpu("nonsense"), None);
    }
}
