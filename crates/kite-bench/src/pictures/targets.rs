//! What must be seen, what is aimed at, and what a report has seen. The figures of the targets
//! stand here and nowhere else; whether a row was met is worked out, never written.

use std::fmt::Write;

use super::burst::ALL_RUN;
use super::chosen::{self, BARE, KITE};
use super::numbers::{Spread, count, real, shown};
use super::requests;
use crate::report::{Measured, Report};

/// The contestant that is the sum of the six.
const SIX_PROCESSES: &str = "six processes";

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

    fn of(value: f64, target: Target) -> Self {
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
        seen: requests_for_each,
    },
    Row {
        quantity: "requests at rest, for each machine",
        must: "0 exactly, 10 min, at every number of machines",
        aim: "",
        seen: |report| at_sizes(report, "rest", "of machines", 0.0, -1.0),
    },
    Row {
        quantity: "requests at rest, whole installation, a minute",
        must: "≤ 80",
        aim: "≤ 25",
        seen: |report| at_sizes(report, "rest", "requests a minute", 80.0, 25.0),
    },
    Row {
        quantity: "restart, 10,000 settled machines",
        must: "0 writes; lists and watches only",
        aim: "",
        seen: restart,
    },
    Row {
        quantity: "burst of 1,000: time to all Running against the bare client",
        must: "≤ 1.25 ×",
        aim: "≤ 1.1 ×",
        seen: |report| burst(report, 1_000),
    },
    Row {
        quantity: "burst of 10,000, short life: time to all Running against the bare client",
        must: "≤ 1.25 ×",
        aim: "≤ 1.1 ×",
        seen: |report| burst(report, 10_000),
    },
    Row {
        quantity: "a quiet tenant's create during a storm of 1,000, p99 against its time alone",
        must: "≤ 2 ×",
        aim: "1.2 ×",
        seen: noisy,
    },
    Row {
        quantity: "resident memory, six processes, 10,000 machines",
        must: "≤ 250 MiB",
        aim: "≤ 150 MiB",
        seen: |report| memory(report, 10_000),
    },
    Row {
        quantity: "resident memory, six processes, empty",
        must: "≤ 60 MiB",
        aim: "≤ 40 MiB",
        seen: |report| memory(report, 0),
    },
    Row {
        quantity: "stripped binary, the greatest",
        must: "≤ 15 MiB",
        aim: "≤ 10 MiB",
        seen: |report| greatest(report, "sizes", "stripped", "MiB", 15.0, 10.0),
    },
    Row {
        quantity: "start to ready, warm cache, empty cluster, the slowest",
        must: "≤ 1 s",
        aim: "≤ 0.3 s",
        seen: |report| greatest(report, "start", "start to ready", "s", 1.0, 0.3),
    },
    Row {
        quantity: "processor time for each create, six processes",
        must: "told, against the API server's",
        aim: "",
        seen: processor,
    },
    Row {
        quantity: "processor time for each create, API server",
        must: "told",
        aim: "",
        seen: server,
    },
];

/// Requests of the six for each machine, as the report has them or from what was counted.
fn requests_for_each(report: &Report) -> Option<Seen> {
    // The greatest burst has a short life with fewer ticks.
    let whole_lives = |n: usize| (1..=1_000).contains(&n);
    let results = chosen::of(report, "burst");
    let sizes = chosen::sizes(&results)
        .into_iter()
        .filter(|n| whole_lives(*n));
    let found = sizes.filter_map(|n| {
        let told = chosen::spread(&results, KITE, n, "requests");
        let counted = || requests::of_six(&results, n).map(|all| all / real(n));
        let spread = told.or_else(|| Spread::of(counted().into_iter().collect()))?;
        Some((n, spread))
    });
    worst(&found.collect::<Vec<_>>(), 23.0, 20.0)
}

/// A figure at several sizes; the worst of them counts.
fn at_sizes(report: &Report, scenario: &str, figure: &str, must: f64, aim: f64) -> Option<Seen> {
    let results = chosen::of(report, scenario);
    let sizes = chosen::sizes(&results).into_iter();
    let found: Vec<_> = sizes
        .filter_map(|n| Some((n, chosen::spread(&results, KITE, n, figure)?)))
        .collect();
    worst(&found, must, aim)
}

fn worst(found: &[(usize, Spread)], must: f64, aim: f64) -> Option<Seen> {
    let worst = found.iter().map(|(_, s)| s.median).reduce(f64::max)?;
    let texts = found
        .iter()
        .map(|(n, spread)| format!("{} at {}", spread.shown(), count(*n)));
    Some(Seen {
        text: texts.collect::<Vec<_>>().join("; "),
        met: Met::of(worst, Target { must, aim }),
    })
}

