//! What must be seen, what is aimed at, and what a report has seen. The figures of the targets
//! stand here and nowhere else; whether a row was met is worked out, never written.

use super::distribution::ALL_RUN;
use super::seen;
use crate::report::Report;

/// Two limits; less is better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Target {
    /// More than this is a fault.
    pub(super) must: f64,
    /// What is aimed at.
    pub(super) aim: f64,
}

/// Resident memory of the six, in MiB, with so many machines.
pub(super) fn memory_targets(machines: usize) -> Option<Target> {
    let (must, aim) = match machines {
        0 => (60.0, 40.0),
        10_000 => (250.0, 150.0),
        _ => return None,
    };
    Some(Target { must, aim })
}

/// Kite's time as a multiple of the bare client's.
pub(super) fn ratio_targets(scenario: &str, machines: usize, figure: &str) -> Option<Target> {
    let stated = scenario == "burst" && machines >= 1_000 && figure == ALL_RUN;
    stated.then_some(Target {
        must: 1.25,
        aim: 1.1,
    })
}

/// Whether a row was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Met {
    Aim,
    Must,
    No,
    /// It is printed and not judged.
    Told,
}

impl Met {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Aim => "aim",
            Self::Must => "must",
            Self::No => "**no**",
            Self::Told => "–",
        }
    }

    pub(super) fn of(value: f64, target: Target) -> Self {
        if value <= target.aim {
            Self::Aim
        } else if value <= target.must {
            Self::Must
        } else {
            Self::No
        }
    }
}

/// What a report has seen of one quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) text: String,
    pub(super) met: Met,
}

/// One quantity.
pub(super) struct Row {
    pub(super) quantity: &'static str,
    pub(super) must: &'static str,
    pub(super) aim: &'static str,
    /// None when it was not measured.
    pub(super) seen: fn(&Report) -> Option<Seen>,
}

/// All of them.
pub(super) const ROWS: [Row; 13] = [
    Row {
        quantity: "requests for each create, 20 ticks, no domain",
        must: "≤ 23",
        aim: "20",
        seen: seen::requests_for_each,
    },
    Row {
        quantity: "requests at rest, for each machine",
        must: "0 exactly, 10 min, at every number of machines",
        aim: "",
        seen: |report| seen::at_sizes(report, "rest", "of machines", 0.0, -1.0),
    },
    Row {
        quantity: "requests at rest, whole installation, a minute",
        must: "≤ 80",
        aim: "≤ 25",
        seen: |report| seen::at_sizes(report, "rest", "requests a minute", 80.0, 25.0),
    },
    Row {
        quantity: "restart, 10,000 settled machines",
        must: "0 writes; lists and watches only",
        aim: "",
        seen: seen::restart,
    },
    Row {
        quantity: "burst of 1,000: time to all Running against the bare client",
        must: "≤ 1.25 ×",
        aim: "≤ 1.1 ×",
        seen: |report| seen::burst(report, 1_000),
    },
    Row {
        quantity: "burst of 10,000, short life: time to all Running against the bare client",
        must: "≤ 1.25 ×",
        aim: "≤ 1.1 ×",
        seen: |report| seen::burst(report, 10_000),
    },
    Row {
        quantity: "a quiet tenant's create during a storm of 1,000, p99 against its time alone",
        must: "≤ 2 ×",
        aim: "1.2 ×",
        seen: seen::noisy,
    },
    Row {
        quantity: "resident memory, six processes, 10,000 machines",
        must: "≤ 250 MiB",
        aim: "≤ 150 MiB",
        seen: |report| seen::memory(report, 10_000),
    },
    Row {
        quantity: "resident memory, six processes, empty",
        must: "≤ 60 MiB",
        aim: "≤ 40 MiB",
        seen: |report| seen::memory(report, 0),
    },
    Row {
        quantity: "stripped binary, the greatest",
        must: "≤ 15 MiB",
        aim: "≤ 10 MiB",
        seen: |report| seen::greatest(report, "sizes", "stripped", "MiB", 15.0, 10.0),
    },
    Row {
        quantity: "start to ready, warm cache, empty cluster, the slowest",
        must: "≤ 1 s",
        aim: "≤ 0.3 s",
        seen: |report| seen::greatest(report, "start", "start to ready", "s", 1.0, 0.3),
    },
    Row {
        quantity: "processor time for each create, six processes",
        must: "told, against the API server's",
        aim: "",
        seen: seen::processor,
    },
    Row {
        quantity: "processor time for each create, API server",
        must: "told",
        aim: "",
        seen: seen::server,
    },
];

#[cfg(test)]
mod tests {
    use super::super::chosen::KITE;
    use super::*;
    use crate::report::Measured;

    #[test]
    fn a_value_at_the_limit_is_within_it() {
        let target = Target {
            must: 1.25,
            aim: 1.1,
        };
        let met = [1.1, 1.101, 1.25, 1.251].map(|value| Met::of(value, target));
        assert_eq!(met, [Met::Aim, Met::Must, Met::Must, Met::No]);
    }

    #[test]
    fn one_request_of_a_machine_at_rest_is_a_fault() {
        let seen = |value: f64| {
            let measured = Measured::new("rest", KITE, 100).figure("of machines", "", value);
            let report = Report {
                results: vec![measured],
                ..Report::default()
            };
            (ROWS[1].seen)(&report).unwrap().met
        };
        assert_eq!((seen(0.0), seen(0.1)), (Met::Must, Met::No));
    }

    #[test]
    fn requests_for_each_create_are_counted_when_no_figure_tells_them() {
        let mut measured = Measured::new("burst", KITE, 100);
        measured.counts = vec![crate::report::Count {
            controller: "kite-vm".to_owned(),
            verb: "patch".to_owned(),
            resource: "services".to_owned(),
            count: 2_100,
        }];
        let report = |measured: Measured| Report {
            results: vec![measured],
            ..Report::default()
        };
        let seen = (ROWS[0].seen)(&report(measured.clone())).unwrap();
        assert_eq!((seen.text.as_str(), seen.met), ("21 at 100", Met::Must));
        let told = measured.figure("requests", "per machine", 19.0);
        let seen = (ROWS[0].seen)(&report(told)).unwrap();
        assert_eq!((seen.text.as_str(), seen.met), ("19 at 100", Met::Aim));
    }

    #[test]
    fn what_was_not_measured_has_not_been_seen() {
        for row in &ROWS {
            assert_eq!((row.seen)(&Report::default()), None, "{}", row.quantity);
        }
    }
}
