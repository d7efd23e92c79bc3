//! Two copies of every controller: with the election one works and the other
//! takes over, and without it both work and nothing comes of it.

mod copies;
mod election;
mod unelected;
use tokio::sync::Mutex;

/// One cluster at a time: two cores carry no more, and take-overs are measured.
static TURN: Mutex<()> = Mutex::const_new(());
