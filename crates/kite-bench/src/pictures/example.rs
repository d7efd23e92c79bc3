//! A made-up report for tests: the numbers are invented, near what is expected, and never leave
//! the tests.

use super::chosen::six;
use crate::numbers::number;
use crate::report::{Count, Measured, Report, Series};

/// Requests of each of the six for each machine.
const EACH: [usize; 6] = [0, 0, 7, 3, 2, 8];
const ROUNDS: usize = 5;

/// Everything that a whole run records.
pub(super) fn report() -> Report {
    let facts = |of: &[(&str, &str)]| {
        let of = of.iter();
        of.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    };
    let mut results = Vec::new();
    for size in [100, 1_000, 10_000] {
        results.extend(burst(size));
    }
    for size in [0, 100, 1_000, 10_000] {
        results.push(rest(size));
    }
    for size in [0, 1_000, 10_000] {
        results.extend(memory(size));
    }
    results.extend(others());
    Report {
        version: "0.0.0 (an example, nothing was measured)".to_owned(),
        date: "2000-01-01".to_owned(),
        command: "cargo xtask bench --example".to_owned(),
        machine: facts(&[("processors", "2 × example"), ("memory", "8 GiB")]),
        settings: facts(&[("kube-apiserver", "v0 --audit|none"), ("etcd", "on memory")]),
        results,
    }
}

fn burst(size: usize) -> Vec<Measured> {
    let mut results = Vec::new();
    for round in 1..=ROUNDS {
        // Rounds differ a little, and not in the same way for both.
        let luck = 1.0 + 0.02 * number((round * 7) % 5);
        let bare = 20.0 + number(size) / 45.0 * luck;
        let kite = bare * (1.03 + 0.03 * number((round * 3) % 4));
        for (who, last) in [("kite", kite), ("bare", bare)] {
            let mut measured = Measured::new("burst", who, size)
                .figure("time to all Running", "s", last)
                .figure("p50", "s", last * 0.6)
                .figure("p99", "s", last * 0.97)
                .figure("CPU of kube-apiserver", "s", last * 0.8)
                .figure("CPU of stand-ins", "s", last * 0.1);
            if who == "kite" {
                measured = measured.figure("CPU of the six per machine", "ms", 3.1);
            }
            measured.round = round;
            measured.series = vec![curve(size, last)];
            results.push(measured);
        }
    }
    let mut counted = Measured::new("burst", "kite", size).figure("requests", "per machine", 20.0);
    counted.counts = six()
        .iter()
        .zip(EACH)
        .map(|(who, each)| requests(who, "patch", "kiteVirtualmachines/status", 3 + each * size))
        .collect();
    let mut lease = requests("kite-vm", "update", "coordination.k8s.io/leases", 12);
    results.push(counted);
    lease.count += size / 100;
    results[0].counts.clear();
    if let Some(counted) = results.last_mut() {
        counted.counts.push(lease);
    }
    results.push(Measured::new("burst", "raw", size).figure("rate", "creates/s", 412.0));
    results
}

/// A curve that begins when the first machine can run and is steepest in the middle.
fn curve(size: usize, last: f64) -> Series {
    let points = (1..=size.min(1_000)).map(|rank| {
        let share = number(rank) / number(size.min(1_000));
        let bent = share - (share * std::f64::consts::TAU).sin() / 12.0;
        (15.0 + (last - 15.0) * bent, share)
    });
    Series {
        name: "time to Running".to_owned(),
        x: "seconds after its creation".to_owned(),
        y: "share of machines".to_owned(),
        points: points.collect(),
    }
}

fn requests(controller: &str, verb: &str, resource: &str, count: usize) -> Count {
    Count {
        controller: controller.to_owned(),
        verb: verb.to_owned(),
        resource: resource.to_owned(),
        count,
    }
}

fn rest(size: usize) -> Measured {
    let mut measured = Measured::new("rest", "kite", size)
        .figure("requests a minute", "requests/min", 18.8)
        .figure("of leases", "requests/min", 14.4)
        .figure("of watches", "requests/min", 4.4)
        .figure("of machines", "requests/min", 0.0);
    for (who, watches) in six().iter().zip([8, 4, 14, 6, 6, 6]) {
        let lease = "coordination.k8s.io/leases";
        measured.counts.push(requests(who, "update", lease, 24));
        measured
            .counts
            .push(requests(who, "watch", "services", watches));
    }
    measured
}

fn memory(size: usize) -> Vec<Measured> {
    let share = number(size) / 10_000.0;
    let of = |who: &str, resident: f64, peak: f64| {
        Measured::new("memory", who, size)
            .figure("resident", "MiB", resident)
            .figure("peak", "MiB", peak)
            .figure("users", "users", 1_000.0)
    };
    let mut results = Vec::new();
    let mut sum = (0.0, 0.0);
    for (who, full) in six().iter().zip([9.0, 4.0, 52.0, 24.0, 18.0, 16.0]) {
        let resident = 6.2 + full * share;
        let peak = resident * 1.0 + 1.5 + full * share * 0.3;
        sum = (sum.0 + resident, sum.1 + peak);
        results.push(of(who, resident, peak));
    }
    results.push(of("six processes", sum.0, sum.1));
    results
}

fn others() -> Vec<Measured> {
    let mut restart = Measured::new("restart", "kite", 10_000).figure("time", "s", 2.1);
    restart.counts = vec![
        requests(
            "system:serviceaccount:kite-system:kite-vm",
            "watch",
            "services",
            8,
        ),
        requests("kite-vm", "update", "coordination.k8s.io/leases", 6),
    ];
    let mut all = vec![
        restart,
        Measured::new("noisy", "kite", 1_000).figure("p99 against alone", "x", 1.4),
        steady("kite", 0.08),
        steady("bare", 0.06),
        Measured::new("sizes", "kite-vm", 0).figure("stripped", "MiB", 9.1),
        Measured::new("sizes", "kite-user", 0).figure("stripped", "MiB", 8.7),
        Measured::new("start", "kite-vm", 0).figure("start to ready", "s", 0.12),
        Measured::new("something new", "kite", 7).figure("of a kind", "apples", 3.0),
    ];
    all[1].command = "cargo xtask bench noisy --example".to_owned();
    for (round, (kite, bare)) in [(21.0, 19.0), (20.0, 18.0)].into_iter().enumerate() {
        for (who, time) in [("kite", kite), ("bare", bare)] {
            let mut measured =
                Measured::new("deletion", who, 1_000).figure("time to all gone", "s", time);
            measured.round = round + 1;
            all.push(measured);
        }
    }
    all
}

fn steady(who: &str, last: f64) -> Measured {
    let mut measured =
        Measured::new("steady", who, 200).figure("create to disk made, p99", "ms", last * 1_000.0);
    let points = (1..=200).map(|rank| (last * (0.2 + 0.004 * number(rank)), number(rank) / 200.0));
    measured.series = vec![Series {
        name: "create to disk made".to_owned(),
        x: "seconds after its creation".to_owned(),
        y: "share of machines".to_owned(),
        points: points.collect(),
    }];
    measured
}
