//! What was counted against what may be: rows, refusals, and what only time can judge.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kite_testkit::audit::Request;
use kite_testkit::fit::{Asked, Counts};

use crate::expected::{Row, Step};

/// A step at one size: what was carried out, what was refused as stale, and what is wrong with it.
#[derive(Default)]
pub(crate) struct Judged {
    pub(crate) counts: Counts,
    pub(crate) stale: Vec<Request>,
    /// Writes that are due only because something else was slow.
    pub(crate) excused: usize,
    pub(crate) wrong: Vec<String>,
}

/// Judges the requests of a step for `number` objects.
pub(crate) fn judge(step: &Step, number: usize, requests: Vec<Request>) -> Judged {
    let mut wrong = Vec::new();
    let (stale, requests): (Vec<_>, Vec<_>) = requests
        .into_iter()
        .partition(|r| matches!(r.code, 409 | 422));
    for request in &requests {
        let absent = request.code == 404 && request.verb == "get";
        if request.code >= 300 && !absent {
            wrong.push(format!("{} with {number}: refused: {request:?}", step.name));
        }
    }
    let (slow, requests) = without_slow(requests);
    let (ticks, mut often) = coalesced(&requests);
    wrong.append(&mut often);
    let late = late(step, &requests);
    let counts = Counts::of(&requests);
    wrong.extend(against_rows(step, number, &counts));
    let sum = if step.of.is_empty() {
        counts.total()
    } else {
        counts.by(step.of)
    };
    let (floor, limit) = (step.floor * number, step.limit * number + ticks + late);
    if sum > limit {
        wrong.push(format!(
            "{} with {number}: {sum} requests in all, {limit} are allowed (floor {floor})",
            step.name
        ));
    }
    Judged {
        counts,
        stale,
        excused: slow + ticks + late,
        wrong,
    }
}

/// What was asked too seldom, too often, or although no row allows it.
fn against_rows(step: &Step, number: usize, counts: &Counts) -> Vec<String> {
    let mut wrong = Vec::new();
    let allowed = |row: &Row| (row.least * number)..=(row.most * number);
    for row in step.rows {
        let count = counts.get(&asked(row));
        if !allowed(row).contains(&count) {
            wrong.push(format!(
                "{} with {number}: {} {count} times, not {} to {} for each ({})",
                step.name,
                asked(row),
                row.least,
                row.most,
                row.why
            ));
        }
    }
    for (other, count) in counts.rows() {
        if !step.rows.iter().any(|row| asked(row) == *other) {
            wrong.push(format!(
                "{} with {number}: {other} {count} times, which no row allows",
                step.name
            ));
        }
    }
    wrong
}

fn asked(row: &Row) -> Asked {
    Asked {
        controller: row.controller.to_owned(),
        verb: row.verb.to_owned(),
        resource: row.resource.to_owned(),
    }
}

/// Something that a process waits for in silence, and says that it has not come when it takes longer.
struct Wait {
    who: &'static str,
    /// What is written, and with which verb; the server's or CDI's answer to it is waited for.
    written: (&'static str, &'static str),
    /// The kind whose status says so.
    told: &'static str,
    /// How many statuses there are when it comes in time.
    usual: usize,
    patience: Duration,
}

const WAITS: [Wait; 3] = [
    Wait {
        who: "kite-vm",
        written: ("create", "cdi.kubevirt.io/datavolumes"),
        told: "kite.dev/kitevirtualmachines",
        usual: 1,
        patience: Duration::from_secs(2),
    },
    Wait {
        who: "kite-user",
        written: ("create", "resourcequotas"),
        told: "kite.dev/kiteusers",
        usual: 1,
        patience: Duration::from_secs(1),
    },
    Wait {
        who: "kite-user",
        written: ("patch", "resourcequotas"),
        told: "kite.dev/kiteusers",
        usual: 0,
        patience: Duration::from_secs(1),
    },
];

