//! When the server itself is asked for a claim that no watch shows, and what its answer is good for.

use std::sync::Arc;
use std::time::Duration;

use kite_datavolume::observe::{Doubt, Found};
use kite_datavolume::status::clocks::Looks;
use serde_json::json;
use tokio::time::Instant;

use crate::player::HOLDS;

/// The looks, with the doubt and the clock played.
struct Asker {
    looks: Looks,
    start: Instant,
}

impl Asker {
    fn new() -> Self {
        Self {
            looks: Looks::default(),
            start: Instant::now(),
        }
    }

    /// Whether to look at a second, and in how many the next look is due.
    fn at(&mut self, second: u64, doubt: Option<&Doubt>) -> (bool, Option<u64>) {
        let now = self.start + Duration::from_secs(second);
        let (due, next) = self.looks.due(doubt, &HOLDS, now);
        (due, next.map(|wait| wait.as_secs()))
    }
}

fn recorded(uid: &str) -> Doubt {
    Doubt::Recorded(uid.to_owned())
}

// D-5, D-7, C-5: an ordinary life asks nothing, and a doubt that stays is asked about each minute.
#[test]
fn a_doubt_is_asked_about_when_it_has_stood_and_then_each_minute() {
    for (doubt, hold) in [(recorded("c1"), 2), (Doubt::Planted, 10)] {
        let mut asker = Asker::new();
        let standing = Some(&doubt);
        assert_eq!(asker.at(0, None), (false, None));
        assert_eq!(asker.at(100, standing), (false, Some(hold)));
        assert_eq!(asker.at(99 + hold, standing), (false, Some(1)));
        assert_eq!(asker.at(100 + hold, standing), (true, None));
        // Its answer is still on the way; then it has come, and stands for a minute.
        assert_eq!(asker.at(101 + hold, standing), (true, None));
        let answered = asker.start + Duration::from_secs(200);
        asker.looks.met(doubt.clone(), None, answered);
        assert_eq!(asker.at(200, standing), (false, Some(60)));
        assert_eq!(asker.at(259, standing), (false, Some(1)));
        assert_eq!(asker.at(260, standing), (true, None));
        // Once it is gone, the next one has to stand anew.
        assert_eq!(asker.at(261, None), (false, None));
        assert_eq!(asker.at(262, standing), (false, Some(hold)));
    }
}

// D-5
#[test]
fn an_answer_about_one_claim_is_none_about_another() {
    let mut asker = Asker::new();
    asker.at(0, Some(&recorded("c1")));
    let answered = asker.start + Duration::from_secs(2);
    asker.looks.met(recorded("c1"), None, answered);
    assert_eq!(asker.at(3, Some(&recorded("c2"))), (false, Some(2)));
    assert_eq!(asker.at(5, Some(&recorded("c2"))), (true, None));
    assert!(!asker.looks.complete(Found::default()).looked);
}

// D-5, D-7: what a watch shows is newer than what was once asked for.
#[test]
fn an_answer_fills_in_what_no_watch_shows_and_nothing_else() {
    let claim = |uid: &str| {
        let claim = json!({"metadata": {"name": "web", "uid": uid}});
        Some(Arc::new(serde_json::from_value(claim).unwrap()))
    };
    let unseen = Found {
        served: true,
        ..Found::default()
    };
    let shown = Found {
        claim: claim("shown"),
        ..unseen.clone()
    };
    let uid = |found: &Found| found.claim.as_ref().and_then(|c| c.metadata.uid.clone());
    let mut looks = Looks::default();
    let nothing = looks.complete(unseen.clone());
    assert!(nothing.served && !nothing.looked && nothing.claim.is_none());
    for answer in [None, claim("asked")] {
        looks.met(Doubt::Planted, answer.clone(), Instant::now());
        let completed = looks.complete(unseen.clone());
        assert!(completed.served && completed.looked);
        assert_eq!(completed.claim, answer);
        let watched = looks.complete(shown.clone());
        assert_eq!(uid(&watched).as_deref(), Some("shown"));
        assert!(!watched.looked);
    }
}
