//! A ground on which contestants take turns: the users are there, machines are not, and the mould
//! is taken.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use kite_api::machine::Phase;
use tokio::time::sleep;

use crate::bare::{Bare, TICKS};
use crate::clean;
use crate::ground::{Ground, GroundOptions};
use crate::load::{self, Name};
use crate::mould::{self, Mould};
use crate::onlooker::Onlooker;

/// Between two rounds, and before the first: the server's own controllers finish what they have to.
pub const PAUSE: Duration = Duration::from_secs(5);

/// The one machine of the mould takes its life's time, and no longer than this.
const MOULD_LIMIT: Duration = Duration::from_mins(2);

/// Who does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contestant {
    /// The six processes.
    Kite,
    /// The bare client.
    Bare,
}

impl Contestant {
    /// As reports call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kite => "kite",
            Self::Bare => "bare",
        }
    }

    /// Both, in an order that changes from round to round.
    pub const fn order(round: usize) -> [Self; 2] {
        if round.is_multiple_of(2) {
            [Self::Kite, Self::Bare]
        } else {
            [Self::Bare, Self::Kite]
        }
    }
}

/// The ground, and what every round needs.
pub struct Contest {
    /// The control plane and all accounts. Of Kite nothing runs between two rounds.
    pub ground: Ground,
    /// The machines of a round.
    pub names: Vec<Name>,
    /// The bodies of the bare client's requests.
    pub mould: Arc<Mould>,
    /// Who sees machines become what they are.
    pub onlooker: Onlooker,
}

impl Contest {
    /// Has Kite make the users and one machine, takes the mould, and ends Kite.
    pub async fn prepare(machines: usize, options: GroundOptions) -> Result<Self> {
        let ground = Ground::start(options).await?;
        ground.start_kite().await?;
        let users = load::users_of(machines);
        let took = load::users(&ground.load, users).await?;
        println!(
            "{users} users made and ready after {:.1} s",
            took.as_secs_f64()
        );
        let onlooker = Onlooker::start(&ground.admin).await;
        let mould = take_mould(&ground, &onlooker).await?;
        Ok(Self {
            names: load::names(machines),
            onlooker,
            mould,
            ground,
        })
    }

    /// Has a contestant ready for a round; the bare client is returned, Kite is the ground's.
    pub async fn enter(&self, contestant: Contestant) -> Result<Option<Bare>> {
        self.onlooker.forget();
        let bare = match contestant {
            Contestant::Kite => {
                self.ground.start_kite().await?;
                None
            }
            Contestant::Bare => Some(bare(&self.ground, &self.mould).await),
        };
        sleep(PAUSE).await;
        Ok(bare)
    }

    /// Ends whoever worked, and takes the machines away.
    pub async fn leave(&self, bare: Option<Bare>) -> Result<()> {
        self.ground.stop_kite().await;
        drop(bare);
        self.clear().await
    }

    /// Takes the machines away.
    pub async fn clear(&self) -> Result<()> {
        clean::machines(&self.ground, &self.names).await?;
        sleep(PAUSE).await;
        Ok(())
    }
}

/// Has the Kite that runs make one machine, from which the bare client's requests are taken, and
/// ends it.
pub async fn take_mould(ground: &Ground, onlooker: &Onlooker) -> Result<Arc<Mould>> {
    let original = [mould::original()];
    load::users_named(&ground.load, std::slice::from_ref(&original[0].namespace)).await?;
    load::machines(&ground.load, &original, |_| {}).await?;
    onlooker
        .all_in(Phase::Running, &original, MOULD_LIMIT)
        .await?;
    // The Service's endpoints come a little after.
    sleep(PAUSE).await;
    let mould = Mould::of(&ground.admin).await?;
    ground.stop_kite().await;
    Ok(Arc::new(mould))
}

/// Starts a bare client at the ground's pace.
pub async fn bare(ground: &Ground, mould: &Arc<Mould>) -> Bare {
    Bare::start(&ground.bare, Arc::clone(mould), ground.scaled(TICKS)).await
}
