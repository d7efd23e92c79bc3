//! Many users made at once: how long until each is ready, and what it costs.

use std::time::Duration;

use anyhow::Result;
use kite_testkit::audit::Request;
use tokio::time::sleep;

use crate::ground::{Ground, GroundOptions};
use crate::load;
use crate::numbers::{number, share};
use crate::report::Measured;
use crate::scenario::at_rest::{by_six, counts};

/// What the last writes need: a quota's use is told some seconds after it is known.
const SETTLING: Duration = Duration::from_secs(10);

/// Runs it with so many users; there are no machines.
pub async fn run(users: usize) -> Result<Vec<Measured>> {
    let ground = Ground::start(GroundOptions::default()).await?;
    ground.start_kite().await?;
    sleep(SETTLING).await;
    let mark = ground.mark().await?;
    let before = ground.usage();
    let took = load::users(&ground.load, users).await?;
    sleep(SETTLING).await;
    let six = ground.usage().six().cpu - before.six().cpu;
    ground.mark().await?;
    let requests = ground.audit()?.since(mark)?;
    let own = |r: &Request| by_six(r) && !r.is_lease();
    let requests: Vec<Request> = requests.into_iter().filter(own).collect();
    let work = requests.iter().filter(|r| r.is_work());
    let work = share(work.count(), users);
    let lists = requests.iter().filter(|r| r.verb == "list").count();
    println!(
        "{users} users: all Ready after {:.1} s, {work:.2} requests for each, {lists} lists, {six:.1} s of CPU in the six",
        took.as_secs_f64()
    );
    let mut found = Measured::new("users", "kite", 0)
        .figure("users", "", number(users))
        .figure("time to all Ready", "s", took.as_secs_f64())
        .figure("requests", "for each user", work)
        .figure("lists", "", number(lists))
        .figure("CPU of the six", "s", six);
    found.contestant = format!("kite, {users} users");
    found.counts = counts(&requests);
    ground.end().await;
    Ok(vec![found])
}
