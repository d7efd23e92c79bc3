//! What a hundred thousand machines would ask of a cluster, from what was measured of each: what
//! stands, what happens, a restart, and which limit comes first.
//!
//! Nothing of it was measured at that size, and the page says so. A straight line is drawn through
//! the least and the greatest number of machines that was; what was not measured is not there.

use std::fmt::Write as _;

use super::chosen::{self, KITE};
use super::numbers::{count, shown};
use super::page::{self, MARK};
use crate::numbers::number;
use crate::report::{Count, Measured, Report};
use crate::scenario::STORE;

/// The name of the page.
pub(super) const PAGE: &str = "scale.md";

/// How many machines the page is about.
const MACHINES: usize = 100_000;

/// What the charts give each process (`resources.limits.memory`), MiB.
const CHART_LIMIT: f64 = 256.0;

/// etcd's own limit, and the most that its manual recommends, MiB.
const QUOTA: [f64; 2] = [2048.0, 8192.0];

/// The memory of a server that is called large here, MiB.
const LARGE_SERVER: f64 = 65_536.0;

/// Services of a cluster up to which Kubernetes is tested
/// (kubernetes/community, sig-scalability/configs-and-limits/thresholds.md).
const SERVICES: usize = 10_000;

const MIB_PER_GIB: f64 = 1024.0;
const KIB_PER_MIB: f64 = 1024.0;
const SECONDS_A_DAY: f64 = 86_400.0;

/// How long a machine lives in the example, days.
const LIFE: f64 = 30.0;

/// A straight line through what was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Line {
    base: f64,
    each: f64,
}

impl Line {
    /// Nothing unless a figure was measured at two sizes.
    fn of(results: &[&Measured], contestant: &str, figure: &str) -> Option<Self> {
        let sizes = chosen::sizes(results);
        let at = |size| {
            Some((
                size,
                chosen::spread(results, contestant, size, figure)?.median,
            ))
        };
        let points: Vec<_> = sizes.into_iter().filter_map(at).collect();
        let (&(few, low), &(many, high)) = (points.first()?, points.last()?);
        let each = (few < many).then(|| (high - low) / number(many - few))?;
        let base = low - each * number(few);
        Some(Self { base, each })
    }

    fn at(self, machines: usize) -> f64 {
        self.base + self.each * number(machines)
    }

    /// How many machines reach a limit; nothing if none do.
    fn reaches(self, limit: f64) -> Option<f64> {
        (self.each > 0.0 && limit > self.base).then(|| (limit - self.base) / self.each)
    }
}

/// The page, when memory was measured at two sizes.
pub(super) fn text(report: &Report) -> Option<String> {
    let memory = chosen::of(report, "memory");
    let six = Line::of(&memory, "six processes", "resident")?;
    let mut text = format!("{MARK}\n\n# {} machines\n\n", count(MACHINES));
    page::paragraph(
        &mut text,
        "",
        "Nothing on this page was measured at that size. It is what was measured of each machine, times their number: \
         straight lines through the least and the greatest number of machines in [the benchmark](README.md), whose \
         commands stand there. The stand-ins make no launcher pods, whose objects come on top in a real cluster, for \
         the store and the API server alike; and a line says nothing of what bends.",
    );
    stands(&mut text, &memory, six);
    happens(&mut text, report);
    restart(&mut text, report);
    limits(&mut text, &memory);
    Some(text)
}

fn stands(text: &mut String, memory: &[&Measured], six: Line) {
    text.push_str("\n## What stands\n\n| What | For each machine | Together |\n|---|---:|---:|\n");
    if let Some(objects) =
        Line::of(memory, STORE, "objects").or_else(|| through_zero(memory, "objects"))
    {
        let all = shown(objects.at(MACHINES));
        let _ = writeln!(text, "| objects | {} | {all} |", shown(objects.each));
    }
    let lines = [("the store", stored(memory))]
        .into_iter()
        .chain(["kube-apiserver", "etcd"].map(|name| (name, Line::of(memory, name, "resident"))));
    let six = [("Kite's six processes", Some(six))];
    let each = chosen::six().map(|name| (name, Line::of(memory, name, "resident")));
    for (name, line) in lines.chain(six).chain(each) {
        let Some(line) = line else { continue };
        let each = shown(line.each * KIB_PER_MIB);
        let all = shown(line.at(MACHINES) / MIB_PER_GIB);
        let what = if name == STORE {
            "size of"
        } else {
            "memory of"
        };
        let _ = writeln!(text, "| {what} {name} | {each} KiB | {all} GiB |");
    }
}

