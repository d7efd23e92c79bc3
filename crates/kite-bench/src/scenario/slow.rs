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
use kite_testkit::audit::Request;
use kite_testkit::cluster::CONTROLLERS;
use kite_testkit::{KiteProcess, kubeconfig};
use kube::config::Kubeconfig;
use tokio::time::sleep;

use crate::bare::{Bare, Clients, TICKS};
use crate::clean;
use crate::delay::Delay;
use crate::ground::{Ground, GroundOptions, client_by};
use crate::load::{self, Name};
use crate::mould::Mould;
use crate::onlooker::Onlooker;
use crate::report::Measured;
use crate::scenario::burst::mould_of;
use crate::scenario::lives::share;

/// A server on another continent, or one that is busy.
const LATER: Duration = Duration::from_millis(50);

/// A machine that takes longer has failed.
const LIMIT: Duration = Duration::from_mins(10);

/// Between two rounds.
const PAUSE: Duration = Duration::from_secs(5);

/// Runs it.
pub async fn run(machines: usize, rounds: usize) -> Result<Vec<Measured>> {
    let ground = Ground::start(GroundOptions {
        args: vec![("all", "--log-level=warn".to_owned())],
        ..GroundOptions::default()
    })
    .await?;
    ground.start_kite().await?;
    load::users(&ground.load, load::users_of(machines)).await?;
    let mould = Arc::new(mould_of(&ground).await?);
    ground.stop_kite().await;
    let server: SocketAddr = ground
        .cluster
        .control_plane
        .url()
        .trim_start_matches("https://")
        .parse()?;
    let slow = Slow {
        delay: Delay::start(server, LATER).await?,
        onlooker: Onlooker::start(&ground.admin).await,
        names: load::names(machines),
        mould,
        ground,
    };
    let mut found = Vec::new();
    for round in 1..=rounds {
        for kite in [false, true] {
            found.push(slow.round(kite, round).await?);
        }
    }
    slow.ground.end().await;
    Ok(found)
}

struct Slow {
    ground: Ground,
    delay: Delay,
    names: Vec<Name>,
    mould: Arc<Mould>,
    onlooker: Onlooker,
}

impl Slow {
    async fn round(&self, kite: bool, round: usize) -> Result<Measured> {
        self.onlooker.forget();
        let ground = &self.ground;
        let mut processes = Vec::new();
        let mut bare = None;
        if kite {
            for name in CONTROLLERS {
                processes.push(self.start(name).await?);
            }
        } else {
            let [own, status] = &ground.bare_accounts;
            let client = Clients {
                own: client_by(&self.far(own)?).await?,
                status: client_by(&self.far(status)?).await?,
            };
            let between = ground.scaled(TICKS);
            bare = Some(Bare::start(&client, Arc::clone(&self.mould), between).await);
        }
        sleep(PAUSE).await;
        let mark = ground.mark().await?;
        let began = Instant::now();
        let made = load::machines(&ground.load, &self.names, |made| {
            if let Some(bare) = &bare {
                bare.live(made);
            }
        });
        made.await?;
        let running = self
            .onlooker
            .all_in(Phase::Running, &self.names, LIMIT)
            .await?;
        let last = running.values().max().copied().unwrap_or(began);
        sleep(PAUSE).await;
        ground.mark().await?;
        let requests = ground.audit()?.since(mark)?;
        // While the bare client works none of the six does, so what they would send is its own.
        let own = |r: &&Request| r.user.contains(":kite-system:kite-") || r.is_by("bare");
        let work = requests
            .iter()
            .filter(own)
            .filter(|r| !r.is_lease() && !r.is_watch() && !r.is_event());
        let each = share(work.count(), self.names.len());
        let contestant = if kite { "kite" } else { "bare" };
        let took = (last - began).as_secs_f64();
        println!(
            "round {round}, {contestant:4}, answers {} ms later: all Running after {took:.1} s, {each:.2} requests for each",
            LATER.as_millis()
        );
        for process in processes {
            process.terminate(PAUSE).await;
        }
        drop(bare);
        clean::machines(ground, &self.names).await?;
        sleep(PAUSE).await;
        let mut found = Measured::new("slow", contestant, self.names.len())
            .figure("time to all Running", "s", took)
            .figure("requests", "for each machine", each);
        found.round = round;
        Ok(found)
    }

    async fn start(&self, name: &str) -> Result<KiteProcess> {
        let cluster = &self.ground.cluster;
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
