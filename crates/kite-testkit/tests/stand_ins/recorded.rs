//! The recordings, read as what a machine said of itself step by step, and the
//! comparison with what the stand-in made it say.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use kube::api::DynamicObject;
use serde_json::Value;

/// A recorded state that stood shorter than this is a race of caches.
const FLASH: f64 = 0.2;

/// What the comparison is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Said {
    pub(crate) printable: String,
    pub(crate) created: bool,
    pub(crate) ready: String,
    pub(crate) strategy: String,
}

impl fmt::Debug for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let created = if self.created { "created" } else { "-" };
        write!(
            f,
            "{} {created} Ready={} status.runStrategy={}",
            self.printable, self.ready, self.strategy
        )
    }
}

impl Said {
    /// What a status says; nothing before it says anything.
    fn of(status: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
        let printable = text(&status["printableStatus"]);
        let conditions = status["conditions"].as_array();
        let ready = conditions
            .into_iter()
            .flatten()
            .find(|condition| condition["type"] == "Ready")
            .map(|ready| match ready["reason"].as_str() {
                Some(reason) => format!("{}:{reason}", text(&ready["status"])),
                None => text(&ready["status"]),
            });
        (!printable.is_empty()).then(|| Self {
            printable,
            created: status["created"] == true,
            ready: ready.unwrap_or_default(),
            strategy: text(&status["runStrategy"]),
        })
    }

    /// What a live machine says.
    pub(crate) fn live(machine: &DynamicObject) -> Option<Self> {
        Self::of(&machine.data["status"])
    }
}

/// One recording.
pub(crate) struct Recording {
    lines: Vec<Value>,
}

impl Recording {
    pub(crate) fn read(name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("recordings")
            .join(name);
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        Self { lines }
    }

    /// All lines of a kind.
    pub(crate) fn of(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.lines.iter().filter(move |line| line["kind"] == kind)
    }

    /// Everything that machines ever said in it.
    pub(crate) fn vocabulary(&self) -> BTreeSet<Said> {
        self.of("VM")
            .filter_map(|line| Said::of(&line["status"]))
            .collect()
    }

    /// What a machine said and stood by in the steps that begin with `step`.
    pub(crate) fn stood(&self, step: &str) -> Vec<Said> {
        let lines: Vec<&Value> = self
            .of("VM")
            .filter(|line| line["type"] != "DELETED")
            .collect();
        let mut stood = Vec::new();
        for (index, line) in lines.iter().enumerate() {
            let Some(said) = Said::of(&line["status"]) else {
                continue;
            };
            let time = |line: &Value| line["t"].as_f64().unwrap();
            let next = lines[index + 1..]
                .iter()
                .find(|next| Said::of(&next["status"]).as_ref() != Some(&said));
            let stands = next.is_none_or(|next| time(next) - time(line) >= FLASH);
            let here = line["step"].as_str().unwrap().starts_with(step);
            if here && stands && stood.last() != Some(&said) {
                stood.push(said);
            }
        }
        stood
    }
}

/// Fails unless `stood` is said in this order, and nothing outside `known`.
pub(crate) fn compare(step: &str, stood: &[Said], known: &BTreeSet<Said>, live: &[Said]) {
    let mut rest = live.iter();
    for wanted in stood {
        assert!(
            rest.any(|said| said == wanted),
            "step {step}: {wanted:?} is missing\nrecorded: {stood:#?}\nlive: {live:#?}"
        );
    }
    for said in live {
        assert!(
            known.contains(said),
            "step {step}: never recorded: {said:?}\nlive: {live:#?}"
        );
    }
}