/// Takes off the first status of an object where it is one too many and says that something has
/// not come. One that came before its time stays, and is one too many.
fn without_slow(requests: Vec<Request>) -> (usize, Vec<Request>) {
    let mut slow = BTreeSet::new();
    for wait in &WAITS {
        let written = times(&requests, |r| {
            r.is_by(wait.who) && (r.verb.as_str(), r.resource.as_str()) == wait.written
        });
        let told = times(&requests, |r| {
            r.is_by(wait.who) && r.resource == wait.told && r.subresource == "status"
        });
        for (object, told) in told {
            let Some(written) = written.get(&object) else {
                continue;
            };
            let waited = told[0].duration_since(written[0]);
            let waited: Duration = waited.try_into().unwrap_or_default();
            if told.len() > wait.usual && waited >= wait.patience {
                slow.insert((wait.who, object, told[0]));
            }
        }
    }
    let is_slow = |r: &Request| {
        let of = |(who, object, time): &(&str, String, Timestamp)| {
            r.is_by(who) && object_of(r) == *object && r.time == *time
        };
        r.subresource == "status" && slow.iter().any(of)
    };
    let before = requests.len();
    let kept: Vec<_> = requests.into_iter().filter(|r| !is_slow(r)).collect();
    (before - kept.len(), kept)
}

/// One write of progress in ten seconds of life, which are so long here.
const TICK: Duration = Duration::from_secs(1);
/// A clone of sixty seconds that is told as seldom as that.
const USUAL_TICKS: usize = 8;

/// D-2: beside the first and the last, one write in ten seconds. Returns how many there were
/// beyond those of a clone that takes as long as it should, and what is wrong.
fn coalesced(requests: &[Request]) -> (usize, Vec<String>) {
    let writes = times(requests, |r| {
        r.is_by("kite-datavolume") && r.subresource == "status"
    });
    let (mut more, mut wrong) = (0, Vec::new());
    for (object, times) in writes {
        let took = times[times.len() - 1].duration_since(times[0]);
        let took: Duration = took.try_into().unwrap_or_default();
        // The phase before the first tick, the first and the last, and a late answer.
        let most = 4 + usize::try_from(took.as_millis() / TICK.as_millis()).unwrap_or_default();
        if times.len() > most {
            wrong.push(format!(
                "{object}: {} progress writes in {took:?}",
                times.len()
            ));
        }
        more += times.len().saturating_sub(USUAL_TICKS);
    }
    (more, wrong)
}

/// The longest that a mirror holds a state back of which it expects a better one.
const HOLD: Duration = Duration::from_secs(2);

/// How many of the mirrors' writes, beyond the least that a step needs, tell of a state that lasted
/// for longer than is held back: on a slow server states that are one moment in life come one by one.
fn late(step: &Step, requests: &[Request]) -> usize {
    let mirrors = step.rows.iter().filter(|row| row.least < row.most);
    let of_row = |row: &Row| {
        let writes = times(requests, |r| {
            r.is_by(row.controller) && r.verb == row.verb && r.target() == row.resource
        });
        let of_object = |times: &Vec<Timestamp>| {
            let apart = |pair: &&[Timestamp]| {
                let apart = pair[1].duration_since(pair[0]);
                Duration::try_from(apart).is_ok_and(|apart| apart >= HOLD)
            };
            let late = times.windows(2).filter(apart).count();
            late.min(times.len().saturating_sub(row.least))
        };
        writes.values().map(of_object).sum::<usize>()
    };
    // Progress is told by the clock, and judged so.
    let by_states = mirrors.filter(|row| row.controller != "kite-datavolume");
    by_states.map(of_row).sum()
}

/// When each object was asked about, in order.
fn times(requests: &[Request], is: impl Fn(&Request) -> bool) -> BTreeMap<String, Vec<Timestamp>> {
    let mut times = BTreeMap::<_, Vec<_>>::new();
    for request in requests.iter().filter(|r| is(r)) {
        times
            .entry(object_of(request))
            .or_default()
            .push(request.time);
    }
    for times in times.values_mut() {
        times.sort();
    }
    times
}

/// Everything that is told of a machine or a user here bears its name, or stands in its namespace.
fn object_of(request: &Request) -> String {
    match (request.resource.as_str(), request.namespace.as_str()) {
        ("kite.dev/kiteusers", _) => request.name.clone(),
        ("resourcequotas", namespace) => namespace.to_owned(),
        (_, namespace) => format!("{namespace}/{}", request.name),
    }
}
