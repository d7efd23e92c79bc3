//! What a report has seen of each quantity of the targets: one function for each kind of row.

use std::fmt::Write;

use super::chosen::{self, BARE, KITE};
use super::distribution::ALL_RUN;
use super::numbers::{Spread, count, shown};
use super::requests;
use super::targets::{Met, Seen, Target, memory_targets, ratio_targets};
use crate::numbers::number;
use crate::report::{Measured, Report};

/// The contestant that is the sum of the six.
const SIX_PROCESSES: &str = "six processes";

/// Requests of the six for each machine, as the report has them or from what was counted.
pub(super) fn requests_for_each(report: &Report) -> Option<Seen> {
    // The greatest burst has a short life with fewer ticks.
    let whole_lives = |n: usize| (1..=1_000).contains(&n);
    let results = chosen::of(report, "burst");
    let sizes = chosen::sizes(&results)
        .into_iter()
        .filter(|n| whole_lives(*n));
    let found = sizes.filter_map(|n| {
        let told = chosen::spread(&results, KITE, n, "requests");
        let counted = || requests::of_six(&results, n).map(|all| all / number(n));
        let spread = told.or_else(|| Spread::of(counted().into_iter().collect()))?;
        Some((n, spread))
    });
    worst(&found.collect::<Vec<_>>(), 23.0, 20.0)
}

/// A figure at several sizes; the worst of them counts.
pub(super) fn at_sizes(
    report: &Report,
    scenario: &str,
    figure: &str,
    must: f64,
    aim: f64,
) -> Option<Seen> {
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

pub(super) fn burst(report: &Report, machines: usize) -> Option<Seen> {
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

/// The whole create, not one of its parts; and what the server alone makes of it.
pub(super) fn noisy(report: &Report) -> Option<Seen> {
    let results = chosen::of(report, "noisy");
    let of = |contestant| chosen::spread(&results, contestant, 1_000, "p99 against alone");
    let ratio = of(KITE)?;
    let target = Target {
        must: 2.0,
        aim: 1.2,
    };
    let mut seen = times(&ratio, target);
    if let Some(floor) = of(BARE) {
        seen.text = format!("{}; bare client {} ×", seen.text, floor.shown());
    }
    Some(seen)
}

pub(super) fn memory(report: &Report, machines: usize) -> Option<Seen> {
    let results = chosen::of(report, "memory");
    let resident = chosen::spread(&results, SIX_PROCESSES, machines, "resident")?;
    Some(Seen {
        text: format!("{} MiB", resident.shown()),
        met: Met::of(resident.median, memory_targets(machines)?),
    })
}

pub(super) fn restart(report: &Report) -> Option<Seen> {
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
    let none = Target {
        must: 0.0,
        aim: -1.0,
    };
    // With fewer machines it is told what was seen, and nothing is met by it.
    let met = Met::of(writes + gets, none);
    Some(Seen {
        text: format!("{} at {}", words.join(", "), count(machines)),
        met: if machines < 10_000 { Met::Told } else { met },
    })
}

/// The greatest of all processes.
pub(super) fn greatest(
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
pub(super) fn processor(report: &Report) -> Option<Seen> {
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
pub(super) fn server(report: &Report) -> Option<Seen> {
    let results = chosen::of(report, "burst");
    let mut sizes = chosen::sizes(&results).into_iter().rev();
    sizes.find_map(|n| {
        let each = |contestant: &str| {
            let spent = chosen::spread(&results, contestant, n, "CPU of kube-apiserver")?;
            Some(shown(spent.median * 1_000.0 / number(n)))
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
