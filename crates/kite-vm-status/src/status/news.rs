//! What of a write is an event that a person cares about (rule C-16).
//!
//! Pure. It compares what stood with what was written, so a restart tells
//! nothing again, and what was held back until it had stood is told no sooner.
//! An ordinary life has no events; how a guest ended is told elsewhere.

use kite_api::condition::{self, PAUSED, POWER_IN_SYNC, READY, RESTART_REQUIRED};
use kite_api::{Condition, KiteVirtualMachineStatus, Phase};

use crate::status::power::START_NEEDED;
use crate::status::table::NODE_UNREACHABLE;

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// A person may have to act.
    pub warning: bool,
    /// One CamelCase word.
    pub reason: String,
    /// A sentence.
    pub note: String,
}

/// The events of a write.
pub fn news(before: &KiteVirtualMachineStatus, after: &KiteVirtualMachineStatus) -> Vec<News> {
    let (stood, ready) = (of(before, READY), of(after, READY));
    let failed = |s: &KiteVirtualMachineStatus| s.phase == Some(Phase::Failed);
    let lost = |c: Option<&Condition>| c.is_some_and(|c| c.reason == NODE_UNREACHABLE);
    let mut news = Vec::new();
    if let Some(ready) = ready {
        let was_bad = failed(before) || lost(stood);
        if (failed(after) && !failed(before)) || (lost(Some(ready)) && !lost(stood)) {
            news.push(told(true, ready));
        } else if was_bad && ready.status == "True" {
            news.push(News {
                warning: false,
                reason: "Recovered".to_owned(),
                note: ready.message.clone(),
            });
        }
    }
    let turned = |type_, status: &str| {
        let was = of(before, type_).is_some_and(|c| c.status == status);
        of(after, type_).filter(|c| c.status == status && !was)
    };
    // That a start is needed is kite-vm's to deal with.
    let drifted = turned(POWER_IN_SYNC, "False").filter(|c| c.reason != START_NEEDED);
    news.extend(drifted.map(|c| told(true, c)));
    let shown = [(PAUSED, "Paused"), (RESTART_REQUIRED, "RestartRequired")];
    news.extend(shown.into_iter().filter_map(|(type_, reason)| {
        let turned = turned(type_, "True")?;
        Some(News {
            reason: reason.to_owned(),
            ..told(false, turned)
        })
    }));
    news
}

fn of<'a>(status: &'a KiteVirtualMachineStatus, type_: &str) -> Option<&'a Condition> {
    condition::find(&status.conditions, type_)
}

fn told(warning: bool, condition: &Condition) -> News {
    News {
        warning,
        reason: condition.reason.clone(),
        note: condition.message.clone(),
    }
}
