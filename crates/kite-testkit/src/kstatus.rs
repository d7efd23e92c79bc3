//! The real kstatus as judge of readiness, through a small Go filter.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::filter::Filter;
use crate::programs::Program;
use crate::recorder;

/// What kstatus makes of an object.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct KStatus {
    /// `Current`, `InProgress`, `Failed`, `Terminating`, `Unknown` or `NotFound`.
    pub status: String,
    /// Its reason in words.
    #[serde(default)]
    pub message: String,
}

/// A running filter; many threads may ask it.
pub struct Judge(Filter);

impl Judge {
    /// Starts the filter, which is built first when it is nowhere.
    pub async fn start() -> Result<Self> {
        Ok(Self(Filter::start(Program::Kstatus).await?))
    }

    /// The status of one object, which must carry apiVersion and kind.
    pub fn status_of(&self, object: &impl Serialize) -> Result<KStatus> {
        let answer = self.0.ask(object)?;
        recorder::record(object, &answer)?;
        Ok(answer)
    }
}