/// The size of the store: it is measured only where there is something in it.
fn stored(memory: &[&Measured]) -> Option<Line> {
    Line::of(memory, STORE, "size").or_else(|| through_zero(memory, "size"))
}

/// A line from nothing to the greatest size.
fn through_zero(memory: &[&Measured], figure: &str) -> Option<Line> {
    let most = chosen::sizes(memory)
        .into_iter()
        .next_back()
        .filter(|most| *most > 0)?;
    let at_most = chosen::spread(memory, STORE, most, figure)?.median;
    Some(Line {
        base: 0.0,
        each: at_most / number(most),
    })
}

/// Requests for each machine in one step of its life, by the run that counted it.
fn step(report: &Report, scenario: &str, contestant: &str) -> Option<f64> {
    let results = chosen::of(report, scenario);
    let counted = results.iter().filter(|m| m.contestant == contestant);
    let counted = counted.filter(|m| !m.counts.is_empty());
    counted.filter_map(|m| m.value("requests")).reduce(f64::max)
}

fn happens(text: &mut String, report: &Report) {
    let steps = [
        (
            "created, 20 ticks of progress",
            step(report, "burst", KITE),
            1.0 / LIFE,
        ),
        (
            "switched off",
            step(report, "power", "kite, power off"),
            1.0,
        ),
        ("switched on", step(report, "power", "kite, power on"), 1.0),
        ("deleted", step(report, "deletion", KITE), 1.0 / LIFE),
    ];
    let [
        (_, Some(_), _),
        (_, Some(_), _),
        (_, Some(on), _),
        (_, Some(_), _),
    ] = steps
    else {
        return;
    };
    text.push_str("\n## What happens\n\n");
    page::paragraph(
        text,
        "",
        "At rest nothing is asked, whatever the number of machines: leases and re-opened watches are the same for one. \
         The example is a fleet whose machines live for thirty days each and are switched off and on once a day.",
    );
    text.push_str("\n| Each machine is | Requests | A second, over the day |\n|---|---:|---:|\n");
    let mut sum = 0.0;
    for (what, requests, a_day) in steps {
        let requests = requests.unwrap_or_default();
        let a_second = requests * a_day * number(MACHINES) / SECONDS_A_DAY;
        sum += a_second;
        let _ = writeln!(
            text,
            "| {what} | {} | {} |",
            shown(requests),
            shown(a_second)
        );
    }
    let _ = writeln!(text, "| together | | {} |\n", shown(sum));
    let hour = shown(on * number(MACHINES) / 3600.0);
    let events = told(report).map_or_else(String::new, |events| {
        format!(
            " Each create is told to Kite's own watches {} times, its progress included: that is how often the API \
             server sends one of Kite's own writes to one of the six.",
            shown(events)
        )
    });
    let writes = chosen::of(report, "burst");
    let writes = writes.iter().filter(|m| m.contestant == "raw");
    let most = writes.filter_map(|m| m.value("writes")).reduce(f64::max);
    let most = most.map_or_else(String::new, |most| {
        format!(" The one API server of the benchmark, on two processors that it shared with everything else, took {} writes a second from a plain loop.", shown(most))
    });
    page::paragraph(
        text,
        "",
        &format!(
            "When all are switched on within the same hour it is {hour} requests a second.{most}{events}"
        ),
    );
}

/// How often the server sends Kite's own writes for a create to Kite's own watches.
fn told(report: &Report) -> Option<f64> {
    let restart = chosen::of(report, "restart");
    let restart = restart
        .iter()
        .find(|m| m.contestant == KITE && !m.counts.is_empty())?;
    let burst = chosen::of(report, "burst");
    let burst = burst
        .iter()
        .find(|m| m.contestant == KITE && !m.counts.is_empty())?;
    let watches = |resource: &str| -> usize {
        let of_it = restart.counts.iter().filter(|c| chosen::is_watch(c));
        of_it
            .filter(|c| c.resource == resource)
            .map(|c| c.count)
            .sum()
    };
    let events = |count: &Count| count.count * watches(object(&count.resource));
    let writes = burst.counts.iter().filter(|c| chosen::is_write(c));
    let sent: usize = writes.map(events).sum();
    Some(number(sent) / number(burst.machines.max(1)))
}

/// A resource without its subresource.
fn object(resource: &str) -> &str {
    resource.strip_suffix("/status").unwrap_or(resource)
}