fn burst(report: &Report, machines: usize) -> Option<Seen> {
    let ratio = chosen::ratio(&chosen::of(report, "burst"), machines, ALL_RUN)?;
    let target = ratio_targets("burst", machines, ALL_RUN)?;
    Some(times(&ratio, target))
}

fn times(ratio: &Spread, target: Target) -> Seen {
    let of = if ratio.rounds == 1 {
        "1 round".to_owned()
    } else {
        format!("{} rounds", ratio.rounds)
    };
    Seen {
        text: format!("{} ×, {of}", ratio.shown()),
        met: Met::of(ratio.median, target),
    }
}

/// The figure of the 99th percentile that is a multiple, whatever the rest of its name is.
fn noisy(report: &Report) -> Option<Seen> {
    let results = chosen::of(report, "noisy");
    let values = results.iter().filter(|m| m.contestant == KITE);
    let values = values.flat_map(|m| &m.figures);
    let values = values.filter(|f| f.unit == "x" && f.name.contains("p99"));
    let ratio = Spread::of(values.map(|f| f.value).collect())?;
    let target = Target {
        must: 2.0,
        aim: 1.2,
    };
    Some(times(&ratio, target))
}

fn memory(report: &Report, machines: usize) -> Option<Seen> {
    let results = chosen::of(report, "memory");
    let resident = chosen::spread(&results, SIX_PROCESSES, machines, "resident")?;
    Some(Seen {
        text: format!("{} MiB", resident.shown()),
        met: Met::of(resident.median, memory_targets(machines)?),
    })
}

fn restart(report: &Report) -> Option<Seen> {
    let results = chosen::of(report, "restart");
    let counted = |m: &&Measured| m.contestant == KITE && !m.counts.is_empty();
    let counted: Vec<_> = results.into_iter().filter(counted).collect();
    let machines = chosen::sizes(&counted).pop()?;
    let sum = |wanted: &dyn Fn(&crate::report::Count) -> bool| {
        chosen::counted(&counted, machines, |c| {
            chosen::six().contains(&chosen::account(c)) && !chosen::is_lease(c) && wanted(c)
        })
    };
    let writes = sum(&|c| chosen::is_write(c))?;
    let lists = sum(&|c| c.verb == "list")?;
    let watches = sum(&chosen::is_watch)?;
    let gets = sum(&|c| c.verb == "get")?;
    let words = [
        (writes, "writes"),
        (lists, "lists"),
        (watches, "watches"),
        (gets, "reads of single objects"),
    ];
    let words = words.map(|(value, word)| format!("{} {word}", shown(value)));
    Some(Seen {
        text: format!("{} at {}", words.join(", "), count(machines)),
        met: Met::of(
            writes + gets,
            Target {
                must: 0.0,
                aim: -1.0,
            },
        ),
    })
}

/// The greatest of all processes.
fn greatest(
    report: &Report,
    scenario: &str,
    figure: &str,
    unit: &str,
    must: f64,
    aim: f64,
) -> Option<Seen> {
    let results = chosen::of(report, scenario);
    let of = chosen::contestants(&results).into_iter().filter_map(|who| {
        let values = results.iter().filter(|m| m.contestant == who);
        let spread = Spread::of(values.filter_map(|m| m.value(figure)).collect())?;
        Some((who, spread))
    });
    let (who, spread) = of.max_by(|a, b| a.1.median.total_cmp(&b.1.median))?;
    Some(Seen {
        text: format!("{} {unit} ({who})", shown(spread.median)),
        met: Met::of(spread.median, Target { must, aim }),
    })
}

/// Processor time of the six for each machine of the greatest burst.
fn processor(report: &Report) -> Option<Seen> {
    let results = chosen::of(report, "burst");
    let mut sizes = chosen::sizes(&results).into_iter().rev();
    sizes.find_map(|n| {
        let six = chosen::spread(&results, KITE, n, "CPU of the six per machine")?;
        let text = format!("{} ms in a burst of {}", six.shown(), count(n));
        Some(Seen {
            text,
            met: Met::Told,
        })
    })
}

/// That of the API server in the same burst, with Kite and with the bare client.
fn server(report: &Report) -> Option<Seen> {
    let results = chosen::of(report, "burst");
    let mut sizes = chosen::sizes(&results).into_iter().rev();
    sizes.find_map(|n| {
        let each = |contestant: &str| {
            let spent = chosen::spread(&results, contestant, n, "CPU of kube-apiserver")?;
            Some(shown(spent.median * 1_000.0 / real(n)))
        };
        let mut text = format!("{} ms in a burst of {}", each(KITE)?, count(n));
        if let Some(bare) = each(BARE) {
            let _ = write!(text, ", {bare} ms with the bare client");
        }
        Some(Seen {
            text,
            met: Met::Told,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
