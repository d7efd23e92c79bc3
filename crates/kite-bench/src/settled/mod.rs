//! Thousands of machines that have come to rest, made from a few that really did.
//!
//! One user with its machines lives a real, short life until everything is Ready: Kite's six made
//! the children, the stand-ins played KubeVirt and CDI, and Kubernetes added what it adds
//! (endpoints, addresses, quota, the default account). Then all of it is stopped, and every object
//! of that user is written into the store again and again under another name, while no API server
//! looks. Ten thousand machines take a minute instead of hours.
//!
//! What a copy is: every object that the real one has, byte for byte as the API server stored it,
//! with its own user name, UIDs, addresses and times. Owner references, labels, annotations and
//! status all name the copy's own objects. The quota has counted what is there, since a user is
//! copied with all its machines. The judge is Kite itself: started on the copies it must write
//! nothing.
//!
//! What a copy is not: it has no history in the store and no Events; its generated SSH key is the
//! original's, and so is what KubeVirt drew for its firmware; machines of different users have the
//! same names; and all of them are as old as the
//! original, give or take [`copies::STEP`] for each user. Nothing that was measured while it was
//! made says anything about Kite.
//!
//! What was copied is read through the real API server afterwards. It keeps core objects in JSON
//! where it is started with [`APISERVER_ARGS`], which the copying needs.

pub mod copies;
mod original;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use kite_testkit::Cluster;
use kite_testkit::cluster::CONTROLLERS;

use crate::load::{self, Name};
use crate::store::Store;
use copies::Pattern;
use original::Original;

/// What the API server must be started with, since its usual format cannot be read as text.
pub const APISERVER_ARGS: [&str; 1] = ["--storage-media-type=application/json"];

/// How long a controller may take to stop by itself.
const GRACE: Duration = Duration::from_secs(25);

/// How many there are to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// How many users.
    pub users: usize,
    /// How many machines each of them has.
    pub each: usize,
}

impl Wanted {
    /// That many machines, [`load::PER_USER`] for each user; the last user is full as well.
    pub fn machines(machines: usize) -> Self {
        Self {
            users: load::users_of(machines),
            each: load::PER_USER,
        }
    }

    /// How many machines that is.
    pub fn total(&self) -> usize {
        self.users * self.each
    }
}

/// What there is after copying.
#[derive(Clone, Copy, Debug)]
pub struct Settled {
    /// How many users and machines.
    pub wanted: Wanted,
    /// How many objects were written.
    pub objects: usize,
    /// What the whole store holds, bytes.
    pub stored: u64,
    /// How long the original took to live and come to rest.
    pub living: Duration,
    /// How long copying took, the API server's start included.
    pub copying: Duration,
}

impl Settled {
    /// Namespace and name of each machine. With [`load::PER_USER`] machines for each user they are
    /// those of [`load::names`].
    pub fn names(&self) -> Vec<Name> {
        let of_user = |user: usize| {
            (0..self.wanted.each).map(move |number| Name {
                namespace: load::user_name(user),
                name: original::machine_name(number),
            })
        };
        (0..self.wanted.users).flat_map(of_user).collect()
    }
}

/// Fills a cluster in which there are no users yet. Afterwards only the store and the API server
/// run: Kubernetes' own controllers look at each copy once when they start, and at ten thousand that
/// takes them minutes which no measurement needs. Whoever wants changes starts them, and the stand-ins.
pub async fn settle(cluster: &Cluster, wanted: Wanted) -> Result<Settled> {
    let began = Instant::now();
    ensure!(
        wanted.total() > 0,
        "no machine is wanted, so nothing is to be made"
    );
    let store = Store::of(&cluster.control_plane)?;
    for name in CONTROLLERS {
        if !cluster.names().iter().any(|running| running == name) {
            cluster.run(name, name, &[]).await?;
        }
    }
    let original = Original::make(cluster, wanted.each).await?;
    original.come_to_rest(&store).await?;
    for name in cluster.names() {
        cluster.take(&name).terminate(GRACE).await;
    }
    let living = began.elapsed();

    let began = Instant::now();
    cluster.end_stand_ins().await;
    cluster.control_plane.stop_controller_manager().await;
    cluster.control_plane.stop_apiserver().await;
    let own = original.own(&store).await?;
    let pattern = Pattern::of(original.user(), &own).context("the original")?;
    for entry in &own {
        store.remove(&entry.key).await?;
    }
    let copies = (0..wanted.users).flat_map(|copy| pattern.copy(copy, &load::user_name(copy)));
    pattern.fits(wanted.users)?;
    let objects = store.put_all(copies).await?;
    store.compact().await?;
    store.defragment().await?;
    let stored = store.bytes_in_use().await?;
    cluster.control_plane.start_apiserver().await?;
    Ok(Settled {
        wanted,
        objects,
        stored,
        living,
        copying: began.elapsed(),
    })
}