fn restart(text: &mut String, report: &Report) {
    let results = chosen::of(report, "restart");
    let Some(size) = chosen::sizes(&results)
        .into_iter()
        .next_back()
        .filter(|size| *size > 0)
    else {
        return;
    };
    let times = number(MACHINES) / number(size);
    text.push_str("\n## A restart\n\n");
    page::paragraph(
        text,
        "",
        &format!(
            "A process that starts lists what it watches and writes nothing. From {} machines times {}:",
            count(size),
            shown(times)
        ),
    );
    text.push_str("\n| Process | Listed | Until it works |\n|---|---:|---:|\n");
    for name in chosen::six() {
        let figure =
            |figure| chosen::spread(&results, name, size, figure).map(|s| s.median * times);
        let (Some(listed), Some(ready)) = (figure("bytes listed"), figure("start to ready")) else {
            continue;
        };
        let _ = writeln!(
            text,
            "| {name} | {} GiB | {} s |",
            shown(listed / MIB_PER_GIB),
            shown(ready)
        );
    }
}

/// A limit, how many machines reach it, and what moves it.
type Limit = (String, f64, &'static str);

fn limits(text: &mut String, memory: &[&Measured]) {
    let mut limits: Vec<Limit> = vec![(
        format!(
            "{} Services, up to which Kubernetes is tested",
            count(SERVICES)
        ),
        number(SERVICES),
        "several clusters; or a proxy that is made for more, such as nftables or eBPF",
    )];
    let stored = stored(memory);
    for (quota, moves) in QUOTA.into_iter().zip([
        "`--quota-backend-bytes` of etcd",
        "several clusters, since etcd recommends no more",
    ]) {
        let what = format!("a store of {} GiB", shown(quota / MIB_PER_GIB));
        limits.extend(stored.and_then(|line| Some((what, line.reaches(quota)?, moves))));
    }
    for name in chosen::six() {
        let line = Line::of(memory, name, "resident");
        let what = format!("{name} at its memory limit of {CHART_LIMIT} MiB");
        let moves = "`resources.limits.memory` of its chart";
        limits.extend(line.and_then(|line| Some((what, line.reaches(CHART_LIMIT)?, moves))));
    }
    let line = Line::of(memory, "kube-apiserver", "resident");
    let what = format!("an API server of {} GiB", shown(LARGE_SERVER / MIB_PER_GIB));
    let moves = "more memory, or `GOGC` below 100 at the price of processor time";
    limits.extend(line.and_then(|line| Some((what, line.reaches(LARGE_SERVER)?, moves))));
    limits.sort_by(|a, b| a.1.total_cmp(&b.1));
    text.push_str(
        "\n## Which limit comes first\n\n| Limit | Reached at | What moves it |\n|---|---:|---|\n",
    );
    for (what, at, moves) in limits {
        let _ = writeln!(
            text,
            "| {what} | {} machines | {moves} |",
            shown(rounded(at))
        );
    }
}

/// To two digits that count: more would say that the line is known better than it is.
fn rounded(value: f64) -> f64 {
    let unit = 10_f64.powf(value.max(1.0).log10().floor() - 1.0);
    (value / unit).floor() * unit
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    #[test]
    fn a_line_goes_through_the_least_and_the_greatest_size() {
        let sizes = [(0, 10.0), (1_000, 400.0), (10_000, 30.0)];
        let results = sizes.map(|(size, value)| {
            Measured::new("memory", "kite-vm", size).figure("resident", "MiB", value)
        });
        let results: Vec<_> = results.iter().collect();
        let line = Line::of(&results, "kite-vm", "resident").unwrap();
        assert!((line.at(100_000) - 210.0).abs() < 1e-9);
        assert!((line.reaches(20.0).unwrap() - 5_000.0).abs() < 1e-6);
        assert_eq!(line.reaches(5.0), None, "reached with no machine at all");
        assert_eq!(Line::of(&results[..1], "kite-vm", "resident"), None);
    }

    #[test]
    fn the_page_names_the_first_limit_first_and_is_absent_without_its_figures() {
        assert_eq!(text(&Report::default()), None);
        let page = text(&example::report()).unwrap();
        let limits = page.split("## Which limit comes first").nth(1).unwrap();
        let at = |what: &str| limits.find(what).unwrap();
        assert!(
            at("10,000 Services") < at("kite-vm at its memory limit"),
            "{page}"
        );
        assert!(page.contains("Nothing on this page was measured at that size."));
    }

    #[test]
    fn the_limit_of_each_process_is_the_charts() {
        for chart in chosen::six() {
            let values = format!(
                "{}/../../charts/{chart}/values.yaml",
                env!("CARGO_MANIFEST_DIR")
            );
            let values = std::fs::read_to_string(values).unwrap();
            assert!(
                values.contains(&format!("memory: {CHART_LIMIT}Mi")),
                "{chart}"
            );
        }
    }
}
