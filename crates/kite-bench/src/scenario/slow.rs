//! A server that answers later: whether a contestant waits for one answer after the other, and
//! whether it asks again.
//!
//! Only the contestants have the long way; who makes machines, who looks on and the stand-ins do
//! not.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use kite_api::machine::Phase;
use kite_testkit::audit::{Mark, Request};
use kite_testkit::cluster::CONTROLLERS;
use kite_testkit::{KiteProcess, kubeconfig};
use kube::config::Kubeconfig;
use tokio::time::sleep;

use crate::bare::{Bare, Clients, TICKS};
use crate::contest::{Contest, Contestant, PAUSE};
use crate::delay::Delay;
use crate::ground::{GroundOptions, client_by};
use crate::load;
use crate::numbers::share;
use crate::report::Measured;
use crate::scenario::at_rest::by_six;

/// A server on another continent, or one that is busy.
const LATER: Duration = Duration::from_millis(50);

/// A machine that takes longer has failed.
const LIMIT: Duration = Duration::from_mins(10);

/// Runs it. Requests are counted, so the times are told beside each other and beside nothing else.
pub async fn run(machines: usize, rounds: usize) -> Result<Vec<Measured>> {
    let options = GroundOptions {
        audit: true,
        ..GroundOptions::timed()
    };
    let contest = Contest::prepare(machines, options).await?;
    let url = contest.ground.cluster.control_plane.url();
    let server: SocketAddr = url.trim_start_matches("https://").parse()?;
    let slow = Slow {
        delay: Delay::start(server, LATER).await?,
        contest,
    };
    let mut found = Vec::new();
    for round in 1..=rounds {
        for contestant in Contestant::order(round) {
            found.push(slow.round(contestant, round).await?);
        }
    }
    slow.contest.ground.end().await;
    Ok(found)
}

struct Slow {
    contest: Contest,
    delay: Delay,
}

impl Slow {
    async fn round(&self, contestant: Contestant, round: usize) -> Result<Measured> {
        let Contest { ground, names, .. } = &self.contest;
        self.contest.onlooker.forget();
        let mut processes = Vec::new();
        let mut bare = None;
        match contestant {
            Contestant::Kite => {
                for name in CONTROLLERS {
                    processes.push(self.start(name).await?);
                }
            }
            Contestant::Bare => bare = Some(self.bare().await?),
        }
        sleep(PAUSE).await;
        let mark = ground.mark().await?;
        let began = Instant::now();
        let made = load::machines(&ground.load, names, |made| {
            if let Some(bare) = &bare {
                bare.live(made);
            }
        });
        made.await?;
        let running = self
            .contest
            .onlooker
            .all_in(Phase::Running, names, LIMIT)
            .await?;
        let last = running.values().max().copied().unwrap_or(began);
        sleep(PAUSE).await;
        let each = self.requests(mark).await?;
        let (name, took) = (contestant.name(), (last - began).as_secs_f64());
        println!(
            "round {round}, {name:4}, answers {} ms later: all Running after {took:.1} s, {each:.2} requests for each",
            LATER.as_millis()
        );
        for process in processes {
            process.terminate(PAUSE).await;
        }
        self.contest.leave(bare).await?;
        let mut found = Measured::new("slow", name, names.len())
            .figure("time to all Running", "s", took)
            .figure("requests", "for each machine", each);
        found.round = round;
        Ok(found)
    }

    /// Requests since a mark, for each machine.
    async fn requests(&self, mark: Mark) -> Result<f64> {
        let ground = &self.contest.ground;
        ground.mark().await?;
        let requests = ground.audit()?.since(mark)?;
        // While the bare client works none of the six does, so what they would send is its own.
        let own = |r: &&Request| by_six(r) || r.is_by("bare");
        let work = requests.iter().filter(own).filter(|r| r.is_work());
        Ok(share(work.count(), self.contest.names.len()))
    }

    async fn bare(&self) -> Result<Bare> {
        let ground = &self.contest.ground;
        let [own, status] = &ground.bare_accounts;
        let clients = Clients {
            own: client_by(&self.far(own)?).await?,
            status: client_by(&self.far(status)?).await?,
        };
        let mould = Arc::clone(&self.contest.mould);
        Ok(Bare::start(&clients, mould, ground.scaled(TICKS)).await)
    }

    async fn start(&self, name: &str) -> Result<KiteProcess> {
        let cluster = &self.contest.ground.cluster;
        let mut options = cluster.kite_options(name, name, &[]);
        options.kubeconfig = self.far(&options.kubeconfig)?;
        KiteProcess::start(&cluster.control_plane, options).await
    }

    /// A copy of a kubeconfig that leads the long way.
    fn far(&self, near: &Path) -> Result<PathBuf> {
        let mut config = Kubeconfig::read_from(near)?;
        for cluster in config.clusters.iter_mut().flat_map(|c| &mut c.cluster) {
            cluster.server = Some(format!("https://{}", self.delay.address()));
        }
        kubeconfig::write(&config, &near.with_extension("far.kubeconfig"))
    }
}
