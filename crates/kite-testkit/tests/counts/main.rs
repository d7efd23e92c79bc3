//! What each step of a life costs, counted on the API server at two sizes of a cluster: it is a
//! line over the number of objects, and the slope is known.
//!
//! No time is measured. What depends on time, because others are slow, is told apart by the times
//! in the audit log.

mod expected;
mod ground;
mod judged;
mod steps;
mod table;
mod versions;

use expected::{
    CREATE, CREATE_WITH_DOMAIN, DELETE, DELETE_WITH_DOMAIN, DRIFT, POWER_OFF, POWER_ON, REST, SPEC,
    Step, USER_CREATE, USER_DELETE,
};
use ground::{Ground, SITE, Users};
use judged::judge;
use kite_api::machine::PowerState;
use kite_testkit::counted::Counted;
use kite_testkit::fit::Counts;
use table::Table;
use versions::Versions;

/// The two sizes. More would take longer, and two points are a line.
const SIZES: [usize; 2] = [4, 16];

/// Writes that the server refuses as stale: of a hundred requests so many at most, on a machine
/// that is busy with other things; on an idle one there is hardly one (see [`stale_writes`]).
const STALE_PERCENT: usize = 5;

// C-5, C-10, C-20, D-2, U-10, V-18
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_requests_of_each_step_are_a_line_over_the_number_of_machines() {
    let ground = Ground::start().await;
    let versions = Versions::watch(&ground.client);
    let mut table = Table::default();
    let mut restarts = Vec::new();
    for number in SIZES {
        let users = ground.users(number);
        restarts.push(life(&ground, &users, &mut table).await);
    }
    println!("{table}");
    let mut wrong = table.wrong();
    wrong.extend(stale_writes(&table));
    wrong.extend(restarts_only_read(&restarts));
    let audit = ground.cluster.control_plane.audit().unwrap();
    let (needless, writes) = versions.needless(audit.path());
    println!(
        "{writes} writes and {} objects looked at for needless ones",
        versions.objects()
    );
    assert!(
        writes > 500 && versions.objects() > 200,
        "the look saw little"
    );
    wrong.extend(needless);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The life of so many users and machines, step by step. Returns what a restart asked.
async fn life(ground: &Ground, users: &Users<'_>, table: &mut Table) -> Counted {
    let (all, sites) = (users.number(), users.sites());
    let mut note = |step: &'static Step, number: usize, counted: Counted| {
        table.add(step, number, judge(step, number, counted.requests));
    };
    note(&USER_CREATE, all, ground.counted(users.create()).await);
    let made = ground.counted(users.make_machines()).await;
    let (with, without) = by_domain(made);
    note(&CREATE, all, without);
    note(&CREATE_WITH_DOMAIN, sites, with);
    note(&REST, all, ground.counted(steps::rest()).await);
    let restarted = ground.counted(ground.restart()).await;
    note(&DRIFT, all, ground.counted(steps::drift(users)).await);
    let off = ground.counted(users.switch(PowerState::Off)).await;
    note(&POWER_OFF, all, off);
    note(&SPEC, all, ground.counted(steps::spec(users)).await);
    let on = ground.counted(users.switch(PowerState::On)).await;
    note(&POWER_ON, all, on);
    let (with, without) = by_domain(ground.counted(users.delete_machines()).await);
    note(&DELETE, all, without);
    note(&DELETE_WITH_DOMAIN, sites, with);
    note(&USER_DELETE, all, ground.counted(users.delete()).await);
    restarted
}

/// What was asked about the machines with a host name, and all the rest.
fn by_domain(mut counted: Counted) -> (Counted, Counted) {
    let is_site = |r: &kite_testkit::audit::Request| r.name.starts_with(SITE);
    let requests = std::mem::take(&mut counted.requests);
    let (with, without) = requests.into_iter().partition(is_site);
    let of = |requests| Counted {
        requests,
        events: 0,
        upkeep: 0,
        watches: Vec::new(),
    };
    (of(with), of(without))
}

/// C-10: a write that carries `phase` is bound to the version that it was decided on, so that two
/// of the four may be in each other's way, and the one that comes second looks again. Nobody else
/// is ever refused as stale.
fn stale_writes(table: &Table) -> Vec<String> {
    let mut wrong = Vec::new();
    let stale: Vec<_> = table.stale().collect();
    for request in &stale {
        let carries_phase = request.is_by("kite-vm") || request.is_by("kite-vm-status");
        if !carries_phase || request.subresource != "status" {
            wrong.push(format!("refused as stale: {request:?}"));
        }
    }
    let (stale, all) = (stale.len(), table.total());
    println!("{stale} of {all} requests were refused as stale");
    if stale * 100 > all * STALE_PERCENT {
        wrong.push(format!("{stale} of {all} requests were refused as stale"));
    }
    wrong
}

/// C-5: a restart with everything settled lists and watches, each kind once whatever the number of
/// objects, as long as they fit on a page, and does nothing else.
fn restarts_only_read(restarts: &[Counted]) -> Vec<String> {
    let mut wrong = Vec::new();
    let asked = restarts.iter().map(|restart| {
        let other = restart.requests.iter().filter(|r| r.verb != "list");
        wrong.extend(other.map(|r| format!("a restart sent {r:?}")));
        (restart.counts(), Counts::of(&restart.watches))
    });
    let asked: Vec<_> = asked.collect();
    for (lists, watches) in &asked {
        println!(
            "restart: {} lists, {} watches",
            lists.total(),
            watches.total()
        );
        if lists.total() > watches.total() || watches.total() == 0 {
            wrong.push(format!("more lists than watches: {lists:?} {watches:?}"));
        }
    }
    if asked.iter().any(|sizes| *sizes != asked[0]) {
        wrong.push(format!(
            "a restart costs more with more objects: {asked:#?}"
        ));
    }
    wrong
}
