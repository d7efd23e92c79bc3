//! What the pods wrote, against who held the Lease then, both in the order of the
//! audit log.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kite_testkit::audit::Request;

use super::leading::holder;
use super::{LEADER_OF, LEASE, RETRY, SLACK};

/// Who holds the Lease from a place in the log on; nobody when the name is empty.
struct Held {
    from: usize,
    by: String,
}

/// The pod whose process was frozen, and since when it ran again.
pub(super) struct Thawed {
    pub(super) pod: String,
    pub(super) at: Timestamp,
}

/// Within this time what was on its way when a process was frozen arrives after all: the socket is
/// written to when it wakes, before it can look at a clock. No Lease keeps that back.
const ARRIVES: Duration = Duration::from_secs(1);

/// No more than that can be on its way: four passes, each with three children side by side.
const ON_THEIR_WAY: usize = 12;

/// Every write is of the pod that held the Lease then, and nothing was made twice.
pub(super) fn judge(requests: &[Request], leases: &[Lease], thawed: &Thawed) {
    let held = held(requests, leases);
    take_overs(leases);
    let writes: Vec<_> = requests
        .iter()
        .enumerate()
        .filter(|(_, r)| r.is_by(LEADER_OF) && r.is_write() && !r.is_lease())
        .collect();
    assert!(writes.iter().all(|(_, r)| !r.pod.is_empty()));
    let holder_at = |at: usize| {
        let current = held.iter().rev().find(|held| held.from <= at);
        &current.expect("somebody leads from the beginning").by
    };
    let foreign: Vec<_> = writes
        .iter()
        .filter(|(at, r)| *holder_at(*at) != r.pod)
        .map(|(at, r)| (holder_at(*at), r))
        .collect();
    let takers: Vec<_> = changes(&held);
    println!(
        "{} writes, {} of them by a pod that did not hold the Lease; it was held by {takers:?}",
        writes.len(),
        foreign.len()
    );
    assert!(foreign.len() <= ON_THEIR_WAY, "{foreign:#?}");
    let late: Vec<_> = foreign
        .iter()
        .filter(|(_, r)| !thawed.was_on_its_way(r))
        .collect();
    assert!(late.is_empty(), "{late:#?}");
    // A roll of three pods, and two take-overs: more than one pod was in the position to write.
    assert!(takers.len() >= 4, "{takers:?}");

    let mut made = BTreeMap::<(&str, &str, &str), usize>::new();
    for (_, r) in writes.iter().filter(|(_, r)| !r.is_event()) {
        if r.verb == "create" && r.code == 201 {
            *made
                .entry((&r.resource, &r.namespace, &r.name))
                .or_default() += 1;
        }
    }
    let twice: Vec<_> = made.iter().filter(|(_, times)| **times > 1).collect();
    println!("{} objects made, {} of them twice", made.len(), twice.len());
    assert!(twice.is_empty(), "{twice:?}");
}

impl Thawed {
    fn was_on_its_way(&self, request: &Request) -> bool {
        let after = Duration::try_from(request.time.duration_since(self.at));
        request.pod == self.pod && after.is_ok_and(|after| after <= ARRIVES)
    }
}

/// How long the Lease was without a renewal when another took it: at once after it was given back.
fn take_overs(leases: &[Lease]) {
    for pair in leases.windows(2) {
        let [before, after] = [&pair[0], &pair[1]];
        if holder(after).is_empty() || holder(after) == holder(before) {
            continue;
        }
        let gap = Duration::try_from(renewed(after).duration_since(renewed(before))).unwrap();
        let given_back = holder(before).is_empty();
        println!("Lease taken {gap:?} after the last write, given back: {given_back}");
        let limit = if given_back {
            LEASE
        } else {
            LEASE + RETRY + SLACK
        };
        assert!(gap <= limit, "{gap:?}");
    }
}

fn renewed(lease: &Lease) -> Timestamp {
    let spec = lease.spec.as_ref();
    let time = spec.and_then(|s| s.renew_time.clone());
    time.expect("every writer says when").0
}

/// The names that follow each other, those of a Lease that was given back left out.
fn changes(held: &[Held]) -> Vec<&str> {
    let mut names: Vec<_> = held.iter().map(|h| h.by.as_str()).collect();
    names.retain(|name| !name.is_empty());
    names.dedup();
    names
}

/// Finds each version of the Lease in the log: the first write of its writer after the time in it.
fn held(requests: &[Request], leases: &[Lease]) -> Vec<Held> {
    let mut held = Vec::<Held>::new();
    let mut writer = String::new();
    for lease in leases {
        let by = holder(lease);
        // Whoever gives it back has held it before.
        if !by.is_empty() {
            writer.clone_from(&by);
        }
        let renewed = renewed(lease);
        let from = requests.iter().position(|r| {
            let written = r.is_by(LEADER_OF) && r.is_lease() && r.is_write() && r.code < 300;
            written && r.pod == writer && r.time >= renewed
        });
        match from {
            // It was written before the log's part begins.
            _ if held.is_empty() => held.push(Held { from: 0, by }),
            Some(from) => held.push(Held { from, by }),
            None => panic!("not in the log: {lease:?}"),
        }
    }
    assert!(
        held.is_sorted_by_key(|held| held.from),
        "the log and the watch tell the same in the same order"
    );
    held
}
