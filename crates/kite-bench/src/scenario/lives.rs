//! Whole lives of many machines at once, with every request counted: created, switched off, switched
//! on, deleted. In the middle of switching off, somebody else makes a machine.
//!
//! Times of a run that counts are told beside it and compared with nothing.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use kite_api::labels::Controller;
use kite_api::machine::Phase;
use kite_testkit::audit::{Mark, Request};
use serde_json::json;
use tokio::time::sleep;

use crate::ground::{Ground, GroundOptions};
use crate::load::{self, Name};
use crate::numbers::{Spread, number, share};
use crate::onlooker::Onlooker;
use crate::report::Measured;
use crate::scenario::at_rest::{by_six, counts};

/// A step that takes longer has failed.
const LIMIT: Duration = Duration::from_mins(30);

/// What a step's last writes and their echoes need: the longest hold of a status is two seconds.
const SETTLING: Duration = Duration::from_secs(5);

/// Runs it.
pub async fn run(machines: usize) -> Result<Vec<Measured>> {
    let lives = Lives::prepare(machines).await?;
    let created = lives.created().await?;
    let mut found = vec![lives.ticks(&created), created];
    found.push(lives.switched("Off", Phase::Stopped).await?);
    found.push(lives.switched("On", Phase::Running).await?);
    found.push(lives.deleted().await?);
    lives.ground.end().await;
    Ok(found)
}

struct Lives {
    ground: Ground,
    names: Vec<Name>,
    other: Name,
    onlooker: Onlooker,
}

impl Lives {
    async fn prepare(machines: usize) -> Result<Self> {
        let ground = Ground::start(GroundOptions::default()).await?;
        ground.start_kite().await?;
        load::users(&ground.load, load::users_of(machines)).await?;
        let other = Name {
            namespace: "somebody-else".to_owned(),
            name: "web".to_owned(),
        };
        load::users_named(&ground.load, std::slice::from_ref(&other.namespace)).await?;
        sleep(SETTLING).await;
        Ok(Self {
            onlooker: Onlooker::start(&ground.admin).await,
            names: load::names(machines),
            other,
            ground,
        })
    }

    async fn created(&self) -> Result<Measured> {
        let mark = self.begin().await?;
        let began = Instant::now();
        load::machines(&self.ground.load, &self.names, |_| {}).await?;
        let reached = self
            .onlooker
            .all_in(Phase::Running, &self.names, LIMIT)
            .await?;
        self.told("burst", "created", mark, began, &reached).await
    }

    /// What of the disks' progress was told: a tick that nobody could read is not.
    fn ticks(&self, created: &Measured) -> Measured {
        let mirrored = created.counts.iter().filter(|count| {
            count.controller == Controller::DataVolume.name() && count.resource.ends_with("/status")
        });
        let writes: usize = mirrored.map(|count| count.count).sum();
        let ticks = usize::try_from(self.ground.options().ticks).unwrap_or_default();
        let machines = self.names.len();
        Measured::new("ticks", "kite", machines)
            .figure("ticks of progress", "for each machine", number(ticks))
            .figure("status writes", "for each machine", share(writes, machines))
            .figure(
                "status writes",
                "for each tick",
                share(writes, machines * ticks),
            )
    }

    async fn switched(&self, power: &str, phase: Phase) -> Result<Measured> {
        let mark = self.begin().await?;
        let began = Instant::now();
        let spec = json!({"powerState": power});
        let other = async {
            if phase != Phase::Stopped {
                return anyhow::Ok(None);
            }
            let made = load::machine(&self.ground.load, &self.other).await?;
            let names = [self.other.clone()];
            let times = self.onlooker.all_in(Phase::Running, &names, LIMIT).await?;
            Ok(times.get(&self.other).map(|at| *at - made.at))
        };
        let storm = async {
            load::change(&self.ground.load, &self.names, &spec).await?;
            self.onlooker.all_in(phase, &self.names, LIMIT).await
        };
        let (reached, other) = tokio::try_join!(storm, other)?;
        let step = format!("power {}", power.to_lowercase());
        let found = self.told("power", &step, mark, began, &reached).await?;
        Ok(match other {
            Some(took) => found.figure(
                "another tenant's create meanwhile, to Running",
                "s",
                took.as_secs_f64(),
            ),
            None => found,
        })
    }

    async fn deleted(&self) -> Result<Measured> {
        let mark = self.begin().await?;
        let began = Instant::now();
        load::change(&self.ground.load, &self.names, &json!({"delete": true})).await?;
        let gone = self.onlooker.all_gone(&self.names, LIMIT).await?;
        self.told("deletion", "deleted", mark, began, &gone).await
    }

    async fn begin(&self) -> Result<Mark> {
        self.onlooker.forget();
        self.ground.mark().await
    }

    async fn told(
        &self,
        scenario: &str,
        step: &str,
        mark: Mark,
        began: Instant,
        reached: &HashMap<Name, Instant>,
    ) -> Result<Measured> {
        let took = Spread::of(reached.values().map(|at| (*at - began).as_secs_f64()));
        sleep(SETTLING).await;
        self.ground.mark().await?;
        let own = |request: &Request| {
            let others = request.namespace == self.other.namespace;
            by_six(request) && !others
        };
        let requests = self.ground.audit()?.since(mark)?;
        let requests: Vec<Request> = requests.into_iter().filter(own).collect();
        let conflicts = requests.iter().filter(|r| r.code == 409).count();
        let events = requests.iter().filter(|r| r.is_event()).count();
        let each = |count| share(count, self.names.len());
        let work = requests.iter().filter(|r| r.is_work()).count();
        println!(
            "{step}: {:.2} requests for each of {} machines ({work}), {:.2} events, {conflicts} conflicts; all after {:.1} s",
            each(work),
            self.names.len(),
            each(events),
            took.at(1.0)
        );
        let contestant = if scenario == "power" {
            format!("kite, {step}")
        } else {
            "kite".to_owned()
        };
        let mut found = Measured::new(scenario, &contestant, self.names.len())
            .figure("requests", "for each machine", each(work))
            .figure("events", "for each machine", each(events))
            .figure("conflicts", "for each machine", each(conflicts));
        for (name, value) in [("p50", 0.5), ("p99", 0.99), ("all", 1.0)] {
            found = found.figure(
                &format!("{name}, with requests counted"),
                "s",
                took.at(value),
            );
        }
        found.counts = counts(&requests);
        Ok(found)
    }
}
